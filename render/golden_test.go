package render

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pelt/internal/testenv"
	"pelt/render/draw"
	"pelt/test/golden"
	"pelt/unit"
	"pelt/view"
)

func TestTextGolden(t *testing.T) {
	for name, p := range map[string]view.Page{"small": smallPage(),
		"empty": {Title: "Size curve", Verdict: "No usable result."}} {
		for form, terminal := range map[string]Terminal{"brief": {More: "pelt report last --all"}, "all": {All: true}} {
			var b bytes.Buffer
			testenv.Must(t, Text(&b, p, terminal))
			golden.File(t, "testdata/"+name+"-"+form+".txt", b.String())
		}
	}
}

// Colours are written only where they are asked for, and the words stay the same.
func TestTextColor(t *testing.T) {
	var plainText, coloured bytes.Buffer
	p := smallPage()
	testenv.Must(t, Text(&plainText, p, Terminal{All: true}))
	testenv.Must(t, Text(&coloured, p, Terminal{All: true, Color: true}))
	if strings.Contains(plainText.String(), "\x1b") ||
		!strings.Contains(coloured.String(), "\x1b[32mfaster (2.03×)\x1b[0m") {
		t.Errorf("colours are wrong: %q", coloured.String())
	}
	for _, code := range []string{bold, dim, red, green, "0"} {
		coloured = *bytes.NewBuffer(bytes.ReplaceAll(coloured.Bytes(), []byte("\x1b["+code+"m"), nil))
	}
	if coloured.String() != plainText.String() {
		t.Errorf("colours change the words: got\n%s\nwant\n%s", coloured.String(), plainText.String())
	}
}

func TestSVGGolden(t *testing.T) {
	points := func(figures ...float64) (out []view.Point) {
		for i, v := range figures {
			out = append(out, view.Point{X: float64(i), Y: v, Low: v - 1, High: v + 1,
				Name: fmt.Sprintf("point %d", i)})
		}
		return out
	}
	names := view.Axis{Categories: []string{"one", "two"}}
	sections := map[string]view.Section{
		"line": view.Chart{Title: "Line & limit", Hero: true, X: view.Axis{Label: "Payload", Unit: unit.Bytes},
			Y: view.Axis{Label: "Received", Unit: unit.PPS},
			Series: []view.Series{{Name: "up", Points: points(4e3, 9e3)},
				{Name: "sent", Points: points(5e3, 5e4), Guest: true, Tone: view.Muted}}, Marks: []view.Mark{{At: 1e4,
				OnY: true, Text: "limit"}}},
		"stack": view.Chart{Title: "Stack", Kind: view.Stack, X: names, Y: view.Axis{Label: "Lost", Unit: unit.Ratio},
			Series: []view.Series{{Name: "ring", Points: points(0.25, 0.1), Tone: view.Bad},
				{Name: "queue", Points: points(0.125, 0)}}},
		"interval": view.Chart{Title: "Intervals", Kind: view.Interval, X: view.Axis{Label: "Goodput", Unit: unit.BPS},
			Y: names, Series: []view.Series{{Points: []view.Point{{X: 9e7, Low: 8e7, High: 9.5e7},
				{X: 4e7, Y: 1, Tone: view.Bad}}}}},
		"heat": view.Chart{Title: "Heat", Kind: view.Heat, X: names, Y: names,
			Z: view.Axis{Label: "Goodput",
				Unit: unit.BPS}, Series: []view.Series{{Points: []view.Point{{Z: 9e7}, {X: 1, Y: 1, Z: 1e6}}}}},
		"times": view.Times{Title: "Times",
			Lanes: []view.Lane{{Label: "Received", Unit: unit.PPS,
				Traces: []view.Trace{{Name: "received", Step: 1, Values: []float64{5e4, 5e4, math.NaN(), 2e4}}}}},
			Changes: []view.Change{{At: 3, Text: "limited", Tone: view.Bad}}, Gaps: []view.Gap{{From: 2, To: 3,
				Text: "away"}}},
		"path": view.Path{Title: "Path", Nodes: []string{"sender", "receiver"}, Sent: 1000, Received: 900,
			Losses: []view.Loss{{Link: true, Packets: 100, Text: "queue full"}}},
	}
	for name, s := range sections {
		var b bytes.Buffer
		testenv.Must(t, SVG(&b, draw.Section(s, 420)))
		golden.File(t, "testdata/"+name+".svg", b.String())
	}
}

