package render

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"math"
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
	title, subject, verdict := glued(p.Title), glued(p.Subject), glued(p.Verdict)
	var m markup
	m.constant("<!doctype html>\n<html lang=\"" + p.Language.Tag() + "\">\n<head>\n<meta charset=\"utf-8\">\n")
	m.empty("meta", "http-equiv", "Content-Security-Policy", "content", policy)
	m.empty("meta", "name", "viewport", "content", "width=device-width, initial-scale=1")
	m.empty("meta", "name", "generator", "content", "pelt")
	m.element("title", title+": "+subject)
	m.empty("meta", "name", "description", "content", verdict)
	m.empty("meta", "property", "og:type", "content", "article")
	m.empty("meta", "property", "og:title", "content", title+": "+subject)
	m.empty("meta", "property", "og:description", "content", verdict)
	m.constant("\n<style>" + style + "</style>\n</head>\n<body>\n<main>\n" + Main(p))
	m.constant("</main>\n<script>" + pageScript + "</script>\n</body>\n</html>\n")
	_, err := io.WriteString(w, m.b.String())
	return err
}

// Main is what a page shows, as HTML: all but the frame.
func Main(p view.Page) string {
	m := markup{language: p.Language}
	m.constant("<header><p>")
	m.element("b", glued(p.Title))
	m.constant(escape(" · "+glued(p.Subject)) + "</p>\n")
	m.element("h1", glued(p.Verdict))
	m.optional("p", glued(p.Why), "class", "lead")
	m.constant("</header>\n<div class=\"grid\">\n")
	m.sections(p.Sections)
	m.constant("</div>\n")
	m.list(m.language.Say("What was found"), p.Facts, "")
	m.list(m.language.Say("How sure this is"), p.Doubts, "doubts")
	m.steps(p.Next)
	m.sections(p.SetUp)
	return m.b.String()
}

// glued is text that does not break between a figure and its unit.
func glued(s string) string { return plain.Glue(plain.Text(s)) }

// hash is what a content security policy calls an inline style or script.
func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func (m *markup) list(title string, items []string, class string) {
	if len(items) == 0 {
		return
	}
	m.open("section", "class", class)
	m.element("h3", title)
	m.open("ul")
	for _, item := range items {
		m.element("li", glued(item))
	}
	m.close("ul")
	m.close("section")
}

func (m *markup) steps(next []view.Step) {
	open := false
	for _, s := range next {
		if strings.Contains(s.Command, " --html ") { // this is that page
			continue
		}
		if !open {
			m.open("section", "class", "next")
			m.element("h3", m.language.Say("Next"))
			open = true
		}
		m.open("p")
		m.constant(escape(glued(s.Text)) + " ")
		m.optional("code", glued(s.Command))
		m.close("p")
	}
	if open {
		m.close("section")
	}
}

// sections writes the sections of a page, some pictures beside each other.
func (m *markup) sections(sections []view.Section) {
	for _, row := range draw.Rows(sections, halfWidth) {
		if len(row) == 2 {
			for i, p := range draw.Pair(row[0], row[1], halfWidth) {
				m.figure(row[i], p, "half")
			}
			continue
		}
		switch s := row[0].(type) {
		case view.Heading:
			m.optional("h2", glued(s.Text))
		case view.Text:
			m.optional("p", glued(s.Text), "class", "text")
		case view.Tiles:
			m.tiles(s)
		case view.Table:
			m.table(used(s))
		default:
			m.figure(s, draw.Section(s, fullWidth), "")
		}
		m.constant("\n")
	}
}

// figure is a section as drawn for wide screens, and drawn for narrow ones; the style sheet shows one.
func (m *markup) figure(s view.Section, wide draw.Picture, class string) {
	m.open("figure", "class", class)
	m.optional("figcaption", glued(wide.Title))
	m.picture(wide, "wide")
	m.picture(draw.Section(s, narrowWidth), "narrow")
	m.optional("p", glued(wide.Note), "class", "note")
	m.close("figure")
}

func (m *markup) tiles(all view.Tiles) {
	m.open("section", "class", "tiles")
	for _, t := range all {
		m.open("div", "class", "tile")
		m.element("span", glued(t.Label))
		if t.Value == "" {
			m.element("b", m.language.Say("not measured"), "class", "none")
		} else {
			m.element("b", glued(t.Value), "class", toneClass(t.Tone))
		}
		m.element("small", glued(t.Note))
		m.close("div")
	}
	m.close("section")
}

func (m *markup) table(t view.Table) {
	m.open("section")
	if t.Fold {
		m.open("details")
		m.element("summary", glued(t.Title))
	} else {
		m.optional("h3", glued(t.Title))
	}
	class := "scroll"
	if len(t.Rows) > longTable {
		class += " long"
	}
	if len(t.Columns) <= 4 {
		class += " few"
	}
	m.open("div", "class", class)
	m.constant("<table>\n<thead><tr>")
	for _, c := range t.Columns {
		m.element("th", glued(c.Label), "class", sideOf(c))
	}
	m.constant("</tr></thead>\n<tbody>\n")
	for _, row := range t.Rows {
		m.open("tr")
		for i, c := range t.Columns {
			cell, sorted := cellOf(row, i), ""
			if rightward(c) && !math.IsNaN(cell.Value) && !math.IsInf(cell.Value, 0) {
				sorted = figure(cell.Value)
			}
			text, note := wordsOf(c, cell)
			m.open("td", "class", strings.TrimSpace(sideOf(c)+" "+toneClass(cell.Tone)), "data-v", sorted)
			m.constant(escape(glued(text)))
			m.optional("small", glued(note))
			m.close("td")
		}
		m.constant("</tr>\n")
	}
	m.constant("</tbody></table></div>\n")
	m.optional("p", glued(t.Note), "class", "note")
	if t.Fold {
		m.close("details")
	}
	m.close("section")
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
