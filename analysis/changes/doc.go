// Package changes finds what the series of a trial did that is not their noise: level
// shifts, drifts, regular stalls and bursts of loss.
//
// A result goes in, a list of changes comes out, each with its time, its size, the
// chance that steady traffic shows as much, and what moved with it. It says nothing
// rather than something that noise may have done. It draws nothing at random, keeps
// nothing, does not change what it is given, and may be called concurrently.
// docs/changes.md has the methods and their figures.
package changes

import (
	"cmp"
	"slices"

	"pelt/model"
)

// mostChanges of one series are told apart; a series with more has no levels, or
// bursts all the time.
const mostChanges = 100

// Find returns the changes of a trial in the order of time. It needs 20 values and
// 20 s at least, and tells nothing of shorter series. A trial that still runs may be
// given with the series so far: the chance of a false alarm grows with the length only, so
// asking every few seconds brings few more of them than asking at the end (docs/changes.md has the figure).
func Find(r model.Result) []model.Change {
	natures := make([]nature, len(r.Series))
	o := odds{surest: surest}
	for i, s := range r.Series {
		n := natureOf(s, r.Series)
		if seconds, ok := lasted(s); ok && n != aside && n != beside {
			natures[i] = n
			o.series++
			o.seconds = max(o.seconds, seconds)
		}
	}
	var out []model.Change
	for i, s := range r.Series {
		if natures[i] == aside {
			continue
		}
		for _, f := range newTrack(s, natures[i]).find(o) {
			f.Causes = movers(f, r.Series)
			out = append(out, f.Change)
		}
	}
	slices.SortStableFunc(out, func(a, b model.Change) int { return cmp.Compare(a.StartS, b.StartS) })
	return out
}

// found is a change with the times of its stalls or bursts, in seconds.
type found struct {
	model.Change
	moments [][2]float64
}

func (t *track) find(o odds) (out []found) {
	moves, cuts := t.moves(o)
	if len(moves) > mostChanges {
		slices.SortStableFunc(moves, func(a, b move) int { return cmp.Compare(a.chance, b.chance) })
		moves = moves[:mostChanges]
	}
	for _, m := range moves {
		out = append(out, found{Change: t.moved(m, o)})
	}
	var beats rhythm
	var regularly bool
	if t.nature == rate || t.nature == count {
		if beats, regularly = regular(t.events(cuts), len(t.raw), o); regularly {
			out = append(out, t.beaten(beats, o))
		}
	}
	if t.nature == count {
		out = append(out, t.burst(t.bursts(cuts, o), beats, o)...)
	}
	return out
}

// change begins one of this track.
func (t *track) change(kind string, o odds) model.Change {
	return model.Change{Kind: kind, Metric: t.of.Metric, Flow: t.of.Flow, At: t.of.At, Layer: t.of.Layer, Cause: t.of.Cause,
		Tested: o.series, AlarmHours: AlarmHours}
}

// begins sets when a change began: within so many values of a place.
func (t *track) begins(c *model.Change, place, doubt int) {
	c.StartS = t.time(place)
	c.StartLowS = t.time(max(0, place-doubt))
	c.StartHighS = t.time(min(len(t.raw), place+doubt))
}

func (t *track) moved(m move, o odds) model.Change {
	c := t.change(model.ChangeShift, o)
	if m.drift {
		c.Kind = model.ChangeDrift
	}
	t.begins(&c, m.ramp.from, m.doubt)
	c.EndS = t.time(m.ramp.to)
	c.Before, c.After, c.PValue = m.ramp.before, m.ramp.after, m.chance
	if t.nature != level { // a count or a rate is not negative, whatever a line says
		c.Before, c.After = max(0, c.Before), max(0, c.After)
	}
	c.Size = c.After - c.Before
	return c
}

// beaten is the change that a rhythm of events is.
func (t *track) beaten(r rhythm, o odds) (f found) {
	c := t.change(model.ChangeStall, o)
	if t.nature == count {
		c.Kind = model.ChangeBurst
	}
	first, last := r.events[0], r.events[len(r.events)-1]
	t.begins(&c, first.from, 1)
	c.EndS = t.time(last.to)
	c.PeriodS, c.Count, c.PValue = r.period*t.of.StepSeconds, len(r.events), r.chance
	values := 0.0
	for _, e := range r.events {
		n := float64(e.to - e.from)
		values += n
		f.moments = append(f.moments, [2]float64{t.time(e.from), t.time(e.to)})
		for k := e.from; k < e.to; k++ {
			c.Before += t.mid[k]
			c.After += t.raw[k]
		}
	}
	if t.nature == count {
		c.Packets = (c.After - c.Before) * t.of.StepSeconds
	}
	c.Before, c.After = c.Before/values, c.After/values
	c.Size = c.After - c.Before
	f.Change = c
	return f
}

// fewBursts are told one by one; more are one change.
const fewBursts = 5

// burst tells bursts, without those that a rhythm has already.
func (t *track) burst(all []burst, beats rhythm, o odds) (out []found) {
	all = slices.DeleteFunc(all, func(b burst) bool {
		return slices.ContainsFunc(beats.events, func(e event) bool { return e.from <= b.to && b.from <= e.to })
	})
	looks := burstLooks(len(t.raw))
	one := func(of []burst) (f found) {
		c := t.change(model.ChangeBurst, o)
		t.begins(&c, of[0].from, 1)
		c.EndS, c.PValue, c.Count = t.time(of[len(of)-1].to), 1, len(of)
		seconds := 0.0
		for _, b := range of {
			length := float64(b.to-b.from) * t.of.StepSeconds
			seconds += length
			c.Before += b.base * length
			c.Packets += b.packets
			f.moments = append(f.moments, [2]float64{t.time(b.from), t.time(b.to)})
			c.PValue = min(c.PValue, o.anywhere(max(leastChance, b.chance), looks))
		}
		c.Before /= seconds
		c.Size = c.Packets / seconds
		c.After = c.Before + c.Size
		f.Change = c
		return f
	}
	if len(all) > fewBursts {
		return []found{one(all)}
	}
	for i := range all {
		out = append(out, one(all[i:i+1]))
	}
	return out
}
