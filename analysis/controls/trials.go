package controls

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"pelt/model"
)

// controlKnob is the factor that is compared; all others make conditions.
const controlKnob = "control"

// everyRepeat is as many as a run has.
const everyRepeat = math.MaxInt

// grid is a run by condition and control.
type grid struct {
	doc        model.Document
	flow       model.Flow // that is compared, as the plan has it
	metric     string
	controls   []string // in the order of the plan, the baseline first
	conditions []model.Cell
	cells      map[place]*cell
}

// place is where a cell stands in a grid.
type place struct {
	condition int
	control   string
}

// cell is one control under one condition.
type cell struct {
	setting model.Cell // its first trial's, whole
	trials  []trial    // valid ones, one for each repeat, ascending
	failed  int        // repeats without a valid one
}

// trial is a valid one.
type trial struct {
	result model.Result
	flow   model.FlowResult // zero if the result has none of TCP
	tcp    model.TCPFacts
}

// read makes the grid of a run's first repeats; ok is false if doc is no run of pelt
// cc, or if nothing in it says which control it had.
func read(doc model.Document, repeats int) (g grid, ok bool) {
	if doc.Plan.Command != command {
		return g, false
	}
	g = grid{doc: doc, metric: byGoodput, cells: map[place]*cell{}}
	for _, f := range doc.Plan.Flows {
		if f.Protocol == model.TCP {
			g.flow = f
			break
		}
	}
	if g.flow.Bytes > 0 || g.flow.Commands != nil {
		g.metric = byCompletion
	}
	runs := map[string]*attempts{}
	for _, r := range doc.Results {
		control, found := g.controlOf(r)
		if !found || r.Repeat >= repeats {
			continue
		}
		key := r.Cell.Key() + "\x00" + control
		if runs[key] == nil {
			runs[key] = &attempts{control: control, setting: r.Cell, of: map[int][]model.Result{}}
		}
		runs[key].of[r.Repeat] = append(runs[key].of[r.Repeat], r)
	}
	all := slices.SortedFunc(maps.Values(runs), g.inOrder)
	g.place(all)
	return g, len(g.conditions) > 0
}

// attempts are the results of one cell by their repeats: an invalid one may be
// followed by another try.
type attempts struct {
	control string
	setting model.Cell
	of      map[int][]model.Result
}

// place puts cells, in their order, into the grid.
func (g *grid) place(all []*attempts) {
	seen := map[string]int{}
	found := map[string]bool{}
	var others []string // not in the plan
	for _, one := range all {
		under := model.Cell{}
		maps.Copy(under, one.setting)
		delete(under, controlKnob)
		at, known := seen[under.Key()]
		if !known {
			at = len(g.conditions)
			seen[under.Key()] = at
			g.conditions = append(g.conditions, under)
		}
		if !found[one.control] {
			found[one.control] = true
			others = append(others, one.control)
		}
		g.cells[place{at, one.control}] = g.newCell(*one)
	}
	for _, v := range g.levels(controlKnob) {
		if v.Text != "" && !slices.Contains(g.controls, v.Text) {
			g.controls = append(g.controls, v.Text)
		}
	}
	for _, name := range others {
		if !slices.Contains(g.controls, name) {
			g.controls = append(g.controls, name)
		}
	}
}

func (g *grid) newCell(a attempts) *cell {
	c := &cell{setting: a.setting}
	for _, repeat := range slices.Sorted(maps.Keys(a.of)) {
		tries := a.of[repeat]
		i := slices.IndexFunc(tries, func(r model.Result) bool { return r.State == model.Valid })
		if i < 0 {
			c.failed++
			continue
		}
		t := trial{result: tries[i]}
		t.flow, t.tcp, _ = g.flowOf(tries[i])
		c.trials = append(c.trials, t)
	}
	return c
}

// flowOf finds the flow that is compared; ok is false if a result has none.
func (g *grid) flowOf(r model.Result) (f model.FlowResult, tcp model.TCPFacts, ok bool) {
	for _, f := range r.Flows {
		if f.TCP != nil && (f.Name == g.flow.Name || g.flow.Name == "") {
			return f, *f.TCP, true
		}
	}
	return f, tcp, false
}

// controlOf is the congestion control of a trial: as its cell sets it, else as the
// plan does, else as the kernel said.
func (g *grid) controlOf(r model.Result) (name string, ok bool) {
	_, tcp, _ := g.flowOf(r)
	name = cmp.Or(r.Cell[controlKnob].Text, g.flow.Control, tcp.Control)
	return name, name != ""
}

// levels are those that the plan gives a knob.
func (g *grid) levels(knob string) (levels []model.Value) {
	for _, f := range g.doc.Plan.Factors {
		if f.Knob == knob {
			return f.Levels
		}
	}
	for _, c := range g.doc.Plan.Design.Cells {
		if v, ok := c[knob]; ok && !slices.Contains(levels, v) {
			levels = append(levels, v)
		}
	}
	return levels
}

// knobs are what makes conditions, in the order of the plan.
func (g *grid) knobs() (knobs []string) {
	for _, f := range g.doc.Plan.Factors {
		knobs = append(knobs, f.Knob)
	}
	for _, c := range g.doc.Plan.Design.Cells {
		for _, knob := range slices.Sorted(maps.Keys(c)) {
			if !slices.Contains(knobs, knob) {
				knobs = append(knobs, knob)
			}
		}
	}
	return slices.DeleteFunc(knobs, func(knob string) bool { return knob == controlKnob })
}

// inOrder orders cells as the plan does; what it does not know comes last.
func (g *grid) inOrder(a, b *attempts) int {
	rank := func(list []model.Value, v model.Value) int {
		if i := slices.Index(list, v); i >= 0 {
			return i
		}
		return len(list)
	}
	for _, knob := range g.knobs() {
		list := g.levels(knob)
		if d := rank(list, a.setting[knob]) - rank(list, b.setting[knob]); d != 0 {
			return d
		}
	}
	list := g.levels(controlKnob)
	return cmp.Or(rank(list, model.Word(a.control))-rank(list, model.Word(b.control)), cmp.Compare(a.setting.Key(), b.setting.Key()), cmp.Compare(a.control, b.control))
}

// cell finds one control under one condition; nil if it has no trial.
func (g *grid) cell(condition int, control string) *cell { return g.cells[place{condition, control}] }
