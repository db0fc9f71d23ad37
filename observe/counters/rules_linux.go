package counters

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Messages of netfilter's netlink: sub-system, then kind (nfnetlink.h,
// nf_tables.h, nfnetlink_conntrack.h).
const (
	newChain = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWCHAIN
	getChain = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETCHAIN
	newRule  = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWRULE
	getRule  = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETRULE
	ctStats  = unix.NFNL_SUBSYS_CTNETLINK<<8 | 4 // IPCTNL_MSG_CT_GET_STATS_CPU, the answer's type, too
)

// anyFamily is a request for what all families of protocols have.
var anyFamily = []byte{unix.AF_UNSPEC, 0, 0, 0}

// Values of include/uapi/linux/netfilter/nf_tables.h.
const (
	nfHeader = 4 // struct nfgenmsg: family, version, resource

	verdictDrop = 0
	verdictMask = 0xff // the rest may hold an errno
)

// chainKey names a chain.
type chainKey struct {
	family       uint8
	table, chain string
}

// chain is a chain of rules.
type chain struct {
	chainKey
	hook    string // it hangs on; "" if it is only jumped to
	drops   bool   // its policy
	counted bool   // the policy has a counter
	packets uint64 // that met the policy
}

// rule is one rule.
type rule struct {
	chainKey
	handle  uint64
	loses   bool     // it drops or rejects exactly the packets that it counts
	packets uint64   // counted
	targets []string // chains it jumps to
}

var families = map[uint8]string{1: "inet", 2: "ip", 3: "arp", 5: "netdev", 7: "bridge", 10: "ip6"}

func family(number uint8) string {
	if name, ok := families[number]; ok {
		return name
	}
	return fmt.Sprintf("family%d", number)
}

// hookNames are the hooks of most families in the order of their numbers.
var hookNames = []string{"prerouting", "input", "forward", "output", "postrouting", "ingress"}

// hook names the hook by its number, which depends on the family.
func hook(family uint8, number uint32) string {
	names := hookNames
	switch family {
	case 3:
		names = []string{"input", "output", "forward"}
	case 5:
		names = []string{"ingress", "egress"}
	}
	if int64(number) < int64(len(names)) {
		return names[number]
	}
	return ""
}

// decodeChain reads a message of type NFT_MSG_NEWCHAIN.
func decodeChain(b []byte) (c chain, err error) {
	hooked, hookNumber := false, uint32(0)
	err = decode(b, nfHeader, binary.BigEndian, func(a *netlink.AttributeDecoder) {
		switch a.Type() {
		case unix.NFTA_CHAIN_TABLE:
			c.table = a.String()
		case unix.NFTA_CHAIN_NAME:
			c.chain = a.String()
		case unix.NFTA_CHAIN_HOOK:
			a.Nested(walk(func(a *netlink.AttributeDecoder) {
				if a.Type() == unix.NFTA_HOOK_HOOKNUM {
					hooked, hookNumber = true, a.Uint32()
				}
			}))
		case unix.NFTA_CHAIN_POLICY:
			c.drops = a.Uint32() == verdictDrop
		case unix.NFTA_CHAIN_COUNTERS:
			a.Nested(walk(func(a *netlink.AttributeDecoder) {
				if a.Type() == unix.NFTA_COUNTER_PACKETS {
					c.counted, c.packets = true, a.Uint64()
				}
			}))
		}
	})
	if err == nil && (c.table == "" || c.chain == "") {
		err = errors.New("a chain has no name")
	}
	if err == nil {
		c.family = b[0]
	}
	if hooked {
		c.hook = hook(c.family, hookNumber)
	}
	return c, err
}

// decodeRule reads a message of type NFT_MSG_NEWRULE.
func decodeRule(b []byte) (r rule, err error) {
	counted := false
	err = decode(b, nfHeader, binary.BigEndian, func(a *netlink.AttributeDecoder) {
		switch a.Type() {
		case unix.NFTA_RULE_TABLE:
			r.table = a.String()
		case unix.NFTA_RULE_CHAIN:
			r.chain = a.String()
		case unix.NFTA_RULE_HANDLE:
			r.handle = a.Uint64()
		case unix.NFTA_RULE_EXPRESSIONS:
			a.Nested(walk(func(expression *netlink.AttributeDecoder) {
				expression.Nested(func(a *netlink.AttributeDecoder) (err error) {
					counted, err = r.decodeExpression(a, counted)
					return err
				})
			}))
		}
	})
	if err == nil && (r.table == "" || r.chain == "" || r.handle == 0) {
		err = errors.New("a rule has no handle")
	}
	if err == nil {
		r.family = b[0]
	}
	return r, err
}

