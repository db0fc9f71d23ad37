package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"pelt/engine"
	"pelt/finding"
	"pelt/model"
	"pelt/unit"
)

const (
	probeInterval = 50 * time.Millisecond
	timedInterval = 10 * time.Millisecond // of the probe of a trial with a lead
	probeBytes    = 64
	probeName     = "probe"
	maxSamples    = 4096 // waiting for the caller's progress function
)

// party is an agent that takes part in a trial.
type party struct {
	member
	session string             // what the trial is called on the agent's hub
	present context.Context    // ends when the trial gives the agent up
	giveUp  context.CancelFunc // ends it
	took    atomic.Int64       // ns that the last order to all took
}

// about opens an order about the trial.
func (p *party) about() sessionOrder { return sessionOrder{p.session} }

// trialEnd is one end of a trial: Flows[i] has ends 2i (sender) and 2i+1
// (receiver), the probe the two numbers after.
type trialEnd struct {
	*party
	endOrder
	met  engine.Meeting
	dead []int // streams on which the ends have not met
}

// lives reports whether the end carries packets: UDP over the streams that are left, TCP over all or none.
func (e *trialEnd) lives() bool {
	if e.Order.Flow.Protocol == model.TCP {
		return len(e.dead) == 0
	}
	return len(e.dead) < e.Order.Flow.Streams
}

// living tells which streams carry packets.
func (e *trialEnd) living() []bool {
	list := make([]bool, e.Order.Flow.Streams)
	for i := range list {
		list[i] = e.lives() && !slices.Contains(e.dead, i) // TCP: also of those that met
	}
	return list
}

// trial is a Trial under way.
type trial struct {
	c        *Controller
	order    Trial
	name     string // SESSION of the subjects
	tag      uint16 // of the first flow; the others count from there
	ends     []trialEnd
	parties  []*party // in order of first use
	liveness *liveness
	cancel   context.CancelCauseFunc
	over     chan struct{} // closed to end the heartbeats
	beating  sync.WaitGroup
	room     int64         // bytes of all reports
	slowest  time.Duration // see Outcome
	samples  chan Progress
	missed   atomic.Uint64 // samples that found no room
	sent     chan struct{} // closed when no end of sending is left

	mu      sync.Mutex
	begun   time.Time // when the measured part began; zero until all are told to start
	gaps    []Gap
	silent  map[*link]time.Time // since when nothing has come over it; only of those on which that is long
	sending map[int]bool        // ends that the trial waits for
	// breakers are those of flows that have one, by number.
	breakers map[int]*breaker
}

// cutError ends a trial that is running; its reason is Outcome.Cut.
type cutError struct {
	*finding.Fault
	host  string // ID of the agent that it is about; "" of none
	final bool   // another try may not follow
}

func (e *cutError) Unwrap() error { return e.Fault }

// RunTrial runs one trial, from sockets to reports. progress, which may be
// nil, is called with samples, never concurrently and never after RunTrial has
// returned.
//
// An error means that no traffic was measured: an order was refused, or a host
// could not be reached; it names host and step. That nothing comes through from end to end is no error:
// see Outcome.Unmet and Meeting. Once the senders have been let
// go there is no error any more: if ctx ends or a host is lost, all ends are
// stopped and what the reachable ones measured is returned with Outcome.Cut set.
func (c *Controller) RunTrial(ctx context.Context, order Trial, progress func(Progress)) (out Outcome, err error) {
	if progress == nil {
		progress = func(Progress) {}
	}
	err = c.run(ctx, order, func(run context.Context, t *trial) error {
		switch met, err := t.start(run); {
		case err != nil && (ctx.Err() == nil || !t.hasBegun()):
			return err
		case !met:
			out = t.collect(ctx, run, t.readLast(run, true))
			out.Unmet = out.Cut.Code == ""
			return nil
		}
		records := t.takeRecords()
		err := t.wait(run, progress)
		switch {
		case err == nil:
			t.liveness.shorten(order.Timing.Measure(), time.Now())
			err = t.drain(run)
		case ctx.Err() != nil:
			t.drainCut(context.Background(), 0)
		case order.Timing.PatienceSeconds > 0:
			progress(Progress{Cut: finding.ReasonOf(err)})
			t.drainCut(ctx, t.awaited())
		}
		out = t.collect(ctx, run, err)
		out.Warnings = append(out.Warnings, records.end(out.Cut.Code != "")...)
		return nil
	})
	return out, err
}

// Rehearse has every end of a trial made and freed again, without a connection
// between them: it finds out what a host would refuse. Its errors are those of RunTrial.
func (c *Controller) Rehearse(ctx context.Context, order Trial) error {
	return c.run(ctx, order, func(run context.Context, t *trial) error { return t.prepare(run) })
}

// run places a trial and beats for it while f runs; then every agent closes its session.
func (c *Controller) run(ctx context.Context, order Trial, f func(run context.Context, t *trial) error) error {
	t, err := c.place(order)
	if err != nil {
		return err
	}
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t.cancel = cancel
	t.open()
	defer t.close()
	defer t.release()
	if err = f(run, t); err == nil {
		return nil
	}
	var cut *cutError
	switch {
	case !errors.As(context.Cause(run), &cut):
		return cmp.Or(ctx.Err(), err)
	case cut.host != "":
		return &HostError{Host: cut.host, err: cut}
	}
	return cut // the reason rather than its consequence
}

