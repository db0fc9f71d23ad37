package test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"pelt/internal/netbed"
	"pelt/internal/peltproc"
	"pelt/internal/testenv"
)

// routed are four machines: a router that hides the LAN and the third host behind its own address on the WAN, where nobody
// knows a way back.
//
//	near 10.77.0.2 ── 10.77.0.1 router 10.77.1.1 ── 10.77.1.2 far
//	third 10.77.2.2 ── 10.77.2.1 ┘ (masquerades to the WAN)
type routed struct {
	near, router, far, third *netbed.Node
	work                     string
}

func newRouted(t *testing.T) routed {
	t.Helper()
	nodes := netbed.Star(t, "router", "near", "far", "third")
	r := routed{router: nodes[0], near: nodes[1], far: nodes[2], third: nodes[3], work: t.TempDir()}
	r.far.Must(func() error { return netlink.RouteDel(&netlink.Route{Gw: net.IPv4(10, 77, 1, 1)}) })
	r.router.Masquerade("to-far")
	return r
}

func (r routed) run(n *netbed.Node, args ...string) (string, error) {
	out, err := at(n, r.work).Run(args...)
	return out, orInvalid(err)
}

const lanCode, wanCode = "tiger-42-amber", "otter-17-slate"

func (r routed) serve(n *netbed.Node, code string, args ...string) *peltproc.Process {
	s := at(n, r.work).Start(append([]string{"serve", "--code", code}, args...)...)
	s.Match(firstLine)
	return s
}

var firstLine = regexp.MustCompile(`(.)\n`) // it says where it listens

