package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

	"pelt/engine"
	"pelt/model"
)

const observeTimeout = 5 * time.Second // for counters to stand still; some devices tell theirs every 2 s

// Device is a router between the ends, as it tells of itself throughout one run. Its
// methods may be called concurrently, but for one trial after the other.
type Device interface {
	// Facts are what it is, with its texts of before the first trial.
	Facts() model.RouterFacts
	// Begin watches one trial; drops says how closely its kernel is watched, "" for
	// its processors alone. What it cannot do stands in what the watch tells.
	Begin(trial uint16, drops model.DropMode) DeviceWatch
	// Finish returns all facts, with the texts of after the last trial.
	Finish(ctx context.Context) model.RouterFacts
	Close() error
}

// DeviceWatch watches a Device during one trial.
type DeviceWatch interface {
	engine.Observation
	// Watched tells of the measured part: from its moment on, and so long.
	Watched(measured time.Duration) (model.RouterWatch, []model.Series)
}

// OpenDevice begins to watch the router that this process runs on; ctx bounds the
// opening only.
type OpenDevice func(ctx context.Context) (Device, error)

// observed is a session's observation of its host; without one its methods do
// nothing. They may be called concurrently.
type observed struct {
	mu      sync.Mutex
	device  Device                            // of a watcher
	router  DeviceWatch                       // likewise: watch
	trial   uint16                            // likewise: that watch is of; 0 between trials
	watch   engine.Observation                // nil without, and once it is closed
	soFar   func() (model.Observation, error) // drops by now, of an end's host; nil of a watcher
	failed  *model.Observation                // that it could not be begun
	settled bool
	closed  bool
	account *model.Observation
}

// open begins the observation of a trial by one of its ends' hosts.
func (o *observed) open(begin engine.Observe, trial uint16, drops model.DropMode) {
	if begin == nil || drops == "" {
		return
	}
	watch, err := begin(trial, drops)
	if err != nil {
		o.failed = &model.Observation{Mode: model.DropsOff, Why: err.Error()}
		return
	}
	o.watch, o.soFar = watch, watch.Counts
}

// openDevice opens the router that a watcher's session watches.
func (s *session) openDevice(ctx context.Context) error {
	d, err := s.agent.cfg.Device(ctx)
	if err != nil {
		return errors.Join(err, s.close(err.Error()))
	}
	o := &s.observed
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return errors.Join(errClosedMeanwhile, d.Close())
	}
	o.device = d
	return nil
}

// turn ends the observation of a watcher's last trial and begins that of another.
func (o *observed) turn(trial uint16, drops model.DropMode) (turned bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if trial == o.trial || o.device == nil {
		return false
	}
	if o.router != nil {
		_ = o.router.Close() // the next trial is watched all the same
	}
	if o.trial, o.router, o.watch = trial, nil, nil; trial != 0 {
		o.router = o.device.Begin(trial, drops)
		o.watch = o.router
	}
	return true
}

// track names the streams of one flow. Its failure stands in the observation.
func (o *observed) track(flow model.Flow, tuples []model.Tuple) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.watch != nil && len(tuples) > 0 {
		_ = o.watch.Track(flow, tuples)
	}
}

func (o *observed) at(m model.Moment) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.watch != nil {
		o.watch.Snapshot(m)
	}
}

// observe leads the observation through one moment of a trial.
func (s *session) observe(ctx context.Context, q observeOrder) (none, error) {
	o := &s.observed
	if s.watcher && o.turn(q.Trial, q.Drops) {
		s.mu.Lock()
		clear(s.answers) // of the trial before
		s.mu.Unlock()
	}
	for _, f := range q.Flows {
		flow := model.Flow{Name: f.Flow, Protocol: model.UDP, Packets: f.Packets, PayloadBytes: f.PayloadBytes, Streams: len(f.Tuples)}
		o.track(flow, f.Tuples)
	}
	o.mu.Lock()
	watch := o.watch
	o.settled = o.settled || q.Moment == model.MomentEnd
	o.mu.Unlock()
	if watch != nil && q.Moment != "" {
		lead(ctx, watch, q)
	}
	return none{}, nil
}

// lead takes an observation through the moments at one side of a trial.
func lead(ctx context.Context, o engine.Observation, q observeOrder) {
	if q.Moment == model.MomentEnd {
		ctx, cancel := context.WithTimeout(ctx, observeTimeout)
		defer cancel()
		o.Settle(ctx, q.Lost)
		return
	}
	if q.IdleNanos > 0 {
		o.Snapshot(model.MomentIdle)
		sleep(ctx, time.Duration(q.IdleNanos))
	}
	o.Snapshot(q.Moment)
}

// maxToldSites bounds the places that one heartbeat tells of.
const maxToldSites = 64

// counts is what was dropped so far; nil if that is not known, or no more.
func (o *observed) counts() *model.Observation {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.watch == nil || o.soFar == nil || o.settled {
		return nil
	}
	now, err := o.soFar()
	if err != nil {
		return nil
	}
	if now.Drops != nil && len(now.Drops.Sites) > maxToldSites {
		now.Drops = nil // they are in the report
	}
	return &now
}

// report returns the account, made once; nil without an observation.
func (o *observed) report() *model.Observation {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.account != nil:
		return o.account
	case o.watch == nil:
		return o.failed
	case !o.settled: // the trial was cut
		o.watch.Snapshot(model.MomentEnd)
	}
	r := o.watch.Report()
	o.account = &r
	return o.account
}

// tell adds to a watcher's report what the router did during so long a measured part, or,
// with 0, what its kernel counted.
func (o *observed) tell(r *sessionReport, measured time.Duration) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.router == nil {
		return errors.New("no trial is watched here")
	}
	if measured == 0 {
		seen := o.router.Report()
		r.Observed = &seen
		return nil
	}
	watched, series := o.router.Watched(measured)
	r.Router, r.Watch = &watched, &Watched{Series: series}
	return nil
}

// facts answers one part of what the watched router is.
func (s *session) facts(ctx context.Context, q factsOrder) (partAnswer, error) {
	s.observed.mu.Lock()
	d := s.observed.device
	s.observed.mu.Unlock()
	if d == nil {
		return partAnswer{}, errors.New("facts: no router is watched in this session")
	}
	return s.part(q.Part, func() (any, error) {
		if q.Final {
			return d.Finish(ctx), nil
		}
		return d.Facts(), nil
	})
}

func (o *observed) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var errs []error
	if o.watch != nil {
		errs = append(errs, o.watch.Close())
	}
	if o.device != nil {
		errs = append(errs, o.device.Close())
	}
	o.watch, o.router, o.device, o.closed = nil, nil, nil, true
	return errors.Join(errs...)
}
