package finding

import (
	"math"
	"slices"

	"pelt/model"
)

// Joined returns a run of which the trials that went on with one another are one; without any the run itself.
func Joined(d *model.Document) *model.Document {
	chain := chainOf(d)
	if len(chain) < 2 {
		return d
	}
	one := *d
	one.Results = []model.Result{joinTrials(chain)}
	return &one
}

// chainOf returns the trial of a soak that is told, and those that it goes on with: the newest is the last.
func chainOf(d *model.Document) (chain []*model.Result) {
	told := reportedTrial(d)
	for i := range d.Results {
		r := &d.Results[i]
		if len(r.Outages) == 0 {
			if slices.Contains(chain, told) {
				return chain
			}
			chain = nil
		}
		chain = append(chain, r)
	}
	return chain
}

// joinTrials returns one result of a trial and those that went on with it, with their times counted from the first.
func joinTrials(chain []*model.Result) model.Result {
	sum, end, room := *chain[0], 0.0, mostUnknown
	sum.Flows, sum.Series, sum.Changes, sum.Gaps, sum.Made = nil, nil, nil, nil, nil
	for _, r := range chain {
		at := 0.0
		for _, o := range r.Outages {
			at = o.BeginS
		}
		for _, f := range r.Flows {
			end = max(end, at+f.DurationS)
			addFlow(&sum, f, at)
		}
		for _, s := range slices.Concat(r.Series, lossesOfNone(chain, r)) {
			addSeries(&sum, s, at, &room)
		}
		for _, c := range r.Changes {
			c.StartS, c.StartLowS, c.StartHighS, c.EndS = c.StartS+at, c.StartLowS+at, c.StartHighS+at, c.EndS+at
			c.Causes = slices.Clone(c.Causes)
			for i := range c.Causes {
				c.Causes[i].StartS += at
			}
			sum.Changes = append(sum.Changes, c)
		}
		for _, g := range r.Gaps {
			g.StartS += at
			sum.Gaps = append(sum.Gaps, g)
		}
		if len(r.Flows) > 0 {
			sum.Observed, sum.Counters, sum.Links = r.Observed, r.Counters, r.Links
			sum.Router, sum.Engine = r.Router, r.Engine
		}
		sum.State, sum.Why, sum.Outages = r.State, r.Why, append(slices.Clip(sum.Outages), r.Outages...)
	}
	for i := range sum.Flows {
		rates(&sum.Flows[i], end)
	}
	return sum
}

// lossesOfNone are the losses by the second of flows that lost nothing: such trials have none, and others of the chain
// do.
func lossesOfNone(chain []*model.Result, r *model.Result) (out []model.Series) {
	for _, f := range r.Flows {
		lost := func(s model.Series) bool { return s.Metric == "lost_pps" && s.Flow == f.Name && s.Layer == "" }
		known := func(r *model.Result) bool { return slices.ContainsFunc(r.Series, lost) }
		if f.Lost > 0 || f.Unheard != nil || known(r) || !slices.ContainsFunc(chain, known) ||
			slices.ContainsFunc(out, lost) { // a damaged file may name several flows alike
			continue
		}
		for _, s := range r.Series {
			if s.Metric == "send_pps" && s.Flow == f.Name {
				s.Metric, s.Values = "lost_pps", make([]float64, len(s.Values))
				out = append(out, s)
			}
		}
	}
	return out
}

