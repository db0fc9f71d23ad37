package controls

import (
	"fmt"
	"math"
	"strings"

	"pelt/model"
)

// contrastText is one comparison in a sentence.
func contrastText(t *model.ControlTable, c model.ControlContrast) string {
	s, ok := setting(t, c.Condition)
	other, base := t.Cell(c.Condition, c.Control), t.Cell(c.Condition, c.Baseline)
	if !ok || compared(t, other) == nil || compared(t, base) == nil {
		return ""
	}
	if !c.Separable {
		return fmt.Sprintf("%s%s.", Opening(s), clause(t, c, true))
	}
	return fmt.Sprintf("%s%s %s, %s %s: %s.", Opening(s), c.Control, figureText(t, other, true), c.Baseline, figureText(t, base, false), clause(t, c, false))
}

// conditionVerdict is what all controls did under one condition.
func conditionVerdict(t *model.ControlTable, condition int) string {
	s, ok := setting(t, condition)
	if !ok {
		return ""
	}
	var figures, clauses []string
	verb := true
	var of []model.ControlContrast
	for _, c := range t.Contrasts {
		if c.Condition == condition {
			of = append(of, c)
		}
	}
	for _, name := range inSentence(t.Controls) {
		c := t.Cell(condition, name)
		if c == nil {
			continue
		}
		// A verb again after one that has none of the figure.
		figures = append(figures, name+" "+figureText(t, c, verb))
		verb = compared(t, c) == nil
	}
	for _, c := range of {
		clauses = append(clauses, clause(t, c, len(of) > 1))
	}
	text := Opening(s) + strings.Join(figures, ", ")
	if len(of) == 1 && !of[0].Separable {
		text += ": the two cannot be told apart " + untold(t, of[0], true)
	} else if len(clauses) > 0 {
		text += ": " + strings.Join(clauses, "; ")
	}
	return text + "."
}

// inSentence are the controls as a sentence lists them: the baseline last.
func inSentence(controls []string) []string {
	if len(controls) == 0 {
		return nil
	}
	return append(append([]string{}, controls[1:]...), controls[0])
}

// clause says how a control compares with the baseline, which it names unless the
// sentence has just done so.
func clause(t *model.ControlTable, c model.ControlContrast, named bool) string {
	if !c.Separable {
		return fmt.Sprintf("%s cannot be told from %s %s", c.Control, c.Baseline, untold(t, c, false))
	}
	name, slower, ratio, low, high := c.Control, c.Baseline, c.Ratio, c.Low, c.High
	if ratio < 1 {
		name, slower, ratio, low, high = c.Baseline, c.Control, 1/c.Ratio, 1/c.High, 1/c.Low
	}
	does, end := "is %s times as fast", ""
	if t.Metric != byCompletion {
		does = "carries %s times as much"
	}
	if named {
		end = " as " + slower
	}
	mine, yours := t.Cell(c.Condition, name), t.Cell(c.Condition, slower)
	switch {
	case mine != nil && yours != nil && bounded(t, mine):
		return fmt.Sprintf("%s ended in %s, %s in %s", name, endedText(mine), slower, endedText(yours))
	case yours != nil && bounded(t, yours):
		return name + " " + fmt.Sprintf(does, atLeast(low)) + end
	case math.Abs(ratio-1) < 0.005:
		return fmt.Sprintf("%s and %s differ, by less than 1 %%", name, slower)
	}
	return name + " " + fmt.Sprintf(does, timesText(ratio)) + end + fmt.Sprintf(" (%s to %s)", timesText(low), timesText(high))
}

// untold says how far apart two are that cannot be told apart, in brackets; named:
// whose the ratio is.
func untold(t *model.ControlTable, c model.ControlContrast, named bool) string {
	as, name := "as fast", ""
	if named {
		name = c.Control + " "
	}
	if t.Metric != byCompletion {
		as = "as much"
	}
	other, base := t.Cell(c.Condition, c.Control), t.Cell(c.Condition, c.Baseline)
	ratio := fmt.Sprintf("%s%s times %s, %s to %s", name, timesText(c.Ratio), as, timesText(c.Low), timesText(c.High))
	switch {
	case other == nil || base == nil:
	case bounded(t, other) && bounded(t, base) && other.Unfinished == counted(t, other) && base.Unfinished == counted(t, base):
		ratio = "no trial of either ended"
	case bounded(t, other) && bounded(t, base):
		ratio = fmt.Sprintf("%s and %s ended", endedText(other), endedText(base))
	case bounded(t, base):
		ratio = fmt.Sprintf("%s%s times %s", name, atLeast(c.Low), as)
	case bounded(t, other):
		ratio = fmt.Sprintf("%sat most %s times %s", name, timesText(c.High), as)
	}
	each := " each"
	if n := max(counted(t, other), counted(t, base)); n > c.Trials {
		each = fmt.Sprintf(" against %d", n)
	}
	text := fmt.Sprintf("(%s; %s%s", ratio, trialsText(c.Trials), each)
	if tooFew(t, c) {
		text += " are too few to tell"
		if c.Trials == 1 && each == " each" {
			text = strings.Replace(text, " are too", " is too", 1)
		}
	} else if c.P < t.Alpha {
		text += fmt.Sprintf(", and %d comparisons at once", t.Tests)
	}
	return text + ")"
}

// bounded says that a cell's median is a lower bound of a time.
func bounded(t *model.ControlTable, c *model.ControlCell) bool {
	return t.Metric == byCompletion && c.Completion != nil && c.Completion.Bound
}

// endedText says how many transfers ended: "3 of 10 trials".
func endedText(c *model.ControlCell) string {
	n := 0
	if c.Completion != nil {
		n = len(c.Completion.Values)
	}
	if ended := n - c.Unfinished; ended > 0 {
		return fmt.Sprintf("%d of %s", ended, trialsText(n))
	}
	return "none of " + trialsText(n)
}

// setting is one of a table's conditions; ok is false if it has none of that place.
func setting(t *model.ControlTable, condition int) (s model.ControlSetting, ok bool) {
	if condition < 0 || condition >= len(t.Conditions) {
		return s, false
	}
	return t.Conditions[condition], true
}
