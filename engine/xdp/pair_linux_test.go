//go:build amd64 || arm64

package xdp

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/model"
)

// balanced checks what must hold of any trial, and returns what was lost.
func balanced(t *testing.T, out outcome) uint64 {
	t.Helper()
	s, r := out.send.Send, out.receive.Receive
	var streams, missing uint64
	for _, n := range s.Streams {
		streams += n
	}
	for _, m := range r.Missing {
		missing += m.Packets + m.Unlisted
	}
	lost := s.Attempted - r.Tally.Received
	if s.Attempted == 0 || streams != s.Attempted || s.Accepted != s.Attempted-unsent(out) || r.Tally.Received > s.Accepted || missing != lost {
		t.Errorf("attempted %d (%d in streams), accepted %d, unsent %v, received %d, missing %d", s.Attempted, streams, s.Accepted, s.Unsent, r.Tally.Received, missing)
	}
	var steps, sent uint64
	for _, n := range r.Tally.PerStep {
		steps += n
	}
	for _, n := range s.PerStep {
		sent += n
	}
	if steps != r.Tally.Received || sent != s.Attempted {
		t.Errorf("the series hold %d of %d received and %d of %d sent", steps, r.Tally.Received, sent, s.Attempted)
	}
	return lost
}

// unsent is what the device did not take.
func unsent(out outcome) (n uint64) {
	for _, k := range out.send.Send.Unsent {
		n += k
	}
	return n
}

func TestClockEveryShape(t *testing.T) {
	testenv.Clock(t)
	b := newBed(t)
	if err := b.engines[b.far].xdp.Ready(b.far, "vb"); err != nil { // the sockets' engine alone does not see to it
		t.Fatal(err)
	}
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
				b.t = t
				out, err := b.run(trial{engines: engines, warmup: warmup, measure: 100 * time.Millisecond, six: c.six,
					flow: model.Flow{PayloadBytes: c.payload, Streams: c.streams, DSCP: c.dscp, SourceAddresses: c.from, Rate: mustRate(t, "20kpps")}})
				if err != nil {
					t.Fatalf("%v: %v", engines, err)
				}
				for i, a := range out.addresses {
					if want := c.from; want != nil && a.Remote.Addr() != want[i%len(want)] {
						t.Errorf("%v: stream %d came from %v, want %v", engines, i, a.Remote, want[i%len(want)])
					}
				}
				if lost := undisturbed(t, engines, out); lost != unsent(out) {
					t.Errorf("%v: %d of %d lost; %+v", engines, lost, out.send.Send.Attempted, out.receive.Receive)
				}
			}
		})
	}
}

// undisturbed checks what both engines promise of a cable that loses nothing.
func undisturbed(t *testing.T, engines [2]string, out outcome) uint64 {
	t.Helper()
	r := out.receive.Receive
	if engines == [2]string{"xdp", "xdp"} {
		balanced(t, out)
	}
	if r.Tally.Duplicates+r.Tally.Reordered+r.Tally.Late+r.Tally.WrongLength+r.Broken+r.Strays+r.Overrun != 0 {
		t.Errorf("%v: an undisturbed cable made %+v", engines, r)
	}
	if n := out.send.Send.WarmupSent; n == 0 || n-out.warmupUnsent != r.WarmupReceived {
		t.Errorf("%v: %d sent in the warm-up, %d not taken by the device, %d received", engines, n, out.warmupUnsent, r.WarmupReceived)
	}
	return out.send.Send.Attempted - r.Tally.Received
}

func TestPaced(t *testing.T) {
	b := newBed(t)
	measure := time.Second
	if testing.Short() {
		measure /= 4
	}
	for _, rate := range []string{"1kpps", "70kpps", "333333pps", "1mpps"} {
		t.Run(rate, func(t *testing.T) {
			b.t = t
			r := mustRate(t, rate)
			out, err := b.run(trial{measure: measure, flow: model.Flow{Rate: r}})
			if err != nil {
				t.Fatal(err)
			}
			balanced(t, out)
			s := out.send.Send
			pps, _ := r.PPS(18)
			if math.Abs(float64(s.Planned)-pps*measure.Seconds()) > 1 || s.Attempted > s.Planned {
				t.Errorf("planned %d, attempted %d", s.Planned, s.Attempted)
			}
			t.Logf("attempted %d of %d; gap %+v; burst %d; delay %+v", s.Attempted, s.Planned, s.Gap, s.BurstMax, out.receive.Receive.Tally.Delay)
		})
	}
}

func TestClockFlood(t *testing.T) {
	testenv.Clock(t)
	b := newBed(t)
	out, err := b.run(trial{measure: time.Second, warmup: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	lost := balanced(t, out)
	if unsent := unsent(out); lost != unsent {
		t.Errorf("%d lost, %d not taken by the device", lost, unsent)
	}
	t.Logf("%d attempted, %d lost", out.send.Send.Attempted, lost)
}

// The other end of the cable is not ready: said before anything is sent, or left to sockets.
func TestCableNotReady(t *testing.T) {
	b := newBed(t)
	c := trial{engines: [2]string{"xdp", "udp"}, measure: 500 * time.Millisecond, flow: model.Flow{Rate: mustRate(t, "1kpps")}}
	if _, err := b.run(c); err == nil {
		t.Error("frames went into a cable that takes none")
	}
	c.fallback = true
	out, err := b.run(c)
	if err != nil {
		t.Fatal(err)
	}
	if out.send.Engine != "udp" || out.send.Why == "" || out.send.Send.Attempted == 0 || out.send.Send.Attempted != out.receive.Receive.Tally.Received {
		t.Errorf("got %+v", out.send)
	}
}

func TestClockStop(t *testing.T) {
	testenv.Clock(t)
	b := newBed(t)
	for _, rate := range []string{"max", "10kpps"} {
		var stopped time.Time
		out, err := b.run(trial{measure: 20 * time.Second, flow: model.Flow{Rate: mustRate(t, rate)}, stop: func(end *engine.End) {
			time.Sleep(300 * time.Millisecond)
			stopped = time.Now()
			end.Stop()
		}})
		if err != nil {
			t.Fatal(err)
		}
		if took := out.ended.Sub(stopped); took > 100*time.Millisecond {
			t.Errorf("%s: the sender ended %v after the stop", rate, took)
		}
		balanced(t, out)
	}
}

func TestUnsentByCause(t *testing.T) {
	for _, c := range []struct {
		name  string
		state sendWorker
		want  map[string]uint64
	}{
		{"none", sendWorker{}, map[string]uint64{}},
		{"an error of the warm-up, then a full ring", sendWorker{LastError: uint64(unix.ENETDOWN), Refused: 7}, map[string]uint64{model.CauseRingFull: 7}},
		{"both", sendWorker{LastError: uint64(unix.ENETDOWN), Refused: 7, Failed: 2}, map[string]uint64{model.CauseRingFull: 7, "ENETDOWN": 2}},
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
	b := newBed(t)
	c := trial{engines: [2]string{"xdp", "udp"}, measure: time.Minute, fallback: true, flow: model.Flow{Rate: mustRate(t, "1kpps")}}
	c.connected = func(from *engine.End, _ []engine.Stream) { from.Stop() }
	began := time.Now()
	out, err := b.run(c)
	if err != nil {
		t.Fatal(err)
	}
	if out.send.Engine != "udp" || out.ended.Sub(began) > testenv.Patience {
		t.Errorf("ended after %v; %+v", out.ended.Sub(began), out.send)
	}
}
