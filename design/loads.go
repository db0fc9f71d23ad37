package design

import (
	"cmp"
	"math"
	"slices"

	"pelt/model"
)

// Question is what a search is asked. RFC 9971 leaves the choice of loads to the search. This one keeps a posterior of
// where the limit of a goal is: short trials find the limit, and full-length ones confirm the two loads beside it.
// All trials count for all goals. A search knows only what it has seen, so it goes on from stored trials.
type Question struct {
	Goals   []model.Goal
	MinLoad float64 // whole packets a second; the greatest load is what the flood sent
	over    bool    // no further trial comes
}

const (
	floodSeconds = 1    // of the first trial
	patience     = 8    // trials that find no load below the limit: then each load is a quarter of the last one
	growth       = 8    // times the longest trial at a load is the next one that confirms it
	finishTrials = 4    // a load with so many full-length trials that agree is finished first
	mostTrials   = 200  // for each goal: a device that answers at random has no bounds to find
	mostStarved  = 16   // starved trials of a search,
	starvedEach  = 2    // and so many more for each other trial: a quiet machine needs about seven trials in all
	priorWidths  = 1.5  // half of the prior is within so many widths of the first guess
	holds        = 0.35 // how often a trial above the limit is of low loss: a buffer holds some, rare losses take time
)

// misses is how often a trial below the limit is of high loss. Full-length trials are made next to the limit only.
var misses = [...]float64{short: 0.2, full: 0.4}

// nextLoad returns the next trial of a search; ok is false when every goal is answered. The first trial is the flood.
func (q Question) nextLoad(seen []Observation) (load, seconds float64, ok bool) {
	if len(seen) == 0 {
		return 0, floodSeconds, true
	}
	possible := math.Floor(seen[0].Load) >= q.MinLoad && seen[0].Load < math.MaxInt64
	for _, g := range q.Goals {
		if possible && !ok && !q.gaveUp(seen) {
			load, seconds, ok = q.next(g, seen)
		}
	}
	return load, seconds, ok
}

// gaveUp reports whether a search has had all its trials, or other work took the sender's CPU in so many of them that
// more would keep people waiting for a busy machine.
func (q Question) gaveUp(seen []Observation) bool {
	starved := 0
	for _, o := range seen {
		if o.Starved {
			starved++
		}
	}
	return len(seen) > mostTrials*max(len(q.Goals), 1) || starved > mostStarved+starvedEach*(len(seen)-starved)
}

// next returns the next trial for one goal.
func (q Question) next(g model.Goal, seen []Observation) (load, seconds float64, ok bool) {
	places := q.places(g, seen)
	last := seen[len(seen)-1]
	for _, p := range places {
		switch {
		case p.load != last.Load || p.class != undecided:
		case last.Unsent:
			return last.Load, last.Seconds, true
		case max(p.low[full], p.high[full]) >= finishTrials*g.FinalSeconds:
			return p.load, p.seconds(g), true
		}
	}
	guess, reach := q.guess(g, seen)
	i, middle := median(places, guess, reach)
	a, b := places[i], places[i+1]
	wide := math.Log(b.load/a.load) > -math.Log1p(-g.WidthRatio) && math.Ceil(b.load)-math.Floor(a.load) > 1
	switch {
	case i == 0 && a.trials == 0 && b.load > q.MinLoad && (!wide || telling(seen) > patience):
		return max(q.MinLoad, math.Floor(b.load/4)), g.InitialSeconds, true
	case wide:
		return q.between(max(math.Floor(a.load), q.MinLoad-1), middle, b.load), g.InitialSeconds, true
	}
	for _, p := range []place{a, b} {
		if p.class == undecided {
			return p.load, p.seconds(g), true
		}
	}
	return 0, 0, false
}

// guess returns the load that the path would forward: by the flood at first, then by the loads that lost too much, and
// by what a sender kept of the loads that are given up. Half of the prior is within reach of it, as a logarithm. The
// further the guess has moved, the less it is worth: a sender that keeps the same of two loads tells its limit well.
func (q Question) guess(g model.Goal, seen []Observation) (load, reach float64) {
	forwards := func(o Observation) float64 {
		return min(max(o.Load*(1-o.Loss)/(1-g.LossRatio), q.MinLoad), math.Floor(seen[0].Load))
	}
	load = forwards(seen[0])
	kept := 0.0 // at most, of a load that is given up
	for _, t := range tallies(g, seen) {
		if t.givenUp {
			load, kept = min(load, max(t.forwarded, q.MinLoad)), max(kept, t.forwarded, q.MinLoad)
		}
	}
	first := max(kept, load)
	for _, o := range seen {
		if !o.Unsent && o.Loss > g.LossRatio {
			load = min(load, forwards(o))
		}
	}
	return load, priorWidths*q.step() + math.Log(first/load)/2
}

