package tcp

import (
	"net/netip"
	"testing"
	"time"

	"pelt/engine"
	"pelt/engine/enginetest"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/unit"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// The suite of all transports, over loopback.
func TestTransport(t *testing.T) {
	t.Parallel()
	for name, bulk := range map[string]bool{"bulk": true, "writes": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			enginetest.Run(t, func(t testing.TB, w enginetest.Want) enginetest.Bed {
				b := enginetest.Bed{Trial: enginetest.New(model.TCP)}
				b.Timing.DrainSeconds = 1 // a sender that is stopped does not end its streams: a quarter passes
				if b.Flow.Bulk = bulk; bulk {
					b.Flow.PayloadBytes, b.Flow.Rate = 64<<10, unit.Rate{}
				}
				if w.Six {
					b.Peer = netip.IPv6Loopback()
				}
				for _, s := range []*enginetest.Side{&b.Near, &b.Far} {
					s.Host, s.Engine = enginetest.Here{}, New(Config{})
				}
				return b
			})
		})
	}
}

// pair is one flow, and both ends, of engines of their own.
type pair struct {
	*enginetest.Pair
	t                *testing.T
	sender, receiver testEnd
	trial            *enginetest.Trial
	// an end warned that this machine kept it waiting, or did not see its first byte at once
	late  bool
	shift time.Duration // of the receiver's measured part against the sender's
}

// testEnd is an end and the connections it runs over.
type testEnd struct {
	*enginetest.End
	t *end
}

func prepare(t testing.TB, g *Engine, host engine.Host, o engine.Order) (testEnd, error) {
	e, err := enginetest.Open(t, enginetest.Side{Host: host, Engine: g}, o)
	if err != nil {
		return testEnd{}, err
	}
	return testEnd{e, e.Transport.(*end)}, nil
}

func flow(streams, payload int, bulk bool) model.Flow {
	return model.Flow{Name: "up", Protocol: model.TCP, From: model.Sender, To: model.Receiver, PayloadBytes: payload,
		Streams: streams, Bulk: bulk}
}

func timing(warmup, measure, drain time.Duration) model.Timing {
	return model.Timing{WarmupSeconds: warmup.Seconds(), MeasureSeconds: measure.Seconds(),
		DrainSeconds: drain.Seconds()}
}

// newPair prepares both ends; the sender listens if senderListens, else the receiver.
func newPair(t *testing.T, host engine.Host, address string, senderListens bool, f model.Flow,
	timing model.Timing) *pair {
	t.Helper()
	r := enginetest.New(model.TCP)
	r.Flow, r.Timing, r.Peer = f, timing, netip.MustParseAddr(address)
	if senderListens {
		r.Role = engine.Receive
	}
	r.Near, r.Far = enginetest.Side{Host: host, Engine: New(Config{})}, enginetest.Side{Host: host,
		Engine: New(Config{})}
	p := r.Prepare(t)
	return &pair{Pair: p, t: t, trial: &r, sender: testEnd{p.Sender, p.Sender.Transport.(*end)},
		receiver: testEnd{p.Receiver, p.Receiver.Transport.(*end)}}
}

// some has the trial last until both ends have counted some data.
func (p *pair) some() {
	p.trial.Until(func(q *enginetest.Pair) bool {
		return min(q.Sender.Snapshot().Bytes, q.Receiver.Snapshot().Bytes) > 50*uint64(p.trial.Flow.PayloadBytes) &&
			p.wrote()
	})
}

// wrote reports whether a write was made in the measured part: what leaves in it may have been written before.
func (p *pair) wrote() bool {
	for _, s := range p.sender.t.streams {
		s.mu.Lock()
		wrote := s.opened && s.writes.Load() > s.base.writes
		s.mu.Unlock()
		if wrote {
			return true
		}
	}
	return false
}

// play plays the trial of a connected pair and returns both reports.
func (p *pair) play() (engine.SendReport, engine.ReceiveReport) {
	p.t.Helper()
	s, r := p.Play()
	// Writes that make up for lateness are joined to segments.
	p.late = s.Send.BurstMax > 4
	from, to := p.sender.t, p.receiver.t
	p.shift = time.Duration(to.clock.At(time.Duration(to.origin.Load())) - from.clock.At(time.Duration(from.origin.Load())))
	p.late = p.late || p.sender.Order.Flow.Connections == "" && p.shift > 2*time.Millisecond
	for role, report := range map[string]engine.Report{"sender": s, "receiver": r} {
		for _, w := range report.Warnings {
			p.t.Logf("%s warns: %v", role, w)
			p.late = p.late || w.Code == model.ReadLate || w.Code == model.WritesLate || w.Numbers["late"] > 0
		}
	}
	return *s.Send, *r.Receive
}

// calm plays a flow until one trial ran on a machine that gave both ends their
// turn, at most five times; p.late tells whether even the last one did not.
func calm(make func() *pair) (p *pair, s engine.SendReport, r engine.ReceiveReport) {
	for range 5 {
		p = make()
		p.Connect()
		s, r = p.play()
		p.Close()
		if !p.late {
			break
		}
		testenv.AwaitCalm(p.t.Logf)
	}
	return p, s, r
}
