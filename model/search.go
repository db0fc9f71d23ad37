package model

import (
	"fmt"
	"slices"
)

// Search asks for the highest rates of each combination of levels that meet goals, by RFC 9971. A
// search begins with a flood, at the flows' rate: the most that the sender can, or else the highest rate that is tried.
type Search struct {
	Goals    []Goal  `json:"goals"`
	MinPPS   float64 `json:"min_pps"`            // lowest rate of a flow that is tried
	Searches int     `json:"searches,omitempty"` // of each combination; 0 is one
	// Loads are shares of the rate that was found. Trials at each of them follow a search; 0 is the idle path.
	Loads []float64 `json:"loads,omitempty"`
}

// Goal is a Search Goal of RFC 9971 section 4.6.
type Goal struct {
	Name           string  `json:"name"`         // "quick", "csit", "rfc2544"
	LossRatio      float64 `json:"loss_ratio"`   // most of the packets of a good trial that may be lost
	ExceedRatio    float64 `json:"exceed_ratio"` // most of the time at a rate that may be of trials that lose more
	WidthRatio     float64 `json:"width_ratio"`  // of the upper bound, between the two bounds
	InitialSeconds float64 `json:"initial_s"`    // of the shortest trials
	FinalSeconds   float64 `json:"final_s"`      // of full-length trials
	SumSeconds     float64 `json:"sum_s"`        // of full-length trials at a rate, at least
}

// IdlePPS is the most of the thin flow that stands for an idle path.
const IdlePPS = 100

// MaxSearches and so on bound what a plan may ask of a search.
const (
	mostGoals   = 8
	mostLoads   = 32
	MaxSearches = 100
)

var goals = []Goal{
	{Name: "quick", ExceedRatio: 0.5, WidthRatio: 0.01, InitialSeconds: 0.25, FinalSeconds: 0.5, SumSeconds: 2},
	{Name: "csit", ExceedRatio: 0.5, WidthRatio: 0.005, InitialSeconds: 0.25, FinalSeconds: 1, SumSeconds: 21},
	{Name: "rfc2544", WidthRatio: 0.005, InitialSeconds: 1, FinalSeconds: 60, SumSeconds: 60},
}

func NamedGoal(name string) (Goal, bool) {
	i := slices.IndexFunc(goals, func(g Goal) bool { return g.Name == name })
	if i < 0 {
		return Goal{}, false
	}
	return goals[i], true
}

// Searching reports whether the trials of a cell search a rate: they set its time.
func (c Cell) Searching() bool { _, timed := c["measure_s"]; return timed }

// Unkept reports whether a trial's load was above the rate that a search found and more than the sender keeps: that
// says that the sender cannot overload the path, and is no failure.
func (r Result) Unkept() bool {
	other := func(w Reason) bool {
		return !slices.Contains([]string{SenderStarved, SenderStolen, SenderCoreFull, SenderTimerLate, SenderLate},
			w.Code)
	}
	return r.State == Invalid && r.Cell["load_ratio"].Number > 1 && !slices.ContainsFunc(r.Why, other)
}

// Starved reports whether a trial is invalid only because other work had the CPU of the sender, or of a lab's link: the
// same trial may run as ordered a moment later.
func (r Result) Starved() bool {
	starved := []string{SenderStarved, SenderStolen, SenderTimerLate, SenderStalled, LinkBehind, HostBusy}
	return r.State == Invalid && len(r.Why) > 0 && !slices.ContainsFunc(r.Why, func(w Reason) bool {
		return !slices.Contains(starved, w.Code)
	})
}

func (p Plan) checkSearch() error {
	s := p.Design.Search
	if s == nil {
		return nil
	}
	if n := len(s.Goals); n < 1 || n > mostGoals {
		return wrong("search.goals", "want 1 to %d goals, not %d", mostGoals, n)
	}
	for i, g := range s.Goals {
		if err := g.check(fmt.Sprintf("search.goals[%d].", i)); err != nil {
			return err
		}
	}
	switch {
	case !(s.MinPPS >= 1 && s.MinPPS <= maxKnobPackets):
		return wrong("search.min_pps", "want 1 to %d packets a second, not %v", int64(maxKnobPackets), s.MinPPS)
	case s.Searches < 0 || s.Searches > MaxSearches:
		return wrong("search.searches", "want 1 to %d, not %d", MaxSearches, s.Searches)
	case len(s.Loads) > mostLoads:
		return wrong("search.loads", "want at most %d, not %d", mostLoads, len(s.Loads))
	case slices.ContainsFunc(s.Loads, func(x float64) bool { return !(x >= 0 && x <= 2) }):
		return wrong("search.loads", "want shares of 0 to 2")
	case slices.ContainsFunc(p.Flows, func(f Flow) bool {
		return f.Protocol != UDP || f.Profile != nil || f.Packets > 0
	}):
		return wrong("search", "wants flows of UDP without a profile or a number of packets")
	}
	return nil
}

func (g Goal) check(at string) error {
	switch {
	case !printable(g.Name):
		return wrong(at+"name", "want a short word, not %q", clip(g.Name))
	case !(g.LossRatio >= 0 && g.LossRatio < 1):
		return wrong(at+"loss_ratio", "want 0 to less than 1, not %v", g.LossRatio)
	case !(g.ExceedRatio >= 0 && g.ExceedRatio < 1):
		return wrong(at+"exceed_ratio", "want 0 to less than 1, not %v", g.ExceedRatio)
	case !(g.WidthRatio >= 0.0001 && g.WidthRatio <= 0.5):
		return wrong(at+"width_ratio", "want 0.0001 to 0.5, not %v", g.WidthRatio)
	case !(g.InitialSeconds >= MinMeasure.Seconds() && g.InitialSeconds <= g.FinalSeconds):
		return wrong(at+"initial_s", "want %v s to final_s, not %v", MinMeasure.Seconds(), g.InitialSeconds)
	case !(g.FinalSeconds <= g.SumSeconds && g.SumSeconds <= MaxMeasure.Seconds()):
		return wrong(at+"sum_s", "want final_s or more, not %v", g.SumSeconds)
	}
	return nil
}
