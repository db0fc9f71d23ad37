package draw

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pelt/unit"
	"pelt/view"
)

func labels(s scale) string {
	var out []string
	for _, t := range s.ticks {
		out = append(out, s.label(t))
	}
	return strings.Join(out, " | ")
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		name string
		s    scale
		want string
	}{
		{"rates from zero", fromZero(view.Axis{Unit: unit.PPS}, extent{3e3, 412e3}, 4), "0 | 200 kpps | 400 kpps"},
		{"three levels at least", fromZero(view.Axis{Unit: unit.PPS}, extent{0, 768}, 3),
			"0 | 200 pps | 400 pps | 600 pps | 800 pps"},
		{"losses reach 100 %", fromZero(view.Axis{Unit: unit.Ratio}, extent{0, 0.02}, 4),
			"0 % | 25 % | 50 % | 75 % | 100 %"},
		{"more than one core", fromZero(view.Axis{Unit: unit.Ratio}, extent{0, 2.4}, 4), "0 % | 100 % | 200 %"},
		{"hours", span(view.Axis{Unit: unit.Seconds}, extent{0, 86400}, 8),
			"0 | 3 h | 6 h | 9 h | 12 h | 15 h | 18 h | 21 h | 24 h"},
		{"sizes by doubling", span(view.Axis{Unit: unit.Bytes, Log: true}, extent{64, 1472}, 6),
			"64 B | 128 B | 256 B | 512 B | 1024 B"},
		{"levels that were set", span(view.Axis{Unit: unit.Bytes, Log: true, Ticks: []float64{64, 1472, 9000}},
			extent{64, 1472}, 6), "64 B | 1472 B"},
		{"below zero", fromZero(view.Axis{Unit: unit.Count}, extent{-3, 5}, 4), "-4 | -2 | 0 | 2 | 4 | 6"},
		{"one figure", span(view.Axis{Unit: unit.Count}, extent{5, 5}, 2), "2.5 | 5 | 7.5"},
	} {
		if got := labels(c.s); got != c.want {
			t.Errorf("%s: ticks %s; want %s", c.name, got, c.want)
		}
		if !slices.IsSorted(c.s.ticks) {
			t.Errorf("%s: ticks are not sorted: %v", c.name, c.s.ticks)
		}
	}
}

// A second among a day stays visible: thinning keeps the lowest and the highest, also of one column.
func TestSamplesKeepPeaks(t *testing.T) {
	values := make([]float64, 86400)
	for i := range values {
		values[i] = 50
	}
	values[40000], values[40010] = 0, 100
	x, y := span(view.Axis{}, extent{0, 86400}, 5).between(0, 300), scale{extent: extent{0, 100}}.between(100, 0)
	parts := samples(view.Trace{Step: 1, Values: values}, x, y)
	if len(parts) != 1 || len(parts[0]) > 2*4*301 {
		t.Fatalf("%d parts, the first of %d numbers; want one of at most 4 points a pixel", len(parts), len(parts[0]))
	}
	lowest, highest := 0.0, 100.0
	for i := 1; i < len(parts[0]); i += 2 {
		lowest, highest = max(lowest, parts[0][i]), min(highest, parts[0][i])
	}
	if lowest != 100 || highest != 0 {
		t.Errorf("the drawn line reaches from %v to %v; want 100 (none) to 0 (peak)", lowest, highest)
	}
}

// A line that leaves the scale goes to its edge, and is not drawn along it.
func TestOnScale(t *testing.T) {
	got := fmt.Sprint(onScale([]float64{0, 50, 10, 0, 20, 0, 30, 50, 40, 60}, 0))
	if want := "[[0 50 10 0] [20 0 30 50 40 60]]"; got != want {
		t.Errorf("onScale = %s; want %s", got, want)
	}
}

// Two small pictures of about the same height stand beside each other, in files as in pages;
// a picture without data has no place.
func TestRows(t *testing.T) {
	chart := func(rows int) view.Chart {
		c := view.Chart{Kind: view.Interval, Series: []view.Series{{}}}
		for i := range rows {
			c.Y.Categories = append(c.Y.Categories, "a")
			c.Series[0].Points = append(c.Series[0].Points, view.Point{X: 1, Y: float64(i)})
		}
		return c
	}
	var got []int
	for _, row := range Rows([]view.Section{chart(5), view.Chart{}, chart(6), chart(5), chart(20), view.Text{}}, 400) {
		got = append(got, len(row))
	}
	if want := []int{2, 1, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("rows of %v sections; want %v", got, want)
	}
}

// TestShade: the greatest figure is the darkest, but nothing is dark where all are zero.
func TestShade(t *testing.T) {
	for _, c := range []struct{ v, low, high, want float64 }{{0, 0, 0, faint}, {3, 3, 3, strong}, {0, 0, 4, faint},
		{4, 0, 4, strong}} {
		if got := shade(c.v, view.Axis{}, extent{c.low, c.high}, true); got != c.want {
			t.Errorf("%v of %v to %v: %v, want %v", c.v, c.low, c.high, got, c.want)
		}
	}
}

// TestCauseIsWhole: the cause of a loss is not cut below a path, nor is a figure in it.
func TestCauseIsWhole(t *testing.T) {
	p := Path(view.Path{Nodes: []string{"sender", "router", "receiver"}, Sent: 100, Losses: []view.Loss{{Node: 1,
		Packets: 1, Text: "queue on the way at router full (bfifo on to-receiver, 2 097 152 B)"}}}, 936)
	whole := false
	for _, s := range p.Shapes {
		if strings.Contains(s.Text, "…") {
			t.Errorf("%q is cut", s.Text)
		}
		whole = whole || strings.Contains(s.Text, "2\u00a0097\u00a0152\u00a0B")
	}
	if !whole {
		t.Error("the figure is on two lines")
	}
}

// TestOwnInk: of lines with one tone the first has its ink, and no two share one.
func TestOwnInk(t *testing.T) {
	tones := []view.Tone{view.Plain, view.Muted, view.Bad, view.Plain, view.Muted, view.Bad}
	used := map[Ink]bool{}
	var all []view.Series
	for _, tone := range tones {
		all = append(all, view.Series{Tone: tone})
	}
	for _, look := range looksOf(all) {
		used[look.ink] = true
	}
	if len(used) != len(tones) || !used[Bad] || !used[Soft] {
		t.Errorf("inks %v for %d lines", used, len(tones))
	}
}
