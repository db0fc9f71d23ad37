package fleet

import (
	"context"
	"sync"
	"time"

	"pelt/engine"
	"pelt/model"
)

const (
	observePatience = 5 * time.Second // for counters to stand still; some devices tell theirs every 2 s
	maxIdle         = 2 * time.Second
)

// observed is a session's observation of its host; without one its methods do
// nothing. They may be called concurrently.
type observed struct {
	mu      sync.Mutex
	watch   engine.Observation // nil without, and once it is closed
	failed  *model.Observation // that it could not be begun
	settled bool
	account *model.Observation
	told    uint64 // packets that counts told of last, and 1
	since   int    // calls of counts since
}

// tellAgain is after how many beats with samples, one a second, counts that stood still
// are told again: those of before may be lost with a connection.
const tellAgain = 10

// maxToldSites bounds the places that one beat tells of.
const maxToldSites = 64

// counts is what was dropped so far, nil if nothing moved since it was told a while ago.
func (o *observed) counts() *model.Observation {
	o.mu.Lock()
	defer o.mu.Unlock()
	source, ok := o.watch.(engine.Counter)
	if !ok || o.settled {
		return nil
	}
	now, err := source.Counts()
	if err != nil {
		return nil
	}
	sum := uint64(1)
	if now.Drops != nil {
		for _, f := range now.Drops.Flows {
			for _, c := range f.Counts {
				sum += c.Packets
			}
		}
		if len(now.Drops.Sites) > maxToldSites {
			now.Drops = nil // they are in the report
		}
	}
	if o.since++; sum == o.told && o.since < tellAgain {
		return nil
	}
	o.told, o.since = sum, 0
	return &now
}

func (o *observed) open(cfg AgentConfig, p prepareOrder) {
	if cfg.Observe == nil || p.Drops == "" {
		return
	}
	watch, err := cfg.Observe(p.Ends[0].Order.Trial, p.Drops)
	if err != nil {
		o.failed = &model.Observation{Mode: model.DropsOff, Why: err.Error()}
		return
	}
	o.watch = watch
}

// track names the streams of an end that carries a flow.
func (o *observed) track(p *place) {
	role := p.order.Order.Role
	ports, ok := p.end.(engine.Tupler)
	if !ok || role != engine.Send && role != engine.Receive {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.watch != nil {
		// Its failure stands in the observation: the trial goes on.
		_ = o.watch.Track(p.order.Order.Flow, ports.Tuples())
	}
}

func (o *observed) at(m model.Moment) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.watch != nil {
		o.watch.Snapshot(m)
	}
}

// lead takes an observation through the moments at one side of a trial.
func lead(ctx context.Context, o engine.Observation, order snapshotOrder) {
	if order.Moment == model.MomentEnd {
		o.Settle(ctx, order.Lost)
		return
	}
	if idle := min(time.Duration(order.IdleNanos), maxIdle); idle > 0 {
		o.Snapshot(model.MomentIdle)
		sleep(ctx, idle)
	}
	o.Snapshot(model.MomentStart)
}

// snapshot obeys the order of that name.
func (s *session) snapshot(ctx context.Context, order snapshotOrder) error {
	if order.Moment != model.MomentStart && order.Moment != model.MomentEnd || order.IdleNanos < 0 {
		return refuse("snapshot: want the moment start or end")
	}
	o := &s.observed
	o.mu.Lock()
	watch := o.watch
	o.settled = o.settled || order.Moment == model.MomentEnd
	o.mu.Unlock()
	if watch == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, observePatience)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	lead(ctx, watch, order)
	return nil
}

// report returns the account, made once; nil without an observation.
func (o *observed) report(ctx context.Context) *model.Observation {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.watch == nil || o.account != nil {
		if o.account == nil {
			return o.failed
		}
		return o.account
	}
	if !o.settled { // the trial was cut
		o.watch.Snapshot(model.MomentEnd)
	}
	r := o.watch.Report()
	o.account = &r
	return o.account
}

func (o *observed) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.watch == nil {
		return nil
	}
	watch := o.watch
	o.watch = nil
	return watch.Close()
}

// listBytes is what the lists of sequences in one report may take, so that it
// fits with the rest and as base64.
const listBytes = reportBytes / 2

// lighten takes the longest lists of sequences out of a report that would not
// fit, and says how many packets they held.
func lighten(r *sessionReport) {
	lists := listsOf(r)
	total := 0
	for _, l := range lists {
		total += len(l.Data)
	}
	for total > listBytes {
		longest := lists[0]
		for _, l := range lists {
			if len(l.Data) > len(longest.Data) {
				longest = l
			}
		}
		total -= len(longest.Data)
		*longest = model.Marks{Unlisted: longest.Unlisted + longest.Packets}
	}
}

func listsOf(r *sessionReport) (all []*model.Marks) {
	add := func(lists []model.Marks) {
		for i := range lists {
			all = append(all, &lists[i])
		}
	}
	for _, e := range r.Ends {
		if e.Send != nil {
			add(e.Send.Refused)
		}
		if e.Receive != nil {
			add(e.Receive.Missing)
		}
	}
	if r.Observed != nil && r.Observed.Drops != nil {
		for _, f := range r.Observed.Drops.Flows {
			add(f.Streams)
		}
	}
	return all
}
