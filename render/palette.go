package render

import (
	"fmt"
	"strings"

	"pelt/render/draw"
)

// colour is an ink's name in style sheets, and its colours.
type colour struct{ name, light, dark string }

// palette has a colour for each ink. Words in these colours are readable on the page
// and on panels (WCAG AA); series differ in hue and in lightness.
var palette = [draw.Inks]colour{
	draw.Back:    {"back", "#ffffff", "#11151b"},
	draw.Panel:   {"panel", "#f4f6f9", "#1a2029"},
	draw.Rule:    {"rule", "#dde3ea", "#2d3743"},
	draw.Soft:    {"soft", "#566070", "#9eabba"},
	draw.Text:    {"text", "#161d27", "#e8edf3"},
	draw.Good:    {"good", "#0f7a52", "#4cc38a"},
	draw.Bad:     {"bad", "#c4302b", "#ff8078"},
	draw.Series1: {"s1", "#1f66d6", "#6cb0ff"},
	draw.Series2: {"s2", "#ad5200", "#f0a348"},
	draw.Series3: {"s3", "#7a4fd0", "#b99cff"},
	draw.Series4: {"s4", "#00758a", "#4fc4cf"},
	draw.Series5: {"s5", "#b02a78", "#f58ac0"},
	draw.Series6: {"s6", "#6f5c12", "#cdbb6a"},
}

func variables(dark bool) string {
	var b strings.Builder
	for _, c := range palette[draw.Back:] {
		hex := c.light
		if dark {
			hex = c.dark
		}
		fmt.Fprintf(&b, "--%s:%s;", c.name, hex)
	}
	return b.String()
}

func inkClasses() string {
	var b strings.Builder
	for _, c := range palette[draw.Back:] {
		fmt.Fprintf(&b, ".f-%[1]s{fill:var(--%[1]s)}.l-%[1]s{stroke:var(--%[1]s)}", c.name)
	}
	return b.String()
}
