package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"pelt/model"
)

// routerNode is what a router is called on the path.
const routerNode = "router"

const (
	watcherWindow    = time.Minute      // for so long a watcher and who it tells need not hear each other
	watchOpenTimeout = 45 * time.Second // a slow router tells what it is
	momentTimeout    = 3 * time.Second  // what comes later tells of another moment
	maxFaults        = 16               // lines about one trial
)

// Remote is a [Device] whose watcher runs on the router itself, behind a hub there: an
// agent in a session without ends, for the whole run. Trials do not hang on it: once it
// is lost, what it tells is that it was.
type Remote struct {
	c      *Controller
	m      member
	about  sessionOrder
	facts  model.RouterFacts
	stop   context.CancelFunc
	beats  sync.WaitGroup
	source string

	mu   sync.Mutex
	gone time.Time // when it was lost; zero while it is there
	why  string
}

// DialDevice connects to the hub of a router that only observes, and opens a session
// there. source says in the facts how it is watched. Errors are those of [Dial].
func DialDevice(ctx context.Context, hub HubAddress, source, version string) (*Remote, error) {
	c := newController(version)
	if err := c.join(ctx, routerNode, hub); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return openRemote(ctx, c, source)
}

// openRemote takes over the controller.
func openRemote(ctx context.Context, c *Controller, source string) (_ *Remote, err error) {
	m := c.members[c.infos[0].ID]
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	r := &Remote{c: c, m: m, about: sessionOrder{m.link.client + "." + randomHex()}, source: source, stop: stop}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	limit, cancel := context.WithTimeout(ctx, watchOpenTimeout)
	defer cancel()
	r.beats.Go(func() { r.beat(life) })
	if _, err := give[prepareAnswer](limit, m, verbPrepare, prepareOrder{hello: c.self(), sessionOrder: r.about}); err != nil {
		return nil, err
	}
	if r.facts, err = r.ask(limit, false); err != nil {
		return nil, err
	}
	m.link.hold(watcherWindow)
	return r, nil
}

// ask fetches the facts.
func (r *Remote) ask(ctx context.Context, final bool) (model.RouterFacts, error) {
	f, err := fetch[model.RouterFacts](ctx, r.m, verbFacts, true, func(part int) any { return factsOrder{r.about, final, part} })
	f.Node, f.Source = routerNode, r.source
	return f, err
}

// beat keeps the session open until life ends or the router is lost.
func (r *Remote) beat(life context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for n := uint64(1); ; n++ {
		if data, err := json.Marshal(beat{Number: n}); err == nil { // a number always marshals
			r.m.link.post(sessionSubject(r.about.Session, controllerName), data)
		}
		select {
		case <-life.Done():
			return
		case <-r.m.link.lost:
			return
		case <-tick.C:
		}
	}
}

// lose notes the loss, if that is what an error means.
func (r *Remote) lose(err error) {
	if !errors.Is(err, ErrLost) && !strings.Contains(err.Error(), errNoSession.Error()) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone.IsZero() {
		r.gone, r.why = time.Now(), err.Error()
	}
}

