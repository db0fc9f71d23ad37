package design

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"pelt/model"
)

// Observation is one trial as a search sees it.
type Observation struct {
	Load    float64 // intended packets a second of each flow; of a flood, what was sent
	Seconds float64 // effective duration
	Loss    float64 // share of the intended packets that did not arrive, 0..1; late ones of an unsent trial count, too
	EndLoss float64 // the part of Loss that the hosts of the sender and the receiver lost, not the path
	Unsent  bool    // the sender did not offer the load as ordered: nothing that was lost tells of the path
	Starved bool    // an unsent trial: other work had the CPU, so the load is no reason
	Flood   bool    // sent as fast as possible: Load is the most that the sender offers, Load*(1-Loss) what arrived
	Most    bool    // a flood at the highest rate that may be tried
}

// Limit is what an upper bound is a limit of.
type Limit int

// The path lost packets; only the hosts of the sender and the receiver lost some; the sender could not offer more; the
// flood sent no more, whatever held it back; no more was to be tried.
const (
	NoLimit Limit = iota
	PathLimit
	EndLimit
	SenderLimit
	FloodLimit
	AskedLimit
)

// Bounds is the answer of a search to one goal.
type Bounds struct {
	Lower, Upper float64 // relevant lower and upper bound of RFC 9971 sections 4.8.1 and 4.8.2; NaN: there is none
	Limit        Limit   // what Upper is, or why nothing above Lower was tried
	Throughput   float64 // conditional throughput of RFC 9971 section 4.8.3, packets a second; NaN without Lower
	Quantile     int     // place in seen of the trial that Throughput is of; -1: none
	Regular      bool    // RFC 9971 section 4.8.4.1: both bounds exist, a width apart at most, and the path limits
}

// class is the load classification of RFC 9971 section 4.7.2.
type class int

const (
	undecided class = iota
	lower
	upper
)

const short, full = 0, 1 // length of a trial, by the final duration of a goal

// tally is what the trials at one load say for one goal.
type tally struct {
	load      float64
	low, high [2]float64 // seconds of the trials of low and of high loss
	path      *tally     // by the loss of the path alone
	trials    int
	sent      float64 // trials that were not unsent
	starved   float64 // unsent trials that were starved
	late      float64 // the other unsent trials
	row       int     // starved trials since the last that was sent
	unsent    bool    // the last trial was
	givenUp   bool
	longest   float64 // trial, seconds
	forwarded float64 // packets a second, of the trial in which most of the load arrived
	gain      float64 // logarithm of the odds that the limit is above the load
}

// A load is given up when so many more of its trials were late than were sent. A short trial that was sent counts as a
// part of a full-length one: some senders keep a load for a short time only. Other work may take the sender's CPU at any
// load: as many starved trials in a row are needed as are seen at one load of 256 by chance, if each is starved as often
// as those at lower loads. Where half of them are, that is eight.
const (
	lateTries    = 2
	starvedTries = 8
	byChance     = 1. / 256
)

// triesOf is after how many starved trials a load is given up, by those at lower loads that were starved and sent.
func triesOf(starved, sent float64) float64 {
	return max(starvedTries, math.Ceil(math.Log(byChance)/math.Log((starved+1)/(starved+sent+2))))
}

// rounding is by how much a trial may be shorter than its search asked, in s: its time is whole steps of 10 ms.
const rounding = 0.005

// lengthOf returns the seconds of a trial and its length. One that ended less than 1 % early counts whole.
func lengthOf(g model.Goal, o Observation) (seconds float64, length int) {
	if o.Seconds < 0.99*g.FinalSeconds-rounding {
		return o.Seconds, short
	}
	return max(o.Seconds, g.FinalSeconds), full
}

