package counters

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

func baseChain(c *nftables.Conn, table *nftables.Table, name string, hook *nftables.ChainHook, policy nftables.ChainPolicy) *nftables.Chain {
	return c.AddChain(&nftables.Chain{Name: name, Table: table, Type: nftables.ChainTypeFilter, Hooknum: hook,
		Priority: nftables.ChainPriorityFilter, Policy: &policy})
}

func counterThen(kind expr.VerdictKind, chain string) []expr.Any {
	return []expr.Any{&expr.Counter{}, &expr.Verdict{Kind: kind, Chain: chain}}
}

// udpOnly matches UDP, so that the rule has something to match.
func udpOnly() []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_UDP}}}
}

func TestRuleIn(t *testing.T) {
	w := newBed(t, 1, false)
	w.b.filter(t, func(c *nftables.Conn) {
		table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "filter"})
		input := baseChain(c, table, "input", nftables.ChainHookInput, nftables.ChainPolicyAccept)
		user := c.AddChain(&nftables.Chain{Name: "user.chain", Table: table})
		c.AddRule(&nftables.Rule{Table: table, Chain: input, Exprs: counterThen(expr.VerdictJump, "user.chain")})
		c.AddRule(&nftables.Rule{Table: table, Chain: user, Exprs: append(udpOnly(), counterThen(expr.VerdictDrop, "")...)})
	})
	handle := w.b.handleOf(t, "user.chain")
	out := w.a.socket(t, unix.AF_INET, netip.AddrPort{})
	a, b, _ := w.moved(t, func() { send(t, out, unix.AF_INET, w.b.at(testPort), some, payload) })
	w.a.same(t, a, w.a.sent(some))
	w.b.same(t, b, counts{"nft.inet.filter.user_chain.input." + handle + ".packets": some, "dev.b0.rx_packets": some, "Ip.InReceives": some})

	// Another rule while the Reader is open, and one gone: the set has a new generation.
	w.b.filter(t, func(c *nftables.Conn) {
		table := &nftables.Table{Family: nftables.TableFamilyINet, Name: "filter"}
		c.FlushChain(&nftables.Chain{Name: "input", Table: table})
		c.AddRule(&nftables.Rule{Table: table, Chain: &nftables.Chain{Name: "input", Table: table}, Exprs: append(udpOnly(), counterThen(expr.VerdictDrop, "")...)})
	})
	handle = w.b.handleOf(t, "input")
	_, b, _ = w.moved(t, func() { send(t, out, unix.AF_INET, w.b.at(testPort), some, payload) })
	w.b.same(t, b, counts{"nft.inet.filter.input." + handle + ".packets": some, "dev.b0.rx_packets": some, "Ip.InReceives": some})
}

// handleOf asks for the handle of a chain's only rule.
func (e *end) handleOf(t *testing.T, chain string) (handle string) {
	e.do(t, "list rules", func() error {
		c, err := nftables.New()
		if err != nil {
			return err
		}
		table := &nftables.Table{Family: nftables.TableFamilyINet, Name: "filter"}
		rules, err := c.GetRules(table, &nftables.Chain{Name: chain, Table: table})
		if err != nil {
			return err
		}
		handle = decimal(rules[len(rules)-1].Handle)
		return nil
	})
	return handle
}

func TestRuleOut(t *testing.T) {
	w := newBed(t, 1, false)
	w.a.filter(t, func(c *nftables.Conn) {
		table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "filter"})
		out := baseChain(c, table, "OUT", nftables.ChainHookOutput, nftables.ChainPolicyAccept)
		c.AddRule(&nftables.Rule{Table: table, Chain: out, Exprs: append(udpOnly(), counterThen(expr.VerdictDrop, "")...)})
	})
	handle := w.a.handleOf(t, "OUT")
	out := w.a.socket(t, unix.AF_INET, netip.AddrPort{})
	a, _, _ := w.moved(t, func() {
		if refused := send(t, out, unix.AF_INET, w.b.at(testPort), some, payload)[unix.EPERM]; refused != some {
			t.Errorf("%d of %d refused", refused, some)
		}
	})
	w.a.same(t, a, counts{"nft.inet.filter.OUT.output." + handle + ".packets": some, "Ip.OutRequests": some, "Ip.OutDiscards": some, "Udp.SndbufErrors": a["Udp.SndbufErrors"]})
}

