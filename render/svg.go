package render

import (
	"fmt"
	"html"
	"io"
	"math"
	"strconv"
	"strings"

	"pelt/render/draw"
)

// fonts are what the system has; they come with no file.
const fonts = `system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif`

// SVG writes a picture as a document of its own, in light and in dark.
func SVG(w io.Writer, p draw.Picture) error {
	var m Markup
	m.open("svg", append([]string{"xmlns", "http://www.w3.org/2000/svg"}, svgFrame(p)...)...)
	m.constant("\n<style>text{font-family:" + html.EscapeString(fonts) + "}" + ownColours(p) + "</style>\n")
	m.constant(`<rect class="f-back" width="100%" height="100%"/>` + "\n")
	m.shapes(p)
	m.constant("</svg>\n")
	_, err := io.WriteString(w, m.String())
	return err
}

// picture is a drawing as a part of a page, which has the colours.
func (m *Markup) picture(p draw.Picture, class string) {
	m.open("svg", append([]string{"class", class}, svgFrame(p)...)...)
	m.shapes(p)
	m.close("svg")
}

func svgFrame(p draw.Picture) []string {
	w, h := number(p.Width), number(p.Height)
	return []string{"viewBox", "0 0 " + w + " " + h, "width", w, "height", h, "role", "img", "aria-label", p.Title}
}

// ownColours are the style rules of the inks that a picture uses.
func ownColours(p draw.Picture) string {
	fill, stroke := [draw.Inks]bool{draw.Back: true}, [draw.Inks]bool{}
	for _, s := range p.Shapes {
		fill[s.Fill], stroke[s.Stroke] = true, true
		stroke[draw.Back] = stroke[draw.Back] || s.Halo
	}
	var light, dark strings.Builder
	for i := draw.Back; i < draw.Inks; i++ {
		c := palette[i]
		if fill[i] {
			fmt.Fprintf(&light, ".f-%s{fill:%s}", c.name, c.light)
			fmt.Fprintf(&dark, ".f-%s{fill:%s}", c.name, c.dark)
		}
		if stroke[i] {
			fmt.Fprintf(&light, ".l-%s{stroke:%s}", c.name, c.light)
			fmt.Fprintf(&dark, ".l-%s{stroke:%s}", c.name, c.dark)
		}
	}
	return light.String() + "@media(prefers-color-scheme:dark){" + dark.String() + "}"
}

func (m *Markup) shapes(p draw.Picture) {
	for _, s := range p.Shapes {
		name, a := "", []string(nil)
		set := func(names string, values ...float64) {
			for i, name := range strings.Fields(names) {
				a = append(a, name, number(values[i]))
			}
		}
		switch s.Form {
		case draw.Box:
			name = "rect"
			set("x y width height", s.At...)
			if s.Radius > 0 {
				set("rx", s.Radius)
			}
		case draw.Polyline:
			name, a = "polyline", []string{"points", points(s.At), "stroke-linejoin", "round"}
		case draw.Polygon:
			name, a = "polygon", []string{"points", points(s.At)}
		case draw.Dot:
			name = "circle"
			set("cx cy r", s.At[0], s.At[1], s.Radius)
		case draw.Words:
			name = "text"
			set("x y font-size", s.At[0], s.At[1], s.Size)
			a = append(a, "text-anchor", []string{"", "middle", "end"}[s.Anchor])
			if s.Bold {
				a = append(a, "font-weight", "600")
			}
		}
		a = append(a, paint(s)...)
		if s.Text == "" && s.Tip == "" {
			m.empty(name, a...)
		} else {
			m.open(name, a...)
			m.constant(escape(s.Text))
			m.Optional("title", s.Tip, "")
			m.close(name)
		}
		m.constant("\n")
	}
}

func paint(s draw.Shape) (attributes []string) {
	set := func(name, value string) { attributes = append(attributes, name, value) }
	class := ""
	if s.Fill != draw.None {
		class = "f-" + palette[s.Fill].name
	} else {
		set("fill", "none")
	}
	stroke, width := s.Stroke, s.Width
	if s.Halo {
		stroke, width = draw.Back, 4
		set("paint-order", "stroke")
		set("stroke-linejoin", "round")
	}
	if stroke != draw.None {
		class = strings.TrimLeft(class+" l-"+palette[stroke].name, " ")
		set("stroke-width", number(width))
	}
	set("class", class)
	if s.Opacity > 0 {
		set("fill-opacity", strconv.FormatFloat(s.Opacity, 'f', 2, 64))
	}
	var dashes []string
	for _, length := range s.Dash.Lengths() {
		dashes = append(dashes, number(length))
	}
	if len(dashes) > 0 {
		set("stroke-dasharray", strings.Join(dashes, " "))
	}
	return attributes
}

func points(at []float64) string {
	var b strings.Builder
	for i, v := range at {
		if i > 0 {
			b.WriteByte(" ,"[i%2])
		}
		b.WriteString(number(v))
	}
	return b.String()
}

// number prints a place, to a tenth of a pixel.
func number(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }
