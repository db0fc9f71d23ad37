package enginetest

import (
	"errors"
	"net/netip"
	"sync"
	"testing"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/measure"
	"pelt/model"
	"pelt/unit"
)

// Want is what a test of the suite needs of its hosts.
type Want struct {
	Six   bool         // the peer's address is of IPv6
	Relay bool         // there is a host between the two ends
	Clock func() int64 // of the consent; nil: the host's
	// is told when the newest answered check of a stream was sent, as its sender has read; may be nil
	Heard func(stream int, since int64)
}

// Bed is a flow between two hosts, with engines that are closed with the test.
type Bed struct {
	Trial
	Middle engine.Host // where a relay stands, if one is wanted
	At     netip.Addr  // its address
}

// Maker makes a bed.
type Maker func(t testing.TB, w Want) Bed

// Run tests one transport. Its trials wait for each other's packets, so they go on side by side; testenv.Main looks for
// what they leave behind.
func Run(t *testing.T, maker Maker) {
	datagrams := maker(t, Want{}).Flow.Protocol != model.TCP
	row(t, "account", func(t *testing.T) { testAccount(t, maker, datagrams) })
	row(t, "flood", func(t *testing.T) { testFlood(t, maker) })
	row(t, "both directions at once", func(t *testing.T) { testBothDirections(t, maker, datagrams) })
	row(t, "stop", func(t *testing.T) { testStop(t, maker, datagrams) })
	row(t, "stop races", func(t *testing.T) { testStopRaces(t, maker) })
	row(t, "another key", func(t *testing.T) { testAnotherKey(t, maker) })
	row(t, "no consent", func(t *testing.T) { testNoConsent(t, maker) })
	row(t, "same numbers", func(t *testing.T) { testSameNumbers(t, maker) })
	row(t, "strangers", func(t *testing.T) { testStrangers(t, maker, datagrams) })
	if datagrams {
		row(t, "warm-up", func(t *testing.T) { testWarmup(t, maker) })
		row(t, "sent is not told", func(t *testing.T) { testSentIsNotTold(t, maker) })
		row(t, "dead stream", func(t *testing.T) { testDeadStream(t, maker) })
		row(t, "relay", func(t *testing.T) { testRelay(t, maker) })
		row(t, "leaps", func(t *testing.T) { testLeaps(t, maker) })
		row(t, "consent is lost", func(t *testing.T) { testLostConsent(t, maker) })
	}
}

// row runs a test beside others.
func row(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		test(t)
	})
}

// some has the trial last until both ends have counted some packets.
func (r *Trial) some() {
	r.Until(func(p *Pair) bool {
		return min(p.Sender.Snapshot().Bytes, p.Receiver.Snapshot().Bytes) >= 200*uint64(r.Flow.PayloadBytes)
	})
}

// judge checks the account of a flow over a path that loses nothing.
func (r *Trial) judge(t testing.TB, datagrams bool, send, receive engine.Report) {
	t.Helper()
	if datagrams {
		r.Undisturbed(t, send, receive)
		return
	}
	Balance(t, r.Order, send, receive)
	if send.Send.Accepted != send.Send.Attempted || r.During != nil &&
		(send.Send.TCP.SentBytes == 0 || receive.Receive.Tally.Bytes == 0) {
		t.Errorf("attempted %d, accepted %d, %d B sent, %d B received", send.Send.Attempted, send.Send.Accepted,
			send.Send.TCP.SentBytes,
			receive.Receive.Tally.Bytes)
	}
}

func testAccount(t *testing.T, maker Maker, datagrams bool) {
	for _, c := range []struct {
		name string
		set  func(*Trial)
		want Want
	}{
		{"one stream", func(*Trial) {}, Want{}},
		{"IPv6, three streams", func(r *Trial) { r.Flow.Streams = 3 }, Want{Six: true}},
		{"the dialing end receives", func(r *Trial) { r.Role = engine.Receive }, Want{}},
		{"no warm-up", func(r *Trial) { r.Timing.WarmupSeconds = 0 }, Want{}},
		{"a fixed time", func(r *Trial) { r.Timing.MeasureSeconds, r.During = 0.25, nil }, Want{}},
	} {
		row(t, c.name, func(t *testing.T) {
			b := maker(t, c.want)
			b.some()
			c.set(&b.Trial)
			send, receive := b.Play(t)
			b.judge(t, datagrams, send, receive)
		})
	}
}

