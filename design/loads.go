package design

import (
	"math"

	"pelt/model"
)

// Question is what a search is asked. The greatest load is what the flood sent.
type Question struct {
	Goals   []model.Goal
	MinLoad float64 // whole packets a second
}

// floodSeconds is how long a search floods to begin with.
const floodSeconds = 1

// nextLoad returns the next trial of a search; ok is false when every goal is answered. The first trial is the flood.
func (q Question) nextLoad(seen []Observation) (load, seconds float64, flood, ok bool) {
	if len(seen) == 0 {
		return 0, floodSeconds, true, true
	}
	most := math.Floor(seen[0].Load)
	for _, g := range q.Goals {
		low, high := q.MinLoad, most
		b := q.bounds(g, seen)
		if !math.IsNaN(b.Lower) {
			low = b.Lower
		}
		if b.Limit != NoLimit {
			high = min(b.Upper, most)
		}
		if b.Upper <= q.MinLoad || low >= most || low > high*(1-g.WidthRatio) && b.Lower == low || high-low <= 1 && b.Lower == low {
			continue
		}
		if math.IsNaN(b.Lower) && high-low <= 1 {
			return low, g.FinalSeconds, false, true
		}
		return math.Floor(math.Sqrt(low * high)), g.FinalSeconds, false, true
	}
	return 0, 0, false, false
}
