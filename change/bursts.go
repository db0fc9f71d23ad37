package change

import (
	"math"
	"slices"
)

const (
	// Seconds of loss next to each other, or with one between them, are one burst.
	burstGap = 2
	// The lost packets of a step scatter by such a factor at least, as a logarithm: those
	// of few packets mean nothing.
	leastScatter = 0.5
)

// event is a burst of loss: places, the last excluded, and by how many standard deviations
// the worst value strays.
type event struct {
	from, to int
	z        float64
}

// bursts returns where far more was lost than usual for less than a level lasts, and not
// beside a cut. Losses are compared by their logarithms, as a path that loses some packets
// loses ten times as many by chance.
func (t *track) bursts(cuts []int, o odds) (out []event) {
	logs, off := make([]float64, len(t.raw)), make([]float64, len(t.raw))
	for i, v := range t.raw {
		logs[i] = t.logOf(v) - t.logOf(t.mid[i])
		off[i] = math.Abs(logs[i])
	}
	scatter := max(leastScatter, 1.4826*Median(off))
	limit := o.beyond(float64(len(t.raw)))
	for i := 0; i < len(logs); i++ {
		if logs[i] < limit*scatter {
			continue
		}
		e := event{from: i, to: i + 1, z: logs[i] / scatter}
		for k := i + 1; k < len(logs) && k < e.to+burstGap; k++ {
			if z := logs[k] / scatter; z >= limit {
				e.to, e.z = k+1, max(e.z, z)
			}
		}
		i = e.to - 1
		at, _ := slices.BinarySearch(cuts, e.from-burstGap)
		besideCut := at < len(cuts) && cuts[at] <= e.to+burstGap
		if e.from > 0 && e.to < len(logs) && !besideCut {
			out = append(out, e)
		}
	}
	return out
}

// logOf is the logarithm of the lost packets of one step.
func (t *track) logOf(v float64) float64 { return math.Log1p(max(0, v) * t.of.StepSeconds) }
