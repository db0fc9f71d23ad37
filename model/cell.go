package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"pelt/pace"
	"pelt/words"
)

// Value is one setting of a knob: a number in the knob's unit, or a word.
type Value struct {
	Number float64
	Text   string // if not empty, the value is this word
}

func Number(n float64) Value { return Value{Number: n} }
func Word(s string) Value    { return Value{Text: s} }

func (v Value) String() string {
	if v.Text != "" {
		return v.Text
	}
	return strconv.FormatFloat(v.Number, 'f', -1, 64)
}

func (v Value) MarshalJSON() ([]byte, error) {
	if v.Text != "" {
		return json.Marshal(v.Text)
	}
	return json.Marshal(v.Number)
}

func (v *Value) UnmarshalJSON(b []byte) error {
	*v = Value{}
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &v.Text); err != nil {
			return err
		}
		if v.Text == "" {
			return words.Errorf("a level must not be empty")
		}
		return nil
	}
	if err := json.Unmarshal(b, &v.Number); err != nil {
		return words.Errorf("want a number or a word, not %s", clip(string(b)))
	}
	return nil
}

// TrialName is the name of a cell's trial, the same for equal cells.
func (c Cell) TrialName(repeat int) string { return fmt.Sprintf("%s #%d", c.Key(), repeat) }

// Cell is one combination of knob settings.
type Cell map[string]Value

// Key is the cell as text, the same for equal cells.
func (c Cell) Key() string {
	var words []string
	for _, k := range slices.Sorted(maps.Keys(c)) {
		words = append(words, k+"="+c[k].String())
	}
	return strings.Join(words, " ")
}

func (c Cell) Equal(d Cell) bool { return maps.Equal(c, d) }

// Cells lists every combination of levels; the last factor changes fastest.
func Cells(factors []Factor) []Cell {
	all := []Cell{{}}
	for _, f := range factors {
		next := make([]Cell, 0, len(all)*len(f.Levels))
		for _, c := range all {
			for _, v := range f.Levels {
				d := maps.Clone(c)
				d[f.Knob] = v
				next = append(next, d)
			}
		}
		all = next
	}
	return all
}

// Cells are the cells of the plan: those that its design lists, or every combination of levels.
func (p Plan) Cells() []Cell {
	if len(p.Design.Cells) > 0 {
		return p.Design.Cells
	}
	return Cells(p.Factors)
}

// Sends reports whether a trial of the plan has a flow of a protocol.
func (p Plan) Sends(protocol Protocol) bool {
	return slices.ContainsFunc(p.Flows, func(f Flow) bool { return f.Protocol == protocol }) ||
		slices.ContainsFunc(p.Cells(), func(c Cell) bool { return c["protocol"].Text == string(protocol) })
}

// Trial is one complete instruction: nothing is left to a default.
type Trial struct {
	Cell   Cell
	Repeat int // 0-based
	Flows  []Flow
	Timing Timing
	// Links are changes of a lab's links before the trial: those of every node first.
	Links     []Link
	Receivers int // of a star, the first ones; 0 means all that it has
	// Variant is how the router is set up, "" as it is.
	Variant string
	// LinkSeed is what a lab's emulated links draw by from the trial's beginning on; 0:
	// they go on with what they drew by before.
	LinkSeed uint64
}

// UntilSent reports whether a trial ends when all is sent, and its measured time is only the longest.
func (t Trial) UntilSent() bool {
	return slices.ContainsFunc(t.Flows, func(f Flow) bool {
		_, paced := f.Rate.PPS(f.PayloadBytes)
		return f.Bytes > 0 || f.Packets > 0 && !paced
	})
}

// Trial makes the complete instruction for one cell of the plan.
func (p Plan) Trial(cell Cell, repeat int) (Trial, error) {
	t := Trial{Cell: cell, Repeat: repeat, Flows: slices.Clone(p.Flows), Timing: p.Timing}
	if p.Design.Paired {
		t.LinkSeed = max(1, p.Design.Seed*(MaxRepeats+1)+uint64(repeat)+1)
	}
	for _, name := range slices.Sorted(maps.Keys(cell)) {
		k, ok := FindKnob(name)
		if !ok || !k.Varies {
			return Trial{}, words.Errorf("unknown knob %q", clip(name))
		}
		if err := k.set(&t, cell[name]); err != nil {
			return Trial{}, err
		}
	}
	if t.Variant != "" && !slices.ContainsFunc(p.Variants, func(v Variant) bool { return v.Name == t.Variant }) {
		return Trial{}, words.Errorf("the plan has no variant %q", clip(t.Variant))
	}
	slices.SortStableFunc(t.Links, func(a, b Link) int { return min(len(a.Node), 1) - min(len(b.Node), 1) })
	counted := 0.0 // time that flows of a number of packets take
	for i, f := range t.Flows {
		if err := cmp.Or(f.check(), f.checkTime(t.Timing)); err != nil {
			return Trial{}, err
		}
		if f.Profile != nil && f.Profile.random() && f.Profile.Seed == 0 {
			drawn := *f.Profile // the same for all cells of a repeat, so that they are compared under one draw
			drawn.Seed = max(pace.Seed(p.Design.Seed, uint64(repeat), wordSeed(f.Name)), 1)
			t.Flows[i].Profile, f.Profile = &drawn, &drawn
		}
		seconds, err := f.counted(t.Timing)
		if err != nil {
			return Trial{}, err
		}
		counted = max(counted, seconds)
	}
	if counted > 0 {
		t.Timing.MeasureSeconds = max(counted, MinMeasure.Seconds())
		if err := t.Timing.Check(); err != nil {
			return Trial{}, err
		}
	}
	return t, nil
}
