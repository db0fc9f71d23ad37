package render

import (
	"math"
	"slices"
	"strings"

	"pelt/render/plain"
	"pelt/unit"
	"pelt/view"
)

// Widths of a grid, in columns of the terminal.
const (
	between  = 2
	mostText = 48 // of a cell, but for the last one of a row

	mostLast   = 400
	leastWords = 30 // of a last column that goes on below

	leastAnswer = 14 // of words that are cut to fit
	leastKey    = 12
	narrow      = 60 // terminals
)

const mostRows = 60

// grid prints a table with at most a number of rows: the first where they lead, else
// some at equal steps, with the first and the last. Columns that do not fit are left out
// of the short form, the last first, which tells of them; in the long form they follow below.
func (t *texter) grid(table view.Table, most int) {
	whole, hidden := table, len(table.Rows)
	table.Rows = t.shownRows(table, most)
	hidden -= len(table.Rows)
	cells, widths := t.cells(table)
	t.fitLast(table, cells, widths)
	if !t.All {
		t.fitAnswer(table, widths)
	}
	blocks := t.blocks(table, widths)
	missing := t.missing(table, blocks)
	if missing > 0 && hidden == 0 && len(table.Rows) == most && most > leastTable {
		t.grid(whole, most-1)
		return
	}
	for n, columns := range blocks {
		if n > 0 {
			t.add("")
		}
		t.block(table, cells, widths, columns)
	}
	var tail string
	switch {
	case hidden > 0 && missing > 0:
		tail = t.language.Sayf("and %d more rows, %d columns", hidden, missing)
	case hidden > 0:
		tail = t.language.Sayf("and %d more", hidden)
	case missing == 1 && len(table.Rows) < most:
		tail = t.language.Say("and 1 more column")
	case missing > 0 && len(table.Rows) < most:
		tail = t.language.Sayf("and %d more columns", missing)
	default:
		return
	}
	more := t.More
	if !t.All && more != "" && plain.Width(t.language.Sayf("%s: %s", tail, more)) > t.Width {
		more = "--all" // a command that is cut is of no use
	}
	if more != "" {
		tail = t.language.Sayf("%s: %s", tail, t.language.Say(more))
	}
	t.add(t.paint(plain.Cut(tail, t.Width), dim))
}

// missing is how many columns a narrow terminal leaves out, but for details.
func (t *texter) missing(table view.Table, blocks [][]int) (n int) {
	if t.All || t.Width >= narrow {
		return 0
	}
	for i, c := range table.Columns {
		if !c.Detail && !slices.Contains(slices.Concat(blocks...), i) {
			n++
		}
	}
	return n
}

// blocks parts the columns of a table so that they fit. Each block begins with the keys, which say what a row is
// about, where they have room. A detail begins no block, and the last two share their columns: one that stands alone
// looks lost.
func (t *texter) blocks(table view.Table, widths []int) [][]int {
	fits := func(columns []int) bool { return widthOf(columns, widths) <= t.Width }
	var keys []int
	for i := range keysOf(table) {
		keys = append(keys, i)
	}
	if !fits(keys) {
		keys = nil
	}
	var blocks [][]int
	columns := slices.Clone(keys)
	for i := len(keys); i < len(widths); i++ {
		more := append(slices.Clone(columns), i)
		switch {
		case fits(more) || len(columns) == 0:
			columns = more
		case !t.All:
			return [][]int{columns}
		case table.Columns[i].Detail:
		default:
			blocks = append(blocks, columns)
			if columns = append(slices.Clone(keys), i); !fits(columns) {
				columns = []int{i}
			}
		}
	}
	blocks = append(blocks, columns)
	if last := len(blocks) - 1; last > 0 && (keys == nil || blocks[last][0] == keys[0]) {
		a, b := blocks[last-1], blocks[last]
		for k := len(keys); len(a)-len(b) >= 2; a, b = a[:len(a)-1], slices.Insert(b, k, a[len(a)-1]) {
			if !fits(slices.Insert(slices.Clone(b), k, a[len(a)-1])) {
				break
			}
		}
		blocks[last-1], blocks[last] = a, b
	}
	return blocks
}

func widthOf(columns, widths []int) int {
	sum := between * (len(columns) - 1)
	for _, i := range columns {
		sum += widths[i]
	}
	return sum
}

