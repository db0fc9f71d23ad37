package model

import "time"

// CompareFormat names what pelt compare --json writes.
const CompareFormat = "pelt/compare/1"

// Comparison is what several runs, or several levels of one knob in one run, show
// beside each other.
type Comparison struct {
	Format      string         `json:"format"`
	Tool        Tool           `json:"tool"`
	By          string         `json:"by"`          // a knob, or "run"
	Interleaved bool           `json:"interleaved"` // within the blocks of one run; else runs of different times
	Sides       []ComparedSide `json:"sides"`       // the first is the baseline
	Differ      []string       `json:"differ"`      // what else differs between the runs, a line each
	Verdict     string         `json:"verdict"`
	Findings    []string       `json:"findings"` // what changed, in words, the largest change first
	Notes       []string       `json:"notes"`    // how sure it is, and doubts
	Settings    []string       `json:"settings"` // that were compared, cell and flow in words, in the order of the plan
	Tests       int            `json:"tests"`    // comparisons made at once, which share the chance of a false alarm
	Effects     []Effect       `json:"effects"`  // the separable ones first
	LeftOut     []string       `json:"left_out"` // what was not compared, and why
	Warnings    []string       `json:"warnings"` // of the runs themselves
	Limits      []JudgedLimit  `json:"limits"`

	Uncompared []Uncompared `json:"-"` // for judging limits; LeftOut tells it
}

// Uncompared is one figure of one place that both sides were to have and that has no Effect.
type Uncompared struct {
	Metric   string
	Measured bool // often enough on both sides, but it has no relative change
	Text     string
}

// ComparedSide is one run, or one level.
type ComparedSide struct {
	Name    string       `json:"name"`
	Run     string       `json:"run"` // id
	Started time.Time    `json:"started"`
	Command string       `json:"command"`
	Target  string       `json:"target"`
	Valid   int          `json:"valid_trials"`
	Invalid int          `json:"invalid_trials"`   // aborted ones included
	Router  *RouterFacts `json:"router,omitempty"` // without its own words
}

// Kinds of effects.
const (
	Relative = "relative" // change is other / baseline - 1
	Points   = "points"   // of a ratio 0..1: change is other - baseline
)

// Ways to test an effect.
const (
	PairedTest   = "paired-t" // within blocks
	UnpairedTest = "welch"    // between runs
)

// Effect is what one figure of one cell does on one side, against the baseline.
type Effect struct {
	Side     int      `json:"side"` // place in Sides
	Cell     Cell     `json:"cell"` // the settings that both sides share
	Flow     string   `json:"flow,omitempty"`
	Protocol Protocol `json:"protocol,omitempty"`
	Where    string   `json:"where"` // cell and flow in words
	Metric   string   `json:"metric"`
	Kind     string   `json:"kind"`
	Baseline Sampled  `json:"baseline"`
	Other    Sampled  `json:"other"`
	Test     string   `json:"test"`
	Repeats  int      `json:"repeats"` // pairs; unpaired: of the side that has fewer
	Change   float64  `json:"change"`
	Low      float64  `json:"low"` // of the 95 % confidence interval of this change alone
	High     float64  `json:"high"`
	P        float64  `json:"p"`        // of this comparison alone
	FamilyP  float64  `json:"family_p"` // adjusted by Holm for all comparisons
	// Separable: the two differ, with 95 % confidence for all comparisons together.
	Separable bool `json:"separable"`
	// Hidden is how large a change could be there and not be seen; 0 if separable.
	Hidden float64 `json:"could_hide"`
	// Needed is how many repeats would show a change of 5 % or 5 points; 0 if these
	// do, 1001 if more than 1000 would be needed.
	Needed int `json:"repeats_for_5_percent"`
	// SameAs is a metric that says the same of this cell, so that both are one test.
	SameAs string `json:"same_as,omitempty"`
	Text   string `json:"text"`
}

// Sampled is one figure over the valid repeats that were compared, in base units.
type Sampled struct {
	Mean   float64   `json:"mean"`
	Low    float64   `json:"low"` // of the 95 % confidence interval of the mean
	High   float64   `json:"high"`
	Values []float64 `json:"values"`
}

// What became of a limit.
const (
	LimitPassed  = "passed"
	LimitFailed  = "failed"
	LimitUntold  = "cannot-be-told"
	LimitMissing = "not-measured"
)

// JudgedLimit is one limit on one effect, or on none.
type JudgedLimit struct {
	Limit string `json:"limit"`
	State string `json:"state"`
	Text  string `json:"text"`
}
