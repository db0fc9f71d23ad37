package fleet

import (
	"cmp"
	"fmt"
	"sync/atomic"

	"pelt/engine"
	"pelt/model"
)

// sessionEnd is one end of a flow and how far it has come.
type sessionEnd struct {
	order   endOrder
	end     *engine.End   // nil until it is prepared
	tuples  []model.Tuple // ports of the streams of a UDP flow, once it is connected
	started bool
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

func (e *sessionEnd) name() string {
	return fmt.Sprintf("flow %s: %s", e.order.Order.Flow.Name, e.order.Order.Role)
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

// hears reports whether packets came since it was asked last.
func (e *sessionEnd) hears() bool {
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
