package fleet

import (
	"sync/atomic"

	"pelt/engine"
	"pelt/finding"
	"pelt/model"
)

// sessionEnd is one end of a flow and how far it has come.
type sessionEnd struct {
	order  endOrder
	port   uint16 // where connections of TCP are awaited; guarded by the session
	part   *engine.End
	met    engine.Meeting // guarded by the session, as all that follows but ended and heard
	living []bool         // of its streams; nil before it is known
	dead   bool           // none of its streams met: it takes no part any more
	ended  atomic.Bool    // its traffic is over, and the session is cut if that failed
	heard  uint64         // packets that had come at the last heartbeat; the beating goroutine's
}

// fault says which flow an error is about.
func (e *sessionEnd) fault(err error) error {
	return (&finding.Fault{Reason: model.Reason{Code: model.OfFlow, Flow: e.order.Order.Flow.Name,
		Of: model.Reasons{finding.ReasonOf(err)}}}).From(err)
}

// probes reports whether the end and its peer exchange probe packets.
func (e *sessionEnd) probes() bool { return !e.dead && !e.order.Order.Traffic() }

// taking returns the ends of a kind.
func (s *session) taking(which func(*sessionEnd) bool) (all []*sessionEnd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.ends {
		if which(e) {
			all = append(all, e)
		}
	}
	return all
}

// each works on all of a list at once and returns the first error by time. failed are called with that error already
// taken: what they make others return does not stand in its place.
func each[T any](list []T, f func(T) error, failed ...func()) error {
	results := make(chan error, len(list))
	for _, one := range list {
		go func() { results <- f(one) }()
	}
	var first error
	for range list {
		if err := <-results; err != nil && first == nil {
			first = err
			for _, tell := range failed {
				tell()
			}
		}
	}
	return first
}

// hadPackets reports whether packets came since the call before.
func (e *sessionEnd) hadPackets() bool {
	before := e.heard
	e.heard = e.part.Live().Heard
	return e.heard != before && !e.ended.Load()
}

func (e *sessionEnd) sample() sample {
	n := e.part.Live()
	return sample{End: e.order.End, Packets: n.Packets, Bytes: n.Bytes, Reach: n.Reach, Silent: n.Silent}
}
