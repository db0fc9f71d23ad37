package render

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"pelt/render/draw"
	"pelt/render/plain"
	"pelt/view"
)

//go:embed page.css
var pageStyle string

//go:embed page.js
var pageScript string

// Widths of pictures in a page, in pixels: alone in a row, one of two, on a phone.
const (
	fullWidth   = 936
	halfWidth   = 450
	narrowWidth = 358
)

const longTable = 40

// Style is the style sheet of pages, and Script their script. A site of pages serves both.
func Style() string {
	return fmt.Sprintf(":root{color-scheme:light dark;%s}\n@media(prefers-color-scheme:dark){:root{%s}}\n%s\n",
		variables(false), variables(true), inkClasses()) +
		"body{font-family:" + fonts + "}\n" + pageStyle
}

func Script() string { return pageScript }

// HTML writes a page as one file that needs no network, and no script to be read.
func HTML(w io.Writer, p view.Page) error {
	style := Style()
	policy := fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'",
		hash(style), hash(pageScript))
	m := Markup{Language: p.Language}
	m.Put(`<!doctype html>
<html lang="$1">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="$2"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="generator" content="pelt"/>
<title>$3</title>
<meta name="description" content="$4"/>
<meta property="og:type" content="article"/>
<meta property="og:title" content="$3"/>
<meta property="og:description" content="$4"/>
`, m.Tag(), policy, m.Sayf("%s: %s", glued(p.Title), glued(p.Subject)), glued(p.Verdict))
	m.constant("<style>" + style + "</style>\n</head>\n<body>\n<main>\n")
	m.Main(p)
	m.constant("</main>\n<script>" + pageScript + "</script>\n</body>\n</html>\n")
	_, err := io.WriteString(w, m.String())
	return err
}

// Main writes what a page shows: all but the frame.
func (m *Markup) Main(p view.Page) {
	m.Put("<header><p><b>$1</b> · ", glued(p.Title))
	m.sentence(p.Subject)
	m.Put("</p>\n")
	m.Sentence("h1", p.Verdict, "")
	m.Sentence("p", p.Why, "lead")
	m.Put("</header>\n<div class=\"grid\">\n")
	m.sections(p.Sections)
	m.Put("</div>\n")
	m.list(m.Say("What was found"), p.Facts, "")
	m.list(m.Say("How sure this is"), p.Doubts, "doubts")
	m.steps(p.Next)
	m.sections(p.SetUp)
}

// glued is text that does not break between a figure and its unit.
func glued(s string) string { return plain.Glue(plain.Text(s)) }

// hash is what a content security policy calls an inline style or script.
func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func (m *Markup) list(title string, items []string, class string) {
	if len(items) == 0 {
		return
	}
	m.Put(`<section class="$1"><h3>$2</h3><ul>`, class, title)
	for _, item := range items {
		m.Sentence("li", item, "")
	}
	m.Put("</ul></section>")
}

// A browser would break a line behind the hyphens of flags and names, and behind the dash of a range. The first
// alternative is names that a line of a phone may have no room for; there they break between their parts.
var (
	wholeWords = regexp.MustCompile(`[\w.:/,=%-]{21,}|--[a-z][a-z-]*|[\pL\d.]+(?:-[\pL\d.]+)+|` +
		`\d[\d.]*–\d[\d.]*`)
	nameParts = regexp.MustCompile(`([._:/,])([a-zA-Z])`)
)

// How wide a name is, in ems, that has room in a line of a phone, and of a wide screen, also in a headline.
const (
	longestWhole = 13.5
	longestName  = 30
)

// Sentence is an element with a text in which no flag, name or figure breaks. It is left out where it has no text.
func (m *Markup) Sentence(name, text, class string) {
	if text != "" {
		m.open(name, "class", class)
		m.sentence(text)
		m.close(name)
	}
}

func (m *Markup) sentence(text string) {
	m.constant(wholeWords.ReplaceAllStringFunc(escape(glued(text)), func(word string) string {
		parts := nameParts.ReplaceAllString(word, "$1<wbr>$2")
		switch ems := draw.Ems(word); {
		case ems <= longestWhole:
			return `<span class="whole">` + word + `</span>`
		case ems <= longestName:
			return `<span class="name">` + parts + `</span>`
		}
		return parts
	}))
}