// As fast as it can, a sender plans what it attempts.
func testFlood(t *testing.T, maker Maker) {
	b := maker(t, Want{})
	b.Flow.Rate, b.Flow.Streams, b.Timing.WarmupSeconds, b.Timing.MeasureSeconds = unit.Rate{}, 2, 0, 600
	b.During = func(p *Pair) {
		testenv.Await(t, "packets of the flood",
			func() bool { return p.Receiver.Snapshot().Packets >= 100 && p.Sender.Snapshot().Packets >= 1000 })
		p.Sender.Stop()
	}
	send, receive := b.Play(t)
	Balance(t, b.Order, send, receive)
	s, got := send.Send, receive.Receive
	if s.Planned != s.Attempted || s.Attempted == 0 || got.Tally.Received == 0 {
		t.Errorf("planned %d, attempted %d, received %d", s.Planned, s.Attempted, got.Tally.Received)
	}
	if b.Flow.Protocol != model.TCP {
		b.Dropped(t, send, receive)
	}
}

// What comes during the warm-up is a sign of life, though it is not counted.
func testWarmup(t *testing.T, maker Maker) {
	b := maker(t, Want{})
	b.Timing.WarmupSeconds = 600
	p := b.Prepare(t).Connect().Start()
	testenv.Await(t, "the receiver to hear", func() bool { return p.Receiver.Snapshot().Heard > 10 })
	p.Stop()
	send, receive := p.Sender.Account().Send, p.Receiver.Account().Receive
	if send.Attempted+receive.Tally.Received+receive.Unread > 0 || receive.WarmupReceived == 0 ||
		send.WarmupSent < receive.WarmupReceived {
		t.Errorf("attempted %d and received %d in the warm-up: %d of %d", send.Attempted, receive.Tally.Received,
			receive.WarmupReceived, send.WarmupSent)
	}
}

// A receiver that nobody told what each stream attempted does not guess what is missing.
func testSentIsNotTold(t *testing.T, maker Maker) {
	for _, attempted := range [][]uint64{{5}, {5, 5, 5}} {
		b := maker(t, Want{})
		b.Flow.Streams, b.Timing.DrainSeconds = 2, 0
		p := b.Prepare(t).Connect()
		if err := errors.Join(p.Receiver.Start(t.Context()),
			p.Receiver.Drain(t.Context(), engine.Sent{Streams: attempted})); err != nil {
			t.Fatal(err)
		}
		if got := p.Receiver.Account().Receive; got.MissingKnown || got.Missing != nil {
			t.Errorf("told %v of 2 streams, it knows %+v", attempted, got.Missing)
		}
	}
}

func testBothDirections(t *testing.T, maker Maker, datagrams bool) {
	up := maker(t, Want{})
	up.some()
	down := up
	down.Tag, down.Role = up.Tag+1, engine.Receive
	var both sync.WaitGroup
	for _, r := range []*Trial{&up.Trial, &down.Trial} {
		both.Go(func() {
			send, receive, err := r.Try(t)
			if err != nil {
				t.Error(err)
				return
			}
			r.judge(t, datagrams, send, receive)
		})
	}
	both.Wait()
}

// What a path loses, repeats and swaps is what the account says.
func testRelay(t *testing.T, maker Maker) {
	for name, role := range map[string]engine.Role{"the dialing end sends": engine.Send,
		"the dialing end receives": engine.Receive} {
		row(t, name, func(t *testing.T) {
			b := maker(t, Want{Relay: true})
			b.Role, b.Flow.Streams = role, 2
			b.some()
			y := newRelay(t, &b.Trial, b.Middle, b.At)
			y.changes = true
			send, receive := b.Play(t)
			y.check(t, &b.Trial, send, receive)
		})
	}
}

// What came after a long gap counts in the second it came and has a delay. A receiver doubts such packets until enough
// of them agree, or until the sender says that it sent as many.
func testLeaps(t *testing.T, maker Maker) {
	for name, bursts := range map[string][]int{
		"few after it":      {64, measure.Agreeing - 7},
		"nothing before it": {0, measure.Agreeing - 7},
		"many after it":     {64, 3 * measure.Agreeing},
		"one by one":        {1, 1, 1, 1},
	} {
		row(t, name, func(t *testing.T) {
			b := maker(t, Want{Relay: true})
			b.Flow.Rate = unit.PacketRate(20_000)
			y := newRelay(t, &b.Trial, b.Middle, b.At)
			y.bursts = bursts
			b.Until(func(*Pair) (over bool) {
				y.look(func(s []relayed) { over = s[0].burst == len(bursts) })
				return over
			})
			send, receive := b.Play(t)
			y.check(t, &b.Trial, send, receive)
			got := receive.Receive.Tally
			if got.Strangers != 0 || got.Received > 0 && (got.Delay == nil || got.Delay.Count != got.Received) {
				t.Errorf("delay %+v of %+v", got.Delay, got)
			}
		})
	}
}