// decodeExpression reads one of a rule's expressions, which run in order until one does not match: a counter tells
// what the verdict let go only if all between them matches always. counted says that a counter came before, and
// since then nothing that might not match.
func (r *rule) decodeExpression(a *netlink.AttributeDecoder, counted bool) (bool, error) {
	kind, body := "", []byte(nil)
	for a.Next() {
		switch a.Type() {
		case unix.NFTA_EXPR_NAME:
			kind = a.String()
		case unix.NFTA_EXPR_DATA:
			body = dataOf(a)
		}
	}
	if err := a.Err(); err != nil {
		return false, err
	}
	switch kind {
	case "counter":
		err := decode(body, 0, binary.BigEndian, func(a *netlink.AttributeDecoder) {
			if a.Type() == unix.NFTA_COUNTER_PACKETS {
				counted, r.packets = true, a.Uint64()
			}
		})
		return counted, err
	case "immediate":
		code, target, err := decodeVerdict(body)
		switch {
		case code == unix.NFT_JUMP || code == unix.NFT_GOTO:
			r.targets = append(r.targets, target)
		case code >= 0 && code&verdictMask == verdictDrop: // negative ones are nf_tables' own
			r.loses = r.loses || counted
		}
		return counted, err
	case "reject":
		r.loses = r.loses || counted
		return counted, nil
	case "target": // iptables-nft
		err := decode(body, 0, binary.BigEndian, func(a *netlink.AttributeDecoder) {
			if a.Type() == unix.NFTA_TARGET_NAME {
				name := a.String()
				r.loses = r.loses || counted && (name == "REJECT" || name == "DROP")
			}
		})
		return counted, err
	case "log":
		return counted, nil
	}
	return false, nil
}

// decodeVerdict reads the data of an immediate expression. code is noVerdict if it sets another register.
func decodeVerdict(body []byte) (code int32, chain string, err error) {
	const noVerdict = 1 // NF_ACCEPT, which drops nothing
	code = noVerdict
	register := uint32(unix.NFT_REG_VERDICT)
	err = decode(body, 0, binary.BigEndian, func(a *netlink.AttributeDecoder) {
		switch a.Type() {
		case unix.NFTA_IMMEDIATE_DREG:
			register = a.Uint32()
		case unix.NFTA_IMMEDIATE_DATA:
			a.Nested(walk(func(a *netlink.AttributeDecoder) {
				if a.Type() != unix.NFTA_DATA_VERDICT {
					return
				}
				a.Nested(walk(func(a *netlink.AttributeDecoder) {
					switch a.Type() {
					case unix.NFTA_VERDICT_CODE:
						code = a.Int32()
					case unix.NFTA_VERDICT_CHAIN:
						chain = a.String()
					}
				}))
			}))
		}
	})
	if register != unix.NFT_REG_VERDICT {
		code = noVerdict
	}
	return code, chain, err
}

// hooks finds the one hook from which each chain is reached, through jumps that
// stand in rules; those from verdict maps are not looked up. A chain reached from
// several hooks, or none, has "".
func hooks(chains []chain, rules []rule) map[chainKey]string {
	found := map[chainKey]string{}
	next := map[chainKey][]chainKey{}
	for _, r := range rules {
		for _, target := range r.targets {
			next[r.chainKey] = append(next[r.chainKey], chainKey{r.family, r.table, target})
		}
	}
	for _, base := range chains {
		if base.hook == "" {
			continue
		}
		seen := map[chainKey]bool{base.chainKey: true}
		for queue := []chainKey{base.chainKey}; len(queue) > 0; queue = queue[1:] {
			c := queue[0]
			if was, other := found[c]; other && was != base.hook {
				found[c] = ""
			} else {
				found[c] = base.hook
			}
			for _, target := range next[c] {
				if !seen[target] {
					seen[target] = true
					queue = append(queue, target)
				}
			}
		}
	}
	return found
}

