package screen

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"pelt/live"
	"pelt/model"
	"pelt/render"
	"pelt/render/plain"
	"pelt/table"
	"pelt/unit"
	"pelt/words"
)

// Page is what a drawing has to fit into.
type Page struct {
	Width, Height int
	Color         bool
	Keys          bool // show what each key does
}

// Sizes of the parts, in columns and rows.
const (
	wide     = 160 // from here on there are two columns
	between  = 3   // columns
	titled   = 24  // rows: from here on each part has a title
	taller   = 8   // more rows are another row of each chart
	progress = 20
	leastLog = 4
	tooQuiet = 3 * time.Second // a trial without samples for so long has none
)

// Codes of ECMA-48 for colours. Signs stand beside all of them.
const (
	bold = "1"
	dim  = "2"
	red  = "31"
)

// Draw returns the screen of a run at a moment: as many lines as the page has, each at most as wide.
func Draw(n *live.Now, at time.Time, p Page) []string {
	lines := []string{p.head(n)}
	if p.Keys {
		lines = append(lines, p.keys(n.Language)...)
	} else {
		lines = append(lines, p.body(n, at)...)
	}
	lines = append(lines, make([]string, max(p.Height-len(lines), 0))...)[:p.Height]
	if p.Height > 1 {
		lines[p.Height-1] = p.paint(n.Language.Say("q leave, the test goes on   s stop the test   ? keys"), dim)
	}
	for i, l := range lines {
		if columnsOf(l) > p.Width {
			lines[i] = plain.Cut(uncoloured(l), p.Width)
		}
	}
	return lines
}

func (p Page) paint(s, code string) string {
	return plain.Paint(s, code, p.Color)
}

func (p Page) wrap(s, head, indent string, most int) []string {
	return plain.AtMost(plain.Wrap(s, head, indent, p.Width), most, p.Width)
}

func (p Page) head(n *live.Now) string {
	name, state := "pelt", n.Language.Say("○ starting")
	if n.Started.Command != "" {
		name += plain.Text(" " + n.Started.Command + " " + n.Started.Target)
		state = n.Language.Say("● running")
	}
	name = plain.Cut(name, p.Width-plain.Width(state)-1)
	return p.paint(name+strings.Repeat(" ", max(p.Width-plain.Width(name)-plain.Width(state), 1))+state, bold)
}

func (p Page) keys(in words.Language) []string {
	lines := []string{""}
	for _, k := range [][2]string{{"q", "leave this screen; the test goes on, with progress lines"},
		{"s", "stop the test, as Ctrl-C does; what was measured is reported"}, {"?", "back to the test"}} {
		lines = append(lines, p.wrap(in.Say(k[1]), k[0]+"  ", "   ", p.Height)...)
	}
	return lines
}

// body lays out the parts, the most important first: what does not fit is cut off below.
func (p Page) body(n *live.Now, at time.Time) []string {
	left, right, room := p, p, p.Height-2
	top := p.verdict(n)
	if p.Width < wide {
		lines := joined([][]string{top, p.trial(n, at), p.rates(n, at), p.paths(n), p.cores(n)}, room-leastLog)
		return joined([][]string{lines, p.log(n, room-len(lines))}, room)
	}
	left.Width = (p.Width - between) / 2
	right.Width = p.Width - between - left.Width
	rows := room - len(top) - 1
	cores := right.cores(n)
	return joined([][]string{top, beside(
		joined([][]string{left.trial(n, at), left.rates(n, at), left.paths(n)}, rows),
		joined([][]string{cores, right.log(n, rows-len(cores))}, rows), left.Width)}, room)
}

// joined puts parts one below the other, with empty lines between as far as there is room.
func joined(parts [][]string, room int) (lines []string) {
	for _, part := range parts {
		room -= len(part)
	}
	for _, part := range parts {
		if len(lines) > 0 && len(part) > 0 && room > 0 {
			lines, room = append(lines, ""), room-1
		}
		lines = append(lines, part...)
	}
	return lines
}

