// Package change searches the series of a trial, and the cycles of a plan that runs again and again, for shifts and
// drifts of a level and for bursts of loss: what they did that is not their noise. docs/methods.md has the methods.
//
// Series come in, changes with their chances go out. It knows no sentences.
package change

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"pelt/model"
	"pelt/table"
)

// Of returns what the series of a trial did that is not their noise, in the order of time. A series needs 20 values
// and 20 s. A trial that still runs may be given with its series so far.
func Of(r model.Result) []model.Change {
	uses := make([]Use, len(r.Series))
	var o odds
	for i, s := range r.Series {
		if seconds, ok := lasted(s); ok {
			if uses[i] = useOf(s, r.Series); uses[i] >= Rate {
				o.series, o.seconds = o.series+1, max(o.seconds, seconds)
			}
		}
	}
	var out []model.Change
	for i, s := range r.Series {
		if uses[i] < Rate {
			continue
		}
		for _, f := range newTrack(s, uses[i]).find(o) {
			f.Causes = movers(f, r.Series)
			out = append(out, f.Change)
		}
	}
	slices.SortStableFunc(out, func(a, b model.Change) int { return cmp.Compare(a.StartS, b.StartS) })
	return out
}

// Use is what the search takes a series for.
type Use int

const (
	unused    Use = iota // it only grows, or tells nothing of a path
	causeOnly            // it explains changes of other series
	Rate                 // packets or bits that pass
	Loss                 // packets that were lost
	Time                 // delays
)

var uses = map[string]Use{
	"receive_pps": Rate, "send_pps": Rate, "goodput_bps": Rate, "lost_pps": Loss,
	"delay_p50_ns": Time, "round_trip_ns": Time,
	model.SeriesRetransmits: unused, model.SeriesAcked: unused, model.SeriesBusy: unused,
	model.SeriesRwndLimited: unused, model.SeriesSndbufLimited: unused,
}

// useOf returns the use of a series of a trial. Streams and processors are never
// steady, so they are searched for no changes.
func useOf(s model.Series, all []model.Series) Use {
	use, known := uses[s.Metric]
	switch {
	case !known && strings.HasPrefix(s.Metric, "tcp_bbr_"):
		return unused
	case !known || use != unused && (s.Core != nil || s.Stream != nil):
		return causeOnly
	}
	for _, o := range all {
		same := o.Flow == s.Flow && o.Stream == nil
		inBits := s.Metric == "goodput_bps" && o.Metric == "receive_pps"
		part := s.Metric == "lost_pps" && s.Layer != "" && o.Metric == s.Metric && o.Layer == ""
		if same && (inBits || part) {
			return causeOnly
		}
	}
	return use
}

// least is the smallest change of a level that counts, for a usual value and a step in seconds.
func (u Use) least(usual, step float64) float64 {
	switch u {
	case Rate:
		return max(0.001*math.Abs(usual), 1/step)
	case Loss:
		return 0.5 / step
	}
	return 0.01 * math.Abs(usual)
}

const (
	// Steady traffic shows one change in so many hours, all series of a trial and all searches together.
	alarmHours = 24.0
	// MostAlarm is the greatest chance of a false alarm that a trial has, however long it is.
	MostAlarm = 0.05
	// Levels, slopes and bursts are the searches that share the false alarms.
	searches = 3
	// Degrees of freedom of the noise, which is itself measured.
	noiseFreedom = 30
	// The smallest chance that is told from 0.
	leastChance = 1e-15
	// A series with more changes has no levels.
	mostChanges = 100
)

// odds turn the chance of one look into the chance of any look in a trial.
type odds struct {
	series  int     // searched
	seconds float64 // that the trial lasted
}

// anywhere is Bonferroni's bound for so many looks at each series.
func (o odds) anywhere(p, looks float64) float64 { return min(1, p*looks*float64(o.series)*searches) }

// allowed is the chance of a false alarm that the trial has.
func (o odds) allowed() float64 { return min(MostAlarm, o.seconds/(alarmHours*3600)) }

