package udp

import (
	"net/netip"
	"slices"
	"testing"

	"pelt/engine"
	"pelt/engine/enginetest"
	"pelt/internal/testenv"
	"pelt/unit"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// trial is one flow between two hosts, ready to be played.
type trial struct {
	enginetest.Trial
	plain bool // by the sockets of every system
}

// newTrial is a paced flow over loopback for a quarter of a second.
func newTrial() trial {
	r := trial{Trial: enginetest.New("udp")}
	r.Near.Host, r.Far.Host = enginetest.Here{}, enginetest.Here{}
	return r
}

func testEngine(c Config, plainSockets bool) *Engine {
	e := New(c)
	if plainSockets {
		e.socketMaker = portable{}
	}
	return e
}

// testEnd is an end and the sockets it runs over.
type testEnd struct {
	*enginetest.End
	t *Sockets
}

func ofSockets(e *enginetest.End) testEnd { return testEnd{e, e.Transport.(*Sockets)} }

func prepare(t testing.TB, e *Engine, host engine.Host, o engine.Order) (testEnd, error) {
	end, err := enginetest.Open(t, enginetest.Side{Host: host, Engine: e}, o)
	if err != nil {
		return testEnd{}, err
	}
	return ofSockets(end), nil
}

// run returns once traffic has ended.
func (e testEnd) run(t testing.TB) error {
	t.Helper()
	if err := e.Start(t.Context()); err != nil {
		return err
	}
	return e.Wait(t)
}

// start starts ends in order, and returns what waits for them.
func start(t testing.TB, ends ...testEnd) (wait func()) {
	t.Helper()
	for _, e := range ends {
		testenv.Must(t, e.Start(t.Context()))
	}
	return func() {
		t.Helper()
		for _, e := range ends {
			if err := e.Wait(t); err != nil {
				t.Error(err)
			}
		}
	}
}

// engines gives the trial engines of its own where it has none.
func (r *trial) engines() {
	for _, s := range []*enginetest.Side{&r.Near, &r.Far} {
		if s.Engine == nil {
			s.Engine = testEngine(Config{}, r.plain)
		}
	}
}

// prepare makes both ends; they are closed with the test.
func (r *trial) prepare(t testing.TB) (dialer, listener testEnd) {
	t.Helper()
	p := r.pair(t)
	return ofSockets(p.Dialer), ofSockets(p.Listener)
}

// connected makes both ends and connects them.
func (r *trial) connected(t testing.TB) (dialer, listener testEnd) {
	t.Helper()
	p := r.pair(t).Connect()
	return ofSockets(p.Dialer), ofSockets(p.Listener)
}

func (r *trial) pair(t testing.TB) *enginetest.Pair {
	r.engines()
	return r.Prepare(t)
}

// Play plays the whole trial and returns the reports of sender and receiver.
func (r *trial) Play(t testing.TB) (send, receive engine.Report) {
	t.Helper()
	r.engines()
	return r.Trial.Play(t)
}

// sends has the trial last until each stream has attempted so many packets.
func (r *trial) sends(packets uint64) {
	r.Until(func(p *enginetest.Pair) bool {
		return !slices.ContainsFunc(ofSockets(p.Sender).t.role.(*sender).streams,
			func(w *sendStream) bool { return w.attempted.Load() < packets })
	})
}

// variants are the three ways to move a flow's packets through sockets.
var variants = []struct {
	name           string
	plain, workers bool
}{{"native", false, false}, {"portable", true, false}, {"workers", false, true}}

func both(t *testing.T, f func(t *testing.T, r trial)) {
	for _, c := range variants {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newTrial()
			r.plain = c.plain
			if c.workers {
				config := Config{Workers: NewWorkers()}
				r.Near.Engine, r.Far.Engine = testEngine(config, false), testEngine(config, false)
			}
			f(t, r)
		})
	}
}

// The suite of all transports, over loopback.
func TestTransport(t *testing.T) {
	t.Parallel()
	for _, c := range variants {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			enginetest.Run(t, func(t testing.TB, w enginetest.Want) enginetest.Bed {
				r := newTrial()
				b := enginetest.Bed{Trial: r.Trial, Middle: enginetest.Here{}, At: r.Peer}
				if w.Six {
					b.Peer = netip.IPv6Loopback()
				}
				config := Config{ConsentClock: w.Clock, ConsentHeard: w.Heard}
				if c.workers {
					config.Workers = NewWorkers()
				}
				b.Near.Engine, b.Far.Engine = testEngine(config, c.plain), testEngine(config, c.plain)
				return b
			})
		})
	}
}

func TestPayloads(t *testing.T) {
	t.Parallel()
	for payload, rate := range map[int]uint64{16: 2000, 65507: 100} {
		both(t, func(t *testing.T, r trial) {
			r.Flow.PayloadBytes, r.Flow.Rate = payload, unit.PacketRate(rate)
			r.sends(20)
			send, receive := r.Play(t)
			r.Undisturbed(t, send, receive)
			if send.Send.BurstMax > 1 {
				t.Errorf("a burst of %d packets", send.Send.BurstMax)
			}
		})
	}
}
