package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"pelt/engine"
	"pelt/model"
)

// Router is a router between the ends, as it tells of itself throughout one run. Its
// methods may be called concurrently, but for one trial after the other.
type Router interface {
	// Facts are what it is, with its texts of before the first trial.
	Facts() model.RouterFacts
	// Begin watches one trial, whose measured part takes so long at most; drops says how
	// closely its kernel is watched, "" for its processors alone. What it cannot do stands
	// in the watch's report.
	Begin(trial uint16, drops model.DropMode, measured time.Duration) RouterWatch
	// Finish returns all facts, with the texts of after the last trial.
	Finish(ctx context.Context) model.RouterFacts
	Close() error
}

// RouterWatch observes a router during one trial.
type RouterWatch interface {
	engine.Observation
	// Cores is the busy share of each core between the newest two samples; none where it is told later.
	Cores() map[int]float64
}

// routerNode is what a router is called on the path.
const routerNode = "router"

const (
	routerWindow      = time.Minute      // for so long a router and its controller need not hear each other
	routerOpenTimeout = 45 * time.Second // a slow router tells what it is
	momentTimeout     = 3 * time.Second  // what comes later tells of another moment
)

// farRouter is a Router that runs pelt serve itself: the agent there is in a session without
// ends, for the whole run. Trials do not depend on it: once it is lost, orders to it fail.
type farRouter struct {
	c      *Controller
	agent  member
	about  sessionOrder
	facts  model.RouterFacts
	source string
	gone   atomic.Bool        // it was waited for since its connection broke
	stop   context.CancelFunc // ends the heartbeat
	beats  sync.WaitGroup
}

// WatchRouter connects to the hub of a router that only observes, and opens a session
// there. source says in the facts how it is watched. Errors are those of [NewController].
func WatchRouter(ctx context.Context, hub HubAddress, source, version string) (_ Router, err error) {
	hub.Node = routerNode
	c, err := NewController(ctx, version, hub)
	if err != nil {
		return nil, err
	}
	agent := c.members[0]
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	about := sessionOrder{agent.link.client + "." + randomHex()}
	r := &farRouter{c: c, agent: agent, about: about, source: source, stop: stop}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	limit, cancel := context.WithTimeout(ctx, routerOpenTimeout)
	defer cancel()
	r.beats.Go(func() { r.beat(life) })
	if _, err := give[portsAnswer](limit, agent, verbPrepare, prepareOrder{sessionOrder: r.about}); err != nil {
		return nil, err
	}
	if r.facts, err = r.ask(limit, false); err != nil {
		return nil, err
	}
	agent.link.hold(routerWindow)
	return r, nil
}

// limit bounds an order. A connection that broke is waited for by one order, or the run would wait for the router at each
// of its steps.
func (r *farRouter) limit(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	switch nc := r.agent.link.nc; {
	case nc.IsConnected(), nc.IsClosed(): // the latter says so at once
		r.gone.Store(false)
	case r.gone.Swap(true):
		within = 0
	default:
		within = min(within, momentTimeout)
	}
	return context.WithTimeout(ctx, within)
}

// ask fetches the facts.
func (r *farRouter) ask(ctx context.Context, final bool) (model.RouterFacts, error) {
	ctx, cancel := r.limit(ctx, routerOpenTimeout)
	defer cancel()
	f, err := fetch[model.RouterFacts](ctx, r.agent, verbFacts, reportOrder{sessionOrder: r.about, Final: final}, roomFor(reportBytes))
	f.Clamp()
	f.Node, f.Source = routerNode, r.source
	return f, err
}

// beat keeps the session open until life ends or the connection is lost.
func (r *farRouter) beat(life context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for n := uint64(1); ; n++ {
		if data, err := json.Marshal(beat{Number: n}); err == nil { // a number always marshals
			r.agent.link.post(sessionSubject(r.about.Session, controllerName), data)
		}
		select {
		case <-life.Done():
			return
		case <-r.agent.link.lost:
			return
		case <-tick.C:
		}
	}
}

// Facts are what the router is.
func (r *farRouter) Facts() model.RouterFacts { return r.facts }

// Finish asks once more.
func (r *farRouter) Finish(ctx context.Context) model.RouterFacts {
	f, err := r.ask(ctx, true)
	if err != nil {
		f = r.facts
		f.Untold = append(f.Untold, "not what it is after the last trial: "+err.Error())
	}
	return f
}