// addFlow adds the counts of a flow that began at a time. What cannot be added is left out.
func addFlow(sum *model.Result, f model.FlowResult, at float64) {
	if f.Unheard != nil {
		f.Unheard = &model.Unheard{FromS: f.Unheard.FromS + at, Packets: f.Unheard.Packets}
	}
	i := slices.IndexFunc(sum.Flows, func(x model.FlowResult) bool { return x.Name == f.Name })
	if i < 0 {
		f.Ledger.Lines = slices.Clone(f.Ledger.Lines)
		sum.Flows = append(sum.Flows, f)
		return
	}
	x := &sum.Flows[i]
	x.Count(f)
	x.Delay, x.RoundTrip, x.JitterNS, x.SendGap, x.GapCounts, x.SendLate = nil, nil, 0, nil, nil, nil
	x.Uneven = nil
	x.Ledger.Lost = model.AddCounts(x.Ledger.Lost, f.Ledger.Lost)
	x.Ledger.Unattributed = model.AddCounts(x.Ledger.Unattributed, f.Ledger.Unattributed)
	x.Ledger.Possible = model.JoinPossible(x.Ledger.Possible, f.Ledger.Possible)
	x.Ledger.Checks = append(slices.Clip(x.Ledger.Checks), f.Ledger.Checks...)
	x.Ledger.Pacing = model.JoinPacing(x.Ledger.Pacing, f.Ledger.Pacing)
	for _, l := range f.Ledger.Lines {
		if k := slices.IndexFunc(x.Ledger.Lines, l.SamePlace); k >= 0 {
			l.Join(x.Ledger.Lines[k])
			l.Sequences = nil
			x.Ledger.Lines[k] = l
		} else {
			x.Ledger.Lines = append(x.Ledger.Lines, l)
		}
	}
	if f.Protocol == model.TCP {
		x.GoodputBPS = (x.GoodputBPS*x.DurationS + f.GoodputBPS*f.DurationS) / (x.DurationS + f.DurationS)
	}
	x.DurationS += f.DurationS
}

// rates makes what a flow received at a rate that of the whole time, and what it sent that of the time when it sent.
func rates(f *model.FlowResult, seconds float64) {
	if f.LossRatio = 0; f.Attempted > 0 {
		f.LossRatio = float64(f.Lost) / float64(f.Attempted)
	}
	if !(f.DurationS > 0) {
		return
	}
	bits := float64(8 * f.PayloadBytes)
	f.SendPPS, f.ReceivePPS = float64(f.Attempted)/f.DurationS, float64(f.Received)/seconds
	f.SendGoodputBPS = f.SendPPS * bits
	if f.Protocol == model.UDP {
		f.GoodputBPS = f.ReceivePPS * bits
	} else {
		f.GoodputBPS *= f.DurationS / seconds
	}
	f.DurationS = seconds
}

// mostUnknown bounds the steps without a value between joined trials, of all series together: half a GB.
const mostUnknown = 1 << 26

// addSeries appends a series that began at a time to the one of the same kind. Between the two nothing is known: room
// is how many such steps may still be added.
func addSeries(sum *model.Result, s model.Series, at float64, room *int) {
	if !(s.StepSeconds > 0) {
		return
	}
	s.StartSeconds += math.Round(at/s.StepSeconds) * s.StepSeconds
	i := slices.IndexFunc(sum.Series, func(x model.Series) bool {
		same := func(a, b *int) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
		return x.Metric == s.Metric && x.Flow == s.Flow && x.At == s.At && x.Layer == s.Layer && x.Cause == s.Cause &&
			x.StepSeconds == s.StepSeconds && same(x.Core, s.Core) && same(x.Stream, s.Stream)
	})
	if i < 0 {
		s.Values = slices.Clone(s.Values)
		sum.Series = append(sum.Series, s)
		return
	}
	x := &sum.Series[i]
	before := math.Round((s.StartSeconds - x.StartSeconds) / s.StepSeconds)
	if !(before >= 0 && before*max(s.StepSeconds, 1) <= model.MaxMeasure.Seconds()) {
		return // of a damaged file
	}
	unknown := max(int(before)-len(x.Values), 0)
	if unknown > *room {
		return // likewise
	}
	*room -= unknown
	x.Values = x.Values[:min(len(x.Values), int(before))]
	for len(x.Values) < int(before) {
		x.Values = append(x.Values, math.NaN())
	}
	x.Values = append(x.Values, s.Values...)
}
