package render

import (
	"html"
	"regexp"
	"strings"

	"pelt/render/plain"
	"pelt/words"
)

// Markup is HTML or SVG being written. Texts and the values of attributes are escaped here, so that no name
// from outside acts.
type Markup struct {
	words.Language // of the page; pictures say nothing of their own
	b              strings.Builder
}

// String is what was written so far.
func (m *Markup) String() string { return m.b.String() }

// literal is markup that stands in a program: a text from outside cannot become one.
type literal string

// marks are where texts stand in markup: {a text in the page's language}, and those that $1 to $9 name.
var marks = regexp.MustCompile(`\{[^{}]+\}| [a-z:-]+="\$[1-9]"|\$[1-9]`)

// Put writes markup and texts in it, which stand between elements or in quoted values of attributes. An attribute that
// is an empty text is left out.
func (m *Markup) Put(markup literal, texts ...string) {
	m.b.WriteString(marks.ReplaceAllStringFunc(string(markup), func(mark string) string {
		before, number, outside := strings.Cut(mark, "$")
		if !outside {
			return escape(m.Say(strings.Trim(mark, "{}")))
		}
		text := texts[number[0]-'1']
		if text == "" && before != "" {
			return ""
		}
		return before + escape(text) + number[1:]
	}))
}

// open begins an element. Attributes are names and values in turn; one without a value is left out.
func (m *Markup) open(name string, attributes ...string) {
	m.begin(name, attributes)
	m.b.WriteByte('>')
}

func (m *Markup) begin(name string, attributes []string) {
	m.b.WriteString("<" + name)
	for i := 0; i+1 < len(attributes); i += 2 {
		if attributes[i+1] != "" {
			m.b.WriteString(" " + attributes[i] + `="` + escape(attributes[i+1]) + `"`)
		}
	}
}

func (m *Markup) close(name string) { m.b.WriteString("</" + name + ">") }

// empty is an element that has nothing in it, and needs no end.
func (m *Markup) empty(name string, attributes ...string) {
	m.begin(name, attributes)
	m.b.WriteString("/>")
}

// Optional is an element that is left out where it has no text.
func (m *Markup) Optional(name, text, class string) {
	if text != "" {
		m.open(name, "class", class)
		m.b.WriteString(escape(text))
		m.close(name)
	}
}

// constant writes what stands in this program as it is: also a style sheet or a script.
func (m *Markup) constant(text string) { m.b.WriteString(text) }

// escape makes outside text safe in markup.
func escape(s string) string { return html.EscapeString(plain.Text(s)) }