// lost tells when and why the router was lost, if it was.
func (r *Remote) lost() (at time.Time, why string, gone bool) {
	select {
	case <-r.m.link.lost:
		r.lose(fmt.Errorf("the connection to %s was lost%w", r.m.link.far, silent{ErrLost}))
	default:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone, r.why, !r.gone.IsZero()
}

// Facts are what the router is.
func (r *Remote) Facts() model.RouterFacts { return r.facts }

// Finish asks once more.
func (r *Remote) Finish(ctx context.Context) model.RouterFacts {
	f, err := r.ask(ctx, true)
	if err != nil {
		f = r.facts
		f.Untold = append(f.Untold, "not what it is after the last trial: "+err.Error())
	}
	return f
}

// Close ends the session and the connection; it may be called again.
func (r *Remote) Close() error {
	if _, _, gone := r.lost(); !gone {
		ctx, cancel := context.WithTimeout(context.Background(), momentTimeout)
		defer cancel()
		_, _ = give[none](ctx, r.m, verbRelease, r.about) // else it misses the heartbeat
	}
	r.stop()
	r.beats.Wait()
	r.lose(fmt.Errorf("it was closed%w", silent{ErrLost}))
	return r.c.Close()
}

// Begin watches one trial.
func (r *Remote) Begin(trial uint16, drops model.DropMode) DeviceWatch {
	w := &remoteWatch{r: r, order: observeOrder{sessionOrder: r.about, Trial: trial, Drops: drops}}
	w.observe(context.Background(), "begin", momentTimeout, w.order)
	w.begun = len(w.faults) == 0
	return w
}

// remoteWatch is a trial's watch on the router.
type remoteWatch struct {
	r     *Remote
	order observeOrder // what all of the trial have in common
	begun bool

	mu      sync.Mutex
	flows   []model.Flow
	faults  []string  // what the router was not told, a line each
	measure time.Time // when the measured part began; zero before
	ended   bool
}

// observe gives one order, unless the router is lost.
func (w *remoteWatch) observe(ctx context.Context, what string, within time.Duration, q observeOrder) {
	_, why, gone := w.r.lost()
	if !gone {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		_, err := give[none](ctx, w.r.m, verbObserve, q)
		if err == nil {
			return
		}
		w.r.lose(err)
		why = err.Error()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.faults) < maxFaults {
		w.faults = append(w.faults, what+": "+why)
	}
}

// Track tells the router one side's ports. Its failure stands in the report.
func (w *remoteWatch) Track(flow model.Flow, tuples []model.Tuple) error {
	if w.begun && flow.Protocol == model.UDP && len(tuples) == flow.Streams {
		w.mu.Lock()
		w.flows = append(w.flows, flow)
		w.mu.Unlock()
		q := w.order
		q.Flows = []watchedFlow{{flow.Name, flow.Packets, flow.PayloadBytes, tuples}}
		w.observe(context.Background(), "flow "+flow.Name, momentTimeout, q)
	}
	return nil
}

// Snapshot has the router read its counters.
func (w *remoteWatch) Snapshot(m model.Moment) {
	if m == model.MomentMeasure {
		w.mu.Lock()
		w.measure = time.Now()
		w.mu.Unlock()
	}
	w.moment(context.Background(), m, momentTimeout, false)
}

// Settle has the router wait for its counters to stand still.
func (w *remoteWatch) Settle(ctx context.Context, lost bool) {
	w.moment(ctx, model.MomentEnd, observeTimeout+momentTimeout, lost)
}

func (w *remoteWatch) moment(ctx context.Context, m model.Moment, within time.Duration, lost bool) {
	if w.begun {
		q := w.order
		q.Moment, q.Lost = m, lost
		w.observe(ctx, string(m), within, q)
	}
}

// Report fetches the router's account of its kernel. Without one nothing is known of it.
func (w *remoteWatch) Report() model.Observation {
	o := model.Observation{Mode: model.DropsOff}
	r, err := w.fetch(0)
	if r.Observed != nil {
		o = *r.Observed
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		o.Why = "its account is missing: " + err.Error()
		o.Unread = append(o.Unread, "no counters: "+err.Error())
	} else {
		o.Unread = append(o.Unread, w.faults...)
	}
	return o
}

// Watched fetches what the router did during the measured part. Its samples are kept
// there until then, so a router that was lost has told none of them.
func (w *remoteWatch) Watched(measured time.Duration) (model.RouterWatch, []model.Series) {
	r, err := w.fetch(max(1, measured))
	if err == nil && r.Router != nil && r.Watch != nil {
		r.Router.Node = routerNode
		for i := range r.Watch.Series {
			r.Watch.Series[i].At, r.Watch.Series[i].Flow = routerNode, ""
		}
		return *r.Router, r.Watch.Series
	}
	gap := fmt.Sprintf("not observed from t=0.0 s: %v", err)
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, _, gone := w.r.lost(); gone && !w.measure.IsZero() && at.After(w.measure) {
		gap += fmt.Sprintf(" at t=%.1f s, and what it had seen until then with it", at.Sub(w.measure).Seconds())
	}
	return model.RouterWatch{Node: routerNode, Gaps: []string{gap}}, nil
}

// fetch gets the router's report of so long a measured part, or with 0 of its kernel alone.
func (w *remoteWatch) fetch(measured time.Duration) (sessionReport, error) {
	if _, why, gone := w.r.lost(); gone {
		return sessionReport{}, errors.New(why)
	}
	if !w.begun {
		return sessionReport{}, errors.New(strings.Join(w.faults, "; "))
	}
	ctx, cancel := context.WithTimeout(context.Background(), cutTimeout+momentTimeout)
	defer cancel()
	r, err := fetch[sessionReport](ctx, w.r.m, verbReport, false, func(part int) any {
		return reportOrder{sessionOrder: w.order.sessionOrder, Final: true, MeasuredNanos: measured.Nanoseconds(), Part: part}
	})
	if err != nil {
		w.r.lose(err)
		return r, err
	}
	r.clamp(w.flows, model.Timing{MeasureSeconds: measured.Seconds()})
	return r, nil
}

// Close ends the watch; it may be called again.
func (w *remoteWatch) Close() error {
	w.mu.Lock()
	ended := w.ended
	w.ended = true
	w.mu.Unlock()
	if !ended && w.begun { // if it cannot be told, the next trial or the end of the session ends it
		w.observe(context.Background(), "end", momentTimeout, observeOrder{sessionOrder: w.order.sessionOrder})
	}
	return nil
}