// fitLast gives the last column, if it has words, the room that the others leave, or the
// room beside the keys. Where there is little room its words are cut.
func (t *texter) fitLast(table view.Table, cells [][]string, widths []int) {
	last := len(widths) - 1
	if last < 1 || widths[last] <= min(mostText, t.Width) {
		return
	}
	room, beside := t.Width, t.Width
	for i, w := range widths[:last] {
		room -= w + between
		if i < keysOf(table) {
			beside -= w + between
		}
	}
	if room < leastWords {
		room = beside
	}
	if room >= leastWords && table.Columns[last].Unit == unit.Word {
		widths[last] = min(widths[last], room)
		return
	}
	widths[last] = 0
	for j := range cells {
		cells[j][last] = plain.Cut(cells[j][last], min(mostText, t.Width))
		widths[last] = max(widths[last], plain.Width(cells[j][last]))
	}
}

// fitAnswer narrows the first column of words behind the keys where it would be left out, and on a narrow terminal the
// keys, too: most often that column says what the table is for.
func (t *texter) fitAnswer(table view.Table, widths []int) {
	keys := keysOf(table)
	at := keys + slices.IndexFunc(table.Columns[keys:],
		func(c view.Column) bool { return c.Unit == unit.Word && !c.Detail })
	if at < keys {
		return
	}
	var columns []int
	spare := max(widths[at]-leastAnswer, 0)
	for i := range at + 1 {
		if columns = append(columns, i); i < keys && t.Width < narrow {
			spare += max(widths[i]-leastKey, 0)
		}
	}
	over := widthOf(columns, widths) - t.Width
	if over > spare {
		return
	}
	for n, i := range append([]int{at}, columns[:keys]...) {
		least := [2]int{leastAnswer, leastKey}[min(n, 1)]
		give := max(min(over, widths[i]-least), 0)
		widths[i], over = widths[i]-give, over-give
	}
}

// keysOf is how many columns say what a row is about: the first at least.
func keysOf(table view.Table) int {
	n := 0
	for n < len(table.Columns) && table.Columns[n].Key {
		n++
	}
	return min(max(n, 1), len(table.Columns))
}

// shownRows picks the rows to show, with those that the verdict names; one line of them tells of the others.
func (t *texter) shownRows(table view.Table, most int) [][]view.Cell {
	n := len(table.Rows)
	if n <= most {
		return table.Rows
	}
	most = max(most-1, 1)
	if table.Lead > 0 && !t.All {
		most = min(most, table.Lead)
	}
	var named, others []int
	for i, row := range table.Rows {
		if slices.ContainsFunc(row, func(c view.Cell) bool { return c.Named }) {
			named = append(named, i)
		} else {
			others = append(others, i)
		}
	}
	picked := someOf(named, most, table.Lead > 0)
	picked = append(picked, someOf(others, most-len(picked), table.Lead > 0)...)
	slices.Sort(picked)
	var out [][]view.Cell
	for _, i := range picked {
		out = append(out, table.Rows[i])
	}
	return out
}

// someOf picks so many of a list: the first ones, or some at equal steps with the first and the last.
func someOf(list []int, most int, first bool) (out []int) {
	n := min(most, len(list))
	for i := range n {
		if !first && n > 1 {
			i = (i*(len(list)-1) + (n-1)/2) / (n - 1)
		}
		out = append(out, list[i])
	}
	return out
}

func (t *texter) cells(table view.Table) (cells [][]string, widths []int) {
	cells, widths = make([][]string, len(table.Rows)+1), make([]int, len(table.Columns))
	for i, c := range table.Columns {
		most := min(mostText, t.Width)
		if i == len(table.Columns)-1 && i > 0 {
			most = mostLast
		}
		cells[0] = append(cells[0], plain.Cut(plain.Text(c.Label), most))
		for j, row := range table.Rows {
			text, note := wordsOf(c, cellOf(row, i))
			if note != "" {
				text = t.language.Bracketed(text, note)
			}
			cells[j+1] = append(cells[j+1], plain.Cut(plain.Spaces(text), most))
		}
		for j := range cells {
			widths[i] = max(widths[i], plain.Width(cells[j][i]))
		}
	}
	return cells, widths
}

