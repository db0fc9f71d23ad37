package test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pelt/finding"
	"pelt/internal/netbed"
	"pelt/internal/peltproc"
	"pelt/model"
)

const routerCode, agentFlag = "lynx-33-coral", "pelt://10.77.0.1"

// without is the command of a host that may not look into its kernel: what is known of
// the drops on the way is then the router's word alone.
func (r routed) without(n *netbed.Node) peltproc.Host {
	x := at(n, r.work)
	x.Ahead = []string{"setpriv", "--bounding-set=-all", "--inh-caps=-all"}
	return x
}

// lossy makes the router drop some of the test's packets behind its NAT and, from the
// WAN, before it. The function returned counts them.
func (r routed) lossy(t *testing.T) (count func() uint64) {
	t.Helper()
	// Other ports on the WAN side; and not the hellos and echoes of the connect and
	// the probe, which are shorter.
	inside(t, r.router, `nft 'flush chain inet nat post; add rule inet nat post oifname "to-far" masquerade random
table ip lossy {
 chain f { type filter hook forward priority 0; udp length 208 numgen random mod 100 < 7 counter drop; };
 chain p { type filter hook prerouting priority -300; iifname "to-far" udp length 208 numgen random mod 100 < 5 counter drop; };
}'`)
	packets := regexp.MustCompile(`"packets": *(\d+)`)
	return func() (sum uint64) {
		all := packets.FindAllStringSubmatch(inside(t, r.router, "nft -j list table ip lossy"), -1)
		if len(all) != 2 {
			t.Fatalf("the rules have %d counters", len(all))
		}
		for _, m := range all {
			sum += number(t, m[1])
		}
		return sum
	}
}

// TestRouterAgent is the bench of a router with pelt on it, between hosts that may not
// look into their kernels:
//
//	near -- router (NAT to other ports, drops on both sides of it; pelt serve --observe-only) -- far
func TestRouterAgent(t *testing.T) {
	t.Parallel()
	r := newRouted(t)
	far := r.without(r.far).Start("serve", "--code", wanCode)
	far.Match(firstLine)
	observer := r.serve(r.router, routerCode, "--observe-only")
	count := r.lossy(t)
	codes := wanCode + "," + routerCode
	t.Run("exact drops", func(t *testing.T) {
		before := count()
		out, err := r.without(r.near).Run("router", "10.77.1.2", "--code", codes, "--dut", agentFlag, "--proto",
			"udp", "--frame", "246", "--rate", "500pps",
			"--idle-rate", "0", "--direction", "both", "--time", "1200ms", "--warmup", "0s", "--repeats", "1", "--json", "agent.json")
		if orInvalid(err) != nil {
			t.Fatalf("%v\n%s\nfar: %s\nrouter: %s", err, out, far.Err, observer.Err)
		}
		d := document(t, filepath.Join(r.work, "agent.json"), "")
		if d.Router == nil || d.Router.Source != agentFlag || d.Router.Kernel == "" || len(d.Router.Before) == 0 ||
			len(d.Router.After) == 0 ||
			!strings.Contains(d.Router.Before[0].Text, "\n") {
			t.Errorf("the router's own words are missing: %+v", d.Router)
		}
		dropped := uint64(0)
		if len(d.Results) != 1 || len(d.Results[0].Flows) != 2 {
			t.Fatalf("want one row with two flows: %+v", d.Results)
		}
		x := d.Results[0]
		if w := x.Router; w == nil || w.CPU == nil || len(w.Cores) != d.Router.Cores || len(w.Gaps) > 0 {
			t.Errorf("%s (%s), watched as %+v", x.State, finding.Why(x.Why), w)
		}
		for _, f := range x.Flows {
			if f.Lost == 0 || f.Ledger.Unattributed > min(hidden, f.Lost/3) || len(f.Ledger.Lines) != 1 {
				t.Fatalf("%s: %d lost, ledger %+v", f.Name, f.Lost, f.Ledger)
			}
			l := f.Ledger.Lines[0]
			if l.Layer != model.LayerNetwork || l.Host != "router" || l.Cause != "NETFILTER_DROP" ||
				l.Confidence != "exact-seq" || l.Packets+f.Ledger.Unattributed != f.Lost {
				t.Errorf("%s: %d lost, line %+v", f.Name, f.Lost, l)
			}
			dropped += f.Lost
		}
		if rule := count() - before; dropped != rule {
			t.Errorf("%d packets lost, %d by the rule's counter", dropped, rule)
		}
	})
	for name, c := range map[string]struct {
		flags []string
		want  string
	}{
		"an observer as an end": {[]string{"10.77.0.1", "--code", routerCode},
			`pelt: 10\.77\.0\.1: that pelt serve only observes`},
		"an end as an observer": {[]string{"10.77.1.2", "--code", wanCode, "--dut", "pelt://10.77.1.2"},
			`pelt: 10\.77\.1\.2: that pelt serve is an end of tests`},
		"two codes for three": {[]string{"10.77.0.2..10.77.1.2", "--code", codes, "--dut", agentFlag},
			`pelt: --code: want one code for all hosts, or three as NEAR,FAR,ROUTER`},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := at(r.near, r.work).Run(append([]string{"router"}, c.flags...)...)
			if err == nil || !regexp.MustCompile(c.want).MatchString(out) {
				t.Errorf("%v, want a line like %s in:\n%s", err, c.want, out)
			}
		})
	}
	t.Run("lost under the command of a third host", func(t *testing.T) {
		r.serve(r.near, lanCode, "--calls", "10.77.1.2")
		c := at(r.third, r.work).Start("router", "10.77.0.2..10.77.1.2", "--code", lanCode+","+codes, "--dut",
			agentFlag, "--proto", "tcp", "--direction", "up", "--time", "3s", "--warmup", "0s", "--repeats", "1",
			"--json", "cut.json")
		c.Await("router 10.77.1.2")
		time.Sleep(500 * time.Millisecond) // into the measured part
		observer.Kill()
		if err := orInvalid(c.Wait()); err != nil {
			t.Fatalf("%v\n%s", err, c)
		}
		d := document(t, filepath.Join(r.work, "cut.json"), "")
		x := d.Results[0]
		if x.State == model.Aborted || x.Flows[0].GoodputBPS == 0 || x.Router == nil ||
			len(x.Router.Gaps) != 1 || x.Router.Gaps[0].Why != model.GapClosed {
			t.Errorf("%s (%s) at %v bit/s, watched as %+v: the bench did not go on", x.State, finding.Why(x.Why),
				x.Flows[0].GoodputBPS, x.Router)
		}
		if !slices.ContainsFunc(d.Findings, func(f model.Finding) bool {
			return f.Code == "router.gap.closed"
		}) {
			t.Errorf("no finding says it: %+v", d.Findings)
		}
	})
}