func TestCSVGolden(t *testing.T) {
	table := view.Table{Columns: []view.Column{{Name: "setting", Label: "Setting"},
		{Name: "payload_bytes", Unit: unit.Bytes}, {Name: "goodput_bps", Unit: unit.BPS}, {Name: "loss_ratio",
			Unit: unit.Ratio}},
		Rows: [][]view.Cell{
			{text(`=cmd|"/c calc", "x"`), plainFigure(64), {Value: 9.5e7, Low: 9e7, High: 1e8}, plainFigure(0.00025)},
			{text("line\nbreak\x1b[2J"), {Value: math.NaN(), Text: "max"}, plainFigure(1e6), {Value: math.Inf(1)}},
			{},
		}}
	var b bytes.Buffer
	testenv.Must(t, CSV(&b, table))
	// No word is a formula for a spreadsheet, and a negative number stays one.
	words := slices.Values([][]string{{"=1+1", "+x", "-x", "@x", "-1.5", "x=1", ""}})
	testenv.Must(t, Records(&b, words))
	golden.File(t, "testdata/table.csv", b.String())
}

// Words are readable on the page and on its panels, in light and in dark.
func TestContrast(t *testing.T) {
	luminance := func(hex string) float64 {
		rgb, err := strconv.ParseUint(hex[1:], 16, 32)
		testenv.Must(t, err)
		sum := 0.0
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			v := float64(rgb>>(16-8*i)&0xff) / 255
			if v <= 0.04045 {
				v /= 12.92
			} else {
				v = math.Pow((v+0.055)/1.055, 2.4)
			}
			sum += weight * v
		}
		return sum
	}
	contrast := func(a, b string) float64 {
		x, y := luminance(a), luminance(b)
		return (max(x, y) + 0.05) / (min(x, y) + 0.05)
	}
	for ink := draw.Soft; ink < draw.Inks; ink++ {
		c := palette[ink]
		for _, ground := range []draw.Ink{draw.Back, draw.Panel} {
			if got := contrast(c.light, palette[ground].light); got < 4.5 {
				t.Errorf("%s on %s in light: contrast %.2f; want 4.5", c.name, palette[ground].name, got)
			}
			if got := contrast(c.dark, palette[ground].dark); got < 4.5 {
				t.Errorf("%s on %s in dark: contrast %.2f; want 4.5", c.name, palette[ground].name, got)
			}
		}
	}
}

// The page opens with the verdict, and is fit for sharing.
func TestHTMLHead(t *testing.T) {
	var b bytes.Buffer
	testenv.Must(t, HTML(&b, smallPage()))
	page := b.String()
	places := []int{}
	for _, want := range []string{`http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;;`,
		"<title>Size curve: lab:router", `<meta name="description" content="The path carries`, `property="og:title"`,
		"<h1>The path carries",
		"Saturates at", "Packets received by payload size", "Where the packets went", "By payload size</h3>",
		"How sure this is", `pelt curve <span class="whole">--find-rate</span> lab:router`, "How it was measured"} {
		i := strings.Index(page, want)
		if i < 0 {
			t.Errorf("the page lacks %q", want)
		}
		places = append(places, i)
	}
	if !slices.IsSorted(places) {
		t.Errorf("the parts of the page are out of order: %v", places)
	}
	if strings.Contains(page, "style=") || strings.Contains(page, "http://") || strings.Contains(page, "https://") {
		t.Error("the page has a style that its policy blocks, or an address outside")
	}
}

// Outside names reach no parser of markup.
func FuzzHTML(f *testing.F) {
	f.Add("</script><script>alert(1)</script>")
	f.Add(`" onload="alert(1)`)
	f.Add("</title></style><img src=x onerror=alert(1)>")
	f.Add("\x00\x1b[2J\u202e\u2028<!--")
	mark := func(name string) view.Page {
		return view.Page{Title: name, Subject: name, Verdict: name, Facts: []string{name}, Doubts: []string{name},
			Next: []view.Step{{Text: name, Command: name}}, Sections: []view.Section{
				view.Heading{Text: name}, view.Text{Text: name}, view.Tiles{{Label: name, Value: name,
					Note: name}}, view.Path{Title: name, Nodes: []string{name, name}, Losses: []view.Loss{{Text: name}}},
				view.Table{Title: name, Note: name, Fold: true, Columns: []view.Column{{Label: name}},
					Rows: [][]view.Cell{{{Text: name, Note: name}}}},
				view.Chart{Title: name, Note: name, X: view.Axis{Label: name}, Y: view.Axis{Label: name},
					Series: []view.Series{{Name: name,
						Points: []view.Point{{Name: name}}}}, Marks: []view.Mark{{Text: name}}}}}
	}
	tags := func(name string) (string, int) {
		var b bytes.Buffer
		if err := HTML(&b, mark(name)); err != nil {
			panic(err)
		}
		bare := strings.NewReplacer(`<span class="whole">`, "", `<span class="name">`, "", "<wbr>", "", "</span>", "").Replace(b.String())
		return b.String(), strings.Count(bare, "<")
	}
	f.Fuzz(func(t *testing.T, name string) {
		page, got := tags(name)
		_, want := tags("name")
		// An empty name leaves out its elements; a long path takes more lines.
		if strings.TrimSpace(name) != "" && got > want+20 || strings.Count(page, "<script") != 1 ||
			strings.Contains(page, "ZgotmplZ") {
			t.Errorf("name %q: %d tags; want about %d", name, got, want)
		}
	})
}
