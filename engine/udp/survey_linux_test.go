package udp

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"pelt/engine"
	"pelt/internal/netbed"
	"pelt/internal/testenv"
	"pelt/model"
)

// farOfRouter is the address of far behind a router.
func farOfRouter(six bool) netip.Addr {
	if six {
		return netip.MustParseAddr("fd77:0:0:1::2")
	}
	return netip.MustParseAddr("10.77.1.2")
}

// routed makes three hosts: eth0 of near to to-near of mid, and to-far of mid to eth0 of far.
func routed(t testing.TB) (near, mid, far *netbed.Node) {
	t.Helper()
	nodes := netbed.Chain(t, "near", "mid", "far")
	return nodes[0], nodes[1], nodes[2]
}

// survey runs one and returns what it found, and how long it took.
func (r *trial) survey(t testing.TB) (out, back model.PathMTU, took time.Duration) {
	t.Helper()
	r.Role = engine.Probe
	dialer, listener := r.connected(t)
	wait := start(t, listener)
	begun := time.Now()
	if err := dialer.run(t); err != nil {
		t.Fatalf("prober: %v", err)
	}
	took = time.Since(begun)
	listener.Stop()
	wait()
	p := dialer.Account().Probe
	if p == nil || p.Out == nil || p.Back == nil {
		t.Fatalf("the prober reports %+v", p)
	}
	return *p.Out, *p.Back, took
}

func TestSurvey(t *testing.T) {
	for _, c := range []struct {
		name      string
		make      func(t *testing.T, near, mid, far *netbed.Node)
		out, back int
		foundOut  model.MTUFound
		foundBack model.MTUFound
	}{
		{"whole", func(*testing.T, *netbed.Node, *netbed.Node, *netbed.Node) {}, 1500, 1500, model.MTUOfRoute,
			model.MTUOfRoute},
		{"router says it", func(t *testing.T, _, mid, far *netbed.Node) {
			mid.MTU("to-far", 1400)
			far.MTU("eth0", 1400)
		}, 1400, 1400, model.MTUTold, model.MTUOfRoute},
		{"router says it on the way back", func(t *testing.T, near, mid, _ *netbed.Node) {
			mid.MTU("to-near", 1380)
			near.MTU("eth0", 1380)
		}, 1380, 1380, model.MTUOfRoute, model.MTUTold},
		{"black hole on the way back", func(t *testing.T, _, mid, _ *netbed.Node) {
			rules(mid,
				"table inet t { chain f { type filter hook forward priority 0; iifname to-far meta length > 1433 drop; }; }")
		}, 1500, 1433, model.MTUOfRoute, model.MTUSearch},
		{"black hole both ways", func(t *testing.T, _, mid, _ *netbed.Node) {
			rules(mid, "table inet t { chain f { type filter hook forward priority 0; meta length > 1373 drop; }; }")
		}, 1373, 1373, model.MTUSearch, model.MTUSearch},
	} {
		for _, family := range []int{4, 6} {
			t.Run(fmt.Sprintf("%s, IPv%d", c.name, family), func(t *testing.T) {
				near, mid, far := routed(t)
				c.make(t, near, mid, far)
				r := newTrial()
				r.Survey = true
				r.Near.Host, r.Far.Host, r.Peer = near, far, farOfRouter(family == 6)
				out, back, took := r.survey(t)
				for _, x := range []struct {
					way   string
					got   model.PathMTU
					bytes int
					found model.MTUFound
				}{{"out", out, c.out, c.foundOut}, {"back", back, c.back, c.foundBack}} {
					// A host that answers late has lost the probe: a search then ends lower. TestSearch wants the last
					// byte.
					late := x.found == model.MTUSearch && x.got.Bytes >= 1280 && x.got.Bytes < x.bytes
					if x.got.Bytes != x.bytes && !late || x.got.Found != x.found || x.got.AtLeast ||
						x.got.Family != family || x.got.Why != nil || x.got.Probes > 60 {
						t.Errorf("%s: %+v, want %d by %s", x.way, x.got, x.bytes, x.found)
					}
				}
				t.Logf("%v; %d and %d probes", took, out.Probes, back.Probes)
			})
		}
	}
}

// TestSurveyWhereNothingPasses: it ends in time and says why.
func TestSurveyWhereNothingPasses(t *testing.T) {
	t.Parallel()
	near, mid, far := routed(t)
	r := newTrial()
	r.Near.Host, r.Far.Host, r.Peer = near, far, farOfRouter(false)
	r.Survey = true
	r.Role = engine.Probe
	dialer, _ := r.connected(t)
	rules(mid, "table inet t { chain f { type filter hook forward priority 0; drop; }; }")
	begun := time.Now()
	testenv.Must(t, dialer.run(t))
	took := time.Since(begun)
	p := dialer.Account().Probe
	if p.Out.Bytes != 0 || len(p.Out.Why) != 1 || p.Out.Why[0].Code != model.MTUUnanswered || p.Back.Bytes != 0 ||
		p.Back.Why == nil || took > testenv.Patience {
		t.Errorf("%v: out %+v, back %+v", took, p.Out, p.Back)
	}
}

// TestSurveyWithoutMeans: a system that cannot forbid fragments says so at once.
func TestSurveyWithoutMeans(t *testing.T) {
	r := newTrial()
	r.plain, r.Survey = true, true
	out, back, _ := r.survey(t)
	if out.Bytes != 0 || back.Bytes != 0 || out.Why[0].Code != model.MTUMayFragment ||
		back.Why[0].Code != model.MTUMayFragment {
		t.Errorf("out %+v, back %+v", out, back)
	}
}