// ruleName is the name of a rule's counter; last is its handle or policy.
func ruleName(k chainKey, hook, last string) string {
	place := plainName(k.chain)
	switch {
	case hook == k.chain:
		place = hook
	case hook != "":
		place += "." + hook
	}
	return fmt.Sprintf("nft.%s.%s.%s.%s.packets", family(k.family), plainName(k.table), place, last)
}

// plainName makes a name that a user chose one component, and one that cannot be
// taken for a hook's.
func plainName(name string) string {
	if slices.Contains(hookNames, name) {
		return "named_" + name
	}
	return strings.ReplaceAll(name, ".", "_")
}

// loaded reports whether a module is in the kernel; when in doubt it says yes.
func loaded(module string) bool {
	list, err := os.ReadFile("/proc/modules")
	if err != nil || bytes.HasPrefix(list, []byte(module+" ")) || bytes.Contains(list, []byte("\n"+module+" ")) {
		return true // a kernel without modules has what it has
	}
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	builtin, err := os.ReadFile("/lib/modules/" + oneLine(release) + "/modules.builtin")
	return err != nil || // without that directory no module can be loaded either
		bytes.Contains(builtin, []byte("/"+module+".ko"))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// readFilter adds what netfilter counts. Asking a sub-system that is not there would make the kernel load its module,
// so it is asked only where it is. Some kernels have no file of connection tracking's statistics.
func (r *Reader) readFilter(s *Snapshot) {
	r.tables = r.tables || loaded("nf_tables")
	tracking := exists("/proc/sys/net/netfilter/nf_conntrack_count") && !exists("/proc/thread-self/net/stat/nf_conntrack")
	if !r.tables && !tracking {
		return
	}
	c, err := dial(unix.NETLINK_NETFILTER)
	if err != nil {
		s.lacks("netfilter", err)
		return
	}
	defer c.Close()
	if r.tables {
		if err := s.askRules(c); err != nil {
			s.lacks("nft rules", err)
		}
	}
	if tracking {
		if err := s.askConntrack(c); err != nil {
			s.lacks("conntrack", err)
		}
	}
}

// askRules adds the counters of rules that drop, and of chains whose policy does.
func (s *Snapshot) askRules(c *netlink.Conn) error {
	chains, err := list(c, getChain, newChain, anyFamily, decodeChain)
	if err != nil || len(chains) == 0 {
		return err
	}
	rules, err := list(c, getRule, newRule, anyFamily, decodeRule)
	if err != nil {
		return err
	}
	from := hooks(chains, rules)
	add := func(k chainKey, last string, packets uint64) {
		name := ruleName(k, from[k], last)
		s.add(series{name: name, scope: namespaceScope, unit: skbUnit, bits: 64, role: primary | loss}, 0, packets)
	}
	for _, r := range rules {
		if r.loses {
			add(r.chainKey, decimal(r.handle), r.packets)
		}
	}
	for _, c := range chains {
		if c.hook != "" && c.drops && c.counted {
			add(c.chainKey, "policy", c.packets)
		}
	}
	return nil
}

// askConntrack adds the statistics of connection tracking, by processor.
func (s *Snapshot) askConntrack(c *netlink.Conn) error {
	payloads, err := dump(c, ctStats, ctStats, anyFamily)
	if err == nil && len(payloads) == 0 {
		err = errors.New("no processor listed")
	}
	for i := 0; i < len(payloads) && err == nil; i++ {
		err = s.decodeConntrack(payloads[i])
	}
	return err
}

func (s *Snapshot) decodeConntrack(b []byte) error {
	return decode(b, nfHeader, binary.BigEndian, func(a *netlink.AttributeDecoder) {
		processor := uint64(binary.BigEndian.Uint16(b[2:])) // the resource of struct nfgenmsg
		for _, e := range conntrackCounters {
			if e.attribute == a.Type() {
				s.addNamed("conntrack", e.name, processor, uint64(a.Uint32()))
			}
		}
	})
}