// telling counts the trials that tell something of the path.
func telling(seen []Observation) (n int) {
	for _, o := range seen {
		if !o.Unsent {
			n++
		}
	}
	return n
}

// step is the distance between neighbouring loads of a search, as a logarithm.
func (q Question) step() float64 {
	narrowest := slices.MinFunc(q.Goals, func(a, b model.Goal) int { return cmp.Compare(a.WidthRatio, b.WidthRatio) })
	return -math.Log1p(-narrowest.WidthRatio) * 0.999 // less than the width, after rounding to whole packets too
}

// between returns a load strictly between two loads that are at least two packets a second apart: the one nearest to a
// given one among those that are whole steps from the least load.
func (q Question) between(low, near, high float64) float64 {
	at := func(i float64) float64 { return math.Round(q.MinLoad * math.Exp(i*q.step())) }
	i := math.Round(math.Log(near/q.MinLoad) / q.step())
	if at(i) <= low {
		i++
	} else if at(i) >= high {
		i--
	}
	return min(max(at(i), low+1), math.Ceil(high)-1)
}

// place is a load at which a bound may be. The ends of the range are places too: beyond them nothing is tried.
type place struct {
	tally
	class class
}

// places returns the relevant lower bound of a goal, the loads above it that are undecided, and the smallest upper
// bound. The search stays between the two bounds.
func (q Question) places(g model.Goal, seen []Observation) []place {
	out := []place{{tally{load: q.MinLoad * math.Exp(-q.step())}, lower}}
	for _, t := range tallies(g, seen) {
		c, _ := t.class(g)
		if c == lower {
			out = out[:0]
		}
		out = append(out, place{*t, c})
		if c == upper {
			return out
		}
	}
	return append(out, place{tally{load: math.Floor(seen[0].Load) + 1}, upper})
}

// seconds returns the duration of the next trial at an undecided place. Trials grow to full length, but are no longer
// than what is left of the high loss that makes an upper bound.
func (p place) seconds(g model.Goal) float64 {
	seconds := min(g.FinalSeconds, max(g.InitialSeconds, growth*p.longest))
	if need := g.SumSeconds*g.ExceedRatio - p.high[full] - p.high[short]; need > 0 && p.low == [2]float64{} {
		return min(seconds, g.InitialSeconds*(math.Floor(need/g.InitialSeconds)+1))
	}
	return seconds
}

// median returns the median load of the limit, and the place below it. The trials at a place move the odds that the
// limit is above it. The prior falls with the square of the distance from a guess, so a search that finds no bound
// takes ever longer steps. A limit may also be beyond an end of the range that was not reached.
func median(places []place, guess, reach float64) (below int, load float64) {
	n := len(places) - 1
	prior, gains, gain := make([]float64, n+1), make([]float64, n+1), 0.0 // cumulative
	for i, p := range places {
		distance := math.Log(p.load / guess)
		prior[i] = 0.5 * reach / (reach + math.Abs(distance))
		if distance > 0 {
			prior[i] = 1 - prior[i]
		}
		if p.trials == 0 {
			prior[i] = float64(i / n)
		}
		gain += p.gain
		gains[i] = gain
	}
	rest, shares := 0.0, make([]float64, n)
	for i := range n {
		shares[i] = (prior[i+1] - prior[i]) * math.Exp(gains[i]-slices.Max(gains[:n]))
		rest += shares[i] / 2
	}
	for below < n-1 && rest > shares[below] {
		rest -= shares[below]
		below++
	}
	at := prior[below] + (prior[below+1]-prior[below])*rest/shares[below]
	distance := math.Copysign(reach*0.5/min(at, 1-at)-reach, at-0.5)
	return below, min(max(guess*math.Exp(distance), places[below].load), places[below+1].load)
}
