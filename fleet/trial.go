package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"pelt/engine"
	"pelt/model"
	"pelt/unit"
)

const (
	prepareTimeout = 15 * time.Second
	drainTimeout   = 30 * time.Second // an order right after a flood may wait for TCP to recover
	cutTimeout     = 3 * time.Second  // for what is left of a cut trial
	gateMargin     = 50 * time.Millisecond
	probeInterval  = 20 * time.Millisecond
	probeBytes     = 64
	probeName      = "probe"
	maxSamples     = 4096 // waiting for the caller's progress function
)

// trialEnd is one end of a trial: Flows[i] has ends 2i (sender) and 2i+1
// (receiver), the probe the two numbers after.
type trialEnd struct {
	agent string
	endOrder
}

// trial is a Trial under way.
type trial struct {
	c        *Controller
	order    Trial
	name     string // SESSION of the subjects
	ends     []trialEnd
	agents   []string // that take part, in order of first use
	liveness *liveness
	cancel   context.CancelCauseFunc
	subs     []*nats.Subscription
	over     chan struct{} // ends the beats
	beating  sync.WaitGroup
	measured *time.Timer              // fires when the measured part begins; nil before the gate
	took     map[string]time.Duration // by agent: what the last order to all took

	mu      sync.Mutex
	left    bool      // RunTrial returns
	begun   time.Time // when the measured part began; zero until all are told to start
	gaps    []Gap
	ended   map[int]bool
	there   map[string]context.Context // by agent: ends when it is not worth asking any more
	giveUp  map[string]context.CancelFunc
	samples []Progress
	missed  uint64 // samples beyond maxSamples
	news    chan struct{}
}

// cutError ends a trial that is running; its text is Outcome.Cut.
type cutError struct{ why string }

func (e *cutError) Error() string { return e.why }

// RunTrial runs one trial, from sockets to reports. progress, which may be
// nil, is called with samples, never concurrently and never after RunTrial has
// returned.
//
// An error means that no traffic was measured: an order was refused, or a host
// could not be reached; it names host and step. Once the senders have been let
// go there is no error any more: if ctx ends or a host is lost, all ends are
// stopped and what the reachable ones measured is returned with Outcome.Cut set.
func (c *Controller) RunTrial(ctx context.Context, order Trial, progress func(Progress)) (out Outcome, err error) {
	err = c.lead(ctx, order, func(run context.Context, t *trial) error {
		if err := t.start(run); err != nil {
			var cut *cutError
			if errors.As(context.Cause(run), &cut) { // the reason rather than its consequence
				return cut
			}
			return cmp.Or(ctx.Err(), err)
		}
		records := t.takeRecords()
		err := t.monitor(run, progress)
		if err == nil {
			err = t.drain(run)
		}
		out = t.collect(ctx, run, err)
		out.Warnings = append(out.Warnings, records.end(out.Cut != "")...)
		return nil
	})
	return out, err
}

// Rehearse has every end of a trial made and freed again, without a connection
// between them: it finds out what a host would refuse. The error is that of RunTrial.
func (c *Controller) Rehearse(ctx context.Context, order Trial) error {
	return c.lead(ctx, order, func(run context.Context, t *trial) error { return t.prepareAll(run) })
}

// lead places a trial and beats for it while f runs; then every agent closes its session.
func (c *Controller) lead(ctx context.Context, order Trial, f func(run context.Context, t *trial) error) error {
	t, err := c.place(order)
	if err != nil {
		return err
	}
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t.cancel = cancel
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave()
	defer t.release()
	return f(run, t)
}

// session is what the trial is called on a hub.
func (t *trial) session(l *link) string { return l.client + "." + t.name }

// about opens an order to a member about this trial.
func (t *trial) about(m member) sessionOrder { return sessionOrder{t.session(m.link)} }

