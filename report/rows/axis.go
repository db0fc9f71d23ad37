package rows

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"pelt/model"
)

// PayloadKey is the axis of a size curve.
const PayloadKey = "payload_bytes"

// Line is one curve over the axis: the rows of one flow that agree in every
// knob but that of the axis.
type Line struct {
	Flow     string
	Protocol model.Protocol
	Cell     model.Cell // the varying knobs that tell this line from others of the flow
	Points   []Point
}

// Point is one row of a line.
type Point struct {
	X   float64
	Row int // index into Table.Rows
}

// Axis says what the rows differ in first: payload_bytes if there are two sizes
// or more, else the first varying knob with numbers; "" when there is none.
func (t Table) Axis() string {
	sizes := map[int]bool{}
	for _, r := range t.Rows {
		sizes[r.Payload] = true
	}
	if len(sizes) > 1 {
		return PayloadKey
	}
	for _, k := range t.Keys {
		values := map[float64]bool{}
		for _, r := range t.Rows {
			if x, ok := r.at(k); ok {
				values[x] = true
			}
		}
		if len(values) > 1 {
			return k
		}
	}
	return ""
}

func (r Row) at(axis string) (x float64, ok bool) {
	if axis == PayloadKey {
		return float64(r.Payload), r.Payload > 0
	}
	v, ok := r.Cell[axis]
	return v.Number, ok && v.Text == "" && !math.IsNaN(v.Number) && !math.IsInf(v.Number, 0)
}

// Lines splits the rows into curves over the axis, each with ascending X.
func (t Table) Lines(axis string) []Line {
	var lines []Line
	at := map[string]int{}
	for i, r := range t.Rows {
		x, ok := r.at(axis)
		if !ok {
			continue
		}
		rest := t.Rest(r.Cell, axis)
		key := strings.Join([]string{r.Flow, string(r.Protocol), rest.Key()}, "\x00")
		n, known := at[key]
		if !known {
			n = len(lines)
			at[key] = n
			lines = append(lines, Line{Flow: r.Flow, Protocol: r.Protocol, Cell: rest})
		}
		lines[n].Points = append(lines[n].Points, Point{x, i})
	}
	for _, l := range lines {
		slices.SortStableFunc(l.Points, func(a, b Point) int { return cmp.Compare(a.X, b.X) })
	}
	return lines
}

// Rest is the cell's varying knobs without that of the axis.
func (t Table) Rest(c model.Cell, axis string) model.Cell {
	rest := maps.Clone(c)
	maps.DeleteFunc(rest, func(k string, _ model.Value) bool {
		onAxis := k == axis || axis == PayloadKey && k == "frame_bytes"
		return onAxis || !slices.Contains(t.Keys, k)
	})
	return rest
}