func beside(left, right []string, width int) (lines []string) {
	for i := range max(len(left), len(right)) {
		a, b := "", ""
		if i < len(left) {
			a = left[i]
		}
		if i < len(right) {
			b = right[i]
		}
		lines = append(lines, a+strings.Repeat(" ", max(width-columnsOf(a), 0)+between)+b)
	}
	return lines
}

func columnsOf(line string) int { return plain.Width(uncoloured(line)) }

var colours = regexp.MustCompile("\x1b\\[[0-9]*m")

func uncoloured(line string) string { return colours.ReplaceAllString(line, "") }

func (p Page) verdict(n *live.Now) []string {
	text := cmp.Or(n.Verdict(), n.Language.Say("no trial has ended."))
	return p.wrap(n.Language.Say("So far: ")+text, "", "", max(p.Height/8, 1))
}

// under puts a title above a part that is not empty, if there is room.
func (p Page) under(title string, part []string) []string {
	if len(part) == 0 || p.Height < titled {
		return part
	}
	return append([]string{p.paint(title, bold)}, part...)
}

// trial says which trial runs, and how long it and the whole run take.
func (p Page) trial(n *live.Now, at time.Time) []string {
	if n.Next == nil {
		return []string{n.Language.Say("Preparing the next trial.")}
	}
	in := n.Language
	name := in.Sayf("Trial %s", n.Next.Name())
	if n.Next.Setting != "" {
		name = in.Sayf("%s: %s", name, plain.Text(n.Next.Setting))
	}
	share := min(max(at.Sub(n.Began).Seconds()/max(n.Next.Whole().Seconds(), 0.001), 0), 1)
	full := int(share * progress)
	bar := strings.Repeat("█", full) + strings.Repeat("░", progress-full)
	then := n.Elapsed(at) + in.Say(". ")
	rest, known := n.Left(at)
	left := in.Say(unit.FormatEstimate(rest.Seconds()))
	switch more := n.Next.Trials - n.Next.Number; {
	case !known:
	case more > 0:
		then += in.Sayf("%d more to come; about %s left.", more, left)
	case n.Next.Trials == 0:
		then += in.Sayf("The search takes about %s longer.", left)
	case n.Next.Trials > 1:
		then += in.Sayf("It is the last one; about %s left.", left)
	default:
		then += in.Sayf("About %s left.", left)
	}
	return []string{p.paint(plain.Cut(name, p.Width), bold), bar + " " + then}
}

func (p Page) rates(n *live.Now, at time.Time) (lines []string) {
	rows := 1 + max(p.Height-titled, 0)/taller
	trial := 0
	for _, x := range n.Series {
		trial = max(trial, x.Trial)
	}
	if n.Next != nil && trial != n.Next.Number && at.Sub(n.Began) > tooQuiet {
		return nil
	}
	flows := flowsOf(n.Series, trial)
	longest := 0
	for i, flow := range flows {
		if i > 0 && len(lines) > p.Height/3 {
			lines = append(lines, p.paint(n.Language.Sayf("and %d more flows", len(flows)-i), dim))
			break
		}
		both := ratesOf(n.Series, flow)
		top := 0.0
		for _, x := range both {
			top, longest = max(top, slices.Max(x.Values)), max(longest, len(x.Values))
		}
		for _, x := range both {
			value := "–"
			if n.Next == nil || x.Trial == n.Next.Number {
				value, _ = unit.FormatNamed(x.Metric, x.Second)
			}
			label := plain.Fill(n.Language.Say(map[bool]string{true: "Sent", false: "Received"}[x.Sent()]), 8) +
				fmt.Sprintf("%11s ", value)
			if len(flows) > 1 {
				label = plain.Fill(plain.Cut(n.Language.Say(plain.Text(flow)), 9), 10) + label
			}
			if rows > 1 && len(lines) > 0 {
				lines = append(lines, "")
			}
			wide := plain.Width(label)
			for row, bars := range plain.Spark(x.Values, top, max(p.Width-wide, 1), rows) {
				if row < rows-1 {
					lines = append(lines, strings.Repeat(" ", wide)+bars)
				} else {
					lines = append(lines, label+bars)
				}
			}
		}
	}
	return p.under(n.Language.Sayf("Rates, last %s", unit.FormatMoment(float64(longest))), lines)
}

