// Package design says which trial comes next.
//
// A plan and the results so far come in, the next cell and repeat go out. It runs nothing, and the answer depends on
// the plan and the results alone, so a cut run goes on from its stored results exactly as it would have gone on uncut.
package design

import (
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"

	"pelt/model"
)

// Design chooses trials. What it has been told is indexed, so a trial costs the same after ten thousand others.
type Design interface {
	// Add tells of a trial that ended; the design keeps the result. The order does not matter, and results of cells
	// that are not of the design count for nothing.
	Add(*model.Result)
	// Begin tells of a trial of a grid that runs: Next leaves it out until it ended.
	Begin(cell model.Cell, repeat int)
	// Next returns the first trial that has not ended; ok is false when none is left.
	Next() (cell model.Cell, repeat int, ok bool)
	// Number is the place of a trial in the order in which trials ended, from 1; one that is run again counts once.
	Number(cell model.Cell, repeat int) int
	// Total is the most trials of an uncut run, without those that are run again; 0: the results decide.
	Total() int
}

// New makes the design of a plan that model.Plan.Check found right. Every combination of levels is checked: a trial
// that cannot run is an error now, not in the middle of the night.
func New(p model.Plan) (Design, error) {
	cells := p.Cells()
	for _, c := range cells {
		if _, err := p.Trial(c, 0); err != nil {
			return nil, &model.FieldError{Field: "factors",
				Want: fmt.Sprintf("the combination %s cannot run: %v", c.Key(), err)}
		}
	}
	g := newGrid(p.Design, cells, &index{map[string]try{}, map[string]bool{}})
	if p.Design.Search != nil {
		return newSearch(p, g), nil
	}
	return g, nil
}

// index is what is known of trials, by name.
type index struct {
	ended   map[string]try
	running map[string]bool
}

// try is the valid trial of a name, else one of the invalid ones, and how many of these there are.
type try struct {
	*model.Result
	invalid int
}

func (x *index) Add(r *model.Result) {
	name := r.Cell.TrialName(r.Repeat)
	delete(x.running, name)
	if r.State == model.Aborted {
		return
	}
	t := x.ended[name]
	if t.Result == nil || r.State == model.Valid {
		t.Result = r
	}
	if r.State == model.Invalid {
		t.invalid++
	}
	x.ended[name] = t
}

func (x *index) Begin(cell model.Cell, repeat int) { x.running[cell.TrialName(repeat)] = true }

func (x *index) Number(cell model.Cell, repeat int) int {
	if _, again := x.ended[cell.TrialName(repeat)]; again {
		return len(x.ended)
	}
	return len(x.ended) + 1
}

func newGrid(d model.Design, cells []model.Cell, x *index) *grid {
	return &grid{index: x, design: d, cells: cells, shuffledOf: -1}
}

// grid is every combination of levels, or a list of cells, Repeats times. Repeats are interleaved
// and shuffled, so that slow drift of the path falls on all cells alike.
type grid struct {
	*index
	design model.Design
	cells  []model.Cell

	from       int   // all trials before this place need not run any more
	shuffled   []int // the order of a repeat
	shuffledOf int   // that repeat
}

func (g *grid) Total() int { return len(g.cells) * g.design.Repeats }

func (g *grid) Next() (model.Cell, int, bool) {
	for place := g.from; place < g.Total(); place++ {
		repeat := place / len(g.cells)
		cell := g.cells[g.order(repeat)[place%len(g.cells)]]
		name := cell.TrialName(repeat)
		switch {
		case g.isDone(name):
			if place == g.from {
				g.from++
			}
		case !g.running[name]:
			return maps.Clone(cell), repeat, true
		}
	}
	return nil, 0, false
}

// isDone reports whether a trial is not to be run again: it is valid, nothing came through in it (which is an
// answer), or it was invalid as often as it may be.
func (g *grid) isDone(name string) bool {
	t := g.ended[name]
	return t.Result != nil && (t.State == model.Valid || t.Why.Has(model.NothingThrough)) || t.invalid > g.design.Redo
}

// order is the sequence of cells within one repeat. The shuffle is spelt out
// because a stored run must resume in the same order under a later Go.
func (g *grid) order(repeat int) []int {
	if repeat == g.shuffledOf {
		return g.shuffled
	}
	order := make([]int, len(g.cells))
	for i := range order {
		order[i] = i
	}
	g.shuffled, g.shuffledOf = order, repeat
	if g.design.Ordered {
		return order
	}
	source := rand.NewPCG(g.design.Seed, uint64(repeat))
	for i := len(order) - 1; i > 0; i-- {
		j, _ := bits.Mul64(source.Uint64(), uint64(i+1)) // 0..i; its bias is below 2^-40
		order[i], order[j] = order[j], order[i]
	}
	return order
}
