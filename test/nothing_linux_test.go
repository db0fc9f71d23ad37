package test

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/internal/netbed"
	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// dataPort is where pelt serve takes packets of tests.
const dataPort = 7359

var (
	dataPackets = netbed.OfPort(unix.IPPROTO_UDP, 2, 0xffff, dataPort)
	dataAnswers = netbed.OfPort(unix.IPPROTO_UDP, 0, 0xffff, dataPort)
	dropped     = &expr.Verdict{Kind: expr.VerdictDrop}
	reset       = &expr.Reject{Type: unix.NFT_REJECT_TCP_RST}
	refused     = &expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_PORT_UNREACH}
)

// calls matches segments of TCP to a port.
func calls(port uint16) []expr.Any { return netbed.OfPort(unix.IPPROTO_TCP, 2, 0xffff, port) }

func with(match []expr.Any, more ...expr.Any) []expr.Any {
	return append(match[:len(match):len(match)], more...)
}

// TestNothingThrough breaks the path between client and server from the start, while control goes on. Whoever runs a
// test is told who stops its packets and what to do, and everything later speaks of that run.
func TestNothingThrough(t *testing.T) {
	testenv.Tool(t, "setpriv", "sleep")
	t.Parallel()
	for _, c := range []struct {
		name  string
		six   bool
		fault func(client, router, server *netbed.Node)
		args  string
		want  string // the headline, with # for a number of packets
		next  string // what to do first
		some  bool   // of the streams carry packets
		user  bool   // an ordinary one runs both programs
		port  uint16 // of TCP: every watch on this kernel sees who calls it, in whichever namespace
	}{
		{name: "the server's firewall drops", fault: func(_, _, server *netbed.Node) {
			server.Rule(nftables.ChainHookInput, with(dataPackets, &expr.Counter{}, dropped)...)
		}, want: "Nothing came through to 10.77.1.2: its firewall drops UDP port 7359. All # packets to UDP port 7359 were dropped (table fault, chain hook1).",
			next: "Let UDP port 7359 through on 10.77.1.2: nft insert rule inet fault hook1 udp dport 7359 accept"},
		{name: "the client's firewall drops the answers", fault: func(client, _, _ *netbed.Node) {
			client.Rule(nftables.ChainHookInput, with(dataAnswers, dropped)...)
		}, want: "No answer came back from 10.77.1.2: this host's own firewall drops the answers. # packets reached 10.77.1.2 on UDP port 7359, and it answered; all # answers were dropped (table fault, chain hook1).",
			next: "Let the answers of 10.77.1.2 through on this host: they come from UDP port 7359."},
		{name: "the client's firewall refuses the answers", fault: func(client, _, _ *netbed.Node) {
			client.Rule(nftables.ChainHookInput, with(dataAnswers, refused)...)
		}, want: "No answer came back from 10.77.1.2: this host's own firewall drops the answers. # packets reached 10.77.1.2 on UDP port 7359, and it answered; all # answers were dropped (table fault, chain hook1).",
			next: "Let the answers of 10.77.1.2 through on this host: they come from UDP port 7359."},
		{name: "the client's firewall refuses the answers, counters only", args: "--drops off",
			fault: func(client, _, _ *netbed.Node) {
				client.Rule(nftables.ChainHookInput, with(dataAnswers, refused)...)
			}, want: `No answer came back from 10.77.1.2: 10.77.0.1 refuses the answers ("port unreachable"). # packets reached 10.77.1.2 on UDP port 7359, and it answered; all # answers were refused.`,
			next: "Let the answers of 10.77.1.2 through on 10.77.0.1: they come from UDP port 7359."},
		{name: "odd source ports die", args: "--streams 8 --source-port 40000 --repeats 1",
			fault: func(_, router, _ *netbed.Node) {
				router.Rule(nftables.ChainHookForward, with(with(dataPackets, netbed.OfPort(unix.IPPROTO_UDP, 0, 1, 1)...), dropped)...)
			}, want: "4 of 8 streams get nothing through: 10.77.0.2's firewall drops them.", next: "Let UDP port 7359 through on 10.77.0.2.", some: true},
		{name: "the server's firewall refuses TCP", port: 7401, args: "--proto tcp", fault: func(_, _, server *netbed.Node) {
			server.Rule(nftables.ChainHookInput, with(calls(7401), reset)...)
		}, want: `Nothing came through to 10.77.1.2: its firewall drops TCP port 7401. The only packet to TCP port 7401 was dropped (table fault, chain hook1), and answered "TCP reset".`,
			next: "Let TCP port 7401 through on 10.77.1.2: nft insert rule inet fault hook1 tcp dport 7401 accept"},
		{name: "the server's firewall drops TCP", port: 7403, args: "--proto tcp", fault: func(_, _, server *netbed.Node) {
			server.Rule(nftables.ChainHookInput, with(calls(7403), &expr.Counter{}, dropped)...)
		}, want: "Nothing came through to 10.77.1.2: its firewall drops TCP port 7403. All # packets to TCP port 7403 were dropped (table fault, chain hook1).",
			next: "Let TCP port 7403 through on 10.77.1.2: nft insert rule inet fault hook1 tcp dport 7403 accept"},
		{name: "the router drops the answers of TCP", port: 7405, args: "--proto tcp", fault: func(_, router, _ *netbed.Node) {
			router.Rule(nftables.ChainHookForward, with(netbed.OfPort(unix.IPPROTO_TCP, 0, 0xffff, 7405), dropped)...)
		}, want: "No answer came back from 10.77.1.2: 10.77.1.1's firewall drops the answers. # packets reached 10.77.1.2 on TCP port 7405, and it answered; all # answers were dropped.",
			next: "Let the answers of 10.77.1.2 through on 10.77.1.1: they come from TCP port 7405."},
		{name: "the router refuses TCP by a reset", port: 7407, args: "--proto tcp --drops off", fault: func(_, router, _ *netbed.Node) {
			router.Rule(nftables.ChainHookForward, with(calls(7407), reset)...)
		}, want: "Nothing came through to 10.77.1.2: a TCP reset refuses TCP port 7407. pelt listens there, so a firewall sent it, there or on the way, or a port forward leads to another host.",
			next: "Look for a firewall or a missing port forward for TCP port 7407 between this host and 10.77.1.2."},
		{name: "the router refuses TCP", port: 7409, args: "--proto tcp --drops off", fault: func(_, router, _ *netbed.Node) {
			router.Rule(nftables.ChainHookForward, with(calls(7409), refused)...)
		}, want: `Nothing came through to 10.77.1.2: 10.77.0.2 refuses TCP port 7409 ("port unreachable"). A firewall or router there answers so, or a port forward leads to another host.`,
			next: "Let TCP port 7409 through on 10.77.0.2."},
		{name: "the router refuses, IPv6", six: true, fault: func(_, router, _ *netbed.Node) {
			router.Rule(nftables.ChainHookForward, with(dataPackets, refused)...)
		}, want: `Nothing came through to fd77:0:0:1::2: fd77::2's firewall drops UDP port 7359. All # packets to UDP port 7359 were dropped, and answered "port unreachable".`,
			next: "Let UDP port 7359 through on fd77::2."},
		{name: "the router drops the answers, down", args: "--direction down", fault: func(_, router, _ *netbed.Node) {
			router.Rule(nftables.ChainHookForward, with(dataAnswers, dropped)...)
		}, want: "No answer came back from 10.77.1.2: 10.77.1.1's firewall drops the answers. # packets reached 10.77.1.2 on UDP port 7359, and it answered; all # answers were dropped.",
			next: "Let the answers of 10.77.1.2 through on 10.77.1.1: they come from UDP port 7359."},
		{name: "the server's firewall drops, counters only", args: "--drops off",
			fault: func(_, _, server *netbed.Node) {
				server.Rule(nftables.ChainHookInput, with(dataPackets, &expr.Counter{}, dropped)...)
			}, want: "Nothing came through to 10.77.1.2: its firewall drops UDP port 7359. All # packets to UDP port 7359 were dropped (table fault, chain hook1).",
			next: "Let UDP port 7359 through on 10.77.1.2: nft insert rule inet fault hook1 udp dport 7359 accept"},
		{name: "the router drops, counters only", args: "--drops off", fault: func(_, router, _ *netbed.Node) {
			router.Rule(nftables.ChainHookForward, with(dataPackets, dropped)...)
		}, want: "Nothing came through to 10.77.1.2: the packets vanish on the way. All # packets to UDP port 7359 left this host, and none reached 10.77.1.2.",
			next: "Look for a firewall or a missing port forward for UDP port 7359 between this host and 10.77.1.2."},
		{name: "the router refuses, counters only", args: "--drops off", fault: func(_, router, _ *netbed.Node) {
			router.Rule(nftables.ChainHookForward, with(dataPackets, refused)...)
		}, want: `Nothing came through to 10.77.1.2: 10.77.0.2 refuses UDP port 7359 ("port unreachable"). A firewall or router there answers so, or a port forward leads to another host.`,
			next: "Let UDP port 7359 through on 10.77.0.2."},
		{name: "the server's firewall drops, ordinary users", user: true, fault: func(_, _, server *netbed.Node) {
			server.Rule(nftables.ChainHookInput, with(dataPackets, dropped)...)
		}, want: "Nothing came through to 10.77.1.2: dropped by the filter or by IP at 10.77.1.2; no counter tells which. " +
			"All # packets to UDP port 7359 were lost there."},
		{name: "the router has no route for the packets", fault: func(_, router, _ *netbed.Node) { blackhole(router) },
			want: "Nothing came through to 10.77.1.2: refused by a route or ip rule at 10.77.0.2. " +
				"All # packets to UDP port 7359 were lost there."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			nodes, work := netbed.Chain(t, "client", "router", "server"), t.TempDir()
			client, router, server := nodes[0], nodes[1], nodes[2]
			at(router, work).Launch(exec.Command("sleep", "300")) // by whose namespace it is known as a host
			near, far := at(client, work), at(server, work)
			if c.user {
				for _, dir := range []string{filepath.Dir(peltproc.Binary), filepath.Dir(work), work} {
					testenv.Must(t, os.Chmod(dir, 0o777))
				}
				near.Ahead = strings.Fields("setpriv --reuid 65534 --regid 65534 --clear-groups")
				far.Ahead = near.Ahead
			}
			port := cmp.Or(c.port, dataPort) - 1
			far.Start("serve", "--code", "tiger-42-amber", "--port", fmt.Sprint(port)).Await("pelt curve")
			c.fault(client, router, server)
			near.Env = []string{"COLUMNS=80", "PELT_CODE=tiger-42-amber"}
			target, file := netip.AddrPortFrom(server.IP(c.six), port).String(), filepath.Join(work, "run.json")
			p := near.Start(append([]string{"curve", target, "--payload", "64", "--rate", "1kpps", "--time", "1s",
				"--json", file}, strings.Fields(c.args)...)...)
			code := p.Code()
			t.Logf("exit code %d\n%s", code, p)
			report, err := near.Run("report", "--all")
			t.Logf("%v\n%s", err, report)
			account, err := near.Run("explain")
			t.Logf("%v\n%s", err, account)
			if c.some && code == invalid { // of the other streams, on a busy machine
				code = 0
			}
			if wanted := map[bool]int{false: 3, true: 0}[c.some]; code != wanted {
				t.Errorf("exit code %d, want %d", code, wanted)
			}
			headline := regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(c.want), "#", `\d+`))
			for _, text := range []string{p.Out.String(), report, account} {
				words := strings.Join(strings.Fields(text), " ")
				if !headline.MatchString(words) || !strings.Contains(words, c.next) {
					t.Errorf("want %q, then %q in\n%s", c.want, c.next, text)
				}
			}
			doc := decoded(t, file)
			balances(t, doc)
			if !doc.Complete {
				t.Error("the run has more to do")
			}
		})
	}
}

