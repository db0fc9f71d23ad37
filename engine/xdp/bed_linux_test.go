//go:build amd64 || arm64

package xdp

import (
	"maps"
	"net/netip"
	"testing"
	"time"

	"pelt/engine"
	"pelt/engine/enginetest"
	"pelt/engine/udp"
	"pelt/internal/netbed"
	"pelt/internal/testenv"
	"pelt/model"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// bed is netbed's cable with the engines of each end's host.
type bed struct {
	*netbed.Bed
	near, far *netbed.Node
	engines   map[*netbed.Node]engines
}

func newBed(t testing.TB) *bed {
	t.Helper()
	b := &bed{Bed: netbed.New(t, 1, true)}
	b.near, b.far = b.Sender, b.Receiver
	b.engines = map[*netbed.Node]engines{b.near: newEngines(t, udp.Config{}), b.far: newEngines(t, udp.Config{})}
	return b
}

// makeReady puts a program at the far end of the cable.
func (b *bed) makeReady() {
	b.T.Helper()
	testenv.Must(b.T, b.engines[b.far].xdp.Ready(b.far, "vb"))
}

// The suite of all transports: frames over a cable, and through a router between two. TestClockEveryShape mixes them
// with sockets.
func TestTransport(t *testing.T) {
	enginetest.Run(t, func(t testing.TB, w enginetest.Want) enginetest.Bed {
		names := []string{"near", "far"}
		if w.Relay {
			names = []string{"near", "middle", "far"}
		}
		nodes := netbed.Chain(t, names...)
		b := enginetest.Bed{Trial: enginetest.New(model.UDP), Middle: nodes[1], At: netbed.Address(false, 2)}
		b.Peer = nodes[len(nodes)-1].IP(w.Six)
		var all []engines
		var rings []func() uint64
		for i, n := range nodes { // what the sockets' engine alone does not see to
			all = append(all, newEngines(t, udp.Config{ConsentClock: w.Clock, ConsentHeard: w.Heard}))
			for _, to := range []int{i - 1, i + 1} {
				name := "eth0"
				if to < 0 || to >= len(nodes) {
					continue
				}
				if i > 0 && i < len(nodes)-1 {
					name = "to-" + names[to]
				}
				testenv.Must(t, all[i].xdp.Ready(n, name))
				rings = append(rings, func() uint64 { return n.Unsent(name) })
			}
		}
		b.Overflowed = func() (sum uint64) {
			for _, ring := range rings {
				sum += ring()
			}
			return sum
		}
		b.Near = enginetest.Side{Host: nodes[0], Engine: all[0].xdp}
		b.Far = enginetest.Side{Host: nodes[len(nodes)-1], Engine: all[len(nodes)-1].xdp}
		return b
	})
}

// trial is what one test sends.
type trial struct {
	flow      model.Flow
	warmup    time.Duration
	measure   time.Duration
	six       bool
	peer      netip.Addr // of far; none: its usual one
	fallback  bool
	engines   [2]string              // of sender and receiver; "" is xdp
	connected func(*enginetest.Pair) // before both start
	during    func(*enginetest.Pair) // once both run
	packets   uint64                 // the sender stops once it has sent so many, after during; 0: it does not
}

// outcome is both ends' account.
type outcome struct {
	enginetest.Trial
	send, receive engine.Report
}

// balanced checks what must hold of any trial, and returns what was lost.
func (o *outcome) balanced(t *testing.T) uint64 {
	t.Helper()
	enginetest.Balance(t, o.Order, o.send, o.receive)
	return o.send.Send.Attempted - o.receive.Receive.Tally.Received
}

// unsent is what the device did not take.
func (o *outcome) unsent() uint64 { return enginetest.Total(maps.Values(o.send.Send.Unsent)) }

// engines are those of one host.
type engines struct {
	udp *udp.Engine
	xdp *Engine
}

func newEngines(t testing.TB, c udp.Config) engines {
	u := udp.New(c)
	x := New(u)
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Errorf("close the engine: %v", err)
		}
	})
	return engines{u, x}
}

func (e engines) named(name string) engine.Engine {
	if name == "udp" {
		return e.udp
	}
	return e.xdp
}

// run runs one trial from near to far.
func (b *bed) run(t testing.TB, c trial) (out outcome, err error) {
	t.Helper()
	r := enginetest.New(model.UDP)
	r.Order.Trial = 77
	c.flow.Name, c.flow.Protocol, c.flow.From, c.flow.To = r.Flow.Name, r.Flow.Protocol, r.Flow.From, r.Flow.To
	c.flow.Streams, c.flow.PayloadBytes = max(c.flow.Streams, 1), max(c.flow.PayloadBytes, 18)
	r.Flow, r.Timing.WarmupSeconds, r.Timing.MeasureSeconds = c.flow, c.warmup.Seconds(), c.measure.Seconds()
	r.Fallback, r.CPU, r.Peer, r.BetweenThem, r.During = c.fallback, 0, netbed.Address(c.six, 2), c.connected, c.during
	if c.peer.IsValid() {
		r.Peer = c.peer
	}
	if c.packets > 0 {
		r.Until(func(p *enginetest.Pair) bool { return p.Sender.Snapshot().Packets >= c.packets })
	}
	r.Near = enginetest.Side{Host: b.near, Engine: b.engines[b.near].named(c.engines[0])}
	r.Far = enginetest.Side{Host: b.far, Engine: b.engines[b.far].named(c.engines[1])}
	out.send, out.receive, err = r.Try(t)
	out.Trial = r
	return out, err
}

// TestSlotsAreGivenBack: a flow that left makes room for the next one on its interface.
func TestSlotsAreGivenBack(t *testing.T) {
	p := &port{engine: &Engine{}}
	for _, r := range []*receiver{{flow: 0, slots: []uint32{0, 1}}, {flow: 1, slots: []uint32{2}}} {
		p.taken[r.flow] = true
		for _, slot := range r.slots {
			p.used[slot] = true
		}
		p.free(r)
	}
	p.free(&receiver{flow: -1}) // it found no room
	if p.used != [len(p.used)]bool{} || p.taken != [len(p.taken)]bool{} {
		t.Errorf("taken flows %v, used slots %v", p.taken[:3], p.used[:3])
	}
}
