package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"pelt/engine"
)

// A record is made at its receiver and fetched from there while the trial runs:
// whoever asks decides how much is on its way, so that a slow control connection
// holds up nothing but the record.

const (
	recordTimeout = 10 * time.Second // for an answer about the record
	recordStalled = 15 * time.Second // the rest of a record may stand still so long
	recordAgain   = 500 * time.Millisecond
	recordWait    = time.Second // at the agent, for blocks to be made
	// recordRest is more bytes than any agent keeps of a session: its buffers, at their
	// noisiest, and what was not fetched.
	recordRest = 256 << 20
)

func recorded(ends []endOrder) bool {
	return slices.ContainsFunc(ends, func(e endOrder) bool { return e.Order.Record != nil })
}

// tapped has a receiver's packets recorded where that is ordered.
func (s *session) tapped(o engine.Order) engine.Order {
	if o.Record == nil {
		return o
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recording == nil && !s.closed { // one of an order is refused without a maker
		s.recording = s.agent.cfg.Recording()
	}
	if rec := s.recording; rec != nil {
		o.Tap = func(m engine.Meter) engine.Meter { return rec.Tap(o, m) }
	}
	return o
}

func (s *session) recordingOf() engine.Recording {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recording
}

// fetchRecord answers with what of the record is there.
func (s *session) fetchRecord(ctx context.Context, o recordOrder) (recordAnswer, error) {
	rec := s.recordingOf()
	if rec == nil {
		return recordAnswer{}, errors.New("record: nothing is recorded in this session")
	}
	if o.Final {
		rec.Finish()
	}
	data, done := rec.Blocks(ctx, o.From, partBytes)
	return recordAnswer{data, done}, nil
}

// records are fetched side by side.
type records struct {
	final chan struct{} // closed when the receivers have ended
	cut   bool          // the trial was; set before final is closed
	done  sync.WaitGroup

	mu       sync.Mutex
	warnings []string
}

// takeRecords begins to fetch the records of all agents that make one.
func (t *trial) takeRecords() *records {
	r := &records{final: make(chan struct{})}
	if t.order.Record == nil {
		return r
	}
	var ids []string
	for _, e := range t.ends {
		if e.Order.Record != nil && !slices.Contains(ids, e.agent) {
			ids = append(ids, e.agent)
		}
	}
	for _, id := range ids {
		r.done.Go(func() {
			if err := r.take(t, id); err != nil {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.warnings = append(r.warnings, fmt.Sprintf("the record of %s is not whole: %v", t.c.members[id].name, err))
			}
		})
	}
	return r
}

func (r *records) take(t *trial, id string) error {
	m, from := t.c.members[id], uint64(0)
	stalled := recordStalled + t.order.Timing.Patience()
	var moved time.Time // when something came last, once the receivers have ended
	rest := 0           // bytes that came since
	for {
		final := false
		select {
		case <-r.final:
			if final = true; r.cut { // a host that is gone is not waited for as in a trial
				stalled = recordStalled
			}
		default:
		}
		if final && moved.IsZero() {
			moved = time.Now()
		}
		ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
		a, err := give[recordAnswer](ctx, m, verbRecord, recordOrder{t.about(m), from, final})
		cancel()
		switch {
		case err != nil && (errors.Is(err, ErrLost) || t.isGone(id) || final && time.Since(moved) > stalled):
			return err
		case err != nil:
			select {
			case <-r.final:
			case <-time.After(recordAgain):
			}
			continue
		case len(a.Data) > partBytes:
			return errors.New("too long an answer")
		}
		if final {
			rest += len(a.Data)
		}
		if rest > recordRest {
			return errors.New("it does not end")
		}
		if len(a.Data) > 0 {
			if err := t.order.Record(id, a.Data); err != nil {
				return err
			}
			from += uint64(len(a.Data))
			moved = time.Time{}
		}
		if a.Done {
			return nil
		}
		if final && !moved.IsZero() && time.Since(moved) > stalled {
			return errors.New("the rest did not come")
		}
	}
}

// end fetches the rest, and tells what is missing.
func (r *records) end(cut bool) []string {
	r.cut = cut
	close(r.final)
	r.done.Wait()
	return r.warnings
}
