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

// observed is a session's observation of its host; without one its methods do
// nothing. They may be called concurrently.
type observed struct {
	mu      sync.Mutex
	host    engine.EndObservation // of a host with ends; nil without
	router  Router                // of a session that only watches
	watch   RouterWatch           // of the router's trial; nil between trials
	trial   uint16                // that watch is of
	settled bool                  // the counters were asked for the last time
	closed  bool
	account *model.Observation // of host, once it was asked for or could not be observed
}

// open begins the observation of a host with ends.
func (o *observed) open(begin engine.Observe, trial uint16, drops model.DropMode) {
	if begin == nil || drops == "" {
		return
	}
	host, err := begin(trial, drops)
	if err != nil {
		o.account = &model.Observation{Mode: model.DropsOff, Why: err.Error()}
		return
	}
	o.host = host
}

// openRouter opens the router that a session only watches.
func (s *session) openRouter(ctx context.Context) error {
	r, err := s.agent.cfg.Router(ctx)
	if err != nil {
		return errors.Join(err, s.close(err.Error()))
	}
	o := &s.observed
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return errors.Join(errClosedMeanwhile, r.Close())
	}
	o.router = r
	return nil
}

// nextTrial ends the watch over a router's last trial and begins that over another.
func (o *observed) nextTrial(trial uint16, drops model.DropMode) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if trial == o.trial || o.router == nil {
		return false
	}
	if o.watch != nil {
		_ = o.watch.Close() // the next trial is watched even if this fails
	}
	if o.trial, o.watch = trial, nil; trial != 0 {
		o.watch = o.router.Begin(trial, drops)
	}
	return true
}

// with calls f with what observes now, if anything does.
func (o *observed) with(f func(engine.Observation)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.locked(f)
}

// locked is with for a caller that holds the lock.
func (o *observed) locked(f func(engine.Observation)) {
	switch {
	case o.host != nil:
		f(o.host)
	case o.watch != nil:
		f(o.watch)
	}
}

// track names the streams of one flow. Its failure stands in the observation.
func (o *observed) track(flow model.Flow, tuples []model.Tuple) {
	o.with(func(now engine.Observation) { _ = now.Track(flow, tuples) })
}

// observe has the counters read at one moment of a trial.
func (s *session) observe(ctx context.Context, q observeOrder) (none, error) {
	o := &s.observed
	if o.nextTrial(q.Trial, q.Drops) {
		s.mu.Lock()
		clear(s.answers) // of the trial before
		s.mu.Unlock()
	}
	for _, f := range q.Flows {
		o.track(model.Flow{Name: f.Flow, Protocol: model.UDP, Packets: f.Packets, PayloadBytes: f.PayloadBytes,
			Streams: len(f.Tuples)}, f.Tuples)
	}
	var reading engine.Observation // takes too long to hold the lock
	o.with(func(now engine.Observation) {
		reading = now
		o.settled = o.settled || q.Moment == model.MomentEnd
	})
	if reading != nil && q.Moment != "" {
		readCounters(ctx, reading, q)
	}
	return none{}, nil
}

// readCounters takes an observation through the moments at one side of a trial.
func readCounters(ctx context.Context, o engine.Observation, q observeOrder) {
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

// maxCountedSites bounds the places that one heartbeat tells of.
const maxCountedSites = 64

// counts returns what a host with ends dropped so far; nil if it is not known.
func (o *observed) counts() *model.Observation {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.host == nil || o.settled {
		return nil
	}
	now, err := o.host.Counts()
	if err != nil {
		return nil
	}
	if now.Drops != nil && len(now.Drops.Sites) > maxCountedSites {
		now.Drops = nil // they are in the report
	}
	return &now
}

// report returns the account of a host with ends, made once; nil without an observation.
func (o *observed) report() *model.Observation {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.account != nil || o.host == nil {
		return o.account
	}
	if !o.settled { // the trial was cut
		o.host.Snapshot(model.MomentEnd)
	}
	r := o.host.Report()
	o.account = &r
	return o.account
}

// reportRouter adds what a router did during so long a measured part, or, with 0, what its
// kernel counted.
func (o *observed) reportRouter(r *sessionReport, measured time.Duration) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.watch == nil {
		return errors.New("no trial is watched here")
	}
	if measured == 0 {
		seen := o.watch.Report()
		r.Observed = &seen
		return nil
	}
	watched, series := o.watch.Watched(measured)
	r.Router, r.Watch = &watched, &Watched{Series: series}
	return nil
}

// facts answers one part of what the watched router is.
func (s *session) facts(ctx context.Context, q reportOrder) (partAnswer, error) {
	s.observed.mu.Lock()
	r := s.observed.router
	s.observed.mu.Unlock()
	if r == nil {
		return partAnswer{}, errors.New("facts: no router is watched in this session")
	}
	return s.part(q.Part, func() (any, error) {
		if q.Final {
			return r.Finish(ctx), nil
		}
		return r.Facts(), nil
	})
}

func (o *observed) close() (err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.locked(func(now engine.Observation) { err = now.Close() })
	if o.router != nil {
		err = errors.Join(err, o.router.Close())
	}
	o.host, o.watch, o.router, o.closed = nil, nil, nil, true
	return err
}
