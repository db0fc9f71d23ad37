package fleet

import (
	"context"
	"fmt"
	"time"

	"pelt/engine"
)

// place is one end and how far it has come.
type place struct {
	order   endOrder
	end     engine.End
	started bool
	ended   chan struct{} // closed when Run has returned
	err     error         // of Run, valid once ended
	report  *engine.Report
	heard   uint64 // what engine.Hearer said last; the beating goroutine's
}

func (p *place) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

func (p *place) name() string {
	return fmt.Sprintf("flow %s: %s", p.order.Order.Flow.Name, p.order.Order.Role)
}

// each works on all places at once and returns the first error by time.
func each(places []*place, f func(*place) error) error {
	results := make(chan error, len(places))
	for _, p := range places {
		go func() { results <- f(p) }()
	}
	var first error
	for range places {
		if err := <-results; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// wait returns when Run has, or stops it.
func (p *place) wait(ctx context.Context) error {
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
	}
	p.end.Stop()
	t := time.NewTimer(stopPatience)
	defer t.Stop()
	select {
	case <-p.ended:
		return nil
	case <-t.C:
		return fmt.Errorf("%s: did not stop", p.name())
	}
}
