package render

import (
	"bytes"
	"encoding/csv"
	"image/png"
	"math"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"pgregory.net/rapid"

	"pelt/internal/testenv"
	"pelt/render/draw"
	"pelt/render/plain"
	"pelt/unit"
	"pelt/view"
)

// Figures are of every kind that a broken counter could bring; names hold what attacks
// a terminal, markup or a table. No name says NaN, so that finding one is a fault.
var (
	figures = rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 1), rapid.Float64Range(-10, 1e7),
		rapid.SampledFrom([]float64{
			0, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64,
			math.SmallestNonzeroFloat64, 1e23, -1e23, 1}))
	names = rapid.StringOfN(rapid.RuneFrom([]rune("abcWj mi01 <>&\"'`=/\x00\x1b[\u202e\u2028\u0085\u200b\ufeff日本éÖЩЉœщ̈%+,;\n\t\r")), 0, 60, -1)
	tones = rapid.SampledFrom([]view.Tone{view.Plain, view.Good, view.Bad, view.Muted})
	units = rapid.SampledFrom([]unit.Unit{unit.Word, unit.PPS, unit.BPS, unit.Seconds, unit.Ratio, unit.Bytes, unit.Count})
)

func someNames(t *rapid.T, label string) []string { return rapid.SliceOfN(names, 0, 9).Draw(t, label) }

func axis(t *rapid.T) view.Axis {
	return view.Axis{Label: names.Draw(t, "axis"), Unit: units.Draw(t, "unit"), Log: rapid.Bool().Draw(t, "log"),
		Categories: someNames(t, "categories"), Ticks: rapid.SliceOfN(figures, 0, 4).Draw(t, "ticks")}
}

func point(t *rapid.T) view.Point {
	f := func() float64 { return figures.Draw(t, "figure") }
	p := view.Point{X: f(), Y: f(), Z: f(), Low: f(), High: f(), Name: names.Draw(t, "point"), Tone: tones.Draw(t, "tone")}
	if rapid.Bool().Draw(t, "in categories") {
		p.X = float64(rapid.IntRange(0, 9).Draw(t, "category"))
	}
	if rapid.Bool().Draw(t, "in categories") {
		p.Y = float64(rapid.IntRange(0, 9).Draw(t, "category"))
	}
	return p
}

func chart(t *rapid.T) view.Section {
	c := view.Chart{Title: names.Draw(t, "title"), Note: names.Draw(t, "note"),
		Kind: view.ChartKind(rapid.IntRange(0, int(view.Heat)).Draw(t, "kind")),
		Hero: rapid.Bool().Draw(t, "hero"), X: axis(t), Y: axis(t), Z: axis(t)}
	for range rapid.IntRange(0, 7).Draw(t, "series") {
		s := view.Series{Name: names.Draw(t, "series"), Tone: tones.Draw(t, "tone"), Guest: rapid.Bool().Draw(t, "guest")}
		for range rapid.IntRange(0, 14).Draw(t, "points") {
			s.Points = append(s.Points, point(t))
		}
		c.Series = append(c.Series, s)
	}
	for range rapid.IntRange(0, 3).Draw(t, "marks") {
		c.Marks = append(c.Marks, view.Mark{At: figures.Draw(t, "at"), OnY: rapid.Bool().Draw(t, "on y"),
			Text: names.Draw(t, "mark")})
	}
	return c
}

func times(t *rapid.T) view.Section {
	s := view.Times{Title: names.Draw(t, "title"), Note: names.Draw(t, "note")}
	for range rapid.IntRange(0, 3).Draw(t, "lanes") {
		l := view.Lane{Label: names.Draw(t, "lane"), Unit: units.Draw(t, "unit")}
		for range rapid.IntRange(0, 3).Draw(t, "traces") {
			l.Traces = append(l.Traces, view.Trace{Name: names.Draw(t, "trace"), Start: figures.Draw(t, "start"),
				Step:   figures.Draw(t, "step"),
				Values: rapid.SliceOfN(figures, 0, 30).Draw(t, "values"), Tone: tones.Draw(t, "tone")})
		}
		s.Lanes = append(s.Lanes, l)
	}
	for range rapid.IntRange(0, 6).Draw(t, "changes") {
		s.Changes = append(s.Changes, view.Change{At: figures.Draw(t, "at"), Text: names.Draw(t, "change"),
			Tone: tones.Draw(t, "tone")})
		s.Gaps = append(s.Gaps, view.Gap{From: figures.Draw(t, "from"), To: figures.Draw(t, "to"),
			Text: names.Draw(t, "gap")})
	}
	return s
}

