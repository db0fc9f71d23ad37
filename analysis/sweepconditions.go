package analysis

import (
	"fmt"
	"maps"
	"strings"

	"pelt/model"
)

// isCondition reports whether a knob is what a path is like, and not what its
// user may choose.
func isCondition(knob string) bool {
	switch knob {
	case "receivers", "loss_ratio", "delay_s", "jitter_s", "rate_bps", "mtu_bytes", "direction":
		return true
	}
	_, _, link := model.SplitLinkKnob(knob)
	return link
}

// mostConditions is how many a sentence names; the values have all.
const mostConditions = 3

// conditions tells the best cell under each, where a sweep has several: of all
// cells the best is that under the kindest conditions, which advises nobody.
func (a *analyst) conditions(all []spot) {
	groups := map[string][]spot{}
	var order []string
	for _, s := range all {
		under := s.under()
		key := under.Key()
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], s)
	}
	if len(order) < 2 {
		return
	}
	values := map[string]float64{"conditions": float64(len(order))}
	var cells []model.Cell
	var text []string
	for i, key := range order {
		group := groups[key]
		b := group[bestSpot(group)]
		cells = append(cells, b.cell)
		for name, x := range b.values() {
			values[fmt.Sprintf("condition_%d_%s", i, name)] = x
		}
		values[fmt.Sprintf("condition_%d_goodput_bps", i)] = b.speed
		if i < mostConditions {
			text = append(text, fmt.Sprintf("%s (%s, %s)", b.words(), speedText(b.speed), lostText(b.loss())))
		}
	}
	if rest := len(order) - mostConditions; rest > 0 {
		text = append(text, fmt.Sprintf("%d more", rest))
	}
	a.tell(KindSweepConditions, cells, values, "The best under each condition: %s.", strings.Join(text, "; "))
}

// under is the part of a cell that nobody chooses.
func (s spot) under() model.Cell {
	under := maps.Clone(s.cell)
	maps.DeleteFunc(under, func(knob string, _ model.Value) bool { return !isCondition(knob) })
	return under
}
