package compare

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"pelt/model"
)

// side is one run, or one level of a run's knob.
type side struct {
	model.ComparedSide
	plan  model.Plan
	level model.Cell       // of the knob whose levels are compared
	cells map[string]*cell // by the key of their settings
	tried map[string]bool  // the same of all trials, valid or not
	ran   []model.Result
}

// cell has the valid trials of one combination of settings.
type cell struct {
	settings model.Cell
	trials   map[int]model.Result // by block
}

func newSide(name string, doc model.Document) side {
	s := side{ComparedSide: model.ComparedSide{Name: name, Run: doc.ID, Started: doc.Started, Command: doc.Plan.Command, Target: doc.Plan.Target}, plan: doc.Plan, cells: map[string]*cell{}, tried: map[string]bool{}}
	if doc.Router != nil {
		facts := *doc.Router
		facts.Before, facts.After = nil, nil
		s.Router = &facts
	}
	return s
}

// add takes a trial with the settings that both sides share.
func (s *side) add(settings model.Cell, r model.Result) {
	key := settings.Key()
	s.tried[key] = true
	if r.State != model.Valid {
		s.Invalid++
		return
	}
	s.Valid++
	s.ran = append(s.ran, r)
	c := s.cells[key]
	if c == nil {
		c = &cell{settings, map[int]model.Result{}}
		s.cells[key] = c
	}
	c.trials[r.Repeat] = r
}

// flows are the names of the cell's flows.
func (c *cell) flows() []string {
	var names []string
	for _, block := range slices.Sorted(maps.Keys(c.trials)) {
		for _, f := range c.trials[block].Flows {
			if !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	return names
}

// flow is the first of that name.
func (c *cell) flow(name string) (model.FlowResult, bool) {
	for _, block := range slices.Sorted(maps.Keys(c.trials)) {
		for _, f := range c.trials[block].Flows {
			if f.Name == name {
				return f, true
			}
		}
	}
	return model.FlowResult{}, false
}

// measured are a metric's values by block. flow "" is the trial's.
func (c *cell) measured(m metric, flow string) map[int]float64 {
	out := map[int]float64{}
	for block, r := range c.trials {
		if flow == "" {
			put(out, block, m.value(r, model.FlowResult{}))
			continue
		}
		for _, f := range r.Flows {
			if f.Name == flow {
				put(out, block, m.value(r, f))
			}
		}
	}
	return out
}

// Bounds that keep nonsense in a document from overflowing; what is less than the
// least, per second or of anything else, is 0.
const (
	mostFigure  = 1e30
	leastFigure = 1e-30
)

func put(to map[int]float64, block int, v float64) {
	if math.IsNaN(v) || v < 0 || v >= mostFigure {
		return
	}
	if v < leastFigure {
		v = 0
	}
	to[block] = v
}

// common are the cells that two sides share, in the order of the first one's plan.
func common(a, b side) []string {
	var keys []string
	for key := range a.cells {
		if b.cells[key] != nil {
			keys = append(keys, key)
		}
	}
	place := map[string]int{}
	for i, c := range a.plan.Design.Cells {
		for key, x := range a.cells {
			if _, known := place[key]; !known && within(x.settings, c) {
				place[key] = i + 1
			}
		}
	}
	slices.SortFunc(keys, func(x, y string) int {
		return cmp.Or(cmp.Compare(place[x], place[y]), compareCells(a.plan, a.cells[x].settings, a.cells[y].settings), strings.Compare(x, y))
	})
	return keys
}

func within(part, whole model.Cell) bool {
	for k, v := range part {
		if whole[k] != v {
			return false
		}
	}
	return true
}

// compareCells orders cells of a grid: what is not the size makes the groups.
func compareCells(p model.Plan, a, b model.Cell) int {
	knobs := slices.Sorted(maps.Keys(a))
	slices.SortStableFunc(knobs, func(x, y string) int { return cmp.Compare(sizeLast(x), sizeLast(y)) })
	for _, k := range knobs {
		if c := compareLevels(p, k, a[k], b[k]); c != 0 {
			return c
		}
	}
	return 0
}

func sizeLast(knob string) int {
	if knob == "payload_bytes" || knob == "frame_bytes" {
		return 1
	}
	return 0
}

// compareLevels orders words as the plan does, and numbers by their size.
func compareLevels(p model.Plan, knob string, a, b model.Value) int {
	if a.Text == "" && b.Text == "" {
		return cmp.Compare(a.Number, b.Number)
	}
	levels := planned(p, knob)
	return cmp.Or(cmp.Compare(slices.Index(levels, a), slices.Index(levels, b)), strings.Compare(a.Text, b.Text))
}

// planned are a knob's levels in the order of the plan.
func planned(p model.Plan, knob string) []model.Value {
	var levels []model.Value
	add := func(v model.Value, ok bool) {
		if ok && !slices.Contains(levels, v) {
			levels = append(levels, v)
		}
	}
	if knob == "variant" {
		for _, v := range p.Variants {
			add(model.Word(v.Name), true)
		}
	}
	for _, f := range p.Factors {
		if f.Knob == knob {
			for _, v := range f.Levels {
				add(v, true)
			}
		}
	}
	for _, c := range p.Design.Cells {
		v, ok := c[knob]
		add(v, ok)
	}
	return levels
}

// levelsOf are the levels that a run's trials have, in the order of its plan, then of the run.
func levelsOf(doc model.Document, knob string) []model.Value {
	var had []model.Value
	for _, r := range doc.Results {
		if v, ok := r.Cell[knob]; ok && !slices.Contains(had, v) {
			had = append(had, v)
		}
	}
	levels := slices.DeleteFunc(planned(doc.Plan, knob), func(v model.Value) bool { return !slices.Contains(had, v) })
	for _, v := range had {
		if !slices.Contains(levels, v) {
			levels = append(levels, v)
		}
	}
	return levels
}

// knobsOf are the knobs that a run's trials set, sorted.
func knobsOf(doc model.Document) []string {
	knobs := map[string]bool{}
	for _, r := range doc.Results {
		for k := range r.Cell {
			knobs[k] = true
		}
	}
	return slices.Sorted(maps.Keys(knobs))
}

// implied is a setting that a trial had although its plan does not vary it.
func implied(r model.Result, knob string) (model.Value, bool) {
	if len(r.Flows) == 0 {
		return model.Value{}, false
	}
	f := r.Flows[0]
	switch knob {
	case "payload_bytes":
		return model.Number(float64(f.PayloadBytes)), true
	case "frame_bytes":
		return model.Number(float64(f.FrameBytes)), f.Protocol == model.UDP
	case "streams":
		return model.Number(float64(f.Streams)), f.Streams > 0
	case "protocol":
		return model.Word(string(f.Protocol)), f.Protocol != ""
	case "direction":
		if len(r.Flows) > 1 {
			return model.Word("both"), true
		}
		return model.Word(f.Name), f.Name == "up" || f.Name == "down"
	}
	return model.Value{}, false
}
