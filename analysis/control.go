package analysis

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"pelt/analysis/controls"
	"pelt/analysis/internal/say"
	"pelt/model"
	"pelt/unit"
)

// isControl reports whether a run compares congestion controls.
func isControl(doc model.Document) bool { return doc.Plan.Command == "cc" }

// control returns what a run of congestion controls showed: the verdict first, then
// what they did under each condition, then what that rests on.
func control(doc model.Document) []model.Finding {
	a := &analyst{doc: doc}
	t := doc.Control
	if t == nil {
		t = controls.Table(doc)
	}
	if t == nil || !slices.ContainsFunc(t.Cells, func(c model.ControlCell) bool { return c.Valid > 0 }) {
		return a.nothing()
	}
	for i := range t.Conditions {
		a.condition(t, i)
	}
	a.mathis(t)
	a.streams(t)
	a.unfinished(t)
	a.limited(t)
	a.offload()
	a.lab()
	a.invalidControls(t)
	first := model.Finding{Kind: KindVerdict, Text: controls.Verdict(t), Values: controlValues(t)}
	found := append([]model.Finding{first}, a.found...)
	for _, f := range found { // whatever a document holds
		maps.DeleteFunc(f.Values, func(_ string, x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	}
	return found
}

func controlValues(t *model.ControlTable) map[string]float64 {
	values := map[string]float64{"comparisons": float64(len(t.Contrasts)), "conditions": float64(len(t.Conditions)), "separable_comparisons": 0}
	for _, c := range t.Contrasts {
		if c.Separable {
			values["separable_comparisons"]++
		}
		if len(t.Conditions) == 1 {
			values[slug(c.Control)+"_speed_ratio"] = c.Ratio
		}
	}
	return values
}

// queuedSeconds is a wait in queues that a person at home notices in a game or a call.
const queuedSeconds = 0.01

// condition is what the controls did under one, and how long small packets waited
// beside them.
func (a *analyst) condition(t *model.ControlTable, at int) {
	values := map[string]float64{}
	var cells []model.Cell
	var waits []string
	longest := 0.0
	for _, c := range t.Cells {
		if c.Condition != at {
			continue
		}
		cell := model.Cell{}
		maps.Copy(cell, t.Conditions[at].Cell)
		cell["control"] = model.Word(c.Control)
		cells = append(cells, cell)
		name := slug(c.Control)
		for metric, e := range map[string]*model.Estimate{"completion_s": c.Completion, "goodput_bps": c.Goodput, "retransmit_ratio": c.Resent, "rtt_p95_s": c.RTT95, "queueing_p95_s": c.Standing} {
			if e != nil {
				values[name+"_"+metric] = e.Median
			}
		}
		if c.Standing != nil {
			waits = append(waits, fmt.Sprintf("%s with %s", unit.FormatNanos(c.Standing.Median*1e9), c.Control))
			longest = max(longest, c.Standing.Median)
		}
	}
	for _, c := range t.Contrasts {
		if c.Condition == at {
			name := slug(c.Control)
			values[name+"_speed_ratio"], values[name+"_speed_ratio_low"], values[name+"_speed_ratio_high"], values[name+"_family_p"] = c.Ratio, c.Low, c.High, c.FamilyP
		}
	}
	text := t.Conditions[at].Verdict
	if longest >= queuedSeconds {
		text += " Beside it 95 % of small packets waited in queues for at most " + say.And(waits) + "."
	}
	a.tell(KindControl, cells, values, "%s", text)
}

// mathisHolds is how far a measured Reno may be from the model that is said to hold.
const mathisHolds = 2.0

// mathis holds what Reno carried against the model of Mathis: the anchor of the whole.
func (a *analyst) mathis(t *model.ControlTable) {
	var text []string
	values := map[string]float64{}
	timeouts := false
	for _, c := range t.Cells {
		m := c.Mathis
		if m == nil || c.Goodput == nil || c.Condition < 0 || c.Condition >= len(t.Conditions) {
			continue
		}
		key := fmt.Sprintf("condition_%d_", c.Condition)
		values[key+"predicted_bps"], values[key+"goodput_ratio"] = m.PredictedBPS, m.Ratio
		if m.Above != "" {
			text = append(text, fmt.Sprintf("with %s lost it does not bind: %s", unit.FormatRatio(m.LossRatio), m.Above))
			continue
		}
		text = append(text, fmt.Sprintf("with %s lost reno carries %s, %.2f of its %s", unit.FormatRatio(m.LossRatio), unit.FormatBits(c.Goodput.Median), m.Ratio, unit.FormatBits(m.PredictedBPS)))
		timeouts = timeouts || m.Ratio*mathisHolds < 1
	}
	if len(text) == 0 {
		return
	}
	end := ""
	if timeouts {
		end = " Much less than it comes where TCP waits for its timer, which the model leaves out, or where a host or a window holds it."
	}
	a.add(KindMathis, values, "Held against the model of Mathis (1.22 segments a round trip over the root of the loss): %s.%s", strings.Join(text, "; "), end)
}

// streams tells how those that compete shared the path.
func (a *analyst) streams(t *model.ControlTable) {
	for _, c := range t.Cells {
		if c.Jain == nil || c.Condition < 0 || c.Condition >= len(t.Conditions) {
			continue
		}
		values := map[string]float64{"jain_index": c.Jain.Median}
		where := controls.Opening(t.Conditions[c.Condition])
		text := fmt.Sprintf("%sthe streams of %s share unevenly", where, c.Control)
		if c.Jain.Median >= fairRatio {
			text = fmt.Sprintf("%sthe streams of %s share evenly", where, c.Control)
		}
		if len(c.Shares) > 0 {
			var parts []string
			for _, name := range slices.Sorted(maps.Keys(c.Shares)) {
				if e := c.Shares[name]; e != nil {
					parts = append(parts, fmt.Sprintf("%s gets %s (%.0f to %.0f %%)", name, percent(e.Median), e.Low*100, e.High*100))
					values[slug(name)+"_share_ratio"] = e.Median
				}
			}
			text = where + "side by side " + strings.Join(parts, ", ")
		}
		text += fmt.Sprintf(" (Jain's index %.2f, even is 1).", c.Jain.Median)
		if e := c.Converged; e != nil {
			values["convergence_s"] = e.Median
			atLeast := ""
			if e.Bound {
				atLeast = "at least "
			}
			text += fmt.Sprintf(" The shares stand still %s%.1f s after the last one began.", atLeast, e.Median)
		}
		a.add(KindFairness, values, "%s", sentence(text))
	}
}

// unfinished tells of transfers that the trial's time cut.
func (a *analyst) unfinished(t *model.ControlTable) {
	var text []string
	var cut int
	for _, c := range t.Cells {
		if c.Unfinished == 0 || c.Condition < 0 || c.Condition >= len(t.Conditions) {
			continue
		}
		cut += c.Unfinished
		text = append(text, fmt.Sprintf("%d of %d with %s%s", c.Unfinished, c.Valid, c.Control, controls.Under(t.Conditions[c.Condition])))
	}
	if cut == 0 {
		return
	}
	if rest := len(text) - 3; rest > 1 {
		text = append(text[:3], fmt.Sprintf("in %d cells more", rest))
	}
	limit := ""
	if s := a.doc.Plan.Timing.MeasureSeconds; s > 0 {
		limit = fmt.Sprintf(" The time of a trial is %g s; a longer --time would let them end.", s)
	}
	a.add(KindUnfinished, map[string]float64{"unfinished_trials": float64(cut)}, "Transfers that did not end in time: %s.%s", strings.Join(text, ", "), limit)
}
