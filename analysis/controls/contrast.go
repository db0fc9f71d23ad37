package controls

import (
	"math"

	"pelt/analysis/internal/stats"
	"pelt/model"
)

// falseAlarms is the chance that a run calls any difference that is none, all its
// comparisons and all its looks together.
const falseAlarms = 1 - stats.Confidence

// leastBits stands for a goodput of nothing where it is compared, in bit/s: a ratio
// to nothing is no number.
const leastBits = 1.0

// looks is how often a run may judge before it ends.
func looks(d model.Design) int {
	d.MostRepeats, d.Repeats = min(d.MostRepeats, model.MaxRepeats), max(d.Repeats, 1)
	return len(d.Looks())
}

// alpha is the chance of a false alarm that one look may have, so that all of them
// together have falseAlarms at most (Bonferroni).
func alpha(looks int) float64 { return falseAlarms / float64(max(looks, 1)) }

// contrasts compares each control with the first one under each condition, where both
// have a figure, and judges them together at alpha. Intervals are not made smaller or
// larger by that.
func (g *grid) contrasts(alpha float64) (all []model.ControlContrast) {
	var p []float64
	for i := range g.conditions {
		base := g.compared(g.cell(i, g.controls[0]))
		for _, control := range g.controls[1:] {
			other := g.compared(g.cell(i, control))
			if len(base) == 0 || len(other) == 0 {
				continue
			}
			c := model.ControlContrast{Condition: i, Control: control, Baseline: g.controls[0], Trials: min(len(base), len(other))}
			c.P = stats.MannWhitney(unknownLast(other), unknownLast(base))
			p = append(p, c.P)
			all = append(all, c)
		}
	}
	for i, family := range stats.Holm(p) {
		all[i].FamilyP = family
		all[i].Separable = family < alpha
	}
	return all
}

// ratios adds how many times as fast the controls are as the baseline.
func (g *grid) ratios(all []model.ControlContrast) {
	for i := range all {
		c := &all[i]
		slow, fast := g.speeds(c.Condition, c.Baseline), g.speeds(c.Condition, c.Control)
		if g.metric == byCompletion {
			slow, fast = fast, slow // of times the shorter is the faster
		}
		c.Ratio, c.Low, c.High, _ = stats.RatioOfMedians(fast, slow)
	}
}

// speeds are what a ratio is made of, all above 0.
func (g *grid) speeds(condition int, control string) []float64 {
	v := values(g.compared(g.cell(condition, control)))
	for i := range v {
		if g.metric == byGoodput {
			v[i] = max(v[i], leastBits)
		}
	}
	return v
}

// hopeless says that no trial of either side ended, so that no more of them would
// tell the two apart.
func (g *grid) hopeless(c model.ControlContrast) bool {
	for _, control := range []string{c.Control, c.Baseline} {
		for _, x := range g.compared(g.cell(c.Condition, control)) {
			if !x.bound {
				return false
			}
		}
	}
	return true
}

// enough is the least number of trials of each control with which the smallest
// probability of several comparisons can be below alpha; 0 if none in reach is.
func enough(tests int, alpha float64) int {
	for n := 2; n <= model.MaxRepeats; n++ {
		if stats.MannWhitneyLeast(n, n)*float64(max(tests, 1)) < alpha {
			return n
		}
	}
	return 0
}

// tooFew says that a comparison has too few trials to be told apart, whatever they
// showed.
func tooFew(t *model.ControlTable, c model.ControlContrast) bool {
	least := stats.MannWhitneyLeast(c.Trials, c.Trials)
	if o, b := t.Cell(c.Condition, c.Control), t.Cell(c.Condition, c.Baseline); o != nil && b != nil {
		least = stats.MannWhitneyLeast(counted(t, o), counted(t, b))
	}
	// Its own probability would be the smallest at best, next to those that are.
	rank := 0
	for _, x := range t.Contrasts {
		if x.Separable {
			rank++
		}
	}
	return !c.Separable && least*float64(max(1, t.Tests-rank)) >= t.Alpha
}

// counted is how many trials of a cell have the table's figure.
func counted(t *model.ControlTable, c *model.ControlCell) int {
	if e := compared(t, c); e != nil {
		return len(e.Values)
	}
	return 0
}

// compared is the estimate that a table compares by.
func compared(t *model.ControlTable, c *model.ControlCell) *model.Estimate {
	switch {
	case c == nil:
		return nil
	case t.Metric == byCompletion:
		return c.Completion
	}
	return c.Goodput
}

// finite says whether a figure of a table from outside can be told.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
