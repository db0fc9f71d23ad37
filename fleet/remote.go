package fleet

import (
	"context"
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
	openPatience   = 45 * time.Second // a slow router tells what it is
	momentPatience = 3 * time.Second  // what comes later tells of another moment
	keepEvery      = watchLease / 6
)

// Remote is a [Device] whose observer runs on the router itself, behind a hub there.
// Trials do not hang on it: once it is lost, what it tells is that it was.
type Remote struct {
	c      *Controller
	m      member
	watch  string
	facts  model.RouterFacts
	stop   context.CancelFunc
	kept   sync.WaitGroup
	source string

	mu   sync.Mutex
	gone time.Time // when it was lost; zero while it is there
	why  string
}

// DialDevice connects to the hub of a router that only observes, and opens a watch
// there. source says in the facts how it is watched. Errors are those of [Dial].
func DialDevice(ctx context.Context, hub HubAddress, source, version string) (*Remote, error) {
	c := newController(version)
	if err := c.meet(ctx, routerNode, hub); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return openRemote(ctx, c, source)
}

// openRemote takes over the controller.
func openRemote(ctx context.Context, c *Controller, source string) (_ *Remote, err error) {
	m := c.members[c.infos[0].ID]
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	r := &Remote{c: c, m: m, watch: m.link.client + "." + randomHex(), source: source, stop: stop}
	defer func() {
		if err != nil {
			stop()
			err = errors.Join(err, c.Close())
		}
	}()
	limit, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	if _, err := order[struct{}](limit, m, verbOpen, openOrder{ProtocolVersion, c.version, r.watch}); err != nil {
		return nil, err
	}
	if r.facts, err = r.ask(limit, false); err != nil {
		return nil, err
	}
	r.kept.Go(func() { r.keep(life) })
	return r, nil
}

// ask fetches the facts.
func (r *Remote) ask(ctx context.Context, final bool) (model.RouterFacts, error) {
	f, err := fetch[model.RouterFacts](ctx, r.m, verbFacts, func(part int) any { return factsOrder{r.watch, final, part} })
	if err != nil {
		return f, err
	}
	f = plainFacts(f)
	f.Node, f.Source = routerNode, r.source
	return f, nil
}

// keep holds the lease until life ends or the router is lost.
func (r *Remote) keep(life context.Context) {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-r.m.link.lost:
			r.lose("the connection to " + r.m.link.far + " was lost")
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(life, keepEvery)
		_, err := order[struct{}](ctx, r.m, verbKeep, watchOrder{r.watch})
		cancel()
		if err != nil {
			r.judge(err)
		}
	}
}

// judge notes the loss, if that is what an error means.
func (r *Remote) judge(err error) {
	if errors.Is(err, ErrLost) || strings.Contains(err.Error(), errNoWatch.Error()) {
		r.lose(err.Error())
	}
}

func (r *Remote) lose(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone.IsZero() {
		r.gone, r.why = time.Now(), why
	}
}

