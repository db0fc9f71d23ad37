package rows

import (
	"maps"
	"math"
	"slices"
	"strings"

	"pelt/model"
)

// SweepCommand is the preset whose runs vary several knobs at once.
const SweepCommand = "sweep"

// IsSweep reports whether a run is told as a table of cells and a heat map
// instead of curves.
func IsSweep(doc model.Document) bool { return doc.Plan.Command == SweepCommand }

// Side is one side of a grid: a knob and the levels it took, numbers ascending,
// then words.
type Side struct {
	Key    string // "" where nothing varies this way: there is one level
	Levels []model.Value
}

// Grid is what one flow did over two knobs, at one setting of all others.
type Grid struct {
	Flow     string
	Protocol model.Protocol
	Rest     model.Cell // the other varying knobs
	X, Y     Side
	Rows     [][]int // index into Table.Rows by y, then x; -1 where no trial was finished
}

// MaxGridCells bounds a grid: no page or picture shows more of them apart.
const MaxGridCells = 20_000

// Grids lays the rows out over the plan's first two knobs with numbers, a size
// across; nil if there is none or the cells are too many.
func (t Table) Grids(p model.Plan) []Grid {
	x, y := t.sides(p)
	if x.Key == "" || len(x.Levels)*len(y.Levels) > MaxGridCells || len(x.Levels)*len(y.Levels) == 0 {
		return nil
	}
	var grids []Grid
	at := map[string]int{}
	for i, r := range t.Rows {
		col, row := x.place(r), y.place(r)
		if col < 0 || row < 0 {
			continue
		}
		rest := maps.Clone(r.Cell)
		maps.DeleteFunc(rest, func(k string, _ model.Value) bool { return k == x.Key || k == y.Key || !slices.Contains(t.Keys, k) })
		key := strings.Join([]string{r.Flow, string(r.Protocol), rest.Key()}, "\x00")
		n, known := at[key]
		if !known {
			n = len(grids)
			at[key] = n
			g := Grid{Flow: r.Flow, Protocol: r.Protocol, Rest: rest, X: x, Y: y, Rows: make([][]int, len(y.Levels))}
			for j := range g.Rows {
				g.Rows[j] = slices.Repeat([]int{-1}, len(x.Levels))
			}
			grids = append(grids, g)
		}
		grids[n].Rows[row][col] = i
	}
	return grids
}

// sides are the two knobs of the grids, with all levels that were planned or met.
func (t Table) sides(p model.Plan) (x, y Side) {
	var found []Side
	for _, f := range p.Factors {
		s := Side{Key: f.Knob}
		s.add(f.Levels...)
		for _, r := range t.Rows {
			if v, ok := r.Cell[f.Knob]; ok {
				s.add(v)
			}
		}
		s.sort()
		if len(s.Levels) > 0 && s.Levels[0].Text == "" && !slices.ContainsFunc(found, func(o Side) bool { return o.Key == s.Key }) {
			found = append(found, s)
		}
	}
	// What has one level shows nothing, unless there is nothing else.
	slices.SortStableFunc(found, func(a, b Side) int { return min(len(b.Levels), 2) - min(len(a.Levels), 2) })
	y.Levels = []model.Value{{}}
	switch {
	case len(found) == 0:
		return Side{}, y
	case len(found) == 1:
		return found[0], y
	case isSize(found[1].Key) && !isSize(found[0].Key):
		return found[1], found[0]
	}
	return found[0], found[1]
}

func isSize(key string) bool { return key == PayloadKey || key == "frame_bytes" }

func (s *Side) add(levels ...model.Value) {
	seen := map[model.Value]bool{}
	for _, v := range s.Levels {
		seen[v] = true
	}
	for _, v := range levels {
		if v.Text != "" {
			v.Number = 0
		}
		if !seen[v] && !math.IsNaN(v.Number) && !math.IsInf(v.Number, 0) {
			seen[v] = true
			s.Levels = append(s.Levels, v)
		}
	}
}

func (s *Side) sort() {
	slices.SortStableFunc(s.Levels, func(a, b model.Value) int {
		switch {
		case a.Text == "" && b.Text == "" && a.Number < b.Number, a.Text == "" && b.Text != "":
			return -1
		case a.Text == "" && b.Text == "" && a.Number > b.Number, a.Text != "" && b.Text == "":
			return 1
		}
		return 0
	})
}

// place is the level that a row has, -1 if none.
func (s Side) place(r Row) int {
	if s.Key == "" {
		return 0
	}
	v, ok := r.Cell[s.Key]
	if !ok && s.Key == PayloadKey {
		v, ok = model.Number(float64(r.Payload)), true
	}
	if !ok {
		return -1
	}
	if v.Text != "" {
		v.Number = 0
	}
	return slices.Index(s.Levels, v)
}

// Planned is how many cells with a flow the plan's factors make; 0 if none or
// absurdly many.
func Planned(p model.Plan, flow string) int {
	n := 0
	for i, f := range p.Factors {
		if i == 0 {
			n = 1
		}
		levels := len(f.Levels)
		if f.Knob == "direction" {
			levels = 0
			for _, v := range f.Levels {
				if v.Text == flow || v.Text == "both" {
					levels++
				}
			}
		}
		if n *= levels; n > model.MaxTrials {
			return 0
		}
	}
	return n
}

// Has reports whether a row lies in the grid.
func (g Grid) Has(row int) bool {
	return row >= 0 && slices.ContainsFunc(g.Rows, func(line []int) bool { return slices.Contains(line, row) })
}

// Outline runs along the edges between the cells of rows that it is asked for
// and all others. Corners are counted in cells from the grid's first level;
// an edge goes from (x0, y0) to (x1, y1).
func (g Grid) Outline(wanted []int, edge func(x0, y0, x1, y1 int)) {
	among := map[int]bool{}
	for _, i := range wanted {
		among[i] = i >= 0
	}
	in := func(x, y int) bool {
		return y >= 0 && y < len(g.Rows) && x >= 0 && x < len(g.Rows[y]) && among[g.Rows[y][x]]
	}
	for y := range g.Rows {
		for x := range g.Rows[y] {
			if !in(x, y) {
				continue
			}
			if !in(x, y-1) {
				edge(x, y, x+1, y)
			}
			if !in(x, y+1) {
				edge(x, y+1, x+1, y+1)
			}
			if !in(x-1, y) {
				edge(x, y, x, y+1)
			}
			if !in(x+1, y) {
				edge(x+1, y, x+1, y+1)
			}
		}
	}
}