// TestFirewallOverSSH has rules with a counter drop packets at a router that is watched over ssh: all from the start,
// or some of a trial. Its firewall is named whether or not the ends' kernels see drops.
func TestFirewallOverSSH(t *testing.T) {
	t.Parallel()
	nodes, work := netbed.Chain(t, "client", "router", "server"), t.TempDir()
	client, router, server := nodes[0], nodes[1], nodes[2]
	path := serveSSH(t, router, "10.77.0.2")
	at(server, work).Start("serve", "--code", "tiger-42-amber").Await("pelt curve")
	near := at(client, work)
	near.Env = []string{"COLUMNS=80", "PELT_CODE=tiger-42-amber", "PATH=" + path}
	trial := func(t *testing.T, drops string, code int, want ...string) {
		var p *peltproc.Process
		for tries := 1; ; tries++ {
			p = near.Start("soak", "10.77.1.2", "--dut", "ssh://router", "--payload", "200", "--rate", "1kpps", "--time",
				"1s", "--drops", drops, "--json", "run.json")
			if got := p.Code(); got != code && got != invalid {
				t.Errorf("exit code %d, want %d\n%s", got, code, p)
			}
			told, err := os.ReadFile(filepath.Join(work, "run.json"))
			testenv.Must(t, err)
			if !strings.Contains(string(told), strconv.Quote(model.RouterSilent)) || tries == 10 {
				break
			}
			t.Logf("measured again after try %d: the busy router told its counters too late", tries)
		}
		account, err := near.Run("explain", "--all")
		if err != nil {
			t.Error(err)
		}
		for _, w := range want {
			if !regexp.MustCompile(w).MatchString(strings.Join(strings.Fields(account), " ")) {
				t.Errorf("want %q in\n%s\n%s", w, p, account)
			}
		}
	}
	long := []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 4, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(208)},
		&expr.Numgen{Register: 1, Modulus: 4, Type: unix.NFT_NG_INCREMENTAL},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(0)},
	}
	for _, drops := range []string{"seq", "off"} {
		t.Run(drops, func(t *testing.T) {
			undo := router.Rule(nftables.ChainHookForward, with(dataPackets, &expr.Counter{}, dropped)...)
			trial(t, drops, 3,
				`Nothing came through to 10\.77\.1\.2: router's firewall drops UDP port 7359\. All \d+ packets to UDP port 7359 were dropped \(table fault, chain hook2\)\.`,
				`Let UDP port 7359 through on router: nft insert rule inet fault hook2 udp dport 7359 accept`)
			undo()
			undo = router.Rule(nftables.ChainHookForward, with(with(dataPackets, long...), &expr.Counter{}, dropped)...)
			trial(t, drops, 0, `\d+ packets: netfilter rule at router \(NETFILTER_DROP: table fault, chain hook2\)`)
			undo()
		})
	}
}

