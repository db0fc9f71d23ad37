// Package design says which trial comes next.
//
// A plan and the results so far come in, the next cell and repeat go out. It keeps no state between calls and runs
// nothing, so a cut run goes on from its stored results exactly as it would have gone on uncut.
package design

import (
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"

	"pelt/model"
)

// Design chooses trials. Its methods may be called concurrently.
type Design interface {
	// Next returns the first trial that done does not hold; ok is false when none is left. The order of done does
	// not matter; results of cells that are not of the design count for nothing.
	Next(done []model.Result) (cell model.Cell, repeat int, ok bool)
	// Total is the most trials of an uncut run, without those that are run again; 0: the results decide.
	Total() int
}

// Enough reports whether the first repeats tell all that a run is to find out, so that no more need be made. It is
// asked after the repeats of model.Design.Looks only, and must answer the same for the same results.
type Enough func(done []model.Result, repeats int) bool

// New makes the design of a plan that model.Plan.Check found right. Every combination of levels is checked: a trial
// that cannot run is an error now, not in the middle of the night. enough may be nil: then all repeats are made.
func New(p model.Plan, enough Enough) (Design, error) {
	cells := p.Cells()
	for _, c := range cells {
		if _, err := p.Trial(c, 0); err != nil {
			return nil, &model.FieldError{Field: "factors", Want: fmt.Sprintf("the combination %s cannot run: %v", c.Key(), err)}
		}
	}
	g := newGrid(p.Design, cells, enough)
	if p.Design.Search != nil {
		return newSearch(p, g), nil
	}
	return g, nil
}

func newGrid(d model.Design, cells []model.Cell, enough Enough) *grid {
	g := &grid{d, max(d.Repeats, d.MostRepeats), enough, cells, map[string]int{}}
	for i, c := range cells {
		g.index[c.Key()] = i
	}
	return g
}

// grid is every combination of levels, or a list of cells, Repeats times. Repeats are interleaved
// and shuffled, so that slow drift of the path falls on all cells alike.
type grid struct {
	design model.Design
	most   int // repeats
	enough Enough
	cells  []model.Cell
	index  map[string]int // cell key -> place in cells
}

func (g *grid) Total() int { return len(g.cells) * g.most }

func (g *grid) Next(done []model.Result) (model.Cell, int, bool) {
	made := g.made(done)
	begun := 0 // the latest repeat of which a trial is known: the looks before it said no
	for _, r := range done {
		if _, known := g.index[r.Cell.Key()]; known && r.Repeat < g.most {
			begun = max(begun, r.Repeat)
		}
	}
	from := 0
	for _, upTo := range g.design.Looks() {
		for repeat := from; repeat < upTo; repeat++ {
			for _, i := range g.order(repeat) {
				if !made[repeat*len(g.cells)+i] {
					return maps.Clone(g.cells[i]), repeat, true
				}
			}
		}
		if upTo < g.most && upTo > begun && g.enough != nil && g.enough(done, upTo) {
			break
		}
		from = upTo
	}
	return nil, 0, false
}

// made tells which trials need not run any more: those that are valid, or have been invalid as often as they may.
func (g *grid) made(done []model.Result) []bool {
	made, invalid := make([]bool, g.Total()), map[int]int{}
	for _, r := range done {
		i, known := g.index[r.Cell.Key()]
		if !known || r.State == model.Aborted || r.Repeat < 0 || r.Repeat >= g.most {
			continue
		}
		slot := r.Repeat*len(g.cells) + i
		if r.State == model.Invalid {
			invalid[slot]++
		}
		made[slot] = made[slot] || r.State == model.Valid || invalid[slot] > g.design.Redo
	}
	return made
}

// order is the sequence of cells within one repeat. The shuffle is spelt out
// because a stored run must resume in the same order under a later Go.
func (g *grid) order(repeat int) []int {
	order := make([]int, len(g.cells))
	for i := range order {
		order[i] = i
	}
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