func path(t *rapid.T) view.Section {
	p := view.Path{Title: names.Draw(t, "title"), Nodes: someNames(t, "nodes"), Sent: rapid.Uint64().Draw(t, "sent"),
		Received: rapid.Uint64().Draw(t, "received")}
	for range rapid.IntRange(0, 5).Draw(t, "losses") {
		p.Losses = append(p.Losses, view.Loss{Node: rapid.IntRange(-2, 12).Draw(t, "node"),
			Link: rapid.Bool().Draw(t, "link"), Packets: rapid.Uint64().Draw(t, "packets"), Text: names.Draw(t,
				"cause")})
	}
	return p
}

func table(t *rapid.T) view.Section {
	out := view.Table{Title: names.Draw(t, "title"), Note: names.Draw(t, "note"),
		Lead: rapid.IntRange(-1, 5).Draw(t, "lead"), Fold: rapid.Bool().Draw(t, "fold")}
	keys := rapid.IntRange(0, 3).Draw(t, "keys")
	for i := range rapid.IntRange(0, 7).Draw(t, "columns") {
		out.Columns = append(out.Columns, view.Column{Name: names.Draw(t, "name"), Label: names.Draw(t, "label"),
			Unit:  units.Draw(t, "unit"),
			Right: rapid.Bool().Draw(t, "right"),
			Key:   i < keys, Detail: i >= keys && rapid.Bool().Draw(t, "detail")})
	}
	for range rapid.IntRange(0, 50).Draw(t, "rows") {
		var row []view.Cell
		for range rapid.IntRange(0, 8).Draw(t, "cells") {
			row = append(row, view.Cell{Text: names.Draw(t, "cell"), Value: figures.Draw(t, "value"),
				Low: figures.Draw(t, "low"), High: figures.Draw(t, "high"), Note: names.Draw(t, "note"), Tone: tones.Draw(t,
					"tone")})
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

func page(t *rapid.T) view.Page {
	p := view.Page{Title: names.Draw(t, "title"), Subject: names.Draw(t, "subject"), Verdict: names.Draw(t, "verdict"),
		Facts: someNames(t, "facts"), Doubts: someNames(t, "doubts"),
		Next: []view.Step{{Text: names.Draw(t, "step")}}}
	for range rapid.IntRange(0, 4).Draw(t, "sections") {
		kinds := []func(*rapid.T) view.Section{chart, times, path, table}
		p.Sections = append(p.Sections, rapid.SampledFrom(kinds).Draw(t, "section")(t))
	}
	return p
}

// goFaces are the fonts of PNG pictures.
func goFaces(t *testing.T) (regular, bold font.Face) {
	var faces [2]font.Face
	for i, source := range [][]byte{goregular.TTF, gobold.TTF} {
		f, err := opentype.Parse(source)
		testenv.Must(t, err)
		if faces[i], err = opentype.NewFace(f, &opentype.FaceOptions{Size: 100, DPI: 72}); err != nil {
			t.Fatal(err)
		}
	}
	return faces[0], faces[1]
}

// Every shape and every word lies inside its picture, whatever the data.
func TestShapesInside(t *testing.T) {
	regular, bold := goFaces(t)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom([]func(*rapid.T) view.Section{chart, times, path}).Draw(t, "section")(t)
		p := draw.Section(s, rapid.Float64Range(100, 1200).Draw(t, "width"))
		inside := func(what string, x, y float64) {
			if !(x >= -0.1 && x <= p.Width+0.1 && y >= -0.1 && y <= p.Height+0.1) {
				t.Fatalf("%s at %v, %v leaves a picture of %v x %v", what, x, y, p.Width, p.Height)
			}
		}
		for _, shape := range p.Shapes {
			at := shape.At
			switch shape.Form {
			case draw.Box:
				inside("box", at[0], at[1])
				inside("end of a box", at[0]+at[2], at[1]+at[3])
			case draw.Words:
				face := regular
				if shape.Bold {
					face = bold
				}
				width := float64(font.MeasureString(face, shape.Text)) / 64 * shape.Size / 100
				left := at[0] - width*[]float64{0, 0.5, 1}[shape.Anchor]
				inside("words "+shape.Text, left, at[1])
				inside("end of words "+shape.Text, left+width, at[1])
			default:
				for i := 0; i+1 < len(at); i += 2 {
					inside("corner", at[i], at[i+1])
				}
			}
		}
	})
}

// No page panics, says NaN or lets names act, in any format.
func TestAnyPage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := page(t)
		var page, text, drawn, pixels bytes.Buffer
		testenv.Must(t, HTML(&page, p))
		width := rapid.IntRange(1, 200).Draw(t, "width")
		all := rapid.Bool().Draw(t, "all")
		testenv.Must(t, Text(&text, p, Terminal{Width: width, All: all}))
		lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
		for _, line := range lines {
			if w := plain.Width(line); w > max(width, 20) {
				t.Errorf("a line of %d columns on a terminal of %d: %q", w, width, line)
			}
			if i := strings.IndexFunc(line, func(r rune) bool {
				return unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
			}); i >= 0 {
				t.Errorf("a control character in %q", line)
			}
		}
		if len(lines) > briefLines && !all {
			t.Errorf("%d lines in the short form", len(lines))
		}
		if sheet, ok := draw.Sheet(p, 800); ok {
			testenv.Must(t, SVG(&drawn, sheet))
			testenv.Must(t, PNG(&pixels, sheet, 0.3))
			if _, err := png.Decode(&pixels); err != nil {
				t.Errorf("PNG: %v", err)
			}
		}
		for format, out := range map[string]string{"HTML": page.String(), "SVG": drawn.String(), "text": text.String()} {
			for _, bad := range []string{"NaN", "Inf", "ZgotmplZ", "%!", "\x1b", "\u202e", "\x00"} {
				if strings.Contains(strings.ReplaceAll(out, pageScript, ""), bad) {
					t.Errorf("%s has %q", format, bad)
				}
			}
		}
		if n := strings.Count(page.String(), "<script"); n != 1 {
			t.Errorf("%d scripts in the page", n)
		}
		for _, s := range p.Sections {
			if table, ok := s.(view.Table); ok {
				checkCSV(t, table)
			}
		}
	})
}

// checkCSV reads a table back.
func checkCSV(t *rapid.T, table view.Table) {
	var b bytes.Buffer
	testenv.Must(t, CSV(&b, table))
	if len(table.Columns) == 0 {
		return // no columns, empty lines
	}
	r := csv.NewReader(&b)
	lines, err := r.ReadAll()
	if err != nil {
		t.Fatalf("CSV: %v", err)
	}
	if len(table.Columns) > 1 && len(lines) != len(table.Rows)+1 {
		t.Errorf("%d lines of CSV; want %d", len(lines), len(table.Rows)+1)
	}
}

// TestEms: no capital letter of Latin, Greek and Cyrillic scripts is wider than pictures leave room for.
func TestEms(t *testing.T) {
	regular, _ := goFaces(t)
	for r := rune(' '); r < 0x530; r++ {
		wide, known := regular.GlyphAdvance(r)
		if ems := draw.Ems(string(r)); known && unicode.IsUpper(r) && float64(wide)/64/100 > ems+0.001 {
			t.Errorf("%c is %v ems wide, not %v", r, float64(wide)/64/100, ems)
		}
	}
}