// balances fails unless each packet by which the ends sought each other is accounted for.
func balances(t *testing.T, doc model.Document) {
	t.Helper()
	for _, r := range doc.Results {
		for _, f := range r.Flows {
			if f.Meeting == nil || len(f.DeadStreams) == 0 {
				t.Errorf("flow %s has no account of its dead streams", f.Name)
				continue
			}
			for _, p := range []model.Passage{f.Meeting.Asks, f.Meeting.Answers} {
				sum := p.Received + p.Ledger.Unattributed
				for _, l := range p.Ledger.Lines {
					sum += l.Packets
				}
				if sum != p.Attempted || p.Ledger.Lost != p.Attempted-p.Received {
					t.Errorf("%d attempted, %d received, %+v", p.Attempted, p.Received, p.Ledger)
				}
			}
		}
	}
}

// blackhole has a router throw away what goes to the data port.
func blackhole(n *netbed.Node) {
	n.Must(func() error {
		if err := netlink.RouteAdd(&netlink.Route{Type: unix.RTN_BLACKHOLE, Table: 100,
			Dst: &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}}); err != nil {
			return err
		}
		rule := netlink.NewRule()
		rule.Table, rule.IPProto, rule.Dport, rule.Priority = 100, unix.IPPROTO_UDP, netlink.NewRulePortRange(dataPort, dataPort), 10
		return netlink.RuleAdd(rule)
	})
}

