// Package links tells what a lab's links were set to in a cell.
//
// Plans, cells and documents come in, links and rates go out. It knows settings
// only, nothing of what was measured.
package links

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"pelt/model"
	"pelt/unit"
)

// Unlimited stands for a link that a cell takes the rate from: in a plan's links
// 0 means that nothing is said.
const Unlimited = unit.BitRate(1e15)

// nothingAdded is, likewise, an overhead that a cell takes away.
const nothingAdded = -1

// Of are a plan's links with what a cell makes of them. A later one overrides an
// earlier one field by field, see Over.
func Of(p model.Plan, cell model.Cell) []model.Link {
	cell = maps.Clone(cell)
	maps.DeleteFunc(cell, func(knob string, _ model.Value) bool { _, _, link := model.SplitLinkKnob(knob); return !link })
	t, err := p.Trial(cell, 0)
	if err != nil {
		return p.Links
	}
	links := slices.Clone(p.Links)
	for _, c := range t.Links {
		l, err := c.Apply(model.Link{Node: c.Node, Toward: c.Toward})
		if err != nil {
			continue
		}
		if l.Rate == 0 && c.Settings[0].Key == "rate" {
			l.Rate = Unlimited
		}
		if l.OverheadBytes == 0 && c.Settings[0].Key == "overhead" {
			l.OverheadBytes = nothingAdded
		}
		links = append(links, l)
	}
	return links
}

// Overhead is what a link adds to each frame, in bytes.
func Overhead(l model.Link) int { return max(0, l.OverheadBytes) }

// Rate is a link's in bit/s, 0 where there is none.
func Rate(l model.Link) float64 {
	if l.Rate == Unlimited {
		return 0
	}
	return float64(l.Rate)
}

// Over is a link with the rate and the overhead of a later one, where that has them.
func Over(l, later model.Link) model.Link {
	l.Rate, l.OverheadBytes = cmp.Or(later.Rate, l.Rate), cmp.Or(later.OverheadBytes, l.OverheadBytes)
	return l
}

// Nodes are those of a lab's path without branches, in travel order.
func Nodes(doc model.Document) []string {
	if l := doc.Lab; l != nil && len(l.Nodes) >= 2 {
		return l.Nodes
	}
	middle := strings.TrimPrefix(doc.Plan.Target, "lab:")
	if middle == "direct" {
		return []string{model.Sender, model.Receiver}
	}
	if middle == "nat" || middle == "fast" {
		middle = "router"
	}
	return []string{model.Sender, middle, model.Receiver}
}

// Slowest is the slowest link on the way from the first node to the last; 0 if none has a rate.
func Slowest(links []model.Link, nodes []string) (rate float64, overhead int) {
	for i := range len(nodes) - 1 {
		var one model.Link
		for _, l := range links {
			toward := slices.Index(nodes, l.Toward)
			if (l.Node == "" || l.Node == nodes[i] || l.Node == nodes[i+1]) && (l.Toward == "" || toward > i) {
				one = Over(one, l)
			}
		}
		if r := Rate(one); r > 0 && (rate == 0 || r < rate) {
			rate, overhead = r, Overhead(one)
		}
	}
	return rate, overhead
}
