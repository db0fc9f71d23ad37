package render

import (
	"html"
	"strings"

	"pelt/render/plain"
	"pelt/words"
)

// markup is HTML or SVG being written. Texts and the values of attributes are escaped here, so that no name
// from outside acts.
type markup struct {
	b        strings.Builder
	language words.Language // of the page; pictures say nothing of their own
}

// open begins an element. Attributes are names and values in turn; one without a value is left out.
func (m *markup) open(name string, attributes ...string) {
	m.begin(name, attributes)
	m.b.WriteByte('>')
}

func (m *markup) begin(name string, attributes []string) {
	m.b.WriteString("<" + name)
	for i := 0; i+1 < len(attributes); i += 2 {
		if attributes[i+1] != "" {
			m.b.WriteString(" " + attributes[i] + `="` + escape(attributes[i+1]) + `"`)
		}
	}
}

func (m *markup) close(name string) { m.b.WriteString("</" + name + ">") }

// empty is an element that has nothing in it, and needs no end.
func (m *markup) empty(name string, attributes ...string) {
	m.begin(name, attributes)
	m.b.WriteString("/>")
}

// element is a whole element with a text in it.
func (m *markup) element(name, text string, attributes ...string) {
	m.open(name, attributes...)
	m.b.WriteString(escape(text))
	m.close(name)
}

// optional is an element that is left out where it has no text.
func (m *markup) optional(name, text string, attributes ...string) {
	if text != "" {
		m.element(name, text, attributes...)
	}
}

// constant writes what stands in this program as it is.
func (m *markup) constant(text string) { m.b.WriteString(text) }

// escape makes outside text safe in markup.
func escape(s string) string { return html.EscapeString(plain.Text(s)) }
