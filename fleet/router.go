package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

	"pelt/engine"
	"pelt/finding"
	"pelt/model"
)

// Router is a router between the ends, as it tells of itself throughout one run. Its
// methods may be called concurrently, but for one trial after the other.
type Router interface {
	// Facts are what it is, with its texts of before the first trial.
	Facts() model.RouterFacts
	// Begin makes what watches it during one trial; Drops "" is for its processors alone. What it cannot do stands in
	// the account, which is of a kernel and has the Router's. The cores that it tells live are none where it tells
	// later.
	Begin(engine.WatchOrder) engine.Part
	// Finish returns all facts, with the texts of after the last trial.
	Finish(ctx context.Context) model.RouterFacts
	Close() error
}

// routerNode is what a router is called on the path.
const routerNode = "router"

const (
	routerWindow  = time.Minute     // for so long a router need not hear its controller
	momentTimeout = 3 * time.Second // what comes later tells of another moment
	// before packets are sent: a busy router loads its programs, and reads its counters
	setUpTimeout = 10 * time.Second
)

// farRouter is a Router that runs pelt serve itself: the agent there is in a session without
// ends, for the whole run. Trials do not depend on it: once it is lost, orders to it fail.
type farRouter struct {
	c      *Controller
	agent  member
	about  sessionOrder
	facts  model.RouterFacts
	source string
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
	limit, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	r.beats.Go(func() { r.beat(life) })
	if _, err := give[doAnswer](limit, agent, verbMake, makeOrder{sessionOrder: r.about}); err != nil {
		return nil, err
	}
	if r.facts, err = r.ask(limit, false); err != nil {
		return nil, err
	}
	return r, nil
}

// limit bounds an order. A router that is away is waited for, but once.
func (r *farRouter) limit(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	l := r.agent.link
	if !l.nc.IsConnected() && !l.nc.IsClosed() { // which says so at once; the link may not know yet that it broke
		within = min(within, max(momentTimeout-l.away(time.Now()), 0))
	}
	return context.WithTimeout(ctx, within)
}

func (r *farRouter) ask(ctx context.Context, final bool) (model.RouterFacts, error) {
	ctx, cancel := r.limit(ctx, openTimeout)
	defer cancel()
	f, err := fetch[model.RouterFacts](ctx, r.agent, accountOrder{sessionOrder: r.about, Of: ofRouter, Final: final},
		roomFor(reportBytes))
	f.Clamp()
	f.Node, f.Source = routerNode, r.source
	return f, err
}

// beat keeps the session open until life ends or the connection is lost.
func (r *farRouter) beat(life context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for n := uint64(1); ; n++ {
		r.agent.link.post(sessionSubject(r.about.Session, controllerName), beat{Number: n})
		select {
		case <-life.Done():
			return
		case <-r.agent.link.lost:
			return
		case <-tick.C:
		}
	}
}

func (r *farRouter) Facts() model.RouterFacts { return r.facts }

// Finish asks once more.
func (r *farRouter) Finish(ctx context.Context) model.RouterFacts {
	f, err := r.ask(ctx, true)
	if err != nil {
		f = r.facts
		f.Told = append(f.Told, model.RouterFact{Code: model.FactUntold, Later: true,
			Of: model.Reasons{finding.ReasonOf(err)}})
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

func (r *farRouter) Begin(o engine.WatchOrder) engine.Part { return &farWatch{router: r, order: o} }

// farWatch is a trial's watch on such a router. It needs no Close: the far agent ends it when the next trial is made.
type farWatch struct {
	engine.Passive
	router *farRouter
	order  engine.WatchOrder

	mu    sync.Mutex
	begun bool // the router knows of the trial
	flows []model.Flow
	fault error // the first order that failed
	told  *model.Observation
}

// Do gives the router's agent the order for a step.
func (w *farWatch) Do(ctx context.Context, step engine.Step, k engine.Known) (l engine.Learned, _ error) {
	verb, within := verbDo, momentTimeout
	w.mu.Lock()
	for _, f := range k.Flows {
		w.flows = append(w.flows, f.Flow())
	}
	begun := w.begun
	w.mu.Unlock()
	about := w.router.about
	var order any = doOrder{sessionOrder: about, Step: step, Known: k}
	switch step {
	case engine.Open:
		verb, within, begun = verbMake, setUpTimeout, true
		order = makeOrder{sessionOrder: about, Trial: w.order.Trial, Drops: w.order.Drops, Timing: w.order.Timing,
			Flows: k.Flows}
	case engine.Still:
		within += observeTimeout
	case engine.Ready:
		within = setUpTimeout + k.Window
	case engine.Go, engine.Halt:
	default:
		return l, nil
	}
	if !begun {
		return l, nil
	}
	ctx, cancel := w.router.limit(ctx, within)
	defer cancel()
	_, err := give[doAnswer](ctx, w.router.agent, verb, order)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = step != engine.Open || err == nil
	if err != nil && w.fault == nil {
		w.fault = err
	}
	return l, nil
}

// Account fetches what the router's kernel counted, and what its processors did. Its samples
// are kept there until then, so a router that was lost has told none of them.
func (w *farWatch) Account() engine.Account {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told == nil {
		o := w.account()
		w.told = &o
	}
	return engine.Account{Observed: w.told}
}

func (w *farWatch) account() model.Observation {
	r, err := w.fetch()
	if err == nil && (r.Observed == nil || r.Observed.Router == nil) {
		err = finding.NewFault(model.Untold)
	}
	if err != nil {
		why := model.Reasons{finding.ReasonOf(err)}
		return model.Observation{Mode: model.DropsOff, Why: model.Reasons{{Code: model.UntoldFault, Of: why}},
			Unread: model.Reasons{{Code: model.Unread, Name: "counters", Of: why}},
			Router: &model.RouterWatch{Node: routerNode, Gaps: []model.RouterGap{{Why: model.GapClosed, Of: why}}}}
	}
	o := *r.Observed
	if w.fault != nil {
		o.Unread = append(o.Unread, model.Reason{Code: model.Unread, Name: "router",
			Of: model.Reasons{finding.ReasonOf(w.fault)}})
	}
	o.Router.Node = routerNode
	for i := range o.Series {
		o.Series[i].At, o.Series[i].Flow = routerNode, ""
	}
	return o
}

func (w *farWatch) fetch() (sessionReport, error) {
	if !w.begun {
		return sessionReport{}, w.fault
	}
	ctx, cancel := w.router.limit(context.Background(), cutTimeout+momentTimeout)
	defer cancel()
	r, err := fetch[sessionReport](ctx, w.router.agent,
		accountOrder{sessionOrder: w.router.about, Of: ofTrial},
		roomFor(reportBytes))
	r.clamp(w.flows, w.order.Timing)
	return r, err
}
