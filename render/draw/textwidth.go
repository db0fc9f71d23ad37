package draw

import (
	"strings"
	"unicode"

	"pelt/render/plain"
)

// asciiWidths are the advances of the characters from space to ~ in hundredths of an em:
// the greater of DejaVu Sans 2.37, the widest of the usual sans-serif fonts, and Go
// Regular, which PNG pictures have.
var asciiWidths = [...]uint8{
	32, 41, 46, 84, 64, 96, 78, 28, 40, 40, 59, 84, 34, 59, 34, 34,
	64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 35, 35, 84, 84, 84, 56,
	102, 69, 69, 73, 78, 67, 62, 78, 76, 40, 50, 67, 56, 88, 75, 79,
	67, 79, 73, 67, 62, 74, 69, 99, 69, 67, 69, 40, 34, 40, 84, 56,
	50, 62, 64, 55, 64, 62, 39, 64, 64, 31, 31, 59, 31, 98, 64, 62,
	64, 64, 44, 53, 42, 64, 60, 82, 60, 60, 53, 64, 34, 64, 84,
}

// boldness is how much wider bold words are.
const boldness = 1.15

// textWidth is how wide words are at most in the usual sans-serif fonts, in pixels.
func textWidth(s string, size float64) float64 { return Ems(s) * size }

// Ems is how many times as wide as their size words are.
func Ems(s string) (sum float64) {
	for _, r := range s {
		sum += runeWidth(r)
	}
	return sum
}

func runeWidth(r rune) float64 {
	switch {
	case r >= ' ' && r <= '~':
		return float64(asciiWidths[r-' ']) / 100
	case r == '\u00a0', r == '\u202f', r == '·':
		return 0.32
	case r == '–':
		return 0.5
	case r < 0x1100 && unicode.IsUpper(r): // Щ
		return 1.1
	case r < 0x100: // µ
		return 0.7
	case r < 0x1100: // œ
		return 0.95
	}
	return 1.05 // wide scripts, arrows, pictures
}

// fit cuts words to a width; the cut shows as an ellipsis, and leaves no part of a figure.
func fit(s string, size, width float64) string {
	if textWidth(s, size) <= width {
		return s
	}
	s = strings.ReplaceAll(s, "\u00a0", " ")
	room := width/size - runeWidth('…')
	for i, r := range s {
		if room -= runeWidth(r); room < 0 {
			return strings.TrimRight(plain.WholeFigures(s, i), " ") + "…"
		}
	}
	return s
}

// fitName cuts a name to a width in its middle: names of hosts mostly differ at their ends. Of words it leaves the first.
func fitName(s string, size, width float64) string {
	letters := []rune(s)
	if strings.ContainsAny(s, " \u00a0") || textWidth(s, size) <= width {
		return fit(s, size, width)
	}
	for n := len(letters) - 1; n > 3; n-- {
		cut := string(letters[:n/2]) + "…" + string(letters[len(letters)-(n+1)/2:])
		if textWidth(cut, size) <= width {
			return cut
		}
	}
	return fit(s, size, width)
}

// wrap breaks words into at most a number of lines of a width; the last is cut.
// It does not break within a figure.
func wrap(s string, size, width float64, most int) []string {
	var lines []string
	line := ""
	pieces := plain.Pieces(plain.Glue(s))
	if len(pieces) == 0 {
		return nil
	}
	for i, p := range pieces {
		with := strings.TrimLeft(line+p.Before+p.Text, " ")
		switch {
		case line == "" || textWidth(with, size) <= width:
			line = with
		case len(lines) == most-1:
			for _, rest := range pieces[i:] {
				line += rest.Before + rest.Text
			}
			return append(lines, fit(line, size, width))
		default:
			lines, line = append(lines, fit(line, size, width)), p.Text
		}
	}
	return append(lines, fit(line, size, width))
}
