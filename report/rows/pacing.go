package rows

import (
	"slices"

	"pelt/model"
)

// Pacing is how a row's flow was sent beside what its profile asked: of the trial
// whose gaps were least as asked.
type Pacing struct {
	model.Pacing
	SentGap  *model.Percentiles // between consecutive packets of a stream
	SentGaps []model.Bucket
}

// shortestBar is what a histogram tells apart at the short end, in nanoseconds: no
// sender does.
const shortestBar = 100

// Bars are the distributions of gaps asked and sent over common bars: each holds
// the share of gaps above the bound before it up to its own, the first all shorter
// ones, in nanoseconds. There are none if one of the distributions is not known.
func (p *Pacing) Bars() (upTo []int64, asked, sent []float64) {
	total := func(of []model.Bucket) (sum float64) {
		for _, b := range of {
			sum += float64(b.Count)
		}
		return sum
	}
	a, s := total(p.AskedGaps), total(p.SentGaps)
	if a == 0 || s == 0 {
		return nil, nil, nil
	}
	for _, b := range slices.Concat(p.AskedGaps, p.SentGaps) {
		upTo = append(upTo, max(b.UpToNanos, shortestBar))
	}
	slices.Sort(upTo)
	upTo = slices.Compact(upTo)
	fill := func(of []model.Bucket, total float64) []float64 {
		shares := make([]float64, len(upTo))
		for _, b := range of {
			at, _ := slices.BinarySearch(upTo, max(b.UpToNanos, shortestBar))
			shares[at] += float64(b.Count) / total
		}
		return shares
	}
	return upTo, fill(p.AskedGaps, a), fill(p.SentGaps, s)
}

func pacing(ms []member) *Pacing {
	var worst *Pacing
	for _, m := range ms {
		p := m.flow.Pacing
		if p == nil || worst != nil && (p.Distance == nil || worst.Distance != nil && *worst.Distance >= *p.Distance) {
			continue
		}
		worst = &Pacing{Pacing: *p, SentGap: m.flow.SendGap, SentGaps: m.flow.GapCounts}
	}
	return worst
}
