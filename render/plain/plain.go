// Package plain makes text from outside safe to show.
//
// Names and errors of other hosts come in, text for one line of a terminal, of a
// page or of a picture goes out. It escapes nothing for HTML: writers do that.
package plain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is s without control characters, escape sequences, changes of direction and
// invisible characters; each is replaced by a dot, and white space by a space.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r', r == '\u2028', r == '\u2029':
			return ' '
		case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Co,
			unicode.Cs), r == unicode.ReplacementChar, r >= 0xfff0 && r <= 0xffff,
			r == '\u115f', r == '\u1160', r == '\u3164', r == '\uffa0': // letters without ink
			return '·'
		}
		return r
	}, strings.ToValidUTF8(s, "·"))
}

// Width is how many columns of a terminal s takes.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf && r != 0x303f, r >= 0xac00 &&
		r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 &&
			r <= 0x1f64f,
		r >= 0x1f680 && r <= 0x1f9ff, r >= 0x20000 && r <= 0x3fffd: // Unicode's EastAsianWidth.txt: W and F
		return 2
	}
	return 1
}

// Cut shortens s to a number of columns; the cut shows as an ellipsis. It leaves no part of a figure: nobody is
// to read 1638 in place of 16384.
func Cut(s string, columns int) string {
	if Width(s) <= columns {
		return s
	}
	room := columns - 1
	for i, r := range s {
		if room -= runeWidth(r); room < 0 {
			return WholeFigures(s, i) + "…"
		}
	}
	return s
}

// WholeFigures is the beginning of s up to a place, but for a figure that goes on there.
func WholeFigures(s string, to int) string {
	at := to
	for at > 0 && splitsFigure(s, at) {
		at--
	}
	if at == 0 {
		at = to
	}
	return s[:at]
}

// splitsFigure reports whether a place lies between digits of one figure: 212 992, 16.5.
func splitsFigure(s string, at int) bool {
	digit := func(i int) bool { return i >= 0 && i < len(s) && s[i] >= '0' && s[i] <= '9' }
	joins := func(i int) bool { return digit(i) || (s[i] == ' ' || s[i] == '.') && digit(i-1) && digit(i+1) }
	return joins(at-1) && joins(at)
}

// Glue puts spaces that break no line into figures, and between them and what belongs to them: "1 400 kpps", "第 3 次".
func Glue(s string) string {
	words := strings.Split(s, " ")
	var out strings.Builder
	for i, w := range words {
		switch {
		case i == 0:
		case endsInDigit(words[i-1]) && (continues(strings.TrimRight(narrow(w), ".,;:)")) || begins(w, measures)),
			endsIn(words[i-1], counted) && begins(w, digits),
			i > 1 && endsInDigit(words[i-2]) && (continues(words[i-1]) && begins(w, held) ||
				(words[i-1] == "h" || words[i-1] == "min") && begins(w, digits)):
			out.WriteString("\u00a0")
		default:
			out.WriteByte(' ')
		}
		out.WriteString(w)
	}
	return out.String()
}

// narrow is a word up to its first wide character: Chinese needs no space behind a unit.
func narrow(word string) string {
	if at := strings.IndexFunc(word, func(r rune) bool { return runeWidth(r) == 2 }); at >= 0 {
		return word[:at]
	}
	return word
}

func endsInDigit(s string) bool { return endsIn(s, digits) }

const digits = "0123456789"

// begins and endsIn report whether a word begins, or ends, with one of some characters.
func begins(s, with string) bool {
	r, size := utf8.DecodeRuneInString(s)
	return size > 0 && strings.ContainsRune(with, r)
}

func endsIn(s, with string) bool {
	r, size := utf8.DecodeLastRuneInString(s)
	return size > 0 && strings.ContainsRune(with, r)
}

// continues reports whether a word goes on with the figure before it: it is a unit, or thousands.
func continues(s string) bool {
	if len(s) == 3 && strings.Trim(s, "0123456789") == "" {
		return true
	}
	switch s {
	case "%", "B", "h", "min", "s", "ms", "µs", "ns", "KiB", "MiB", "GiB", "Hz", "kHz", "MHz", "GHz":
		return true
	}
	return strings.HasSuffix(s, "pps") && len(s) <= 4 || strings.HasSuffix(s, "bit/s") && len(s) <= 6
}