// A rule that is replaced has another handle; one that cannot tell what it drops
// is not read; a chain's policy is.
func TestWhichRulesAreRead(t *testing.T) {
	w := newBed(t, 1, false)
	w.b.filter(t, func(c *nftables.Conn) {
		table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "filter"})
		chain := baseChain(c, table, "input", nftables.ChainHookInput, nftables.ChainPolicyDrop)
		add := func(exprs ...expr.Any) { c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: exprs}) }
		udp := udpOnly()
		add(&expr.Counter{}, udp[0], udp[1], &expr.Limit{Type: expr.LimitTypePkts, Rate: 1, Unit: expr.LimitTimeHour, Burst: 1}, &expr.Verdict{Kind: expr.VerdictDrop})
		add(&expr.Limit{Type: expr.LimitTypePkts, Rate: 1, Unit: expr.LimitTimeHour, Burst: 1}, &expr.Verdict{Kind: expr.VerdictDrop})
		add(&expr.Counter{}, &expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_PORT_UNREACH})
	})
	var read []string
	for _, r := range w.b.reader.Read().readings {
		if strings.HasPrefix(r.name, "nft.") {
			read = append(read, r.name)
		}
	}
	if !slices.Equal(read, []string{"nft.inet.filter.input.4.packets"}) {
		t.Errorf("read %v", read)
	}
	out := w.a.socket(t, unix.AF_INET, netip.AddrPort{})
	_, b, _ := w.moved(t, func() { send(t, out, unix.AF_INET, w.b.at(testPort), some, payload) })
	if n := b["nft.inet.filter.input.4.packets"]; n != some-2 {
		t.Errorf("rejected %d, want %d: %v", n, some-2, b)
	}
}

// The file and netlink tell the same of connection tracking.
func TestConntrackBothWays(t *testing.T) {
	w := newBed(t, 1, false)
	w.b.filter(t, func(c *nftables.Conn) { // tracks connections, and finds packets it cannot place
		table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "track"})
		chain := baseChain(c, table, "pre", nftables.ChainHookPrerouting, nftables.ChainPolicyAccept)
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{&expr.Ct{Key: expr.CtKeySTATE, Register: 1}}})
	})
	w.b.do(t, "have checksums looked at", func() error {
		return os.WriteFile("/proc/sys/net/netfilter/nf_conntrack_checksum", []byte("1"), 0)
	})
	raw(t, w, some, 0, 0xdead) // of a wrong checksum: invalid
	w.settle(t)
	sum := func(s Snapshot) (all map[string]uint64) {
		all = map[string]uint64{}
		for _, r := range s.readings {
			if strings.HasPrefix(r.name, "conntrack.") {
				all[r.name] += r.value
			}
		}
		return all
	}
	r, err := Open(w.b.Do)
	if err != nil {
		t.Fatal(err)
	}
	both := sum(r.Read())
	if len(both) == 0 {
		t.Fatal("connection tracking was not read")
	}
	var asked Snapshot
	w.b.do(t, "ask for connection tracking", func() error {
		c, err := dial(unix.NETLINK_NETFILTER)
		if err != nil {
			return err
		}
		defer c.Close()
		return asked.askConntrack(c)
	})
	netlink := sum(asked)
	if fmt.Sprint(both) != fmt.Sprint(netlink) {
		t.Errorf("the reading says %v, netlink %v", both, netlink)
	}
	if netlink["conntrack.invalid"] < some {
		t.Errorf("%d of %d packets were invalid: %v", netlink["conntrack.invalid"], some, netlink)
	}
}

// What netfilter counts is read also if its modules come after the Reader.
func TestModulesComeLater(t *testing.T) {
	w := newBed(t, 1, false)
	r := w.b.reader
	r.tables = false // as where nothing is loaded
	w.b.filter(t, func(c *nftables.Conn) {
		table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "filter"})
		input := baseChain(c, table, "input", nftables.ChainHookInput, nftables.ChainPolicyAccept)
		c.AddRule(&nftables.Rule{Table: table, Chain: input, Exprs: counterThen(expr.VerdictDrop, "")})
	})
	s := r.Read()
	for _, name := range []string{"nft.inet.filter.input.2.packets", "conntrack.drop"} {
		if !slices.ContainsFunc(s.readings, func(r reading) bool { return r.name == name }) {
			t.Errorf("%s was not read", name)
		}
	}
}
