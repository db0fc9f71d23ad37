package fleet

import (
	"context"
	"errors"
	"fmt"
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
	watch   engine.Observation                // of a trial; nil without
	live    func() (model.Observation, error) // what a host with ends tells of it while it runs; nil: nothing
	router  Router                            // of a session that only watches
	trial   uint16                            // of the router, that watch is of
	flows   int                               // of the router, that were named in this trial
	settled bool                              // the counters were asked for the last time
	closed  bool
	account *model.Observation // once it was asked for, or the host could not be observed
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
	o.watch, o.live = host, host.Counts
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
func (o *observed) nextTrial(q observeOrder) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if q.Trial == o.trial || o.router == nil {
		return
	}
	if o.watch != nil {
		_ = o.watch.Close() // the next trial is watched even if this fails
	}
	o.trial, o.watch, o.account, o.settled, o.flows = q.Trial, nil, nil, false, 0
	if q.Trial != 0 {
		o.watch = o.router.Begin(q.Trial, q.Drops, time.Duration(q.MeasuredNanos))
	}
}

// admit finds room for more flows that a watcher is told of: what the kernel can tell apart is for all sessions.
func (o *observed) admit(flows int, watcher bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch o.flows += flows; {
	case flows > 0 && !watcher:
		return errors.New("flows: this host knows those of its ends")
	case o.flows > 3*maxWatched:
		return fmt.Errorf("flows: want at most %d of a trial, each once by its tag and once on either side", maxWatched)
	}
	return nil
}

// current is what observes now; nil if nothing does.
func (o *observed) current() engine.Observation {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.watch
}

// meet says that the ends of a flow are about to look for each other. Its failure stands in the observation.
func (o *observed) meet(flow model.Flow, tag uint16) {
	if now := o.current(); now != nil {
		_ = now.Meet(flow, tag)
	}
}

// track names the streams of one flow. Its failure stands in the observation.
func (o *observed) track(flow model.Flow, tuples []model.Tuple, alone bool) {
	if now := o.current(); now != nil {
		_ = now.Track(flow, tuples, alone)
	}
}

// observe has the counters read at one moment of a trial.
func (s *session) observe(ctx context.Context, q observeOrder) (none, error) {
	o := &s.observed
	o.nextTrial(q)
	if err := o.admit(len(q.Flows), s.watcher); err != nil {
		return none{}, err
	}
	for _, f := range q.Flows {
		if len(f.Tuples) == 0 {
			o.meet(model.Flow{Name: f.Flow, Protocol: model.UDP}, f.Tag)
			continue
		}
		o.track(model.Flow{Name: f.Flow, Protocol: model.UDP, Packets: f.Packets, PayloadBytes: f.PayloadBytes,
			Streams: len(f.Tuples)}, f.Tuples, f.Alone)
	}
	if now := o.current(); now != nil && q.Moment != "" {
		if q.Moment == model.MomentEnd {
			o.mu.Lock()
			o.settled = true
			o.mu.Unlock()
		}
		readCounters(ctx, now, q)
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

// liveCounts returns what a host with ends dropped so far, while its trial runs; nil if it is not known.
func (o *observed) liveCounts() *model.Observation {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.live == nil || o.settled {
		return nil
	}
	now, err := o.live()
	if err != nil {
		return nil
	}
	if now.Drops != nil && len(now.Drops.Sites) > maxCountedSites {
		now.Drops = nil // they are in the report
	}
	return &now
}

// report returns the account of a trial, made once; nil without an observation.
func (o *observed) report() *model.Observation {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.account != nil || o.watch == nil {
		return o.account
	}
	if !o.settled { // the trial was cut
		o.watch.Snapshot(model.MomentEnd)
	}
	r := o.watch.Report()
	o.account = &r
	return o.account
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
	if o.watch != nil {
		err = o.watch.Close()
	}
	if o.router != nil {
		err = errors.Join(err, o.router.Close())
	}
	o.watch, o.live, o.router, o.closed = nil, nil, nil, true
	return err
}
