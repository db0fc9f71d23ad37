package measure

import (
	"slices"

	"pelt/model"
)

// Gaps asked for that are shorter than backToBack are kept by any up to together:
// no sender has packets leave at once, and the second is what one wake-up takes.
const (
	backToBack = 1_000
	together   = 20_000
)

// GapDistance is the least share of sent gaps that are not as asked: further off
// than one bar of the histograms, about a quarter, and than what back to back
// means. It is the largest difference of the two cumulative distributions that no
// such shift explains (the bound of Strassen, 1965, on the best way to pair them).
// ok is false if either is empty.
func GapDistance(asked, sent []model.Bucket) (ratio float64, ok bool) {
	bounds := []int64{together, together * 5 / 4}
	for _, b := range slices.Concat(asked, sent) {
		bounds = append(bounds, b.UpToNanos)
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	a, aOK := cumulative(asked, bounds)
	s, sOK := cumulative(sent, bounds)
	if !aOK || !sOK {
		return 0, false
	}
	touching := 0.0 // share of asked gaps that are back to back
	for i, b := range bounds {
		if b <= backToBack {
			touching = a[i]
		}
	}
	for i, b := range bounds {
		next := min(i+1, len(bounds)-1)
		need := a[i]
		if b < together {
			need = max(need-touching, 0)
		}
		ratio = max(ratio, need-s[next], s[i]-a[next])
	}
	return ratio, true
}

// cumulative is the share of values up to each bound.
func cumulative(of []model.Bucket, bounds []int64) (shares []float64, ok bool) {
	total := 0.0
	for _, b := range of {
		total += float64(b.Count)
	}
	shares = make([]float64, len(bounds))
	for i, bound := range bounds {
		for _, b := range of {
			if b.UpToNanos <= bound {
				shares[i] += float64(b.Count) / max(total, 1)
			}
		}
	}
	return shares, total > 0
}