// Close ends the session and the connection; it may be called again.
func (r *farRouter) Close() error {
	ctx, cancel := r.limit(context.Background(), momentTimeout)
	defer cancel()
	_, _ = give[none](ctx, r.agent, verbRelease, r.about) // else the session misses its heartbeat
	r.stop()
	r.beats.Wait()
	return r.c.Close()
}

// Begin watches one trial. The next one, or the end of the session, ends the watch.
func (r *farRouter) Begin(trial uint16, drops model.DropMode, measured time.Duration) RouterWatch {
	w := &farWatch{router: r, measured: measured, order: observeOrder{sessionOrder: r.about, Trial: trial,
		Drops: drops, MeasuredNanos: measured.Nanoseconds()}}
	w.observe(context.Background(), "begin", momentTimeout, w.order)
	w.failed = w.fault
	return w
}

// farWatch is a trial's watch on such a router.
type farWatch struct {
	router   *farRouter
	order    observeOrder // what all of the trial have in common
	measured time.Duration
	failed   error // the watch could not begin

	mu    sync.Mutex
	flows []model.Flow
	fault error // the first order that failed
}

// observe gives one order, if the watch has begun.
func (w *farWatch) observe(ctx context.Context, what string, within time.Duration, q observeOrder) {
	if w.failed != nil {
		return
	}
	ctx, cancel := w.router.limit(ctx, within)
	defer cancel()
	_, err := give[none](ctx, w.router.agent, verbObserve, q)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && w.fault == nil {
		w.fault = fmt.Errorf("%s: %w", what, err)
	}
}

// Meet tells the router the tag of the packets by which the ends of a flow find each other. Its failure stands in the report.
func (w *farWatch) Meet(flow model.Flow, tag uint16) error {
	w.name(flow, watchedFlow{Flow: flow.Name, Tag: tag})
	return nil
}

// Track tells the router one side's ports. Its failure stands in the report.
func (w *farWatch) Track(flow model.Flow, tuples []model.Tuple, alone bool) error {
	if flow.Protocol == model.UDP && len(tuples) == flow.Streams {
		w.name(flow, watchedFlow{Flow: flow.Name, Packets: flow.Packets, PayloadBytes: flow.PayloadBytes, Tuples: tuples,
			Alone: alone})
	}
	return nil
}

func (w *farWatch) name(flow model.Flow, watched watchedFlow) {
	w.mu.Lock()
	w.flows = append(w.flows, flow)
	w.mu.Unlock()
	q := w.order
	q.Flows = []watchedFlow{watched}
	w.observe(context.Background(), "flow "+flow.Name, momentTimeout, q)
}

// Snapshot has the router read its counters.
func (w *farWatch) Snapshot(m model.Moment) {
	q := w.order
	q.Moment = m
	w.observe(context.Background(), string(m), momentTimeout, q)
}

// Settle has the router wait for its counters to stand still.
func (w *farWatch) Settle(ctx context.Context, lost bool) {
	q := w.order
	q.Moment, q.Lost = model.MomentEnd, lost
	w.observe(ctx, string(q.Moment), observeTimeout+momentTimeout, q)
}

// Report fetches what the router's kernel counted, and what its processors did. Its samples
// are kept there until then, so a router that was lost has told none of them.
func (w *farWatch) Report() model.Observation {
	r, err := w.fetch()
	if err == nil && (r.Observed == nil || r.Observed.Router == nil) {
		err = errors.New("no account")
	}
	if err != nil {
		return model.Observation{Mode: model.DropsOff, Why: "its account is missing: " + err.Error(),
			Unread: []string{"no counters: " + err.Error()},
			Router: &model.RouterWatch{Node: routerNode, Gaps: []string{"not observed from t=0.0 s: " + err.Error()}}}
	}
	o := *r.Observed
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault != nil {
		o.Unread = append(o.Unread, w.fault.Error())
	}
	o.Router.Node = routerNode
	for i := range o.Series {
		o.Series[i].At, o.Series[i].Flow = routerNode, ""
	}
	return o
}

func (w *farWatch) fetch() (sessionReport, error) {
	if w.failed != nil {
		return sessionReport{}, w.failed
	}
	ctx, cancel := w.router.limit(context.Background(), cutTimeout+momentTimeout)
	defer cancel()
	r, err := fetch[sessionReport](ctx, w.router.agent, verbReport, reportOrder{sessionOrder: w.router.about, Final: true},
		roomFor(reportBytes))
	r.clamp(w.flows, model.Timing{MeasureSeconds: w.measured.Seconds()})
	return r, err
}

// Cores are in the report.
func (w *farWatch) Cores() map[int]float64 { return nil }

// Close does nothing: see Begin.
func (w *farWatch) Close() error { return nil }
