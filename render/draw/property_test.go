package draw

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/render/plain"
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

// TestManySeries: no two of 16 lines look alike, nor a line and a guest, and each looks as in its legend.
func TestManySeries(t *testing.T) {
	var c view.Chart
	lane := view.Lane{}
	for i := range 16 {
		y := 1 + float64(i)/16
		c.Series = append(c.Series, view.Series{Name: fmt.Sprint(i), Guest: i >= 8, Tone: map[bool]view.Tone{
			true: view.Muted}[i >= 8], Points: []view.Point{{Y: y}, {X: 1, Y: y}}})
		lane.Traces = append(lane.Traces, view.Trace{Name: fmt.Sprint(i), Step: 1, Values: []float64{y, y}})
	}
	for _, p := range []Picture{Chart(c, 936, 0), Times(view.Times{Lanes: []view.Lane{lane}}, 936)} {
		named, drawn := map[look]bool{}, map[look]bool{}
		for _, s := range p.Shapes {
			switch {
			case s.Form == Box && s.Radius == 2:
				named[look{ink: s.Fill}] = true
			case s.Form == Polyline && s.Width == 8:
				named[look{s.Stroke, s.Dash}] = true
			case s.Form == Polyline && s.Width > 1.5:
				drawn[look{s.Stroke, s.Dash}] = true
			}
		}
		if len(drawn) != 16 || !maps.Equal(drawn, named) {
			t.Errorf("lines look like %v, and in the legend like %v", drawn, named)
		}
	}
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

// TestWholeOnPhone: on a phone the names of bars, long names of a legend, long causes of losses and the figures of a map
// of six hosts stand whole.
func TestWholeOnPhone(t *testing.T) {
	const (
		bar    = "WAN to LAN, 512 B"
		series = "a fragment dropped on the links to receivers, as asked"
		cause  = "socket memory limit at the receiver (udp_mem, or a control group)"
	)
	one := []view.Point{{Y: 0.5}}
	hosts := view.Axis{Categories: []string{"fra-1", "fra-2", "ams-1", "lon-1", "nyc-1", "sgp-1"}}
	for want, s := range map[string]view.Section{
		bar: view.Chart{Kind: view.Interval, Y: view.Axis{Categories: []string{bar}},
			Series: []view.Series{{Points: []view.Point{{X: 1}}}}},
		series: view.Chart{Kind: view.Stack, X: view.Axis{Categories: []string{"64 B"}},
			Series: []view.Series{{Name: series, Points: one}, {Name: "unexplained", Points: one}}},
		cause: view.Path{Nodes: []string{"sender", "router", "receiver"}, Sent: 2,
			Losses: []view.Loss{{Node: 2, Packets: 1, Text: cause}}},
		"<0.001 %": view.Chart{Kind: view.Heat, X: hosts, Y: hosts, Z: view.Axis{Unit: unit.Ratio},
			Series: []view.Series{{Points: []view.Point{{Z: 1e-6}}}}},
	} {
		var all []string
		for _, shape := range Section(s, 358).Shapes {
			all = append(all, shape.Text)
		}
		if got := plain.Spaces(strings.Join(all, " ")); !strings.Contains(got, want) {
			t.Errorf("%q is cut: %q", want, got)
		}
	}
}

// TestNamesAboveMap: no name above a map touches the next, though the last one may have to be moved or left out.
func TestNamesAboveMap(t *testing.T) {
	p := Picture{Width: 358, Height: 500}
	var x view.Axis
	for i := range 10 {
		x.Categories = append(x.Categories, fmt.Sprintf("every %d ms", i))
	}
	categories(&p, view.Chart{X: x}, 64, 38, 29.4, 10)
	for i, s := range p.Shapes[1:] {
		before := p.Shapes[i]
		if gap := s.area(s.At[0], s.At[1]).left - before.area(before.At[0], before.At[1]).right; gap < 3 {
			t.Errorf("%v between %s and %s", gap, before.Text, s.Text)
		}
	}
}

// TestChangeBesideWords: the dot of a change lies in no words, also where they are too long for either side of it.
func TestChangeBesideWords(t *testing.T) {
	lane := view.Lane{Unit: unit.PPS, Traces: []view.Trace{{Step: 1, Values: []float64{1, 2, 3, 4}}}}
	p := Times(view.Times{Lanes: []view.Lane{lane},
		Changes: []view.Change{{At: 2, Text: "the received rate (up) 40.0 kpps → 22.8 kpps"}}}, 358)
	for _, dot := range p.Shapes {
		for _, s := range p.Shapes {
			if dot.Form == Dot && s.Form == Words && s.area(s.At[0], s.At[1]).distance(dot.At[0], dot.At[1]) == 0 {
				t.Errorf("a dot at %v lies in %q", dot.At, s.Text)
			}
		}
	}
}
