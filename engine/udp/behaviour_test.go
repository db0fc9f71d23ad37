package udp

import (
	"bytes"
	"math"
	"syscall"
	"testing"
	"time"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/pace"
	"pelt/unit"
)

func TestProbeTimesRoundTrips(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r trial) {
		r.Role = engine.Probe
		r.Timing, r.Flow.Rate = model.Timing{LeadSeconds: 1, MeasureSeconds: 60}, unit.PacketRate(100)
		dialer, listener := r.connected(t)
		dialer.Pulse(41, false)
		listener.Pulse(42, false)
		began := time.Now()
		wait := start(t, listener, dialer)
		testenv.Await(t, "both pulses", func() bool {
			return dialer.Pulse(41, false) == 42 && listener.Pulse(42, false) == 41
		})
		p := dialer.t.role.(*prober)
		testenv.Await(t, "answers of the measured part", func() bool { return p.answered.Load() >= 8 })
		dialer.Stop()
		listener.Stop()
		wait()
		most := uint64(time.Since(began)/10e6) + 1
		got := dialer.Account().Probe
		if got == nil || got.RoundTrip.Count < 8 || got.RoundTrip.Count > most || got.RoundTrip.Min <= 0 {
			t.Fatalf("probe %+v, want 8 to %d answered", got, most)
		}
		f := got.Facts
		if f.Answered != got.RoundTrip.Count || f.Sent < f.Answered || f.Sent > most || f.IdleNS <= 0 ||
			f.Up == nil || f.Down == nil || f.Up.Count != f.Answered || f.Up.P50+f.Down.P50 > 2*got.RoundTrip.Max {
			t.Errorf("%d sent, %d answered, idle %v, up %+v, down %+v", f.Sent, f.Answered, f.IdleNS, f.Up, f.Down)
		}
	})
}

// A receiver that was started reads every stream; nobody waits for a sender.
func TestReadingIsTold(t *testing.T) {
	both(t, func(t *testing.T, r trial) {
		r.Flow.Streams, r.Timing.MeasureSeconds = 3, 3600
		dialer, listener := r.connected(t)
		for _, e := range []testEnd{listener, dialer} {
			testenv.Must(t, e.Start(t.Context()))
			if e == listener && e.t.role.(*receiver).idle.Load() != 0 {
				t.Error("it was started and does not read all its streams")
			}
		}
	})
}

// An echo that no probe reaches still tells its prober that it lives.
func TestEchoGivesSigns(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r trial) {
		r.Role = engine.Probe
		dialer, listener := r.connected(t)
		listener.Pulse(42, false)
		wait := start(t, listener)
		p := dialer.t.role.(*prober)
		testenv.Await(t, "two signs", func() bool {
			d, err := p.end.sockets[0].read(readWait)
			testenv.Must(t, err)
			p.answer(d.whole(), d.nanos)
			return dialer.t.Count().Heard == 2
		})
		if h := dialer.t.Count().Heard; h != 2 || p.end.Pulse(0, false) != 42 || p.answered.Load() != 0 {
			t.Errorf("heard %d, pulse %d, answered %d; want 2, 42, 0", h, p.end.Pulse(0, false), p.answered.Load())
		}
		listener.Stop()
		wait()
	})
}

// stuck has no room for any packet.
type stuck struct {
	outbox
	calls  int
	onCall func()
}

func (s *stuck) send(int, int) (int, error) {
	s.calls++
	s.onCall()
	return 0, syscall.EAGAIN
}

// A sender that owes a large burst gives up all of it when it is stopped, or
// out of time, while the system has no room.
func TestStopInABlockedBurst(t *testing.T) {
	for _, c := range []struct {
		name string
		stop bool
	}{{"stopped", true}, {"out of time", false}} {
		t.Run(c.name, func(t *testing.T) {
			r := newTrial()
			r.Flow.Rate, r.Flow.Burst, r.Timing.WarmupSeconds = unit.PacketRate(1_000_000), model.MaxBurst, 0
			dialer, _ := r.prepare(t)
			e := dialer.t
			testenv.Must(t, e.Settle([]bool{true}))
			w := e.role.(*sender).streams[0]
			w.prepare(false)
			box := &stuck{outbox: w.out}
			w.out = box
			length := int64(time.Minute)
			if c.stop {
				box.onCall = e.stop
			} else {
				length = int64(80 * time.Millisecond)
				box.onCall = func() { <-time.After(time.Millisecond) }
			}
			schedule, _ := r.Flow.Rate.Schedule(64)
			p := pace.New(pace.Even(schedule),
				pace.Stream{Length: length, Slots: math.MaxUint64, PPS: schedule.PPS(), Burst: model.MaxBurst})
			w.phases[1] = engine.Phase{Pacer: p, Length: length, Paced: true}
			testenv.Must(t, w.sendAlone(w.clock.Now()-int64(70*time.Millisecond)))
			if box.calls > 30 || w.sequence != 0 {
				t.Errorf("tried %d times, %d sent", box.calls, w.sequence)
			}
		})
	}
}

// What is not whole, or not of this flow, is no message; all else comes back as it was.
func FuzzProbe(f *testing.F) {
	ours, other := &Sockets{tokens: make([]engine.ConsentToken, 1)}, &Sockets{tokens: []engine.ConsentToken{{1}}}
	for _, p := range []probe{{kind: kindNote, number: 3, size: 1400, value: 1500},
		{kind: kindReply, number: 3, at: -7}} {
		b := make([]byte, p.bytes())
		ours.putProbe(b, p)
		f.Add(b)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, ok := ours.parseProbe(b)
		if !ok {
			return
		}
		back := make([]byte, p.bytes())
		ours.putProbe(back, p)
		if copy(back[2:6], b[2:6]); !bytes.Equal(back[:7], b[:7]) || !bytes.Equal(back[8:], b[8:p.bytes()]) {
			t.Errorf("% x was read as %+v", b, p)
		}
		if _, ok := other.parseProbe(b); ok {
			t.Errorf("% x was read with another token", b)
		}
	})
}
