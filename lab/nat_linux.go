package lab

import (
	"encoding/binary"
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// addMasquerade hides what lies behind the interface inside, in the calling
// thread's namespace. It is what a home router does:
//
//	table inet lab {
//	  chain postrouting { type nat hook postrouting priority srcnat; oifname != inside masquerade }
//	  chain forward { type filter hook forward priority filter; policy drop
//	    ct state established,related accept; iifname inside accept }
//	}
func addMasquerade(inside string) error {
	c, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open nftables: %w", err)
	}
	drop := nftables.ChainPolicyDrop
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "lab"})
	post := c.AddChain(&nftables.Chain{Table: table, Name: "postrouting", Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource})
	fwd := c.AddChain(&nftables.Chain{Table: table, Name: "forward", Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter, Policy: &drop})
	c.AddRule(&nftables.Rule{Table: table, Chain: post,
		Exprs: byInterface(expr.MetaKeyOIFNAME, expr.CmpOpNeq, inside, &expr.Masq{})})
	known := binary.NativeEndian.AppendUint32(nil, expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED)
	c.AddRule(&nftables.Rule{Table: table, Chain: fwd, Exprs: []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: known, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
		&expr.Verdict{Kind: expr.VerdictAccept},
	}})
	accept := &expr.Verdict{Kind: expr.VerdictAccept}
	c.AddRule(&nftables.Rule{Table: table, Chain: fwd,
		Exprs: byInterface(expr.MetaKeyIIFNAME, expr.CmpOpEq, inside, accept)})
	if err := c.Flush(); err != nil {
		return missing("nftables masquerade", "CONFIG_NF_TABLES_INET, CONFIG_NFT_MASQ",
			fmt.Errorf("add masquerade: %w", err))
	}
	return nil
}

// byInterface does something to packets whose interface has a name, or another.
func byInterface(key expr.MetaKey, op expr.CmpOp, name string, do expr.Any) []expr.Any {
	padded := make([]byte, unix.IFNAMSIZ)
	copy(padded, name)
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: op, Register: 1, Data: padded}, do}
}
