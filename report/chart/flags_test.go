package chart

import (
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"pgregory.net/rapid"

	"pelt/report/seconds"
)

func minute(s float64) vg.Length { return vg.Length(10 * s) }

// Words of marks lie neither over each other nor over the line of another mark.
func TestFlagsAreApart(t *testing.T) {
	const left, right = 0.0, 600.0
	rapid.Check(t, func(t *rapid.T) {
		var m moments
		for _, at := range rapid.SliceOfN(rapid.Float64Range(0, 60), 0, mostFlags).Draw(t, "times") {
			m.marks = append(m.marks, seconds.Mark{AtS: at, Words: strings.Repeat("w", rapid.IntRange(1, 120).Draw(t, "length"))})
		}
		slices.SortFunc(m.marks, func(a, b seconds.Mark) int { return int(1e6 * (a.AtS - b.AtS)) })
		all, rows := m.flags(minute, left, right)
		end := func(f flag) vg.Length { return f.from + style(9, ink, false).Width(m.marks[f.mark].Words) }
		for i, a := range all {
			if a.from < left || end(a) > right+1e-6 || a.row >= rows || rows > flagRows {
				t.Fatalf("%+v of %d rows is not between %v and %v", a, rows, left, right)
			}
			for k, b := range all {
				switch {
				case i == k:
				case a.row == b.row && a.from < end(b) && b.from < end(a):
					t.Fatalf("%+v and %+v lie over each other", a, b)
				case a.row < b.row && a.line > b.from && a.line < end(b):
					t.Fatalf("the line of %+v crosses the words of %+v", a, b)
				}
			}
		}
	})
}

// What was done, what it did and what else moved then: three words, three lines.
func TestFlagsOfOneSecond(t *testing.T) {
	m := moments{marks: []seconds.Mark{{AtS: 20, Words: "router=limit=150mbit", Made: true}, {AtS: 20, Words: "received 40.0 → 33.0 kpps"}, {AtS: 20, Words: "burst of loss"}}}
	all, rows := m.flags(minute, 0, 600)
	if len(all) != 3 || rows != 3 {
		t.Fatalf("flags %+v in %d rows; want three in as many", all, rows)
	}
	for i, f := range all {
		if want := vg.Length(200 + lineGap*float64(i)); f.line != want {
			t.Errorf("line %d at %v; want %v", i, f.line, want)
		}
	}
}
