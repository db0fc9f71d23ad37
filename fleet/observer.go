package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"pelt/model"
)

// Bounds of what an observer does at a time, and how long a watch stays open that
// nobody asks for.
const (
	maxWatches = 4
	watchLease = time.Minute
)

// observer is what an agent is that only observes: it has no engines, so no order
// makes it open a socket.
type observer struct {
	open  OpenDevice
	limit int
	lease time.Duration

	mu      sync.Mutex
	watches map[string]*deviceRun
	closed  bool
}

func newObserver(cfg AgentConfig) *observer {
	limit := maxWatches
	if n := cfg.Limits.MaxSessions; n > 0 {
		limit = min(limit, n)
	}
	return &observer{open: cfg.Device, limit: limit, lease: watchLease, watches: map[string]*deviceRun{}}
}

// deviceRun is one controller's watch.
type deviceRun struct {
	lease *time.Timer

	mu     sync.Mutex // over what follows, but not while the router is asked
	device Device
	trial  uint16
	watch  DeviceWatch // nil between trials
	parts  [][]byte    // of what was asked for last
}

// obey works on one order; known is false if it is none of an observer's.
func (o *observer) obey(ctx context.Context, verb string, data []byte) (answer any, known bool, err error) {
	none := struct{}{}
	switch verb {
	case verbOpen:
		answer, err = with(data, func(q openOrder) (any, error) { return none, o.begin(ctx, q.Watch) })
	case verbKeep:
		answer, err = with(data, func(q watchOrder) (any, error) {
			_, err := o.find(q.Watch)
			return none, err
		})
	case verbClose:
		answer, err = with(data, func(q watchOrder) (any, error) { return none, o.drop(q.Watch) })
	case verbFacts:
		answer, err = with(data, func(q factsOrder) (any, error) { return o.facts(ctx, q) })
	case verbBegin:
		answer, err = with(data, func(q beginOrder) (any, error) { return none, o.trial(q) })
	case verbTrack:
		answer, err = with(data, func(q trackOrder) (any, error) { return none, o.track(q) })
	case verbMoment:
		answer, err = with(data, func(q momentOrder) (any, error) { return none, o.moment(ctx, q) })
	case verbAccount:
		answer, err = with(data, func(q accountOrder) (any, error) { return o.account(q) })
	case verbEnd:
		answer, err = with(data, func(q beginOrder) (any, error) {
			r, _, err := o.at(q.Watch, q.Trial)
			if err != nil {
				return nil, err
			}
			return none, r.end()
		})
	default:
		return nil, false, nil
	}
	return answer, true, err
}

// begin opens a watch.
func (o *observer) begin(ctx context.Context, name string) error {
	if !sessionName.MatchString(name) {
		return errors.New("watch: want two names of 32 hex digits")
	}
	r := &deviceRun{}
	o.mu.Lock()
	switch {
	case o.closed:
		o.mu.Unlock()
		return errors.New("pelt serve was stopped there")
	case o.watches[name] != nil:
		o.mu.Unlock()
		return errors.New("watch: it is open already")
	case len(o.watches) >= o.limit:
		o.mu.Unlock()
		return refuse("%d runs watch this router, and it allows no more at a time: try again later", o.limit)
	}
	r.mu.Lock()
	o.watches[name] = r
	r.lease = time.AfterFunc(o.lease, func() { _ = o.drop(name) }) // nobody is there to be told
	o.mu.Unlock()
	var err error
	r.device, err = o.open(ctx)
	r.mu.Unlock()
	if err != nil {
		return errors.Join(err, o.drop(name))
	}
	o.mu.Lock()
	gone := o.watches[name] != r
	o.mu.Unlock()
	if gone {
		return errors.Join(errors.New("the watch was closed meanwhile"), r.close())
	}
	return nil
}

// find returns an open watch, whose lease begins anew.
func (o *observer) find(name string) (*deviceRun, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.watches[name]
	if r == nil {
		return nil, errNoWatch
	}
	r.lease.Reset(o.lease)
	return r, nil
}

var errNoWatch = errors.New("no such watch here (any more)")

