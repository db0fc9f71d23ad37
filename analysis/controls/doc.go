// Package controls compares the congestion controls of a run of pelt cc.
//
// A document comes in, a table with its sentences goes out. It uses valid trials
// only and calls nothing a difference that may be chance. It measures nothing,
// keeps nothing, draws nothing at random, and its functions may be called
// concurrently.
package controls

import "pelt/model"

// command is the one whose runs are compared.
const command = "cc"

// What controls are compared by.
const (
	byCompletion = "completion_s"
	byGoodput    = "goodput_bps"
)

// Table compares the congestion controls of a run of pelt cc; nil if doc is none,
// or if no trial of it says which control it had.
func Table(doc model.Document) *model.ControlTable {
	g, ok := read(doc, everyRepeat)
	if !ok {
		return nil
	}
	t := &model.ControlTable{Metric: g.metric, Baseline: g.controls[0], Controls: g.controls, Looks: looks(doc.Plan.Design), Contrasts: []model.ControlContrast{}}
	t.Alpha = alpha(t.Looks)
	for i, under := range g.conditions {
		t.Conditions = append(t.Conditions, model.ControlSetting{Cell: under, Text: conditionText(under)})
		shortest := g.shortest(i)
		for _, control := range g.controls {
			if c := g.cell(i, control); c != nil {
				t.Cells = append(t.Cells, g.figures(c, i, control, shortest))
			}
		}
	}
	t.Contrasts = append(t.Contrasts, g.contrasts(t.Alpha)...)
	g.ratios(t.Contrasts)
	t.Tests = len(t.Contrasts)
	for i := range t.Contrasts {
		c := &t.Contrasts[i]
		c.Text = contrastText(t, *c)
	}
	for i := range t.Conditions {
		t.Conditions[i].Verdict = conditionVerdict(t, i)
	}
	t.Notes = g.notes(t)
	return t
}

// Apart reports whether a run that goes on until its controls are told apart may
// stop after so many repeats: by these alone, and at the share of the false alarms
// that one look has, each control is separable from the baseline under every
// condition. A comparison waits for nothing where every trial of both sides was cut
// before its end, for more of them would be too; nor does a run that compares
// nothing.
func Apart(doc model.Document, repeats int) bool {
	g, ok := read(doc, repeats)
	if !ok {
		return true
	}
	made := g.contrasts(alpha(looks(doc.Plan.Design)))
	for _, c := range made {
		if !c.Separable && !g.hopeless(c) {
			return false
		}
	}
	return len(made) == len(g.conditions)*(len(g.controls)-1)
}
