package test

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"pelt/finding"
	"pelt/internal/netbed"
	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// routed are four machines: a router that hides the LAN and the third host behind its own address on the WAN, where
// nobody knows a way back.
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

// plan writes the plan of a curve to the far host, from a near one that is not the commanding host. changes are
// old and new texts.
func (r routed) plan(t *testing.T, near, flags string, changes ...string) (path string) {
	t.Helper()
	text, err := r.run(r.third, append(strings.Fields("curve 10.77.1.2 --print-plan"), strings.Fields(flags)...)...)
	path = filepath.Join(t.TempDir(), "plan.yaml")
	text = strings.NewReplacer(changes...).Replace(text)
	if err := cmp.Or(err, os.WriteFile(path, fmt.Appendf(nil, "%snear: %q\n", text, near), 0o600)); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return path
}

// TestTwoHostsAndARouter: two hosts with NAT between them, commanded from a third one and from the one in the LAN. At
// the end the third one is unplugged, and the two that it commands stop. Package fleet kills each of them.
func TestTwoHostsAndARouter(t *testing.T) {
	t.Parallel()
	r := newRouted(t)
	near := r.serve(r.near, lanCode, "--calls", "10.77.1.0/24")
	far := r.serve(r.far, wanCode)
	const short = " --time 300ms --warmup 100ms --repeats 1"
	const paced = "--rate 5kpps --burst 1000 --streams 2 --direction both --engine udp:xdp --payload "
	const tcp = "--proto tcp --payload 64,1200 --rate 1kpps --direction both"
	const router = "router 10.77.0.2..10.77.1.2 --proto udp --frame 64 --direction up --rate 500pps --idle-rate 0"
	path := filepath.Join(r.work, "out.json")
	measured := func(from *netbed.Node, line string) model.Document {
		t.Helper()
		args := append(strings.Fields(line), "--code", lanCode+","+wanCode, "--json", path)
		if out, err := r.run(from, args...); err != nil {
			t.Fatalf("%s: %v\n%s\nnear: %s\nfar: %s", line, err, out, near.Err, far.Err)
		}
		return document(t, path, "one-clock")
	}
	for _, c := range []struct {
		from         *netbed.Node
		line, engine string // that must take part
		flows        int    // of all trials
	}{
		{r.third, "run " + r.plan(t, "10.77.0.2", paced+"64,1200"+short), "xdp", 4},
		{r.near, "run " + r.plan(t, "127.0.0.1", tcp+short), "tcp", 4},
		{r.third, router + short, "udp", 1},
	} {
		d := measured(c.from, c.line)
		for i, want := range []struct{ node, address string }{{"sender", "10.77.0.2"}, {"receiver", "10.77.1.2"}} {
			if h := d.Host[i]; h.Node != want.node || !strings.HasPrefix(h.Address, want.address) {
				t.Errorf("%s: host %d is %v at %v, want the %s at %s", c.line, i, h.Node, h.Address, want.node,
					want.address)
			}
		}
		flows := 0
		for _, x := range d.Results {
			if !strings.Contains(x.Engine, c.engine) {
				t.Errorf("%s: cell %v: %s (%s), by %s (%v)", c.line, x.Cell, x.State, finding.Why(x.Why), x.Engine, x.EngineReason)
			}
			for _, f := range x.Flows {
				if flows++; f.Received == 0 {
					t.Errorf("%s: cell %v flow %s: nothing arrived", c.line, x.Cell, f.Name)
				}
			}
		}
		if flows != c.flows {
			t.Errorf("%s: %d flows in %d trials, want %d", c.line, flows, len(d.Results), c.flows)
		}
	}

	// Connections until the router takes no more. The stream's own connection counts for the router, too.
	const most = 200
	inside(t, r.router, fmt.Sprintf(`nft 'table ip few { chain f { type filter hook forward priority 0; `+
		`iifname "to-near" tcp dport 7359 ct state new ct count over %d reject with tcp reset; }; }'`, most))
	plan := r.plan(t, "10.77.0.2", "--proto tcp --payload 64 --time 5s --warmup 100ms --repeats 1",
		"payload_bytes\n  levels:\n  - 64", "connections\n  levels:\n  - keep")
	c := measured(r.third, "run "+plan).Results[0].Flows[0].Connections
	if c == nil || c.OpenMax != most-1 || c.Failed["ECONNREFUSED"] == 0 || !strings.Contains(c.Ended, "ECONNREFUSED") {
		t.Errorf("%+v, want %d open at most, because the router refused one", c, most-1)
	}
	inside(t, r.router, "nft delete table ip few")

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

	run := at(r.third, r.work).Start("run", r.plan(t, "10.77.0.2", paced+"64 --time 60s"), "--code",
		lanCode+","+wanCode)
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
