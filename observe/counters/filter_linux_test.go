package counters

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/internal/netbed"
	"pelt/internal/testenv"
	"pelt/model"
)

var countAndDrop = []expr.Any{&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop}}

// udpOnly matches UDP, so that the rule has something to match.
var udpOnly = netbed.Of(unix.IPPROTO_UDP)

// A rule of a chain that another one jumps to; then another rule while the Reader is open, and one gone. A rule that
// counts and drops nothing is not read.
func TestRules(t *testing.T) {
	w := newWire(t, 1)
	var input *nftables.Chain
	w.Receiver.NFT(func(c *nftables.Conn) {
		input = netbed.HookChain(c, "filter", nftables.ChainHookInput)
		user := c.AddChain(&nftables.Chain{Name: "user.chain", Table: input.Table})
		c.AddRule(&nftables.Rule{Table: input.Table, Chain: input,
			Exprs: []expr.Any{&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictJump, Chain: "user.chain"}}})
		c.AddRule(&nftables.Rule{Table: input.Table, Chain: user, Exprs: slices.Concat(udpOnly, countAndDrop)})
	})
	_, b := w.moved(t, func() { w.send(t, receiverPort) })
	if b["nft.inet.filter.user:chain.input.4.packets"] != some || b["Ip.InDelivers"] != 0 {
		t.Errorf("moved: %v", b)
	}
	for _, r := range w.receiver.Read().readings {
		if strings.HasPrefix(r.name, "nft.") && !strings.HasPrefix(r.name, "nft.inet.filter.user:chain.") {
			t.Errorf("read %s", r.name)
		}
	}
	w.Receiver.NFT(func(c *nftables.Conn) {
		c.FlushChain(input)
		c.AddRule(&nftables.Rule{Table: input.Table, Chain: input, Exprs: slices.Concat(udpOnly, countAndDrop)})
	})
	_, b = w.moved(t, func() { w.send(t, receiverPort) })
	if b["nft.inet.filter.hook1.input.5.packets"] != some || b["nft.inet.filter.user:chain.4.packets"] != 0 {
		t.Errorf("moved: %v", b)
	}
}

// rulesToRead has rules of each kind. Those that a counter speaks for have 7 packets.
const rulesToRead = `
table inet fw4 {
 chain handle_reject {
  meta l4proto tcp reject with tcp reset comment "!fw4: Reject TCP traffic"
  reject comment "!fw4: Reject any other traffic"
 }
 chain reject_to_wan {
  oifname "wan" counter packets 7 bytes 9 jump handle_reject comment "!fw4: reject wan traffic"
 }
 chain counts_itself {
  counter packets 7 bytes 1 reject
 }
 set addresses {
  type ipv4_addr
  elements = { 1.2.3.4, 1.2.3.5 }
 }
 chain forward {
  type filter hook forward priority filter; policy drop;
  ct state vmap { established : accept, related : accept }
  ip daddr 10.0.0.1 udp dport 7359 counter packets 7 bytes 9 drop comment "counter packets 5 bytes 5 # handle 3"
  counter packets 1 bytes 9 udp dport 5 drop
  udp dport 6 counter packets 7 bytes 9 log prefix "a drop" level warn drop
  udp dport 6 counter packets 7 bytes 9 log prefix "b" flags tcp sequence,options drop
  udp dport 6 counter packets 1 bytes 9 limit rate 10/second drop
  limit rate 10/second counter packets 7 bytes 9 reject with icmpx type port-unreachable
  tcp dport vmap { 22 : drop }
  jump reject_to_wan
  counter packets 1 bytes 9 jump counts_itself
  counter packets 1 bytes 9
  jump handle_reject
 }
 chain my.chain {
  counter packets 7 bytes 9 reject
 }
}
table ip6 t {
 chain output {
  type filter hook output priority 5; policy accept;
  counter packets 1 bytes 1 goto more
  counter packets 1 bytes 1 jump last
 }
 chain more {
  counter packets 1 bytes 1 accept
  drop
 }
 chain last {
  drop
  udp dport 5 drop
 }
}
`

// What nft prints on a router is read as what netlink tells of this host.
func TestRulesAsText(t *testing.T) {
	testenv.Tool(t, "nft")
	n := netbed.Namespace(t)
	nft := func(input string, args ...string) string {
		var out strings.Builder
		c := exec.Command("nft", args...)
		c.Stdin, c.Stdout, c.Stderr = strings.NewReader(input), &out, &out
		n.Must(c.Start)
		if err := c.Wait(); err != nil {
			t.Fatalf("nft: %v\n%s", err, &out)
		}
		return out.String()
	}
	nft(rulesToRead, "-f", "-")
	text := nft("", "-a", "-t", "list", "ruleset")
	told := Machine{}.Parse(time.Unix(1, 0), map[string]string{RouterRules: text})
	r, err := Open(n.Do)
	testenv.Must(t, err)
	got, want := map[string]uint64{}, map[string]uint64{}
	for _, one := range told.readings {
		got[one.name] = one.value
	}
	for _, one := range r.Read().readings {
		if strings.HasPrefix(one.name, "nft.") {
			want[one.name] = one.value
			if one.value != 7 {
				t.Errorf("%s is %d", one.name, one.value)
			}
		}
	}
	if !maps.Equal(got, want) || len(want) != 7 {
		t.Errorf("the text says %v\nnetlink %v\n%s", got, want, text)
	}
}