func flowsOf(all []live.Series, trial int) (flows []string) {
	for _, x := range all {
		if x.Flow != "" && x.Trial == trial && !slices.Contains(flows, x.Flow) {
			flows = append(flows, x.Flow)
		}
	}
	return flows
}

// ratesOf are what a flow sends and what it receives, as far as they are known.
func ratesOf(all []live.Series, flow string) (both []live.Series) {
	for _, sent := range []bool{true, false} {
		for _, x := range all {
			if x.Flow == flow && x.Sent() == sent {
				both = append(both, x)
				break
			}
		}
	}
	return both
}

// paths draws where the packets of the trial went.
func (p Page) paths(n *live.Now) (lines []string) {
	all := n.Paths()
	for _, path := range all {
		one := render.Path(path, render.Terminal{Width: p.Width, Color: p.Color})
		if most := max(p.Height/3, 4); len(one) > most/len(all) && len(one) > 3 {
			one = one[:max(most/len(all), 3)]
		}
		lines = append(lines, p.under(plain.Text(path.Title), one)...)
	}
	return lines
}

// cores draws how busy each core of each watched host is.
func (p Page) cores(n *live.Now) (lines []string) {
	var nodes []string
	cores := map[string][]live.Series{}
	for _, x := range n.Series {
		if x.Metric != coreMetric || x.Core == nil {
			continue
		}
		if cores[x.At] == nil {
			nodes = append(nodes, x.At)
		}
		cores[x.At] = append(cores[x.At], x)
	}
	for _, node := range nodes {
		slices.SortFunc(cores[node], func(a, b live.Series) int { return *a.Core - *b.Core })
		lines = append(lines, p.host(n.Language, node, cores[node]))
	}
	return p.under(n.Language.Say(table.MetricOf("core_busy_ratio").Label), lines)
}

const coreMetric = "cpu_busy_ratio"

// host draws the cores of a host in a line: each with its figure, or where they have no room the busiest with its
// figure.
func (p Page) host(in words.Language, name string, cores []live.Series) string {
	const label, each = 10, 12
	line := plain.Fill(plain.Cut(in.Say(plain.Text(name)), label-1), label)
	busiest := cores[0]
	for _, x := range cores {
		bar, figure := plain.Spark([]float64{x.Value}, 1, 1, 1)[0], figureOf(x)
		if label+len(cores)*each <= p.Width {
			line += fmt.Sprintf("%2d %s %-*s", *x.Core, bar, each-5, figure)
			continue
		}
		line += bar
		if x.Value > busiest.Value {
			busiest = x
		}
	}
	if label+len(cores)*each > p.Width {
		line += in.Sayf("  busiest: core %d, %s", *busiest.Core, figureOf(busiest))
	}
	return line
}

func figureOf(x live.Series) string {
	text, _ := unit.FormatNamed(x.Metric, x.Value)
	return text
}

// log lists notes and trials in a number of rows.
func (p Page) log(n *live.Now, rows int) (lines []string) {
	for i, note := range slices.Backward(n.Notes) {
		if len(n.Notes)-i > max(rows/8, 1) {
			break
		}
		lines = append(lines, p.wrap(note, n.Language.Say("Note: "), "      ", max(rows/8, 2))...)
	}
	for _, t := range slices.Backward(n.Trials) {
		if len(lines) >= rows {
			break
		}
		sign, code := "  ", ""
		if t.State != model.Valid {
			sign, code = "! ", red
		}
		name := sign + t.Name() + "  "
		one := p.wrap(t.Text, name, strings.Repeat(" ", len(name)), max(rows/4, 1))
		one[0] = p.paint(one[0], code)
		lines = append(lines, one...)
	}
	lines = p.under(n.Language.Say("Trials, the newest first"), lines)
	return lines[:max(min(len(lines), rows), 0)]
}