func (m *Markup) steps(next []view.Step) {
	next = slices.DeleteFunc(slices.Clone(next), func(s view.Step) bool {
		return strings.Contains(s.Command, " --html ") // this is that page
	})
	if len(next) == 0 {
		return
	}
	m.Put(`<section class="next"><h3>{Next}</h3>`)
	for _, s := range next {
		m.Put("<p>")
		m.sentence(s.Text + " ")
		if s.Command != "" {
			m.Put("<code>")
			m.sentence(s.Command)
			m.Put("</code>")
		}
		m.Put("</p>")
	}
	m.Put("</section>")
}

// sections writes the sections of a page, some pictures beside each other.
func (m *Markup) sections(sections []view.Section) {
	for _, row := range draw.Rows(sections, halfWidth) {
		if len(row) == 2 {
			for i, p := range draw.Pair(row[0], row[1], halfWidth) {
				m.figure(row[i], p, "half")
			}
			continue
		}
		switch s := row[0].(type) {
		case view.Heading:
			m.Sentence("h2", s.Text, "")
		case view.Text:
			m.Sentence("p", s.Text, "text")
		case view.Tiles:
			m.tiles(s)
		case view.Table:
			m.table(used(s))
		default:
			m.figure(s, draw.Section(s, fullWidth), "")
		}
		m.Put("\n")
	}
}

// figure is a section as drawn for wide screens, and drawn for narrow ones; the style sheet shows one.
func (m *Markup) figure(s view.Section, wide draw.Picture, class string) {
	m.Put(`<figure class="$1">`, class)
	m.Sentence("figcaption", wide.Title, "")
	m.picture(wide, "wide")
	m.picture(draw.Section(s, narrowWidth), "narrow")
	m.Sentence("p", wide.Note, "note")
	m.Put("</figure>")
}

func (m *Markup) tiles(all view.Tiles) {
	m.Put(`<section class="tiles">`)
	for _, t := range all {
		value, class := t.Value, toneClass(t.Tone)
		if value == "" {
			value, class = m.Say("not measured"), "none"
		}
		m.Put(`<div class="tile"><span>$1</span>`, glued(t.Label))
		m.Sentence("b", value, class)
		m.Sentence("small", t.Note, "")
		m.Put("</div>")
	}
	m.Put("</section>")
}

func (m *Markup) table(t view.Table) {
	m.Put("<section>")
	if t.Fold {
		m.Put("<details><summary>$1</summary>", glued(t.Title))
	} else {
		m.Sentence("h3", t.Title, "")
	}
	class := "scroll"
	if len(t.Rows) > longTable {
		class += " long"
	}
	if len(t.Columns) <= 4 {
		class += " few"
	}
	m.Put("<div class=\"$1\"><table>\n<thead><tr>", class)
	for _, c := range t.Columns {
		m.Put(`<th class="$1">$2</th>`, sideOf(c), glued(c.Label))
	}
	m.Put("</tr></thead>\n<tbody>\n")
	for _, row := range t.Rows {
		m.Put("<tr>")
		for i, c := range t.Columns {
			cell, sorted := cellOf(row, i), ""
			if rightward(c) && !math.IsNaN(cell.Value) && !math.IsInf(cell.Value, 0) {
				sorted = figure(cell.Value)
			}
			text, note := wordsOf(c, cell)
			m.Put(`<td class="$1" data-v="$2">`, strings.TrimSpace(sideOf(c)+" "+toneClass(cell.Tone)), sorted)
			m.sentence(text)
			m.Sentence("small", note, "")
			m.Put("</td>")
		}
		m.Put("</tr>\n")
	}
	m.Put("</tbody></table></div>\n")
	m.Sentence("p", t.Note, "note")
	if t.Fold {
		m.Put("</details>")
	}
	m.Put("</section>")
}

func sideOf(c view.Column) string {
	if rightward(c) {
		return "r"
	}
	return ""
}

func toneClass(t view.Tone) string {
	return map[view.Tone]string{view.Good: "good", view.Bad: "bad", view.Muted: "muted"}[t]
}
