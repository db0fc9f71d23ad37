package render

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pelt/render/draw"
	"pelt/render/plain"
	"pelt/unit"
	"pelt/view"
	"pelt/words"
)

// TestNarrowKeepsTheAnswer: the first words behind the keys are narrowed, not left out.
func TestNarrowKeepsTheAnswer(t *testing.T) {
	table := view.Table{Columns: []view.Column{{Label: "Setting", Unit: unit.Word, Key: true},
		{Label: "Lost", Unit: unit.Ratio},
		{Label: "Mostly", Unit: unit.Word}, {Label: "Trials", Unit: unit.Word}},
		Rows: [][]view.Cell{{{Text: "1472 B, every 2 ms"}, {Text: "12.5 %"}, {Text: "receiver socket buffer full"},
			{Text: "1, 5, 9"}}}}
	for width, want := range map[int]string{
		100: "1472 B, every 2 ms  12.5 %  receiver socket buffer full  1, 5, 9",
		45:  "1472 B, every 2 ms  12.5 %  receiver socket…", 40: "1472 B, every…    12.5 %  receiver…", 20: "1472 B, every 2 ms",
	} {
		x := texter{Terminal: Terminal{Width: width}}
		x.grid(table, 5)
		if got := x.out[1]; got != want {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
		if told := strings.HasPrefix(x.out[len(x.out)-1], "and "); told != (width < 100) {
			t.Errorf("%d columns: a column that is left out is told: %v", width, told)
		}
	}
}

// A verdict that is cut ends in one ellipsis.
func TestOneEllipsis(t *testing.T) {
	x := texter{Terminal: Terminal{Width: 20}}
	for _, lines := range [][]string{{"12345678 12345678", "more"}, {"12345678 12345678 12", "more"}} {
		got := x.atMost(slices.Clone(lines), 1)
		if len(got) != 1 || strings.Count(got[0], "…") != 1 || plain.Width(got[0]) > 20 {
			t.Errorf("%q is cut to %q", lines, got)
		}
	}
}

// TestBlocks: each block begins with the keys where they have room, no column stands alone where another can join it
// there, a detail begins no block, and the long form of a long table is cut.
func TestBlocks(t *testing.T) {
	table := view.Table{Columns: []view.Column{{Key: true}, {Key: true}, {}, {}, {}, {Detail: true}}}
	for _, c := range []struct {
		width  int
		all    bool
		widths []int
		want   [][]int
	}{
		{80, true, []int{5, 5, 21, 21, 21, 0}, [][]int{{0, 1, 2, 3}, {0, 1, 4, 5}}},
		{80, true, []int{5, 5, 10, 20, 30, 20}, [][]int{{0, 1, 2, 3, 4}}},
		{80, true, []int{5, 5, 28, 28, 28, 60}, [][]int{{0, 1, 2, 3}, {0, 1, 4}}},
		{50, true, []int{5, 5, 12, 12, 12, 60}, [][]int{{0, 1, 2, 3}, {0, 1, 4}}},
		{20, true, []int{15, 15, 12, 12, 12, 1}, [][]int{{0}, {1}, {2}, {3}, {4, 5}}},
		{50, false, []int{5, 5, 12, 12, 12, 1}, [][]int{{0, 1, 2, 3}}},
		{80, true, []int{20, 20, 10, 10, 60, 60}, [][]int{{0, 1, 2, 3}, {4}}},
	} {
		got := (&texter{Terminal: Terminal{Width: c.width, All: c.all}}).blocks(table, c.widths)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%d columns wide, all %v: %v; want %v", c.width, c.all, got, c.want)
		}
	}
	long := view.Table{Rows: make([][]view.Cell, 410), Lead: 5}
	if n := len((&texter{Terminal: Terminal{All: true}}).shownRows(long, mostRows)); n != mostRows-1 {
		t.Errorf("%d of 410 rows are shown", n)
	}
	for i := range long.Rows {
		long.Rows[i] = []view.Cell{{Value: float64(i)}}
	}
	for _, c := range []struct {
		named      int // the first row that the verdict names, of so many
		of         int
		lead, most int
		all        bool
		want       []float64
	}{
		{300, 1, 0, 6, false, []float64{0, 136, 272, 300, 409}},
		{300, 1, 0, 2, false, []float64{300}},
		{300, 1, 3, 9, false, []float64{0, 1, 300}},
		{300, 1, 3, 6, true, []float64{0, 1, 2, 3, 300}},
		{0, 410, 0, 6, false, []float64{0, 102, 205, 307, 409}},
		{0, 410, 3, 9, false, []float64{0, 1, 2}},
	} {
		long.Lead = c.lead
		for i := range long.Rows {
			long.Rows[i][0].Named = i >= c.named && i < c.named+c.of
		}
		var got []float64
		for _, row := range (&texter{Terminal: Terminal{All: c.all}}).shownRows(long, c.most) {
			got = append(got, row[0].Value)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d of 410 rows where %d lead: %v, want %v, with what the verdict names of %d from %d on", c.most,
				c.lead, got, c.want, c.of, c.named)
		}
	}
}

// A text from outside stays a text, in an element and in an attribute, and an attribute without one is left out.
func TestPut(t *testing.T) {
	m := Markup{Language: words.Chinese}
	m.Put(`<a href="/run/$1" title="$1" hidden="$2">{Next} $1$2 100%s</a>`, `"><script>{Next} $2&%d`, "")
	const text = "&#34;&gt;&lt;script&gt;{Next} $2&amp;%d"
	if got, want := m.String(), `<a href="/run/`+text+`" title="`+text+`">`+words.Chinese.Say("Next")+" "+text+
		" 100%s</a>"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestDashes: the dashes of a line go on from stretch to stretch, however short these are.
func TestDashes(t *testing.T) {
	var line []float64
	for x := range 91 {
		line = append(line, float64(x), 0)
	}
	for dash, want := range map[draw.Dash]float64{draw.Whole: 90, draw.Dashed: 50, draw.Dotted: 36} {
		covered := 0.0
		for _, at := range stroke(line, 1, dash.Lengths()) {
			covered += at[4] - at[0]
		}
		if math.Abs(covered-want) > 0.01 {
			t.Errorf("%v: %v of 90 px are drawn, want %v", dash.Lengths(), covered, want)
		}
	}
}

// TestLongNames: a name that fits into a line stays whole there, by how wide its letters are.
func TestLongNames(t *testing.T) {
	for name, want := range map[string]string{
		"frankfurt-rack-01-nw":                                 `<span class="whole">`,
		strings.Repeat("m", 9) + "-" + strings.Repeat("W", 10): `<span class="name">`,
		"frankfurt-rack-01.example.net":                        `<span class="name">`,
		"server-" + strings.Repeat("W", 33):                    "server-",
	} {
		var m Markup
		m.sentence(name)
		if !strings.HasPrefix(m.String(), want) {
			t.Errorf("%s is written as %s, want %s", name, m.String(), want)
		}
	}
}
