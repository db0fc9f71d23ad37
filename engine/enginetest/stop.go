package enginetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/unit"
)

// An end stops in whatever state it is, and plans nothing after that.
func testStop(t *testing.T, maker Maker, datagrams bool) {
	failed := func(t *testing.T, e *End) {
		t.Helper()
		if err := e.Connect(t.Context()); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stopped, Connect ended with %v", err)
		}
	}
	row(t, "before it connects", func(t *testing.T) {
		b := maker(t, Want{})
		p := b.Prepare(t)
		for _, e := range []*End{p.Dialer, p.Listener} {
			e.Stop()
			failed(t, e)
		}
	})
	row(t, "while it connects", func(t *testing.T) {
		b := maker(t, Want{})
		mute := b.listen(t, nil)
		p, err := b.toward(t, mute)
		testenv.Must(t, err)
		for _, e := range []*End{p.Dialer, p.Listener} {
			time.AfterFunc(20*time.Millisecond, e.Stop)
			failed(t, e)
		}
	})
	row(t, "before it starts", func(t *testing.T) {
		b := maker(t, Want{})
		b.Timing.MeasureSeconds = 600
		p := b.Prepare(t).Connect()
		p.Sender.Stop()
		p.Receiver.Stop()
		p.Start().Stop()
	})
	for name, rate := range map[string]unit.Rate{"slow": unit.IntervalRate(10 * time.Minute),
		"paced": unit.PacketRate(2000), "fast": unit.PacketRate(50_000)} {
		row(t, name, func(t *testing.T) {
			b := maker(t, Want{})
			b.Flow.Rate, b.Timing.WarmupSeconds, b.Timing.MeasureSeconds = rate, 0, 3600
			p := b.Prepare(t).Connect().Start()
			testenv.Await(t, "a packet", func() bool { n := p.Sender.Snapshot(); return n.Packets+n.Bytes > 0 })
			p.Stop()
			send, receive := p.Sender.Account(), p.Receiver.Account()
			Balance(t, b.Order, send, receive)
			s := send.Send
			schedule, _ := rate.Schedule(b.Flow.PayloadBytes)
			if most := schedule.Count(s.DurationNanos) + 1; datagrams && (s.Attempted == 0 || s.Planned > most) {
				t.Errorf("planned %d, attempted %d in %d ns: want %d at most", s.Planned, s.Attempted,
					s.DurationNanos, most)
			}
			if receive.Receive.MissingKnown {
				t.Error("nobody told the receiver what was sent, and it knows what is missing")
			}
		})
	}
}

// Whatever is called beside whatever, everything ends.
func testStopRaces(t *testing.T, maker Maker) {
	b := maker(t, Want{})
	b.Timing.MeasureSeconds = 600
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 8 {
		b.Tag = uint16(100 + round)
		p := b.Prepare(t)
		var all sync.WaitGroup
		for _, e := range []*End{p.Dialer, p.Listener} {
			moment := time.Duration(random.IntN(30)) * time.Millisecond
			all.Go(func() {
				if e.Connect(t.Context()) == nil && e.Start(t.Context()) == nil {
					<-e.Done()
				}
			})
			all.Go(func() {
				for {
					select {
					case <-e.Done():
						return
					default:
						e.Snapshot()
						e.Pulse(1, false)
						e.Report()
						e.Ports()
						time.Sleep(100 * time.Microsecond)
					}
				}
			})
			all.Go(func() {
				time.Sleep(moment)
				if round%2 == 0 {
					e.Stop()
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			})
			if round%3 == 0 {
				all.Go(func() { _ = e.Drain(t.Context(), engine.Sent{}) })
			}
		}
		over := make(chan struct{})
		go func() { all.Wait(); close(over) }()
		testenv.Receive(t, "all ends to end", over)
	}
}
