package counters

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"pelt/internal/netbed"
)

var countAndDrop = []expr.Any{&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop}}

// udpOnly matches UDP, so that the rule has something to match.
var udpOnly = []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_UDP}}}

// A rule of a chain that another one jumps to; then another rule while the Reader is open, and one gone. A rule that
// counts and drops nothing is not read.
func TestRules(t *testing.T) {
	w := newWire(t, 1)
	var input *nftables.Chain
	w.Receiver.NFT(func(c *nftables.Conn) {
		input = netbed.HookChain(c, "filter", nftables.ChainHookInput)
		user := c.AddChain(&nftables.Chain{Name: "user.chain", Table: input.Table})
		c.AddRule(&nftables.Rule{Table: input.Table, Chain: input, Exprs: []expr.Any{&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictJump, Chain: "user.chain"}}})
		c.AddRule(&nftables.Rule{Table: input.Table, Chain: user, Exprs: slices.Concat(udpOnly, countAndDrop)})
	})
	_, b := w.moved(t, func() { w.send(t, receiverPort) })
	if b["nft.inet.filter.user_chain.input.4.packets"] != some || b["Ip.InDelivers"] != 0 {
		t.Errorf("moved: %v", b)
	}
	for _, r := range w.receiver.Read().readings {
		if strings.HasPrefix(r.name, "nft.") && !strings.HasPrefix(r.name, "nft.inet.filter.user_chain.") {
			t.Errorf("read %s", r.name)
		}
	}
	w.Receiver.NFT(func(c *nftables.Conn) {
		c.FlushChain(input)
		c.AddRule(&nftables.Rule{Table: input.Table, Chain: input, Exprs: slices.Concat(udpOnly, countAndDrop)})
	})
	_, b = w.moved(t, func() { w.send(t, receiverPort) })
	if b["nft.inet.filter.hook1.input.5.packets"] != some || b["nft.inet.filter.user_chain.4.packets"] != 0 {
		t.Errorf("moved: %v", b)
	}
}

// The file and netlink tell the same of connection tracking.
func TestConntrackBothWays(t *testing.T) {
	w := newWire(t, 1)
	w.Receiver.NFT(func(c *nftables.Conn) { // tracks connections, and finds packets it cannot place
		chain := netbed.HookChain(c, "track", nftables.ChainHookInput)
		c.AddRule(&nftables.Rule{Table: chain.Table, Chain: chain, Exprs: []expr.Any{&expr.Ct{Key: expr.CtKeySTATE, Register: 1}}})
	})
	w.Receiver.Sysctl("net/netfilter/nf_conntrack_checksum", "1")
	for range some {
		w.Sender.SendRaw(netbed.Spoilt(netbed.Datagram(1234, testPort, 0, make([]byte, 64)))) // invalid
	}
	w.settle(t)
	tracked := func(s Snapshot) string {
		all := map[string]uint64{}
		for _, c := range conntrackCounters {
			all[c.name], _ = sum(s, "conntrack."+c.name)
		}
		return fmt.Sprint(all)
	}
	r, err := Open(w.Receiver.Do)
	if err != nil {
		t.Fatal(err)
	}
	both := r.Read()
	var asked Snapshot
	w.Receiver.Must(func() error {
		c, err := dial(unix.NETLINK_NETFILTER)
		if err != nil {
			return err
		}
		defer c.Close()
		return asked.askConntrack(c)
	})
	if tracked(both) != tracked(asked) {
		t.Errorf("the reading says %v, netlink %v", tracked(both), tracked(asked))
	}
	if n, _ := sum(asked, "conntrack.invalid"); n < some {
		t.Errorf("%d of %d packets were invalid", n, some)
	}
}

// What netfilter counts is read also if its modules come after the Reader.
func TestModulesComeLater(t *testing.T) {
	w := newWire(t, 1)
	r := w.receiver
	r.tables = false // as where nothing is loaded
	w.Receiver.Rule(nftables.ChainHookInput, countAndDrop...)
	s := r.Read()
	for _, name := range []string{"nft.inet.fault.hook1.input.2.packets", "conntrack.drop"} {
		if _, there := sum(s, name); !there {
			t.Errorf("%s was not read", name)
		}
	}
}
