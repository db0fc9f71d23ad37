package design

import (
	"cmp"
	"math"
	"slices"

	"pelt/model"
)

// Observation is one trial as a search sees it.
type Observation struct {
	Load    float64 // intended packets a second of each flow; of a flood, what was sent
	Seconds float64 // effective duration
	Loss    float64 // share of the intended packets that did not arrive, 0..1
	EndLoss float64 // the part of Loss that the hosts of the sender and the receiver lost, not the path
	Unsent  bool    // the sender could not offer the load: the trial only says that this load is too high to send
	Flood   bool    // sent as fast as possible: Load is the most that the sender offers, Load*(1-Loss) what arrived
}

// Limit is what an upper bound is a limit of.
type Limit int

// The path lost packets; only the hosts of the sender and the receiver lost some; the sender could not offer more.
const (
	NoLimit Limit = iota
	PathLimit
	EndLimit
	SenderLimit
)

// Bounds is the answer of a search to one goal.
type Bounds struct {
	Lower, Upper float64 // relevant lower and upper bound of RFC 9971 sections 4.8.1 and 4.8.2; NaN: there is none
	Limit        Limit   // what Upper is
	Throughput   float64 // conditional throughput of RFC 9971 section 4.8.3, packets a second; NaN without Lower
	Quantile     int     // place in seen of the trial that Throughput is of; -1: none
	Regular      bool    // RFC 9971 section 4.8.4.1: both bounds exist, within the width of the goal, and the path limits
}

// class is the load classification of RFC 9971 section 4.7.2.
type class int

const (
	undecided class = iota
	lower
	upper
)

// tally sums, for one goal, the seconds of the trials at one load.
type tally struct {
	load                                   float64
	lowLong, highLong, lowShort, highShort float64 // by whole loss
	pathLowLong, pathHighLong              float64 // by the loss of the path alone
	pathLowShort, pathHighShort            float64
	sent, unsent                           int // trials
}

// secondsOf returns the seconds of a trial as a goal counts them, and whether it is a full-length trial. A trial that
// ended less than 1 % before its time counts as whole.
func secondsOf(g model.Goal, o Observation) (seconds float64, full bool) {
	if o.Seconds < g.FinalSeconds && o.Seconds >= 0.99*g.FinalSeconds {
		return g.FinalSeconds, true
	}
	return o.Seconds, o.Seconds >= g.FinalSeconds
}

// classify is the code of RFC 9971 appendix A: the sums of seconds are of full-length and short trials, each of low
// and high loss.
func classify(g model.Goal, lowLong, highLong, lowShort, highShort float64) class {
	balancing := lowShort * g.ExceedRatio / (1 - g.ExceedRatio)
	high := highLong + max(0, highShort-balancing)
	whole := max(lowLong+high, g.SumSeconds)
	switch allowed := whole * g.ExceedRatio; {
	case whole-lowLong <= allowed:
		return lower
	case high > allowed:
		return upper
	}
	return undecided
}

// tallies sums the trials at each load, the lowest load first.
func tallies(g model.Goal, seen []Observation) []tally {
	at := map[float64]*tally{}
	for _, o := range seen {
		if o.Flood {
			continue
		}
		t := at[o.Load]
		if t == nil {
			t = &tally{load: o.Load}
			at[o.Load] = t
		}
		if o.Unsent {
			t.unsent++
			continue
		}
		t.sent++
		sums := [...]*float64{&t.lowShort, &t.highShort, &t.pathLowShort, &t.pathHighShort}
		seconds, full := secondsOf(g, o)
		if full {
			sums = [...]*float64{&t.lowLong, &t.highLong, &t.pathLowLong, &t.pathHighLong}
		}
		whole, path := sums[0], sums[2]
		if o.Loss > g.LossRatio {
			whole = sums[1]
		}
		if o.Loss-o.EndLoss > g.LossRatio {
			path = sums[3]
		}
		*whole += seconds
		*path += seconds
	}
	out := make([]tally, 0, len(at))
	for _, t := range at {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b tally) int { return cmp.Compare(a.load, b.load) })
	return out
}

// class says what the load of a tally is, and what limits it if it is an upper bound.
func (t tally) class(g model.Goal) (class, Limit) {
	if t.unsent > 1 && t.unsent > t.sent {
		return upper, SenderLimit
	}
	c := classify(g, t.lowLong, t.highLong, t.lowShort, t.highShort)
	switch {
	case c != upper:
		return c, NoLimit
	case classify(g, t.pathLowLong, t.pathHighLong, t.pathLowShort, t.pathHighShort) == upper:
		return c, PathLimit
	}
	return c, EndLimit
}

// bounds returns the answer to a goal so far.
func (q Question) bounds(g model.Goal, seen []Observation) Bounds {
	b := Bounds{Lower: math.NaN(), Upper: math.NaN(), Throughput: math.NaN(), Quantile: -1}
	for _, t := range tallies(g, seen) {
		switch c, limit := t.class(g); {
		case c == upper && math.IsNaN(b.Upper):
			b.Upper, b.Limit = t.load, limit
		case c == lower && math.IsNaN(b.Upper):
			b.Lower = t.load
		}
	}
	if i := slices.IndexFunc(seen, func(o Observation) bool { return o.Flood }); i >= 0 && math.IsNaN(b.Upper) {
		b.Upper, b.Limit = seen[i].Load, SenderLimit
	}
	if math.IsNaN(b.Lower) {
		return b
	}
	b.Throughput, b.Quantile = throughput(g, b.Lower, seen)
	b.Regular = b.Limit == PathLimit && b.Upper-b.Lower <= g.WidthRatio*b.Upper
	return b
}

// throughput is the code of RFC 9971 appendix B: the rate that the worst of the best trials at a load forwarded, and its
// place in seen. Best are those that fill the share of the time that must be good.
func throughput(g model.Goal, load float64, seen []Observation) (float64, int) {
	var full []int // places of the full-length trials, the least loss first
	var whole float64
	for i, o := range seen {
		if s, long := secondsOf(g, o); long && o.Load == load && !o.Unsent && !o.Flood {
			full, whole = append(full, i), whole+s
		}
	}
	slices.SortStableFunc(full, func(a, b int) int { return cmp.Compare(seen[a].Loss, seen[b].Loss) })
	remaining := max(whole, g.SumSeconds) * (1 - g.ExceedRatio)
	for _, i := range full {
		s, _ := secondsOf(g, seen[i])
		if remaining -= s; remaining <= 0 {
			return load * (1 - seen[i].Loss), i
		}
	}
	return 0, -1
}
