package render

import (
	"io"
	"slices"
	"strings"

	"pelt/render/draw"
	"pelt/render/plain"
	"pelt/view"
	"pelt/words"
)

// briefLines is how long the short form of a page is at most.
const briefLines = 12

// Terminal is what text is written for.
type Terminal struct {
	Width int    // in columns; 0 is 80
	Color bool   // the reader's terminal shows colours, and the reader wants them
	All   bool   // everything, not the short form
	More  string // what has the rest: "pelt report last --all"; none is named if it is empty
}

type texter struct {
	Terminal
	out      []string
	language words.Language
}

// Text writes a page for a terminal: the verdict and why, one table and the next step in at
// most 12 lines, or everything but most charts: tables have the same figures.
func Text(w io.Writer, p view.Page, terminal Terminal) error {
	t := texter{Terminal: terminal, language: p.Language}
	if t.Width <= 0 {
		t.Width = 80
	}
	t.Width = max(t.Width, 20)
	if t.All {
		t.whole(p)
	} else {
		t.brief(p)
	}
	_, err := io.WriteString(w, strings.Join(t.out, "\n")+"\n")
	return err
}

// Lines of the parts of the short form, at most: verdict and next step give way to a long command.
const (
	verdictLines = 4
	nextLines    = 3
	leastTable   = 2 // rows, or one and a count of the others
)

// brief fills the short form: the table takes the room that verdict and next step
// leave, and doubts take what the table leaves.
func (t *texter) brief(p view.Page) {
	var next []string
	if len(p.Next) > 0 {
		next = t.briefStep(p.Next[0])
	}
	room := max(verdictLines-max(t.rows(next)-nextLines, 0), 2)
	t.out = t.paintAll(t.atMost(t.wrap(p.Verdict, "", ""), room), bold)
	if room -= len(t.out); room > 0 && p.Why != "" {
		t.out = append(t.out, t.atMost(t.wrap(p.Why, "", ""), room)...)
	}
	table, ok := mainTable(p.Sections)
	room = briefLines - len(t.out) - t.rows(next) - 2 // an empty line, and the head
	if ok && room >= leastTable {
		if len(next) > 0 && len(table.Rows) < room {
			next = append([]string{""}, next...)
			room--
		}
		t.out = append(t.out, "")
		t.grid(used(table), room)
	} else if len(next) > 0 && room > -2 {
		next = append([]string{""}, next...)
	}
	for _, d := range p.Doubts {
		lines := t.wrap(d, t.language.Say("Note: "), strings.Repeat(" ", plain.Width(t.language.Say("Note: "))))
		if len(t.out)+len(lines)+t.rows(next) > briefLines {
			break
		}
		t.out = append(t.out, lines...)
	}
	t.out = append(t.out, next...)
}

// briefStep is a next step in few lines: its text is cut, its command never.
func (t *texter) briefStep(s view.Step) []string {
	lines := t.step(s, t.language.Say("Next: "))
	if most := max(nextLines-1, 1); len(lines) > most && s.Command != "" {
		return append(t.atMost(lines[:len(lines)-1], most), lines[len(lines)-1])
	}
	return t.atMost(lines, nextLines)
}

// rows is how many lines of the screen some lines take: a long command goes on in the next one.
func (t *texter) rows(lines []string) (n int) {
	for _, l := range lines {
		n += max(1, (plain.Width(l)+t.Width-1)/t.Width)
	}
	return n
}

func mainTable(sections []view.Section) (view.Table, bool) {
	for _, s := range sections {
		if t, ok := s.(view.Table); ok && !t.Fold {
			return t, true
		}
	}
	return view.Table{}, false
}

func (t *texter) whole(p view.Page) {
	t.out = append(t.out, t.paintAll(t.wrap(plain.Text(p.Title+" · "+p.Subject), "", ""), dim)...)
	t.out = append(t.out, t.paintAll(t.wrap(p.Verdict, "", ""), bold)...)
	if p.Why != "" {
		t.out = append(t.out, t.wrap(p.Why, "", "")...)
	}
	for _, s := range slices.Concat(p.Sections, p.SetUp) {
		t.section(s)
	}
	for _, list := range []struct {
		title string
		items []string
	}{{"What was found", p.Facts}, {"How sure this is", p.Doubts}} {
		if len(list.items) > 0 {
			t.title(t.language.Say(list.title))
		}
		for _, item := range list.items {
			t.out = append(t.out, t.wrap(item, "- ", "  ")...)
		}
	}
	if len(p.Next) > 0 {
		t.title(t.language.Say("Next"))
	}
	for _, s := range p.Next {
		t.out = append(t.out, t.step(s, "- ")...)
	}
}

func (t *texter) section(s view.Section) {
	switch s := s.(type) {
	case view.Heading:
		t.title(s.Text)
	case view.Text:
		t.add("")
		t.out = append(t.out, t.wrap(s.Text, "", "")...)
	case view.Tiles:
		t.tiles(s)
	case view.Table:
		t.title(s.Title)
		t.grid(used(s), mostRows)
		t.note(s.Note)
	case view.Chart:
		if c := draw.Clean(s); c.Kind == view.Heat && len(c.Series) > 0 {
			t.heat(c)
		}
	case view.Times:
		t.times(s)
	}
}

func (t *texter) add(line string) { t.out = append(t.out, strings.TrimRight(line, " ")) }

func (t *texter) title(s string) {
	t.add("")
	if s != "" {
		t.add(t.paint(plain.Cut(plain.Text(s), t.Width), bold))
	}
}

func (t *texter) note(s string) {
	if s != "" {
		t.out = append(t.out, t.paintAll(t.wrap(s, "", ""), dim)...)
	}
}

// step is a next step; its command stands on a line of its own where it does not fit.
func (t *texter) step(s view.Step, head string) []string {
	command := plain.Text(s.Command)
	lines := t.wrap(s.Text, head, strings.Repeat(" ", plain.Width(head)))
	if command == "" {
		return lines
	}
	last := len(lines) - 1
	if plain.Width(lines[last])+2+plain.Width(command) <= t.Width {
		lines[last] += "  " + command
	} else {
		lines = append(lines, "  "+command) // never cut: it is to be copied
	}
	return lines
}

func (t *texter) tiles(all view.Tiles) {
	t.add("")
	longest := 0
	for _, tile := range all {
		longest = max(longest, plain.Width(plain.Text(tile.Label)))
	}
	for _, tile := range all {
		value := plain.Text(tile.Value)
		if value == "" {
			value = t.language.Say("not measured")
		}
		if tile.Note != "" {
			value = t.language.Bracketed(value, plain.Text(tile.Note))
		}
		label, indent := plain.Text(tile.Label), strings.Repeat(" ", min(longest+between, t.Width/2))
		pad := strings.Repeat(" ", longest-plain.Width(label)+between)
		t.out = append(t.out, t.wrap(value, label+pad, indent)...)
	}
}

// wrap breaks a sentence at the width. The first line begins with head, others with indent.
func (t *texter) wrap(s, head, indent string) []string { return plain.Wrap(s, head, indent, t.Width) }

func (t *texter) atMost(lines []string, most int) []string { return plain.AtMost(lines, most, t.Width) }

// Codes of ECMA-48 for colours.
const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
)

func (t *texter) paint(s, code string) string { return plain.Paint(s, code, t.Color) }

func (t *texter) paintAll(lines []string, code string) []string {
	for i, l := range lines {
		lines[i] = t.paint(l, code)
	}
	return lines
}

func toneCode(tone view.Tone) string {
	return map[view.Tone]string{view.Good: green, view.Bad: red, view.Muted: dim}[tone]
}
