package design

import (
	"slices"

	"pelt/model"
)

// Rest is what is left of a run.
type Rest struct {
	Trials  int     // about so many if a search decides, else at most
	Seconds float64 // that they send, all together, at least
	More    float64 // that those of them may send which end when all is sent, or else are cut at their time
	AtOnce  int     // trials of a mesh that run beside each other; else 1
	Guess   bool    // a search decides how many follow
}

// Left estimates how much of a plan's run is left. For a search it assumes a path that loses packets above one rate
// and none below.
func Left(p model.Plan, d Design) (r Rest) {
	r.AtOnce = 1
	s, searches := d.(*search)
	if !searches {
		g := d.(*grid)
		r.add(p, g)
		if slices.ContainsFunc(p.Factors, func(f model.Factor) bool { return f.Knob == "pair" }) {
			if r.AtOnce = max(1, len(p.Hosts)/2); p.AtOnce {
				r.AtOnce = max(1, len(g.cells))
			}
		}
		return r
	}
	r.Guess = true
	r.add(p, s.grid)
	s.Next() // which passes the searches that are over
	begun := s.at
	if s.now != nil {
		begun++
		s.addRest(p, &r, s.replay(s.now))
	}
	for i := range s.searched { // all searches of a cell that follow take about as long as its next one
		at := begun + i
		left := (s.times()*len(s.searched) - at + len(s.searched) - 1) / len(s.searched)
		if left <= 0 {
			break
		}
		var next Rest
		s.addRest(p, &next, s.replay(s.beginAt(at)))
		r.Trials, r.Seconds = r.Trials+left*next.Trials, r.Seconds+float64(left)*next.Seconds
		r.More += float64(left) * next.More
	}
	return r
}

// add counts the trials of a grid that are not made.
func (r *Rest) add(p model.Plan, g *grid) {
	seconds, more := make([]float64, len(g.cells)), make([]float64, len(g.cells)) // of a trial of each cell
	for i, c := range g.cells {
		t, err := p.Trial(c, 0)
		if err != nil {
			continue
		}
		seconds[i] = t.Timing.WarmupSeconds + t.Timing.MeasureSeconds
		if t.UntilSent() {
			seconds[i], more[i] = t.Timing.WarmupSeconds, t.Timing.MeasureSeconds
		}
	}
	for repeat := range g.design.Repeats {
		for i, c := range g.cells {
			if !g.isDone(c.TrialName(repeat)) {
				r.Trials, r.Seconds, r.More = r.Trials+1, r.Seconds+seconds[i], r.More+more[i]
			}
		}
	}
}

// addRest adds to r the trials that a search has still to make, and those at shares of its rate that follow.
func (s *search) addRest(p model.Plan, r *Rest, one replayed) {
	goal := s.question.Goals[0]
	one.seen = slices.Clip(one.seen) // a search goes on with its own
	if len(one.seen) == 0 {          // as far as its flood is known: much is lost
		one.seen = []Observation{{Load: min(guessedFlood, one.most), Loss: 0.5, Flood: true}}
	}
	limit, _ := s.question.guess(goal, one.seen)
	if b := s.question.bounds(goal, one.seen); b.Lower > limit {
		limit = b.Lower
	}
	for !one.answered {
		load, seconds, more := s.question.nextLoad(one.seen)
		if !more {
			break
		}
		o := Observation{Load: load, Seconds: seconds}
		if load > limit {
			o.Loss = 1 - limit/load*(1-goal.LossRatio)
		}
		one.seen = append(one.seen, o)
		r.Trials, r.Seconds = r.Trials+1, r.Seconds+seconds+p.Timing.WarmupSeconds
	}
	if loads := s.loads(one); len(loads) > 0 {
		r.add(p, newGrid(s.design, loads, s.index))
	}
}

// guessedFlood is what a flood is taken to send before it did, in packets a second. How many trials a search takes
// hardly depends on it.
const guessedFlood = 1e6
