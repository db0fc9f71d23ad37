package rows

import (
	"math"
	"slices"

	"pelt/model"
)

// Kinds of findings that name cells of a sweep.
const (
	findingBest = "sweep-best"
	findingTies = "sweep-ties"
)

// Best is the row that a finding names as the best of a sweep, else the valid
// one with the highest goodput; -1 if there is none.
func (t Table) Best(findings []model.Finding) int {
	for _, f := range findings {
		if f.Kind != findingBest {
			continue
		}
		if best := t.fastest(func(r Row) bool { return named(f, r) }); best >= 0 {
			return best
		}
	}
	return t.fastest(func(r Row) bool { return r.State == model.Valid })
}

// fastest is the row with the highest goodput of those that fit, -1 if none does.
func (t Table) fastest(fits func(Row) bool) int {
	best := -1
	for i, r := range t.Rows {
		if fits(r) && r.GoodputBPS.N > 0 && (best < 0 || r.GoodputBPS.Median > t.Rows[best].GoodputBPS.Median) {
			best = i
		}
	}
	return best
}

// named reports whether a finding speaks of a row's cell: first of all of it if
// it lists cells, else by the numbers of its values.
func named(f model.Finding, r Row) bool {
	if len(f.Cells) > 0 {
		return f.Cells[0].Equal(r.Cell)
	}
	n := 0
	for k, v := range f.Values {
		if level, ok := r.Cell[k]; ok {
			if level.Text != "" || !(math.Abs(level.Number-v) <= 1e-9*math.Abs(v)) {
				return false
			}
			n++
		}
	}
	return n > 0
}

// Ties are the rows that a finding lists as not separable from the best one,
// which is not among them.
func (t Table) Ties(findings []model.Finding, best int) []int {
	listed := map[string]bool{}
	for _, f := range findings {
		if f.Kind == findingTies {
			for _, c := range f.Cells {
				listed[c.Key()] = true
			}
		}
	}
	var out []int
	for i, r := range t.Rows {
		if i != best && listed[r.Cell.Key()] {
			out = append(out, i)
		}
	}
	return slices.Clip(out)
}
