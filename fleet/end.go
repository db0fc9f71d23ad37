package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"pelt/engine"
)

// sessionEnd is one end of a flow and how far it has come.
type sessionEnd struct {
	order   endOrder
	end     *engine.End // nil until it is prepared
	dead    bool        // none of its streams met: it takes no part any more; guarded by the session
	started atomic.Bool
	ended   atomic.Bool // its traffic is over, and the session is cut if that failed
	heard   uint64      // packets that had come at the last heartbeat; the beating goroutine's
}

func (e *sessionEnd) over() bool {
	select {
	case <-e.end.Done():
		return true
	default:
		return false
	}
}

// finish stops the end's traffic, and waits until it is over.
func (e *sessionEnd) finish(ctx context.Context) error {
	if e.end.Stop(); !e.started.Load() {
		return nil
	}
	select {
	case <-e.end.Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *sessionEnd) name() string {
	return fmt.Sprintf("flow %s: %s", e.order.Order.Flow.Name, e.order.Order.Role)
}

// opened returns the ends of the given roles that are open and take part, or all that are open.
func (s *session) opened(roles ...engine.Role) (all []*sessionEnd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.ends {
		if e.end != nil && !(e.dead && len(roles) > 0) && (len(roles) == 0 || slices.Contains(roles, e.order.Order.Role)) {
			all = append(all, e)
		}
	}
	return all
}

// run starts one end, for at most limit whatever anybody says. A receiver reads when it
// returns; ctx bounds the wait for that.
func (s *session) run(ctx context.Context, e *sessionEnd, limit time.Duration) {
	s.mu.Lock()
	if e.started.Load() || s.closed || s.cut != "" {
		s.mu.Unlock()
		return
	}
	e.started.Store(true)
	s.work.Go(func() { // under the lock: close waits for it
		overdue := time.AfterFunc(limit, e.end.Stop)
		<-e.end.Done()
		overdue.Stop()
		if _, err := e.end.Report(); err != nil && s.ctx.Err() == nil && s.why() == "" {
			s.stopTraffic(fmt.Sprintf("%s: %v", e.name(), err))
		}
		e.ended.Store(true)
		s.beatSoon()
	})
	s.mu.Unlock()
	if err := e.end.Start(ctx); err != nil {
		s.stopTraffic(fmt.Sprintf("%s: %v", e.name(), err))
	}
}

// each works on all of a list at once and returns the first error by time.
func each[T any](list []T, f func(T) error) error {
	results := make(chan error, len(list))
	for _, one := range list {
		go func() { results <- f(one) }()
	}
	var first error
	for range list {
		first = cmp.Or(first, <-results)
	}
	return first
}

// hadPackets reports whether packets came since the call before.
func (e *sessionEnd) hadPackets() bool {
	if e.over() {
		return false
	}
	before := e.heard
	e.heard = e.end.Snapshot().Heard
	return e.heard != before
}

func (e *sessionEnd) sample() sample {
	n := e.end.Snapshot()
	return sample{End: e.order.End, Packets: n.Packets, Bytes: n.Bytes, Reach: n.Reach, Silent: n.Silent}
}
