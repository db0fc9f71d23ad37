package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"

	"pelt/engine"
	"pelt/finding"
	"pelt/model"
)

// Bounds of a report, which travels in parts.
const (
	partBytes   = 512 << 10 // in base64 they fit a message
	reportBytes = 64 << 20
	trialBytes  = 8 * reportBytes // all that are fetched at a time: many hosts may be one program's
)

// part returns the part of an account that begins at a byte; the first one makes the account.
func (s *session) part(from uint64, tell func() (any, error)) (a accountAnswer, err error) {
	if from == 0 {
		s.agent.telling.Lock()
		defer s.agent.telling.Unlock()
		told, err := tell()
		if err != nil {
			return a, err
		}
		data, err := json.Marshal(told)
		if err != nil {
			return a, err
		}
		if len(data) > reportBytes {
			return a, finding.NewFault(model.ReportLong, "most_bytes", float64(reportBytes))
		}
		s.mu.Lock()
		s.told = data
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if from >= uint64(len(s.told)) {
		return a, engine.WrongField("from", "value", from)
	}
	left := s.told[from:]
	return accountAnswer{Data: left[:min(len(left), partBytes)], Done: len(left) <= partBytes}, nil
}

// fetch gets all parts of an account, while its bytes fit into room. Texts of facts keep their line breaks.
func fetch[A any](ctx context.Context, m member, order accountOrder, room *atomic.Int64) (A, error) {
	var zero A
	var data []byte
	for done := false; !done; {
		order.From = uint64(len(data))
		a, err := give[accountAnswer](ctx, m, verbAccount, order)
		if err != nil {
			return zero, err
		}
		data, done = append(data, a.Data...), a.Done
		if len(a.Data) == 0 || len(data) > reportBytes || room.Add(-int64(len(a.Data))) < 0 {
			return zero, &HostError{m.info.ID, m.info.Node, m.at, finding.NewFault(model.AnswerLong)}
		}
	}
	told, err := decodeLines[A](data, order.Of == ofRouter)
	if err != nil {
		return zero, &HostError{m.info.ID, m.info.Node, m.at, err}
	}
	return told, nil
}

// roomFor returns a counter of the bytes that may still come.
func roomFor(bytes int64) *atomic.Int64 {
	var room atomic.Int64
	room.Store(bytes)
	return &room
}

// shrink leaves out of a report what would make it too long: the longest lists of
// sequences, and the load of the single cores over time. It says so in the report.
func (r *sessionReport) shrink(limit int) {
	r.shrinkLists(limit / 2) // the rest, and base64, has room beside them
	if data, err := json.Marshal(r); err == nil && len(data) <= limit {
		return
	}
	withoutCores := func(list []model.Series) []model.Series {
		return slices.DeleteFunc(slices.Clone(list), func(s model.Series) bool { return s.Core != nil })
	}
	if r.Load != nil {
		r.Load = &engine.Load{CPU: r.Load.CPU, Series: withoutCores(r.Load.Series)}
	}
	if o := r.Observed; o != nil && o.Router != nil {
		o.Series, o.Router.Gaps = withoutCores(o.Series), append(o.Router.Gaps, model.RouterGap{Why: model.GapCores})
	}
	for n, one := range r.Ends {
		one.Warnings = append(slices.Clone(one.Warnings), model.Reason{Code: model.CoresLeftOut})
		r.Ends[n] = one
	}
}

// shrinkLists takes the longest lists of sequences out of a report, and says how many
// packets they held.
func (r *sessionReport) shrinkLists(limit int) {
	var lists []*model.Marks
	total := 0
	add := func(all []model.Marks) {
		for i := range all {
			lists, total = append(lists, &all[i]), total+len(all[i].Data)
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
	slices.SortFunc(lists, func(a, b *model.Marks) int { return cmp.Compare(len(b.Data), len(a.Data)) })
	for _, longest := range lists {
		if total <= limit {
			return
		}
		total -= len(longest.Data)
		*longest = model.Marks{Unlisted: longest.Unlisted + longest.Packets}
	}
}
