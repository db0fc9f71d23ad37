package changes

import (
	"math"
)

// ramp is a level that moved steadily from one to another.
type ramp struct {
	from, to      int // places: the first that moved, and the first that stood again
	before, after float64
	squares       float64 // what remains, in variances of a value
	free          int     // parameters: two levels, and each end that is not one of the track
}

// rampSteps is how many places for each end of a ramp are tried in each round of
// the search; each round looks closer around the best of the last one.
const (
	rampSteps  = 24
	rampRounds = 4
)

// slopes are prefix sums from which a line through any part of a track is had.
type slopes struct {
	w, wx, wxx, wy, wxy, wyy []float64
}

func (t *track) slopes() slopes {
	n := len(t.clean)
	all := make([]float64, 6*(n+1))
	part := func(i int) []float64 { return all[i*(n+1) : (i+1)*(n+1)] }
	s := slopes{part(0), part(1), part(2), part(3), part(4), part(5)}
	for i, y := range t.clean {
		w, x := 1/(t.sigma[i]*t.sigma[i]), float64(i)
		y -= t.mid[n/2]
		s.w[i+1], s.wx[i+1], s.wxx[i+1] = s.w[i]+w, s.wx[i]+w*x, s.wxx[i]+w*x*x
		s.wy[i+1], s.wxy[i+1], s.wyy[i+1] = s.wy[i]+w*y, s.wxy[i]+w*x*y, s.wyy[i]+w*y*y
	}
	return s
}

// fit lays a level, a straight way, and another level through the places from low
// to high, the way from a to b: two levels and two places, by least squares.
func (s slopes) fit(low, a, b, high int) ramp {
	d := func(v []float64, from, to int) float64 { return v[to] - v[from] }
	// r is 0 before a, 1 from b on and (x-a)/(b-a) between.
	span, start := float64(max(b-a, 1)), float64(a)
	w := d(s.w, low, high)
	r := (d(s.wx, a, b)-start*d(s.w, a, b))/span + d(s.w, b, high)
	rr := (d(s.wxx, a, b)-2*start*d(s.wx, a, b)+start*start*d(s.w, a, b))/(span*span) + d(s.w, b, high)
	y := d(s.wy, low, high)
	ry := (d(s.wxy, a, b)-start*d(s.wy, a, b))/span + d(s.wy, b, high)
	yy := d(s.wyy, low, high)
	spread := w*rr - r*r
	if !(spread > 0) {
		return ramp{squares: math.Inf(1)}
	}
	size := (w*ry - r*y) / spread
	level := (y - size*r) / w
	return ramp{from: a, to: b, before: level, after: level + size, squares: max(0, yy-level*y-size*ry)}
}

// simplest is the ramp between two places that Schwarz's criterion prefers: over all of it, or
// with one or both of its ends within.
func (s slopes) simplest(low, high int, factor, penalty float64) (best ramp) {
	best.squares = math.Inf(1)
	cost := math.Inf(1)
	for _, r := range []ramp{
		s.steepest(low, high, [2]int{low, low}, [2]int{high, high}, 2),
		s.steepest(low, high, [2]int{low, low}, [2]int{low, high}, 3),
		s.steepest(low, high, [2]int{low, high}, [2]int{high, high}, 3),
		s.steepest(low, high, [2]int{low, high}, [2]int{low, high}, 4),
	} {
		if c := r.squares/factor + float64(r.free)*penalty; c < cost {
			best, cost = r, c
		}
	}
	return best
}

// steepest is the ramp that fits best between two places, its begin and its end from
// one place to another.
func (s slopes) steepest(low, high int, begin, end [2]int, free int) ramp {
	best := ramp{squares: math.Inf(1)}
	fromLow, fromHigh, toLow, toHigh := begin[0], begin[1], end[0], end[1]
	for range rampRounds {
		stepFrom, stepTo := max(1, (fromHigh-fromLow)/rampSteps), max(1, (toHigh-toLow)/rampSteps)
		for a := fromLow; a <= fromHigh; a += stepFrom {
			for b := max(a+1, toLow); b <= toHigh; b += stepTo {
				if r := s.fit(low, a, b, high); r.squares < best.squares {
					best = r
				}
			}
		}
		if stepFrom == 1 && stepTo == 1 || math.IsInf(best.squares, 1) {
			break
		}
		fromLow, fromHigh = max(begin[0], best.from-stepFrom), min(begin[1], best.from+stepFrom)
		toLow, toHigh = max(end[0], best.to-stepTo), min(end[1], best.to+stepTo)
	}
	best.free = free
	return best
}

// levelsLeave is what levels leave between two places, in the same measure.
func (s slopes) levelsLeave(places []int) float64 {
	sum := 0.0
	for i := 1; i < len(places); i++ {
		a, b := places[i-1], places[i]
		w, y := s.w[b]-s.w[a], s.wy[b]-s.wy[a]
		sum += s.wyy[b] - s.wyy[a] - y*y/w
	}
	return max(0, sum)
}

// move is a shift or a drift of a track.
type move struct {
	cuts   []int // that it stands for; none of a drift that no cut hinted at
	drift  bool
	ramp   ramp
	chance float64 // of as much by noise, at any place of the trial
	doubt  int     // of its begin, in values
}