// place makes the orders of all ends.
func (c *Controller) place(order Trial) (*trial, error) {
	t := &trial{c: c, order: order, name: randomHex(), liveness: newLiveness(time.Now(), makeTimeout),
		room: trialBytes, over: make(chan struct{}), samples: make(chan Progress, maxSamples),
		sending: map[int]bool{}, sent: make(chan struct{}), breakers: map[int]*breaker{}, silent: map[*link]time.Time{}}
	var tag [2]byte
	_, _ = rand.Read(tag[:]) // never fails
	t.tag = binary.BigEndian.Uint16(tag[:])
	for i, f := range order.Flows {
		if f.Breaker && f.Flow.Protocol == model.UDP && !OwnNetwork(f.Listen) {
			t.breakers[i] = &breaker{}
		}
		var err error
		if order.Survey {
			err = t.addProbe(f, f.Flow.Name)
		} else {
			send := engine.Order{Flow: f.Flow, Role: engine.Send, CPU: f.CPU}
			receive := send
			receive.Role, receive.Record = engine.Receive, f.Record
			if f.CPU >= 0 {
				receive.CPU = f.CPU + f.Flow.Streams
			}
			err = t.pair(f, send, receive)
		}
		if err != nil {
			return nil, err
		}
	}
	if order.Probe {
		if err := t.addProbe(order.Flows[0], probeName); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// addProbe adds a prober at the dialing end of a flow and its echo at the other.
func (t *trial) addProbe(f PlacedFlow, name string) error {
	flow := model.Flow{Name: name, Protocol: model.UDP, From: f.Flow.From, To: f.Flow.To, PayloadBytes: probeBytes,
		Rate: unit.IntervalRate(probeInterval), Streams: 1, Family: f.Flow.Family, DSCP: f.Flow.DSCP,
		SourceAddresses: f.Flow.SourceAddresses[:min(len(f.Flow.SourceAddresses), 1)]}
	if t.order.Timing.LeadSeconds > 0 {
		flow.Rate = unit.IntervalRate(timedInterval)
	}
	if f.Dialer != f.From {
		flow.From, flow.To, f.From, f.To = flow.To, flow.From, f.To, f.From
	}
	f.Send = Choice{Engine: "udp"}
	f.Receive = f.Send
	probe := engine.Order{Flow: flow, Role: engine.Probe, CPU: -1, Survey: t.order.Survey}
	echo := probe
	echo.Role = engine.Echo
	return t.pair(f, probe, echo)
}

// pair adds both ends of a flow, which share a fresh key.
func (t *trial) pair(f PlacedFlow, from, to engine.Order) error {
	near, err := t.join(f.From, f.Send)
	if err != nil {
		return err
	}
	far, err := t.join(f.To, f.Receive)
	if err != nil {
		return err
	}
	key := make([]byte, engine.KeyBytes)
	_, _ = rand.Read(key)    // never fails
	flows := len(t.ends) / 2 // before this one
	tag, number := t.tag+uint16(flows), engine.NumberAfter(t.order.Number, flows)
	for _, e := range []struct {
		order    engine.Order
		choice   Choice
		at, peer *party
	}{{from, f.Send, near, far}, {to, f.Receive, far, near}} {
		o := e.order
		o.Timing, o.Trial, o.Tag, o.Key, o.OneClock = t.order.Timing, number, tag, key, t.order.OneClock
		o.Fallback, o.Sockets = e.choice.Fallback, e.choice.Sockets
		o.UnheardNanos = t.order.Unheard.Nanoseconds()
		if o.Listen = e.at.info.ID != f.Dialer; !o.Listen {
			o.Peer = f.Listen
		}
		n := len(t.ends)
		if o.Role == engine.Send || o.Role == engine.Probe && o.Survey {
			t.sending[n] = true
		}
		t.ends = append(t.ends, trialEnd{party: e.at,
			endOrder: endOrder{n, e.choice.Engine, e.peer.info.ID, t.vouches(e.peer, e.at), o}})
	}
	return nil
}

// join lets an agent take part in the trial.
func (t *trial) join(id string, choice Choice) (*party, error) {
	m, known := t.c.member(id)
	switch {
	case !known:
		return nil, finding.NewFault(model.HostNotThere, "name", id)
	case !slices.Contains(m.info.Engines, choice.Engine):
		return nil, &HostError{id, m.info.Node, m.at, finding.NewFault(model.EngineNotThere, "name", choice.Engine,
			"engines", strings.Join(m.info.Engines, ", "))}
	}
	if p := t.party(id); p != nil {
		return p, nil
	}
	p := &party{member: m, session: m.link.client + "." + t.name}
	p.present, p.giveUp = context.WithCancel(context.Background())
	t.parties = append(t.parties, p)
	return p, nil
}

// party finds an agent that takes part; nil without.
func (t *trial) party(id string) *party {
	for _, p := range t.parties {
		if p.info.ID == id {
			return p
		}
	}
	return nil
}

// vouches reports whether packets from one agent are also a sign of the controller at another: only those from an
// agent of the first hub, at one of the second. The first hub is in the controller's process, or hears it well. Two
// agents that vouched for each other would not notice that the controller is gone.
func (t *trial) vouches(from, at *party) bool {
	l := t.c.links
	return len(l) == 2 && from.link == l[0] && at.link == l[1]
}

// flows are those of the trial's own order.
func (t *trial) flows() (all []model.Flow) {
	for _, f := range t.order.Flows {
		all = append(all, f.Flow)
	}
	return all
}
