//go:build amd64 || arm64

package xdp

import (
	"fmt"
	"maps"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/engine/enginetest"
	"pelt/internal/testenv"
	"pelt/model"
)

func TestClockEveryShape(t *testing.T) {
	testenv.Clock(t)
	b := newBed(t)
	b.makeReady()            // the sockets' engine alone does not see to it
	var many [2][]netip.Addr // addresses beside the first, by IP version
	for i := range 3 {
		for v, form := range []string{"10.77.0.%d", "fd77::%d"} {
			many[v] = append(many[v], netip.MustParseAddr(fmt.Sprintf(form, 11+i)))
			b.near.Give("va", netip.PrefixFrom(many[v][i], []int{24, 64}[v]))
		}
	}
	most, warmup := 128, 20*time.Millisecond
	if testing.Short() { // on slow machines: each stream has its own handshake
		most, warmup = 16, 200*time.Millisecond
	}
	for _, c := range []struct {
		payload, streams int
		six              bool
		dscp             int
		from             []netip.Addr
	}{{16, 1, false, 0, nil}, {63, 2, true, 46, nil}, {1472, 4, false, 10, many[0]}, {65, most, true, 0, many[1]}} {
		t.Run(fmt.Sprintf("%d B, %d streams, IPv6 %v", c.payload, c.streams, c.six), func(t *testing.T) {
			for _, engines := range [][2]string{{"xdp", "xdp"}, {"xdp", "udp"}, {"udp", "xdp"}} {
				fromAll := func(p *enginetest.Pair) {
					for i, a := range p.Receiver.Met.Streams {
						if want := c.from; want != nil && a.Remote.Addr() != want[i%len(want)] {
							t.Errorf("%v: stream %d came from %v, want %v", engines, i, a.Remote, want[i%len(want)])
						}
					}
				}
				out, err := b.run(t, trial{engines: engines, connected: fromAll, warmup: warmup,
					measure: 100 * time.Millisecond, six: c.six,
					flow: model.Flow{PayloadBytes: c.payload, Streams: c.streams, DSCP: c.dscp,
						SourceAddresses: c.from, Rate: mustRate(t, "20kpps")}})
				if err != nil {
					t.Fatalf("%v: %v", engines, err)
				}
				out.Undisturbed(t, out.send, out.receive)
			}
		})
	}
}

// The other end of the cable is not ready: said before anything is sent, or left to sockets.
func TestCableNotReady(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := trial{engines: [2]string{"xdp", "udp"}, packets: 50, flow: model.Flow{Rate: mustRate(t, "1kpps")}}
	if _, err := b.run(t, c); err == nil {
		t.Error("frames went into a cable that takes none")
	}
	c.fallback = true
	out, err := b.run(t, c)
	testenv.Must(t, err)
	if out.send.Engine != "udp" || out.send.Why == nil || out.send.Send.Attempted == 0 || out.balanced(t) > out.Backlog {
		t.Errorf("got %+v", out.send)
	}
}

func TestUnsentByCause(t *testing.T) {
	for _, c := range []struct {
		name  string
		state sendWorker
		want  map[string]uint64
	}{
		{"none", sendWorker{}, map[string]uint64{}},
		{"an error of the warm-up, then a full ring", sendWorker{LastError: uint64(unix.ENETDOWN), Refused: 7},
			map[string]uint64{model.CauseRingFull: 7}},
		{"both", sendWorker{LastError: uint64(unix.ENETDOWN), Refused: 7, Failed: 2},
			map[string]uint64{model.CauseRingFull: 7, "ENETDOWN": 2}},
		{"no errno", sendWorker{Failed: 2}, map[string]uint64{model.CauseNotRedirected: 2}},
	} {
		got := map[string]uint64{}
		addUnsent(got, &c.state)
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A stop is not forgotten when the sockets take over after it.
func TestStopBeforeFallback(t *testing.T) {
	t.Parallel()
	c := trial{engines: [2]string{"xdp", "udp"}, measure: time.Hour, fallback: true,
		flow: model.Flow{Rate: mustRate(t, "1kpps")}}
	c.connected = func(p *enginetest.Pair) { p.Sender.Stop() }
	out, err := newBed(t).run(t, c)
	if err != nil || out.send.Engine != "udp" {
		t.Errorf("%v: %+v", err, out.send)
	}
}