// place makes the orders of all ends.
func (c *Controller) place(order Trial) (*trial, error) {
	if len(order.Flows) == 0 {
		return nil, errors.New("a trial needs at least one flow")
	}
	t := &trial{c: c, order: order, name: randomHex(), liveness: newLiveness(time.Now(), order.Timing.Patience()),
		took: map[string]time.Duration{}, ended: map[int]bool{},
		there: map[string]context.Context{}, giveUp: map[string]context.CancelFunc{},
		news: make(chan struct{}, 1), over: make(chan struct{})}
	var tag [2]byte
	_, _ = rand.Read(tag[:]) // never fails
	base := binary.BigEndian.Uint16(tag[:])
	for i, f := range order.Flows {
		send := engine.Order{Flow: f.Flow, Role: engine.Send, CPU: f.CPU}
		receive := engine.Order{Flow: f.Flow, Role: engine.Receive, CPU: f.CPU, Record: f.Record}
		if f.CPU >= 0 {
			receive.CPU = f.CPU + f.Flow.Streams
		}
		if f.Dialer != f.From && f.Dialer != f.To {
			return nil, fmt.Errorf("flow %s: the dialer %s is none of its ends", f.Flow.Name, f.Dialer)
		}
		if order.Survey {
			t.pairProbe(f, f.Flow.Name, base+uint16(i), true)
			continue
		}
		t.pair(f, base+uint16(i), send, receive)
	}
	if order.Probe {
		t.pairProbe(order.Flows[0], probeName, base+uint16(len(order.Flows)), false)
	}
	for _, e := range t.ends {
		m, ok := c.members[e.agent]
		if !ok {
			return nil, fmt.Errorf("flow %s: no agent %s on the hub", e.Order.Flow.Name, e.agent)
		}
		if !slices.Contains(m.info.Engines, e.Engine) {
			return nil, fmt.Errorf("flow %s: %s has no engine %s; it has %s", e.Order.Flow.Name, m.name, e.Engine, strings.Join(m.info.Engines, ", "))
		}
	}
	return t, nil
}

// pairProbe adds a prober at the dialing end of a flow and its echo at the other.
func (t *trial) pairProbe(f PlacedFlow, name string, tag uint16, survey bool) {
	flow := model.Flow{Name: name, Protocol: model.UDP, From: f.Flow.From, To: f.Flow.To, PayloadBytes: probeBytes,
		Rate: unit.IntervalRate(probeInterval), Streams: 1, Family: f.Flow.Family, DSCP: f.Flow.DSCP}
	if f.Dialer != f.From {
		flow.From, flow.To, f.From, f.To = flow.To, flow.From, f.To, f.From
	}
	f.Send = Choice{Engine: "udp"}
	f.Receive = f.Send
	probe := engine.Order{Flow: flow, Role: engine.Probe, CPU: -1, Survey: survey}
	echo := probe
	echo.Role = engine.Echo
	t.pair(f, tag, probe, echo)
}

// counts reports whether packets from one agent show at another that the controller lives:
// those of the first of two hubs do at the second. The first one is the controller's own
// process, or hears it well. Never the reverse: two agents that counted for each other
// would not find out that the controller is gone.
func (t *trial) counts(from, at string) bool {
	l := t.c.links
	return len(l) == 2 && t.c.members[from].link == l[0] && t.c.members[at].link == l[1]
}

// pair adds both ends of a flow, which share a fresh key.
func (t *trial) pair(f PlacedFlow, tag uint16, from, to engine.Order) {
	key := make([]byte, engine.KeyBytes)
	_, _ = rand.Read(key) // never fails
	for _, e := range []struct {
		order       engine.Order
		choice      Choice
		agent, peer string
	}{{from, f.Send, f.From, f.To}, {to, f.Receive, f.To, f.From}} {
		o := e.order
		o.Timing, o.Trial, o.Tag, o.Key, o.OneClock = t.order.Timing, t.order.Number, tag, key, t.order.OneClock
		o.Fallback, o.Sockets = e.choice.Fallback, e.choice.Sockets
		if o.Listen = e.agent != f.Dialer; !o.Listen {
			o.Peer = f.Listen
		}
		n := len(t.ends)
		t.ends = append(t.ends, trialEnd{e.agent, endOrder{n, e.choice.Engine, e.peer, t.counts(e.peer, e.agent), o}})
		if !slices.Contains(t.agents, e.agent) {
			t.agents = append(t.agents, e.agent)
			t.there[e.agent], t.giveUp[e.agent] = context.WithCancel(context.Background())
		}
	}
}