// tallies returns the tallies of all loads that were tried, the lowest load first.
func tallies(g model.Goal, seen []Observation) []*tally {
	at := map[float64]*tally{}
	for _, o := range seen {
		if o.Flood {
			continue
		}
		if at[o.Load] == nil {
			at[o.Load] = &tally{load: o.Load, path: &tally{}}
		}
		t := at[o.Load]
		t.trials++
		t.forwarded = max(t.forwarded, o.Load*(1-o.Loss))
		t.unsent = o.Unsent
		switch {
		case o.Starved:
			t.row++
			t.starved++
			continue
		case o.Unsent:
			t.late++
			continue
		}
		t.row = 0
		t.sent++
		t.add(g, o, o.Loss > g.LossRatio)
		t.path.add(g, o, o.Loss-o.EndLoss > g.LossRatio)
	}
	all := slices.SortedFunc(maps.Values(at), func(a, b *tally) int { return cmp.Compare(a.load, b.load) })
	starved, sent := 0., 0. // at lower loads
	for _, t := range all {
		kept := (t.low[short] + t.high[short] + t.low[full] + t.high[full]) / g.FinalSeconds
		t.givenUp = float64(t.row)/triesOf(starved, sent)+max(t.late-kept, 0)/lateTries >= 1
		starved, sent = starved+t.starved, sent+t.sent
	}
	return all
}

func (t *tally) add(g model.Goal, o Observation, high bool) {
	seconds, n := lengthOf(g, o)
	t.longest = max(t.longest, seconds)
	if high {
		t.high[n] += seconds
		t.gain += math.Log(misses[n] / (1 - holds))
	} else {
		t.low[n] += seconds
		t.gain += math.Log((1 - misses[n]) / holds)
	}
}

// classify is the code of RFC 9971 appendix A.
func (t *tally) classify(g model.Goal) class {
	balancing := t.low[short] * g.ExceedRatio / (1 - g.ExceedRatio)
	high := t.high[full] + max(0, t.high[short]-balancing)
	whole := max(t.low[full]+high, g.SumSeconds)
	switch allowed := whole * g.ExceedRatio; {
	case whole-t.low[full] <= allowed:
		return lower
	case high > allowed:
		return upper
	}
	return undecided
}

// class says what a load is, and what limits it if it is an upper bound: so is a load that was given up.
func (t *tally) class(g model.Goal) (class, Limit) {
	c := t.classify(g)
	switch {
	case c == undecided && t.givenUp:
		return upper, SenderLimit
	case c != upper:
		return c, NoLimit
	case t.path.classify(g) == upper:
		return upper, PathLimit
	}
	return upper, EndLimit
}

// bounds returns the answer to a goal so far.
func (q Question) bounds(g model.Goal, seen []Observation) Bounds {
	b := Bounds{Lower: math.NaN(), Upper: math.NaN(), Throughput: math.NaN(), Quantile: -1}
	for _, t := range tallies(g, seen) {
		c, limit := t.class(g)
		if c == undecided && t.unsent && (q.over || q.gaveUp(seen)) {
			c, limit = upper, SenderLimit // who knows what it would have shown
		}
		switch {
		case c == upper && math.IsNaN(b.Upper):
			b.Upper, b.Limit = t.load, limit
		case c == lower && math.IsNaN(b.Upper):
			b.Lower = t.load
		}
	}
	if math.IsNaN(b.Upper) && len(seen) > 0 {
		b.Limit = FloodLimit
		if seen[0].Most {
			b.Limit = AskedLimit
		}
	}
	if !math.IsNaN(b.Lower) {
		b.Throughput, b.Quantile = throughput(g, b.Lower, seen)
		b.Regular = b.Limit == PathLimit && b.Upper-b.Lower <= g.WidthRatio*b.Upper
	}
	return b
}

// throughput is the code of RFC 9971 appendix B: what the worst of the best trials at a load forwarded, and its place
// in seen. Best are those that fill the share of the time that must be good.
func throughput(g model.Goal, load float64, seen []Observation) (float64, int) {
	var trials []int // places of the full-length trials, the least loss first
	var whole float64
	for i, o := range seen {
		if s, n := lengthOf(g, o); n == full && o.Load == load && !o.Unsent && !o.Flood {
			trials, whole = append(trials, i), whole+s
		}
	}
	slices.SortStableFunc(trials, func(a, b int) int { return cmp.Compare(seen[a].Loss, seen[b].Loss) })
	remaining := max(whole, g.SumSeconds) * (1 - g.ExceedRatio)
	for _, i := range trials {
		s, _ := lengthOf(g, seen[i])
		if remaining -= s; remaining <= 1e-9*whole { // sums differ in their last bits
			return load * (1 - seen[i].Loss), i
		}
	}
	return 0, -1
}
