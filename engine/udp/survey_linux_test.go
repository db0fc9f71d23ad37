package udp

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/model"
)

// routed makes three nameless namespaces; the middle one forwards:
//
//	near 10.77.1.1, fd77:1::1 ---- mid ---- 10.77.2.1, fd77:2::1 far
func routed(t testing.TB) (near, mid, far space) {
	t.Helper()
	near, mid, far = ownSpace(t, 65536), ownSpace(t, 65536), ownSpace(t, 65536)
	for _, key := range []string{"net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"} {
		mid.command(t, "sysctl -q -w "+key+"=1")
	}
	for i, s := range []space{near, far} {
		s.command(t, fmt.Sprintf("ip link add v0 type veth peer name v%d netns /proc/%d/fd/%d", i+1, os.Getpid(), mid.File().Fd()))
		for _, end := range []struct {
			in   space
			host int
			name string
		}{{s, 1, "v0"}, {mid, 2, fmt.Sprintf("v%d", i+1)}} {
			end.in.command(t, fmt.Sprintf("ip address add 10.77.%d.%d/24 dev %s", i+1, end.host, end.name))
			end.in.command(t, fmt.Sprintf("ip address add fd77:%d::%d/64 dev %s nodad", i+1, end.host, end.name))
			end.in.command(t, "ip link set "+end.name+" up")
		}
		s.command(t, fmt.Sprintf("ip route add default via 10.77.%d.2", i+1))
		s.command(t, fmt.Sprintf("ip -6 route add default via fd77:%d::2", i+1))
	}
	return near, mid, far
}

// survey runs one and returns what it found, and how long it took.
func (r *trial) survey(t testing.TB) (out, back model.PathMTU, took time.Duration) {
	t.Helper()
	r.dialer = engine.Probe
	dialer, listener := r.prepare(t)
	connectBoth(t, dialer, listener)
	wait := start(t, listener)
	begun := time.Now()
	if err := dialer.run(t.Context()); err != nil {
		t.Fatalf("prober: %v", err)
	}
	took = time.Since(begun)
	listener.Stop()
	wait()
	p := dialer.account().Probe
	if p == nil || p.Out == nil || p.Back == nil {
		t.Fatalf("the prober reports %+v", p)
	}
	return *p.Out, *p.Back, took
}

func TestSurvey(t *testing.T) {
	for _, c := range []struct {
		name      string
		make      func(t *testing.T, near, mid, far space)
		out, back int
		foundOut  model.MTUFound
		foundBack model.MTUFound
	}{
		{"whole", func(*testing.T, space, space, space) {}, 1500, 1500, model.MTUOfRoute, model.MTUOfRoute},
		{"router says it", func(t *testing.T, _, mid, far space) {
			mid.command(t, "ip link set v2 mtu 1400")
			far.command(t, "ip link set v0 mtu 1400")
		}, 1400, 1400, model.MTUTold, model.MTUOfRoute},
		{"router says it on the way back", func(t *testing.T, near, mid, _ space) {
			mid.command(t, "ip link set v1 mtu 1380")
			near.command(t, "ip link set v0 mtu 1380")
		}, 1380, 1380, model.MTUOfRoute, model.MTUTold},
		{"black hole on the way back", func(t *testing.T, _, mid, _ space) {
			mid.rules(t, "table inet t { chain f { type filter hook forward priority 0; iifname v2 meta length > 1433 drop; }; }")
		}, 1500, 1433, model.MTUOfRoute, model.MTUSearch},
		{"black hole both ways", func(t *testing.T, _, mid, _ space) {
			mid.rules(t, "table inet t { chain f { type filter hook forward priority 0; meta length > 1373 drop; }; }")
		}, 1373, 1373, model.MTUSearch, model.MTUSearch},
	} {
		for _, family := range []int{4, 6} {
			t.Run(fmt.Sprintf("%s, IPv%d", c.name, family), func(t *testing.T) {
				t.Parallel() // IPv6 takes 2 s to come up
				near, mid, far := routed(t)
				c.make(t, near, mid, far)
				r := newTrial()
				r.surveys = true
				r.near, r.far, r.peer = near, far, netip.MustParseAddr("10.77.2.1")
				if family == 6 {
					r.peer = netip.MustParseAddr("fd77:2::1")
				}
				out, back, took := r.survey(t)
				for _, x := range []struct {
					way   string
					got   model.PathMTU
					bytes int
					found model.MTUFound
				}{{"out", out, c.out, c.foundOut}, {"back", back, c.back, c.foundBack}} {
					if x.got.Bytes != x.bytes || x.got.Found != x.found || x.got.AtLeast || x.got.Family != family || x.got.Why != "" || x.got.Probes > 60 {
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
	near, mid, far := routed(t)
	r := newTrial()
	r.near, r.far, r.peer = near, far, netip.MustParseAddr("10.77.2.1")
	r.surveys = true
	r.dialer = engine.Probe
	dialer, listener := r.prepare(t)
	connectBoth(t, dialer, listener)
	mid.rules(t, "table inet t { chain f { type filter hook forward priority 0; drop; }; }")
	begun := time.Now()
	if err := dialer.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begun)
	p := dialer.account().Probe
	if p.Out.Bytes != 0 || !strings.Contains(p.Out.Why, "no probe was answered") || p.Back.Bytes != 0 || p.Back.Why == "" || took > testenv.Patience {
		t.Errorf("%v: out %+v, back %+v", took, p.Out, p.Back)
	}
}

// TestSurveyWithoutMeans: a system that cannot forbid fragments says so at once.
func TestSurveyWithoutMeans(t *testing.T) {
	r := newTrial()
	r.plain, r.surveys = true, true
	out, back, _ := r.survey(t)
	if out.Bytes != 0 || back.Bytes != 0 || !strings.Contains(out.Why, "cannot forbid") || !strings.Contains(back.Why, "cannot forbid") {
		t.Errorf("out %+v, back %+v", out, back)
	}
}
