package report

import (
	"io"
	"strings"
	"unicode/utf8"

	"pelt/report/internal/words"
)

// Styles of a terminal: select graphic rendition, ECMA-48 section 8.3.117.
const (
	styleBold    = "1"
	styleDim     = "2"
	styleYellow  = "33"
	styleVerdict = "1;36"
)

// screen lays text out for one terminal width.
type screen struct {
	width  int
	colour bool
	text   strings.Builder
}

func newScreen(width int, colour bool) *screen {
	return &screen{width: min(max(width, minWidth), maxWidth), colour: colour}
}

func (s *screen) flush(w io.Writer) error {
	_, err := io.WriteString(w, s.text.String())
	return err
}

func (s *screen) line(style, text string) {
	text = strings.TrimRight(text, " ")
	if s.colour && style != "" && text != "" {
		text = "\x1b[" + style + "m" + text + "\x1b[0m"
	}
	s.text.WriteString(text + "\n")
}

// wrap writes text in lines that fit; the first begins with head, the others
// with as many blanks.
func (s *screen) wrap(style, head, text string) {
	if text == "" {
		return
	}
	indent := strings.Repeat(" ", utf8.RuneCountInString(head))
	line, used := head, false
	for _, word := range words.Phrases(text) {
		room := s.width - utf8.RuneCountInString(line)
		if used && utf8.RuneCountInString(word)+1 > room {
			s.line(style, line)
			line, used = indent, false
		}
		if used {
			line += " "
		}
		line, used = line+word, true
	}
	s.line(style, line)
}

// field is one column of a terminal table.
type field struct {
	head  string
	cells []string
	left  bool // aligned left
	drop  int  // columns with the highest number go first when width is short; 0 stays
}

func (f field) width() int {
	n := utf8.RuneCountInString(f.head)
	for _, c := range f.cells {
		n = max(n, utf8.RuneCountInString(c))
	}
	return n
}

func (f field) empty() bool {
	for _, c := range f.cells {
		if c != "" {
			return false
		}
	}
	return true
}

// fit drops empty columns, then the most droppable ones until the rest fits.
func fit(fields []field, width int) []field {
	var kept []field
	for _, f := range fields {
		if !f.empty() {
			kept = append(kept, f)
		}
	}
	for {
		total, worst := -1, -1
		for i, f := range kept {
			total += f.width() + 1
			if f.drop > 0 && (worst < 0 || f.drop > kept[worst].drop) {
				worst = i
			}
		}
		if total <= width || worst < 0 {
			return kept
		}
		kept = append(kept[:worst:worst], kept[worst+1:]...)
	}
}

// lay joins one line of the table; gap is what stands between columns.
func lay(fields []field, cell func(field) string, gap string) string {
	var cells []string
	for _, f := range fields {
		cells = append(cells, pad(cell(f), f.width(), f.left))
	}
	return strings.Join(cells, gap)
}

func pad(text string, width int, left bool) string {
	blanks := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
	if left {
		return text + blanks
	}
	return blanks + text
}

// bar draws a share 0..1 in eighths of a character.
func bar(ratio float64, width int) string {
	if !(ratio > 0) {
		return ""
	}
	eighths := int(min(ratio, 1)*float64(width*8) + 0.5)
	if eighths == 0 {
		eighths = 1
	}
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text
}