// Spaces makes all spaces plain ones, as a terminal and a file of figures want them.
func Spaces(s string) string { return spaces.Replace(s) }

var spaces = strings.NewReplacer("\u00a0", " ", "\u202f", " ")

// Piece is what a line is not broken within: a word, or a wide character with the marks that belong to it.
type Piece struct{ Before, Text string } // Before is the space before it, or nothing

// Marks that begin no line, as does 的, and marks that end none, in text of wide characters.
const (
	closing = "。，；：、！？）》」』”…·的.,;:!?)%\u00a0"
	opening = "（《「『“(≥\u00a0"
)

// Pieces are what lines may break between: words, and of Chinese the terms and other characters.
func Pieces(s string) (all []Piece) {
	for word := range strings.SplitSeq(s, " ") {
		before, begin, last, whole := " ", 0, rune(0), 0 // whole is where a term ends
		for i, r := range word {
			wide := runeWidth(r) == 2 || runeWidth(last) == 2
			if i < whole {
				wide = false
			} else if runeWidth(r) == 2 {
				whole = i + term(word[i:])
			}
			if i > 0 && wide && !strings.ContainsRune(closing, r) && !strings.ContainsRune(opening, last) {
				all = append(all, Piece{before, word[begin:i]})
				before, begin = "", i
			}
			last = r
		}
		if begin < len(word) {
			all = append(all, Piece{before, word[begin:]})
		}
	}
	return all
}

// Wrap breaks a sentence at a number of columns. The first line begins with head, others with indent.
func Wrap(s, head, indent string, columns int) []string {
	line, empty := head, true
	var lines []string
	for _, p := range Pieces(Glue(Text(s))) {
		if !empty && Width(line)+Width(p.Before+p.Text) > columns {
			lines, line, empty = append(lines, line), indent, true
		}
		if !empty {
			line += p.Before
		}
		line += Cut(p.Text, columns-Width(line))
		empty = false
	}
	lines = append(lines, line)
	for i := range lines {
		lines[i] = Spaces(lines[i])
	}
	return lines
}

// WrapWhole is Wrap for text that is to be copied: where a word is longer than a line, nothing is broken or cut.
func WrapWhole(s, head, indent string, columns int) []string {
	for _, p := range Pieces(s) {
		if Width(head)+Width(p.Text) > columns || Width(indent)+Width(p.Text) > columns {
			return []string{head + Text(s)}
		}
	}
	return Wrap(s, head, indent, columns)
}

// AtMost keeps the first of some lines; a cut shows as one ellipsis.
func AtMost(lines []string, most, columns int) []string {
	if len(lines) <= most {
		return lines
	}
	lines = lines[:most]
	lines[most-1] = Cut(strings.TrimRight(lines[most-1], " …")+" …", columns)
	return lines
}

// Fill is a text with spaces behind it, so many columns wide at least.
func Fill(s string, columns int) string { return s + strings.Repeat(" ", max(columns-Width(s), 0)) }

// Table sets rows in columns, with two spaces between. Where all together may be so wide at most, not 0, the widest
// columns give way, and their cells go on below. No column becomes narrower than its longest word.
func Table(rows [][]string, most int) (lines []string) {
	const between = 2
	var widths, least []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths, least = append(widths, 0), append(least, 0)
			}
			widths[i] = max(widths[i], Width(cell))
			for _, p := range Pieces(Glue(Text(cell))) {
				least[i] = max(least[i], Width(p.Text))
			}
		}
	}
	sum := -between
	for _, w := range widths {
		sum += w + between
	}
	for ; most > 0 && sum > most; sum-- {
		widest := -1
		for i, w := range widths {
			if w > least[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	for _, row := range rows {
		cells, height := make([][]string, len(row)), 1
		for i, cell := range row {
			if cells[i] = []string{cell}; Width(cell) > widths[i] {
				cells[i] = Wrap(cell, "", "", widths[i])
			}
			height = max(height, len(cells[i]))
		}
		for at := range height {
			line := ""
			for i, cell := range cells {
				text := ""
				if at < len(cell) {
					text = cell[at]
				}
				line += Fill(text, widths[i]+between)
			}
			lines = append(lines, strings.TrimRight(line, " "))
		}
	}
	return lines
}

// Paint gives text for a terminal with colours one of ECMA-48.
func Paint(s, code string, colours bool) string {
	if !colours || s == "" || code == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