// plan writes one for two hosts.
func (r routed) plan(t *testing.T, near, flows, factors string, seconds float64) string {
	t.Helper()
	path := filepath.Join(r.work, "plan.yaml")
	text := fmt.Sprintf(`format: pelt/plan/2
command: curve
target: "10.77.1.2"
near: %q
flows:
%sfactors:
%sset: {repeats: 1, seed: 1, ordered: true, warmup_s: 0.1, measure_s: %g, drain_s: 1, engine: "udp:xdp", payload_bytes: 64}
`, near, flows, factors, seconds)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// flowLines are a plan's flow of UDP, from sockets into an XDP program, or of TCP.
func flowLines(name, protocol string) string {
	from, to := "sender", "receiver"
	if name == "down" {
		from, to = to, from
	}
	rate := "5kpps"
	if protocol == "tcp" {
		rate = "1kpps"
	}
	return fmt.Sprintf("- {name: %s, from: %s, to: %s, set: {protocol: %s, rate_pps: %s, burst: 1000, streams: 2}}\n", name, from, to, protocol, rate)
}

const bothSizes = "- knob: payload_bytes\n  levels: [64, 1200]\n"

// TestTwoHostsAndARouter: two hosts with NAT between them, commanded from a third
// one and from the one in the LAN.
func TestTwoHostsAndARouter(t *testing.T) {
	t.Parallel()
	r := newRouted(t)
	near := r.serve(r.near, lanCode, "--calls", "10.77.1.0/24")
	far := r.serve(r.far, wanCode)
	for _, c := range []struct {
		name           string
		from           *netbed.Node
		near, protocol string
		engine         string // that must take part
	}{
		{"udp from a third host", r.third, "10.77.0.2", "udp", "xdp"},
		{"tcp from the LAN", r.near, "127.0.0.1", "tcp", "tcp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(r.work, "out.json")
			plan := r.plan(t, c.near, flowLines("up", c.protocol)+flowLines("down", c.protocol), bothSizes, 0.4)
			if out, err := r.run(c.from, "run", plan, "--code", lanCode+","+wanCode, "--json", path); err != nil {
				t.Fatalf("%v\n%s\nnear: %s\nfar: %s", err, out, near.Err, far.Err)
			}
			d := document(t, path, "one-clock")
			for i, want := range []struct{ node, address string }{{"sender", "10.77.0.2"}, {"receiver", "10.77.1.2"}} {
				if h := d.Host[i]; h.Node != want.node || !strings.HasPrefix(h.Address, want.address) {
					t.Errorf("host %d is %v at %v, want the %s at %s", i, h.Node, h.Address, want.node, want.address)
				}
			}
			if len(d.Results) != 2 {
				t.Fatalf("%d results, want 2", len(d.Results))
			}
			for _, x := range d.Results {
				if len(x.Flows) != 2 || !strings.Contains(x.Engine, c.engine) {
					t.Errorf("cell %v: %s (%s), %d flows, by %s (%s)", x.Cell, x.State, x.Why, len(x.Flows), x.Engine, x.EngineReason)
				}
				for _, f := range x.Flows {
					if n := f.Received; n == 0 {
						t.Errorf("cell %v flow %s: %d packets arrived", x.Cell, f.Name, n)
					}
				}
			}
		})
	}
	t.Run("pelt router", func(t *testing.T) {
		path := filepath.Join(r.work, "out.json")
		flags := "--proto udp --frame 64 --direction up --rate 500pps --idle-rate 0 --time 300ms --warmup 100ms --repeats 1 --json " + path
		args := append([]string{"router", "10.77.0.2..10.77.1.2", "--code", lanCode + "," + wanCode}, strings.Fields(flags)...)
		if out, err := r.run(r.third, args...); err != nil {
			t.Fatalf("%v\n%s\nnear: %s\nfar: %s", err, out, near.Err, far.Err)
		}
		d := document(t, path, "one-clock")
		if x := d.Results[0]; len(d.Results) != 1 || x.Flows[0].Received == 0 || !strings.HasPrefix(d.Host[0].Address, "10.77.0.2") {
			t.Errorf("%d results, %d packets arrived from %v", len(d.Results), x.Flows[0].Received, d.Host[0].Address)
		}
	})
	t.Run("connections until the router takes no more", func(t *testing.T) {
		const most = 200
		inside(t, r.router, fmt.Sprintf(`nft 'table ip few { chain f { type filter hook forward priority 0; iifname "to-near" tcp dport 7359 ct state new ct count over %d reject with tcp reset; }; }'`, most))
		path := filepath.Join(r.work, "out.json")
		flow := "- {name: up, from: sender, to: receiver, set: {protocol: tcp, rate_pps: max, streams: 1}}\n"
		plan := r.plan(t, "10.77.0.2", flow, "- knob: connections\n  levels: [keep]\n", 5)
		if out, err := r.run(r.third, "run", plan, "--code", lanCode+","+wanCode, "--json", path); err != nil {
			t.Fatalf("%v\n%s\nnear: %s\nfar: %s", err, out, near.Err, far.Err)
		}
		d := document(t, path, "one-clock")
		c := d.Results[0].Flows[0].Connections
		// The stream's own connection counts for the router, too.
		if c == nil || c.OpenMax != most-1 || c.Failed["ECONNREFUSED"] == 0 || !strings.Contains(c.Ended, "ECONNREFUSED") {
			t.Errorf("%+v, want %d open at most, because the router refused one", c, most-1)
		}
		inside(t, r.router, "nft delete table ip few")
	})
	t.Run("refused", func(t *testing.T) {
		plan := r.plan(t, "10.77.0.2", flowLines("up", "udp"), bothSizes, 0.4)
		for _, c := range []struct{ name, code, want string }{
			{"one code for two", lanCode, "10.77.1.2:7358: wrong code"},
			{"codes the wrong way round", wanCode + "," + lanCode, "10.77.0.2:7358: wrong code"},
			{"three codes", "a,b,c", "--code: want one code for both hosts, or two as NEAR,FAR"},
		} {
			out, err := at(r.third, r.work).Run("run", plan, "--code", c.code)
			if err == nil || !strings.Contains(out, c.want) || strings.Count(out, "\n") != 1 {
				t.Errorf("%s: %v, want one line with %q:\n%s", c.name, err, c.want, out)
			}
		}
	})
}

// TestThirdHostUnplugged: the two hosts that it commands stop. Package fleet kills each of them.
func TestThirdHostUnplugged(t *testing.T) {
	t.Parallel()
	r := newRouted(t)
	r.serve(r.near, lanCode, "--calls", "10.77.1.2")
	r.serve(r.far, wanCode)
	plan := r.plan(t, "10.77.0.2", flowLines("up", "udp")+flowLines("down", "udp"), "- knob: payload_bytes\n  levels: [64]\n", 60)
	run := at(r.third, r.work).Start("run", plan, "--code", lanCode+","+wanCode)
	waitPackets(t, r.far.Received, 1000)
	waitPackets(t, r.near.Received, 1000)
	r.third.Down("eth0")
	for _, n := range []*netbed.Node{r.near, r.far} {
		testenv.Await(t, "silence at the "+n.Name+" host", func() bool { return perSecond(n.Received) < 500 })
	}
	if err := run.Wait(); peltproc.ExitCode(err) != 1 {
		t.Errorf("the command ended with %v, want exit code 1; stderr:\n%s", err, run.Err)
	}
}