// moves are the shifts and drifts of a track. A staircase of levels in one direction
// is a drift if one ramp explains it better, by Schwarz's criterion with the
// number of values that the noise leaves independent.
func (t *track) moves(o odds) (out []move, cuts []int) {
	cuts = t.levels(o)
	looks := float64(len(t.clean) * len(windows))
	centre := t.mid[len(t.mid)/2]
	var s slopes
	if len(cuts) > 0 {
		s = t.slopes()
	}
	for first := 0; first < len(cuts); {
		last := t.staircase(cuts, first)
		low, _ := t.bounds(cuts, first)
		_, high := t.bounds(cuts, last+1)
		factor := t.noise.of(nearby)
		penalty := math.Log(math.Max(2, float64(high-low)/factor))
		r := s.simplest(low, high, factor, penalty)
		places := append(append([]int{low}, cuts[first:last+1]...), high)
		steps := s.levelsLeave(places)/factor + float64(2*(last-first+1)+1)*penalty
		if r.to-r.from >= shortest && r.squares/factor+float64(r.free)*penalty < steps {
			r.before, r.after = r.before+centre, r.after+centre
			best := 0.0
			for i := first; i <= last; i++ {
				best = max(best, t.evidence(cuts, i))
			}
			out = append(out, move{cuts: cuts[first : last+1], drift: true, ramp: r, chance: o.anywhere(twoSided(best), looks), doubt: t.cornerDoubt(r)})
			first = last + 1
			continue
		}
		for i := first; i <= last; i++ {
			before, after := t.around(cuts, i)
			_, end := t.bounds(cuts, i+1)
			out = append(out, move{cuts: cuts[i : i+1], ramp: ramp{from: cuts[i], to: end, before: before, after: after},
				chance: o.anywhere(twoSided(t.evidence(cuts, i)), looks), doubt: t.doubt(cuts, i)})
		}
		first = last + 1
	}
	if len(cuts) == 0 {
		if m, ok := t.trend(o); ok {
			out, cuts = append(out, m), m.cuts
		}
	}
	return out, cuts
}

// staircase is the last of the cuts that go on in the direction of the first.
func (t *track) staircase(cuts []int, first int) int {
	before, after := t.around(cuts, first)
	up := after > before
	last := first
	for last+1 < len(cuts) {
		if before, after := t.around(cuts, last+1); (after > before) != up {
			break
		}
		last++
	}
	return last
}

// trend is a drift over the whole track, or one shift, that is too small for any cut to
// stand: the slope of least squares, beside its error for noise of that length.
func (t *track) trend(o odds) (move, bool) {
	n := float64(len(t.clean))
	var xy float64
	for i, y := range t.clean {
		xy += (float64(i) - (n-1)/2) * (y - t.mid[0])
	}
	slope := 12 * xy / (n * (n*n - 1))
	z := math.Abs(slope) / math.Sqrt(12*t.squares[len(t.clean)]/n*t.noise.of(len(t.clean))/(n*(n*n-1)))
	mean := t.mean(0, len(t.clean))
	r := ramp{from: 0, to: len(t.clean), before: mean - slope*n/2, after: mean + slope*n/2}
	looks := 1.0 // with the whole chance of the search for bursts, where there is none
	if t.nature == count {
		looks = 2
	}
	if math.Abs(r.after-r.before) < t.least || !(z >= o.beyond(looks)) {
		return move{}, false
	}
	m := move{drift: true, ramp: r, chance: o.anywhere(twoSided(z), looks), doubt: t.cornerDoubt(r)}
	// A level that shifted has a slope too: which of the two it was, the fit decides.
	s := t.slopes()
	cut, left := s.halves(shortest, len(t.clean)-shortest, len(t.clean))
	factor := t.noise.of(nearby)
	if line := s.fit(0, 0, len(t.clean), len(t.clean)); left/factor+math.Log(max(2, n/factor)) < line.squares/factor {
		m.drift, m.cuts = false, []int{cut}
		m.ramp = ramp{from: cut, to: len(t.clean), before: t.mean(0, cut), after: t.mean(cut, len(t.clean))}
		m.doubt = t.doubt(m.cuts, 0)
	}
	return m, true
}

// halves is the place between two others that parts all n values best into two levels, and
// what these leave.
func (s slopes) halves(from, to, n int) (cut int, left float64) {
	left = math.Inf(1)
	for k := from; k <= to; k++ {
		a, b := s.wy[k], s.wy[n]-s.wy[k]
		if l := s.wyy[n] - a*a/s.w[k] - b*b/(s.w[n]-s.w[k]); l < left {
			cut, left = k, l
		}
	}
	return cut, left
}

// cornerDoubt is how far the begin of a ramp may be from the true one: the two
// places where the squares grow by the 95 % quantile of chi squared with one degree of freedom, to the
// first order. A corner bends the line by its slope only, so it is known to the power 2/3 less well than a cut.
func (t *track) cornerDoubt(r ramp) int {
	slope := (r.after - r.before) / float64(max(1, r.to-r.from))
	at := min(len(t.sigma)-1, r.from)
	spread := t.sigma[at] * t.sigma[at] * t.noise.of(nearby)
	// A corner that is off by k values leaves squares of slope²·k³/3 or less.
	return whole(math.Cbrt(3 * 3.84 * spread / (slope * slope)))
}