// The file and netlink tell the same of connection tracking.
func TestConntrackBothWays(t *testing.T) {
	w := newWire(t, 1)
	w.Receiver.NFT(func(c *nftables.Conn) { // tracks connections, and finds packets it cannot place
		chain := netbed.HookChain(c, "track", nftables.ChainHookInput)
		c.AddRule(&nftables.Rule{Table: chain.Table, Chain: chain,
			Exprs: []expr.Any{&expr.Ct{Key: expr.CtKeySTATE, Register: 1}}})
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
	testenv.Must(t, err)
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

// What tc prints on a router of queues and policers is read as what netlink tells of this host.
func TestQueuesAsText(t *testing.T) {
	testenv.Tool(t, "tc")
	n := netbed.Namespace(t)
	tc := func(args ...string) (string, error) {
		var out strings.Builder
		c := exec.Command("tc", args...)
		c.Stdout, c.Stderr = &out, &out
		n.Must(c.Start)
		err := c.Wait()
		return out.String(), err
	}
	names := map[string]bool{}
	for i, kind := range []string{"tbf rate 20mbit burst 16kb limit 60kb", "tbf rate 50kbit burst 1500 latency 400ms",
		"tbf rate 1gbit burst 1mb limit 3mb", "pfifo limit 20", "bfifo limit 30000", "fq_codel limit 200",
		"cake bandwidth 50mbit memlimit 4mb", "sfq limit 100", "fq limit 5000",
		"red limit 60000 min 15000 max 45000 avpkt 1000 burst 20 bandwidth 10mbit"} {
		name := fmt.Sprint("d", i)
		n.Must(func() error {
			return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: "peer" + name})
		})
		out, err := tc(append([]string{"qdisc", "add", "dev", name, "root", "handle", "1:"}, strings.Fields(kind)...)...)
		if err != nil {
			t.Logf("%s: %s", kind, strings.TrimSpace(out)) // not all kernels have all
			continue
		}
		names[name] = true
	}
	if len(names) < 5 {
		t.Errorf("only %d queues were made", len(names))
	}
	const police = "filter add dev d0 ingress protocol all matchall action police rate 20mbit burst 16k"
	policed := false
	if _, err := tc("qdisc", "add", "dev", "d0", "clsact"); err == nil {
		_, err = tc(strings.Fields(police)...)
		policed = err == nil
	}
	texts := map[string]string{}
	var err error
	for name, command := range map[string]string{RouterQueues: "-s qdisc show",
		RouterActions: "-s actions list action police"} {
		if texts[name], err = tc(strings.Fields(command)...); err != nil {
			t.Log(err, texts[name])
		}
	}
	n.Must(func() error {
		dev, err := os.ReadFile("/proc/thread-self/net/dev")
		texts["/proc/net/dev"] = string(dev)
		return err
	})
	told := Machine{}.Parse(time.Unix(1, 0), texts)
	r, err := Open(n.Do)
	testenv.Must(t, err)
	here := r.Read()
	type plain model.Queue // without its short form
	near := func(a, b uint64) bool { return max(a, b)-min(a, b) <= max(a, b)/50 }
	for _, want := range Queues(Snapshot{}, Snapshot{}, here) {
		ok := !names[want.Interface]
		for _, got := range Queues(Snapshot{}, Snapshot{}, told) {
			ok = ok || got.Interface == want.Interface && got.Kind == want.Kind && got.RateBPS == want.RateBPS &&
				got.LimitPackets == want.LimitPackets && near(got.LimitBytes, want.LimitBytes) &&
				near(got.BurstBytes, want.BurstBytes)
		}
		if !ok {
			t.Errorf("netlink: %+v\ntext:\n%s", plain(want), texts[RouterQueues])
		}
	}
	if len(here.policers) != len(told.policers) || policed && (len(here.policers) != 1 ||
		here.policers[0].rate != told.policers[0].rate || here.policers[0].index != told.policers[0].index ||
		!near(here.policers[0].burst, 16384) || told.policers[0].burst != 16384) {
		t.Errorf("policers by netlink: %+v, by text: %+v of\n%s", here.policers, told.policers, texts[RouterActions])
	}
}