// at returns a watch and the trial that it watches.
func (o *observer) at(name string, trial uint16) (*deviceRun, DeviceWatch, error) {
	r, err := o.find(name)
	if err != nil {
		return nil, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watch == nil || r.trial != trial {
		return nil, nil, fmt.Errorf("trial %d is not watched here (any more)", trial)
	}
	return r, r.watch, nil
}

// drop closes a watch; it is no error if there is none.
func (o *observer) drop(name string) error {
	o.mu.Lock()
	r := o.watches[name]
	delete(o.watches, name)
	o.mu.Unlock()
	if r == nil {
		return nil
	}
	r.lease.Stop()
	return r.close()
}

// close closes every watch and takes no more.
func (o *observer) close() error {
	o.mu.Lock()
	o.closed = true
	var names []string
	for name := range o.watches {
		names = append(names, name)
	}
	o.mu.Unlock()
	var errs []error
	for _, name := range names {
		errs = append(errs, o.drop(name))
	}
	return errors.Join(errs...)
}

func (o *observer) trial(q beginOrder) error {
	switch q.Drops {
	case "", model.DropsOff, model.DropsCount, model.DropsSeq:
	default:
		return errors.New("drops: want seq, count or off")
	}
	if err := checkTrial(q.Trial); err != nil {
		return err
	}
	r, err := o.find(q.Watch)
	if err != nil {
		return err
	}
	_ = r.end() // of a trial that was cut, say: nobody asks for it any more
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.device == nil:
		return errNoWatch
	case r.watch != nil: // since end: nobody would close it
		return errors.New("begin: another trial was begun at the same time")
	}
	r.trial, r.watch = q.Trial, r.device.Begin(q.Trial, q.Drops)
	return nil
}

func (o *observer) track(q trackOrder) error {
	switch {
	case q.Flow == "" || len(q.Flow) > maxTextBytes || strings.ContainsFunc(q.Flow, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("track: names are short and printable")
	case len(q.Tuples) == 0 || len(q.Tuples) > model.MaxStreams:
		return fmt.Errorf("track: want the ports of 1 to %d streams, not %d", model.MaxStreams, len(q.Tuples))
	case q.PayloadBytes < 0 || q.PayloadBytes > 1<<16:
		return fmt.Errorf("track: no payload of %d B", q.PayloadBytes)
	}
	_, w, err := o.at(q.Watch, q.Trial)
	if err != nil {
		return err
	}
	return w.Track(model.Flow{Name: q.Flow, Protocol: model.UDP, Packets: q.Packets, PayloadBytes: q.PayloadBytes, Streams: len(q.Tuples)}, q.Tuples)
}

func (o *observer) moment(ctx context.Context, q momentOrder) error {
	_, w, err := o.at(q.Watch, q.Trial)
	if err != nil {
		return err
	}
	switch q.Moment {
	case model.MomentIdle, model.MomentStart, model.MomentMeasure:
		w.Snapshot(q.Moment)
	case model.MomentEnd:
		ctx, cancel := context.WithTimeout(ctx, observePatience)
		defer cancel()
		w.Settle(ctx, q.Lost)
	default:
		return errors.New("moment: want idle, start, measure or end")
	}
	return nil
}

func (o *observer) account(q accountOrder) (any, error) {
	r, w, err := o.at(q.Watch, q.Trial)
	if err != nil {
		return nil, err
	}
	return r.part(q.Part, func() any {
		if q.MeasuredNanos > 0 {
			watched, series := w.Watched(time.Duration(q.MeasuredNanos))
			told, err := deviceWatched{watched, series}.encode(reportBytes)
			if err != nil { // it is told as it is, and fails there
				return deviceWatched{watched, series}
			}
			return json.RawMessage(told)
		}
		seen := w.Report()
		whole := sessionReport{Observed: &seen}
		lighten(&whole)
		return whole.Observed
	})
}

func (o *observer) facts(ctx context.Context, q factsOrder) (any, error) {
	r, err := o.find(q.Watch)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	d := r.device
	r.mu.Unlock()
	if d == nil {
		return nil, errNoWatch
	}
	return r.part(q.Part, func() any {
		if q.Final {
			return d.Finish(ctx)
		}
		return d.Facts()
	})
}

// part answers one part of what is told; part 0 makes it.
func (r *deviceRun) part(n int, tell func() any) (any, error) {
	if n == 0 {
		data, err := json.Marshal(tell())
		if err != nil {
			return nil, fmt.Errorf("account: %w", err)
		}
		if len(data) > reportBytes {
			return nil, errors.New("account: larger than 64 MiB")
		}
		r.mu.Lock()
		r.parts = slices.Collect(slices.Chunk(data, partBytes))
		r.mu.Unlock()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n < 0 || n >= len(r.parts) {
		return nil, fmt.Errorf("account: no part %d", n)
	}
	return reportAnswer{Parts: len(r.parts), Data: r.parts[n]}, nil
}

// end closes the watch of the present trial.
func (r *deviceRun) end() error {
	r.mu.Lock()
	w := r.watch
	r.watch, r.parts = nil, nil
	r.mu.Unlock()
	if w == nil {
		return nil
	}
	return w.Close()
}

func (r *deviceRun) close() error {
	err := r.end()
	r.mu.Lock()
	d := r.device
	r.device = nil
	r.mu.Unlock()
	if d == nil {
		return err
	}
	return errors.Join(err, d.Close())
}

// endWatches closes what an observer has open.
func (a *Agent) endWatches() {
	if a.router == nil {
		return
	}
	if err := a.router.close(); err != nil {
		a.cfg.Log("closing a watch: %v", err)
	}
}