// lost tells when and why the router was lost, if it was.
func (r *Remote) lost() (at time.Time, why string, gone bool) {
	select {
	case <-r.m.link.lost: // keep may not have come to it
		r.lose("the connection to " + r.m.link.far + " was lost")
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

// Close ends the watch and the connection; it may be called again.
func (r *Remote) Close() error {
	r.stop()
	r.kept.Wait()
	if _, _, gone := r.lost(); !gone {
		ctx, cancel := context.WithTimeout(context.Background(), momentPatience)
		defer cancel()
		_, _ = order[struct{}](ctx, r.m, verbClose, watchOrder{r.watch}) // else its lease ends it
		r.lose("it was closed")
	}
	return r.c.Close()
}

// Begin watches one trial.
func (r *Remote) Begin(trial uint16, drops model.DropMode) DeviceWatch {
	w := &remoteWatch{r: r, trial: trial}
	w.try(context.Background(), "begin", momentPatience, verbBegin, beginOrder{r.watch, trial, drops})
	w.begun = len(w.faults) == 0
	return w
}

// remoteWatch is a trial's watch on the router.
type remoteWatch struct {
	r     *Remote
	trial uint16
	begun bool

	mu      sync.Mutex
	faults  []string  // what the router was not told, a line each
	measure time.Time // when the measured part began; zero before
	ended   bool
}

// maxFaults bounds the lines about one trial.
const maxFaults = 16

// try gives an order, unless the router is lost.
func (w *remoteWatch) try(ctx context.Context, what string, patience time.Duration, verb string, q any) {
	_, why, gone := w.r.lost()
	if !gone {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		_, err := order[struct{}](ctx, w.r.m, verb, q)
		if err == nil {
			return
		}
		w.r.judge(err)
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
		w.try(context.Background(), "flow "+flow.Name, momentPatience, verbTrack, trackOrder{w.r.watch, w.trial, flow.Name, flow.Packets, flow.PayloadBytes, tuples})
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
	if w.begun {
		w.try(context.Background(), string(m), momentPatience, verbMoment, momentOrder{Watch: w.r.watch, Trial: w.trial, Moment: m})
	}
}

// Settle has the router wait for its counters to stand still.
func (w *remoteWatch) Settle(ctx context.Context, lost bool) {
	if w.begun {
		w.try(ctx, string(model.MomentEnd), observePatience+momentPatience, verbMoment, momentOrder{w.r.watch, w.trial, model.MomentEnd, lost})
	}
}

// Report fetches the router's account of its kernel. Without one nothing is known of it.
func (w *remoteWatch) Report() model.Observation {
	o := model.Observation{Mode: model.DropsOff}
	err := w.missing()
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), salvagePatience+momentPatience)
		defer cancel()
		var seen *model.Observation
		seen, err = fetchPlain[*model.Observation](ctx, w.r.m, verbAccount, func(part int) any { return accountOrder{w.r.watch, w.trial, 0, part} })
		if err == nil && seen != nil {
			o = *seen
		} else if err != nil {
			w.r.judge(err)
		}
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

// missing says why the router has no account of the trial, nil if it has.
func (w *remoteWatch) missing() error {
	if _, why, gone := w.r.lost(); gone {
		return errors.New(why)
	}
	if w.begun {
		return nil
	}
	return errors.New(strings.Join(w.faults, "; "))
}

// Watched fetches what the router did during the measured part. Its samples are kept
// there until then, so a router that was lost has told none of them.
func (w *remoteWatch) Watched(measured time.Duration) (model.RouterWatch, []model.Series) {
	err := w.missing()
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), salvagePatience+momentPatience)
		defer cancel()
		var told deviceWatched
		told, err = fetchPlain[deviceWatched](ctx, w.r.m, verbAccount, func(part int) any {
			return accountOrder{w.r.watch, w.trial, max(1, measured.Nanoseconds()), part}
		})
		if err == nil {
			told.Watch.Node = routerNode
			for i := range told.Series {
				told.Series[i].At, told.Series[i].Flow = routerNode, ""
			}
			return told.Watch, told.Series
		}
		w.r.judge(err)
	}
	gap := "not observed from t=0.0 s: " + err.Error()
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, _, gone := w.r.lost(); gone && !w.measure.IsZero() && at.After(w.measure) {
		gap += fmt.Sprintf(" at t=%.1f s, and what it had seen until then with it", at.Sub(w.measure).Seconds())
	}
	return model.RouterWatch{Node: routerNode, Gaps: []string{gap}}, nil
}

// Close ends the watch; it may be called again.
func (w *remoteWatch) Close() error {
	w.mu.Lock()
	ended := w.ended
	w.ended = true
	w.mu.Unlock()
	if _, _, gone := w.r.lost(); ended || gone || !w.begun {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), momentPatience)
	defer cancel()
	// The next trial, or the end of the lease, ends one that cannot be told.
	_, _ = order[struct{}](ctx, w.r.m, verbEnd, beginOrder{Watch: w.r.watch, Trial: w.trial})
	return nil
}

// fetchPlain is fetch without what could steer a terminal.
func fetchPlain[A any](ctx context.Context, m member, verb string, part func(int) any) (A, error) {
	return fetchAs[A](ctx, m, verb, part, plain)
}

// fetch gets all parts of an answer.
func fetch[A any](ctx context.Context, m member, verb string, part func(int) any) (A, error) {
	return fetchAs[A](ctx, m, verb, part, func(b []byte) []byte { return b })
}

func fetchAs[A any](ctx context.Context, m member, verb string, part func(int) any, made func([]byte) []byte) (A, error) {
	var zero A
	var data []byte
	for n, parts := 0, 1; n < parts; n++ {
		a, err := order[reportAnswer](ctx, m, verb, part(n))
		if err != nil {
			return zero, err
		}
		if parts = a.Parts; parts > maxParts || len(a.Data) > partBytes {
			return zero, fmt.Errorf("%s: %s: too long", m.name, verb)
		}
		data = append(data, a.Data...)
	}
	told, err := decode[A](made(data))
	if err != nil {
		return zero, fmt.Errorf("%s: %s: %w", m.name, verb, err)
	}
	return told, nil
}

// plainFacts makes a router's words fit to be shown; its texts keep their lines.
func plainFacts(f model.RouterFacts) model.RouterFacts {
	for _, s := range []*string{&f.System, &f.Model, &f.Firmware, &f.Kernel, &f.CPU} {
		*s = plainText(*s)
	}
	for _, list := range [][]string{f.Offload, f.Tuning, f.Untold} {
		for i := range list {
			list[i] = plainText(list[i])
		}
	}
	for _, texts := range [][]model.Text{f.Before, f.After} {
		for i := range texts {
			lines := strings.Split(texts[i].Text, "\n")
			for k := range lines {
				lines[k] = plainText(lines[k])
			}
			texts[i] = model.Text{Name: plainText(texts[i].Name), Text: strings.Join(lines, "\n")}
		}
	}
	return f
}