// A call to pelt serve that this machine's kernel drops, as between containers, ends with where and why.
func TestCallDropped(t *testing.T) {
	t.Parallel()
	nodes, work := netbed.Chain(t, "client", "router", "server"), t.TempDir()
	far := at(nodes[2], work).Start("serve", "--code", "tiger-42-amber", "--listen", ":7411")
	far.Await("pelt curve")
	nodes[1].Rule(nftables.ChainHookForward, with(calls(7411), dropped)...)
	p := at(nodes[0], work).Start("curve", "10.77.1.2:7411", "--code", "tiger-42-amber", "--payload", "64", "--rate", "1kpps")
	const want = `7411: no answer within 5 s\. This machine's kernel drops it at \S+: netfilter rule`
	if code := p.Code(); code != 1 || !regexp.MustCompile(want).MatchString(p.Err.String()) {
		t.Errorf("exit code %d, want 1 and %s:\n%s", code, want, p.Err.String())
	}
}

// A path that lets nothing through, or refuses, is told in 2 s: half a second more is for a busy machine.
func TestClockNothingThrough(t *testing.T) {
	testenv.Clock(t)
	const limit = 2500 * time.Millisecond
	for what, verdict := range map[string]expr.Any{"drops": dropped, "refuses": refused} {
		nodes, work := netbed.Chain(t, "client", "router", "server"), t.TempDir()
		client, router, server := nodes[0], nodes[1], nodes[2]
		far := at(server, work).Start("serve", "--code", "tiger-42-amber")
		far.Await("pelt curve")
		router.Rule(nftables.ChainHookForward, with(dataPackets, verdict)...)
		began := time.Now()
		p := at(client, work).Start("curve", "10.77.1.2", "--code", "tiger-42-amber", "--payload", "64", "--rate",
			"1kpps")
		code, took := p.Code(), time.Since(began)
		t.Logf("a router that %s: %v", what, took)
		if code != 3 || took > limit {
			t.Errorf("a router that %s: exit code %d after %v, want 3 within %v", what, code, took, limit)
		}
	}
}