// beyond is the number of standard deviations that so many looks exceed with the allowed chance.
func (o odds) beyond(looks float64) float64 {
	return table.StudentQuantile(1-o.allowed()/(2*looks*float64(o.series)*searches), noiseFreedom)
}

// twoSided is the chance of so many standard deviations or more, up or down.
func twoSided(z float64) float64 { return max(leastChance, 2*table.StudentBeyond(z, noiseFreedom)) }

type foundChange struct {
	model.Change
	bursts [][2]float64 // from when to when, in seconds
}

// Searched is a series of cycles.
type Searched struct {
	model.Series
	Use
}

// Shift is a change of a level.
type Shift struct {
	Place         int // in the series, of the first value behind it
	Before, After float64
}

// Shifts returns those of each series. They, and as many more for each other metric of the same groups, are searched
// together: the chance of a false alarm is that of all.
func Shifts(all []Searched, metrics int) [][]Shift {
	var o odds
	tracks := make([]*track, len(all))
	for i, s := range all {
		if seconds, ok := lasted(s.Series); ok {
			o.series, o.seconds = o.series+metrics, max(o.seconds, seconds)
			tracks[i] = newTrack(s.Series, s.Use)
		}
	}
	out := make([][]Shift, len(all))
	for i, t := range tracks {
		if t == nil {
			continue
		}
		moves, _ := t.moves(o)
		for _, m := range moves {
			out[i] = append(out[i], Shift{t.place[m.from], m.before, m.after})
		}
	}
	return out
}

func (t *track) find(o odds) (out []foundChange) {
	moves, cuts := t.moves(o)
	if len(moves) > mostChanges {
		slices.SortStableFunc(moves, func(a, b move) int { return cmp.Compare(a.chance, b.chance) })
		moves = moves[:mostChanges]
	}
	for _, m := range moves {
		c := t.change(model.ChangeShift, m.from, m.doubt, o)
		if m.drift {
			c.Kind = model.ChangeDrift
		}
		c.EndS, c.Before, c.After, c.PValue = t.time(m.to), m.before, m.after, m.chance
		if t.use != Time { // a rate or a loss is not negative, whatever a fitted line says
			c.Before, c.After = max(0, c.Before), max(0, c.After)
		}
		c.Size = c.After - c.Before
		out = append(out, foundChange{Change: c})
	}
	if t.use == Loss {
		if events := t.bursts(cuts, o); len(events) > 0 {
			out = append(out, t.burst(events, o))
		}
	}
	return out
}

// change begins a change that started at a place, give or take so many values.
func (t *track) change(kind string, place, doubt int, o odds) model.Change {
	return model.Change{Kind: kind, Metric: t.of.Metric, Flow: t.of.Flow, At: t.of.At, Layer: t.of.Layer,
		Cause: t.of.Cause, Tested: o.series, AlarmHours: alarmHours, StartS: t.time(place),
		StartLowS: t.time(max(0, place-doubt)), StartHighS: t.time(min(len(t.raw), place+doubt))}
}

// burst makes one change of all bursts of a series.
func (t *track) burst(events []event, o odds) (f foundChange) {
	c, values, most := t.change(model.ChangeBurst, events[0].from, 1, o), 0.0, 0.0
	c.EndS, c.Count = t.time(events[len(events)-1].to), len(events)
	for _, e := range events {
		f.bursts = append(f.bursts, [2]float64{t.time(e.from), t.time(e.to)})
		for k := e.from; k < e.to; k++ {
			c.Before, c.After, values = c.Before+t.mid[k], c.After+t.raw[k], values+1
		}
		most = max(most, e.z)
	}
	c.PValue = o.anywhere(twoSided(most), float64(len(t.raw)))
	c.Packets = (c.After - c.Before) * t.of.StepSeconds
	c.Before, c.After = c.Before/values, c.After/values
	c.Size = c.After - c.Before
	f.Change = c
	return f
}
