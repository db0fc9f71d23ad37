package draw

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pelt/unit"
	"pelt/view"
)

// TestLabels: each figure of a line chart stands nearest to a point that has it, and every level of a chart has its
// label on the axis.
func TestLabels(t *testing.T) {
	levels := []float64{18, 64, 100, 256, 400, 800, 1472}
	rapid.Check(t, func(t *rapid.T) {
		c := view.Chart{Hero: rapid.Bool().Draw(t, "hero"), X: view.Axis{Unit: unit.Bytes, Log: true, Label: "Payload"},
			Y: view.Axis{Unit: unit.PPS}}
		few := rapid.SliceOfNDistinct(rapid.SampledFrom(levels), 1, 6, rapid.ID).Draw(t, "levels")
		slices.Sort(few)
		c.X.Ticks = few
		for i := range rapid.IntRange(1, 4).Draw(t, "series") {
			s := view.Series{Name: fmt.Sprint("series ", i), Guest: i > 1}
			for _, x := range few {
				y := float64(rapid.IntRange(1, 500).Draw(t, "kpps")) * 1000
				p := view.Point{X: x, Y: y, Name: unit.PPS.Format(y)}
				if rapid.Bool().Draw(t, "repeated") {
					p.Low, p.High = y*0.7, y*1.4
				}
				s.Points = append(s.Points, p)
			}
			c.Series = append(c.Series, s)
		}
		checkLabels(t, Chart(c, rapid.SampledFrom([]float64{358, 450, 936}).Draw(t, "width"), 0), c)
	})
}

// TestShades: below a map stands whole what its shades mean, also on a phone.
func TestShades(t *testing.T) {
	for _, label := range []string{"Goodput", "有效吞吐"} {
		p := Picture{Width: 358}
		shades(&p, view.Chart{Z: view.Axis{Unit: unit.BPS, Label: label}}, extent{low: 21.5e6, high: 96.6e6}, Text)
		if !slices.ContainsFunc(p.Shapes, func(s Shape) bool { return s.Text == label }) {
			t.Errorf("%q is cut: %+v", label, p.Shapes[len(p.Shapes)-1])
		}
	}
}

func checkLabels(t *rapid.T, p Picture, c view.Chart) {
	var dots []Shape
	count := map[string]int{}
	for _, s := range p.Shapes {
		if s.Form == Dot {
			dots = append(dots, s)
		}
		count[s.Text]++
	}
	for _, x := range c.X.Ticks {
		if name := c.X.Unit.Exact(x); count[name] != 1 {
			t.Errorf("level %s stands %d times on the axis of a picture %v wide", name, count[name], p.Width)
		}
	}
	all := map[string]bool{}
	for _, s := range c.Series {
		for _, q := range s.Points {
			all[c.Y.Unit.Format(q.Y)] = true
		}
	}
	for _, s := range p.Shapes {
		if s.Form != Words || !s.Bold || !all[s.Text] {
			continue
		}
		words := Shape{Text: s.Text, Size: s.Size, Anchor: s.Anchor, Bold: true}.area(s.At[0], s.At[1])
		own, nearest := math.Inf(1), math.Inf(1)
		for _, d := range dots {
			distance := words.distance(d.At[0], d.At[1])
			if nearest = min(nearest, distance); d.Tip == s.Text {
				own = min(own, distance)
			}
		}
		if own > nearest {
			t.Errorf("%s stands %v from its point, %v from another", s.Text, own, nearest)
		}
	}
}
