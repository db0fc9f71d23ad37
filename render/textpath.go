package render

import (
	"fmt"
	"strings"

	"pelt/render/draw"
	"pelt/render/plain"
	"pelt/unit"
	"pelt/view"
)

// leastName is how many columns of a node's name say something.
const leastName = 4

// Path draws a path in a line for a terminal, with a number at each place where packets ended, and below it what ended
// there. A path that has no room for its line is its losses only.
func Path(p view.Path, terminal Terminal) []string {
	t := texter{Terminal: terminal, language: p.Language}
	signs := map[[2]int]string{nowhere: "?"} // by node, and whether on the link behind it
	var losses []string
	for _, l := range p.Losses {
		at := placeOf(p, l)
		if signs[at] == "" {
			signs[at] = fmt.Sprintf("✗%d", len(signs))
		}
		text := p.Language.Sayf("%s (%s): %s", draw.Lost(p.Language, l, p.Sent),
			unit.Count.Format(float64(l.Packets)), l.Text)
		lines := t.wrap(text, signs[at]+" ", "   ")
		lines[0] = t.paint(lines[0], red)
		losses = append(losses, lines...)
	}
	if len(losses) == 0 && p.Sent > 0 {
		losses = []string{t.paint(t.language.Say("✓ none lost"), green)}
	}
	return append(t.way(p, signs), losses...)
}

// nowhere is the place of losses whose place is not known.
var nowhere = [2]int{-1, 0}

func placeOf(p view.Path, l view.Loss) [2]int {
	switch {
	case l.Node < 0:
		return nowhere
	case l.Link && l.Node < len(p.Nodes)-1:
		return [2]int{l.Node, 1}
	}
	return [2]int{l.Node, 0}
}

// way draws nodes and links, and below the ends what they sent and received.
func (t *texter) way(p view.Path, signs map[[2]int]string) []string {
	links := len(p.Nodes) - 1
	if links < 1 {
		return nil
	}
	room := t.Width
	for i := range p.Nodes {
		if sign := signs[[2]int{i, 0}]; sign != "" {
			room -= len([]rune(sign)) + 1
		}
	}
	const link = 8 // with the spaces around it
	most := (room - link*links) / len(p.Nodes)
	if most < leastName {
		return nil
	}
	names := make([]string, len(p.Nodes))
	for i, name := range p.Nodes {
		names[i] = plain.Cut(plain.Text(name), most)
		room -= plain.Width(names[i])
	}
	each := min(room/links, 3*link)
	var line strings.Builder
	columns := 0
	add := func(s, code string) {
		columns += plain.Width(s)
		line.WriteString(t.paint(s, code))
	}
	for i, name := range names {
		add(name, bold)
		if sign := signs[[2]int{i, 0}]; sign != "" {
			add(" "+sign, red)
		}
		if i == links {
			break
		}
		sign := signs[[2]int{i, 1}]
		before := (each - 2 - len([]rune(sign))) / 2
		add(" "+strings.Repeat("─", before), "")
		add(sign, red)
		add(strings.Repeat("─", each-2-before-len([]rune(sign)))+" ", "")
	}
	sent, received := draw.Count(p, 0), draw.Count(p, links)
	gap := max(columns-plain.Width(sent)-plain.Width(received), 2)
	return []string{line.String(), t.paint(plain.Cut(sent+strings.Repeat(" ", gap)+received, t.Width), dim)}
}
