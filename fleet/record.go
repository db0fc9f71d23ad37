package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"pelt/engine"
	"pelt/finding"
	"pelt/model"
)

// A record is made at its receiver and fetched from there while the trial runs:
// whoever asks decides how much is on its way, so that a slow control connection
// holds up nothing but the record.

const (
	recordTimeout = 10 * time.Second // for an answer about the record
	recordStalled = 15 * time.Second // the rest of a record may stand still so long
	recordAgain   = 500 * time.Millisecond
	recordWait    = time.Second // at the agent, for blocks to be made
)

// The most bytes that the record of one host may have.
const (
	recordPacket = 16       // two to three are usual
	recordBlock  = 128      // around the packets of a stream, at most every 250 ms
	recordSlack  = 64 << 10 // for trials of no length
	recordPPS    = 5e6      // of a flow without a rate: more than sockets take ...
	recordFlood  = 4 << 30  // ... and not without end
)

// tapped returns a receiver's order with a tap that records its packets, if a record is ordered.
func (s *session) tapped(o engine.Order) engine.Order {
	if o.Record == nil {
		return o
	}
	if s.recording == nil { // one of an order is refused without a maker
		s.recording = s.agent.cfg.Recording()
	}
	rec := s.recording
	o.Tap = func(m engine.Meter) engine.Meter { return rec.Tap(o, m) }
	return o
}

// fetchRecord answers with what of the record is there.
func (s *session) fetchRecord(ctx context.Context, o accountOrder) (accountAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, recordWait)
	defer cancel()
	s.mu.Lock()
	rec := s.recording
	s.mu.Unlock()
	if rec == nil {
		return accountAnswer{}, finding.NewFault(model.NothingRecorded)
	}
	if o.Final {
		rec.Finish()
	}
	data, done := rec.Blocks(ctx, o.From, partBytes)
	return accountAnswer{Data: data, Done: done}, nil
}

// records are fetched side by side.
type records struct {
	final chan struct{} // closed when the receivers have ended
	cut   bool          // the trial was; set before final is closed
	done  sync.WaitGroup

	mu       sync.Mutex
	warnings model.Reasons
}

// takeRecords begins to fetch the records of all agents that make one.
func (t *trial) takeRecords() *records {
	r := &records{final: make(chan struct{})}
	if t.order.Record == nil {
		return r
	}
	makers := map[*party]bool{}
	for _, e := range t.ends {
		if e.Order.Record == nil || makers[e.party] {
			continue
		}
		makers[e.party] = true
		r.done.Go(func() {
			if err := r.fetchFrom(t, e.party); err != nil {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.warnings = append(r.warnings, model.Reason{Code: model.RecordCut, Node: e.info.Node,
					Of: model.Reasons{finding.ReasonOf(err)}})
			}
		})
	}
	return r
}

// recordBytes returns the most bytes that the record of an agent can have: that of all packets it is to receive.
// paced: the flows have a rate, which bounds them.
func (t *trial) recordBytes(p *party) (most uint64, paced bool) {
	bytes, flood, paced := float64(recordSlack), 0., true
	for _, e := range t.ends {
		if e.party != p || e.Order.Record == nil {
			continue
		}
		f, timing := e.Order.Flow, e.Order.Timing
		pps, known := f.PeakPPS()
		bytes += recordBlock * float64(f.Streams) * (2 + 4*(timing.MeasureSeconds+timing.DrainSeconds))
		if packets := recordPacket * timing.MeasureSeconds; known {
			bytes += packets * pps
		} else {
			flood, paced = flood+packets*recordPPS, false
		}
	}
	return uint64(bytes + min(flood, recordFlood)), paced
}

// fetchFrom fetches the record of one agent, until it is whole or no more of it comes.
func (r *records) fetchFrom(t *trial, p *party) error {
	stalled := recordStalled + t.order.Timing.Patience()
	most, paced := t.recordBytes(p)
	from := uint64(0)   // bytes that came
	var moved time.Time // when something came last since the receivers ended
	for {
		final := false
		select {
		case <-r.final:
			if final = true; r.cut { // a host that is gone is not waited for as in a trial
				stalled = recordStalled
			}
			if moved.IsZero() {
				moved = time.Now()
			}
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
		a, err := give[accountAnswer](ctx, p.member, verbAccount,
			accountOrder{sessionOrder: p.about(), Of: ofRecord, Final: final, From: from})
		cancel()
		late := final && len(a.Data) == 0 && time.Since(moved) > stalled
		switch {
		case err != nil && (late || errors.Is(err, errLost) || p.present.Err() != nil):
			return err
		case err != nil:
			select {
			case <-r.final:
			case <-time.After(recordAgain):
			}
			continue
		case len(a.Data) > partBytes:
			return finding.NewFault(model.AnswerLong)
		case late && !a.Done:
			return finding.NewFault(model.RestMissing)
		case from+uint64(len(a.Data)) > most && paced:
			return finding.NewFault(model.RecordLong, "most", fmt.Sprintf("%.1f MB", float64(most)/1e6))
		case from+uint64(len(a.Data)) > most:
			return finding.NewFault(model.RecordFull, "most", fmt.Sprintf("%.1f MB", float64(most)/1e6))
		}
		if len(a.Data) > 0 {
			if err := t.order.Record(p.info.ID, a.Data); err != nil {
				return err
			}
			from += uint64(len(a.Data))
			moved = time.Time{}
		}
		if a.Done {
			return nil
		}
	}
}

// end fetches the rest, and tells what is missing.
func (r *records) end(cut bool) model.Reasons {
	r.cut = cut
	close(r.final)
	r.done.Wait()
	return r.warnings
}