func (t *texter) block(table view.Table, cells [][]string, widths, columns []int) {
	total := widthOf(columns, widths)
	for j, line := range cells {
		var b strings.Builder
		var below []string // of the last column
		for n, i := range columns {
			if n > 0 {
				b.WriteString(strings.Repeat(" ", between))
			}
			code := dim
			if j > 0 {
				code = toneCode(cellOf(table.Rows[j-1], i).Tone)
			}
			if plain.Width(line[i]) > widths[i] {
				lines := (&texter{Terminal: Terminal{Width: widths[i]}}).wrap(line[i], "", "")
				line[i], below = lines[0], lines[1:]
				if !t.All && len(below) > 0 {
					line[i], below = plain.Cut(line[i]+"…", widths[i]), nil
				}
			}
			pad := strings.Repeat(" ", widths[i]-plain.Width(line[i]))
			if rightward(table.Columns[i]) {
				b.WriteString(pad + t.paint(line[i], code))
			} else {
				b.WriteString(t.paint(line[i], code) + pad)
			}
		}
		t.add(b.String())
		for _, words := range below {
			t.add(strings.Repeat(" ", total-widths[columns[len(columns)-1]]) + words)
		}
	}
}

// times prints a line of blocks for each trace, with its lowest and highest sample,
// and the changes and gaps in words.
func (t *texter) times(s view.Times) {
	t.title(s.Title)
	for _, l := range s.Lanes {
		for _, tr := range l.Traces {
			name := plain.Text(l.Label)
			if len(l.Traces) > 1 {
				name = plain.Text(tr.Name)
			}
			low, high := lowHigh(tr.Values)
			if low > high {
				continue
			}
			top := high
			if l.Unit == unit.Ratio {
				top = max(top, 1)
			}
			tail := "  " + l.Unit.Between(low, high)
			if low == high || tail == "  " {
				tail = "  " + l.Unit.Format(high)
			}
			name = plain.Cut(name, t.Width/3)
			room := t.Width - t.Width/3 - 2 - 24
			bars := plain.Spark(tr.Values, top, max(room, 8), 1)[0]
			line := name + strings.Repeat(" ", t.Width/3-plain.Width(name)+1) + bars + plain.Spaces(tail)
			t.add(plain.Cut(line, t.Width))
		}
	}
	for _, c := range s.Changes {
		text := t.language.Sayf("at %s: %s", unit.FormatMoment(c.At), c.Text)
		t.out = append(t.out, t.paintAll(t.wrap(text, "  ", "    "), toneCode(c.Tone))...)
	}
	for _, g := range s.Gaps {
		span := t.language.Sayf("%s to %s", unit.FormatMoment(g.From), unit.FormatMoment(g.To))
		t.out = append(t.out, t.wrap(t.language.Sayf("%s: %s", span, g.Text), "  ", "    ")...)
	}
	t.note(s.Note)
}

// A reader still sees one grid in so many rows, and blocks of columns one below the other.
const mostHeatRows, mostHeatBlocks = 24, 3

// heat prints the figures of a heat map as a grid, if it is not too large.
func (t *texter) heat(c view.Chart) {
	table := view.Table{Columns: []view.Column{{Label: c.Y.Label + " ↓  " + c.X.Label + " →", Key: true}}}
	for _, name := range c.X.Categories {
		table.Columns = append(table.Columns, view.Column{Label: name, Unit: c.Z.Unit})
	}
	for _, name := range c.Y.Categories {
		row := []view.Cell{{Text: name}}
		for range c.X.Categories {
			row = append(row, view.Cell{Value: math.NaN()})
		}
		table.Rows = append(table.Rows, row)
	}
	for _, p := range c.Series[0].Points {
		table.Rows[int(p.Y)][1+int(p.X)] = view.Cell{Value: p.Z, Tone: p.Tone}
	}
	_, widths := t.cells(table)
	if len(table.Rows) <= mostHeatRows && len(t.blocks(table, widths)) <= mostHeatBlocks {
		t.title(c.Title)
		t.grid(table, mostHeatRows)
	}
}

func lowHigh(values []float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			low, high = min(low, v), max(high, v)
		}
	}
	return low, high
}
