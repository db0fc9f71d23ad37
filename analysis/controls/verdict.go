package controls

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"pelt/analysis/internal/say"
	"pelt/model"
)

// mostNamed is how many conditions a verdict names; the table has all.
const mostNamed = 3

// Verdict is the answer of a whole table in one or two sentences.
func Verdict(t *model.ControlTable) string {
	switch {
	case len(t.Conditions) == 1:
		return t.Conditions[0].Verdict
	case len(t.Contrasts) > 0 && !slices.ContainsFunc(t.Contrasts, func(c model.ControlContrast) bool { return !tooFew(t, c) }):
		return fewVerdict(t)
	case len(t.Contrasts) > 0:
		return comparedVerdict(t)
	case len(t.Controls) > 1:
		return "Nothing can be compared: no condition has valid trials of " + t.Baseline + " and of another control."
	}
	return aloneVerdict(t)
}

// fewVerdict is that of a run that no difference could have come out of.
func fewVerdict(t *model.ControlTable) string {
	most := slices.MaxFunc(t.Contrasts, func(a, b model.ControlContrast) int { return cmp.Compare(a.Trials, b.Trials) }).Trials
	text := trialsText(most) + " each are too few to tell controls apart"
	if most == 1 {
		text = "1 trial each is too few to tell controls apart"
	}
	if n := enough(t.Tests, t.Alpha); n > 0 {
		text += fmt.Sprintf(": with %s %d are the least (--repeats %d)", comparisonsText(t.Tests), n, n)
	}
	return text + "."
}

func comparisonsText(n int) string {
	if n == 1 {
		return "1 comparison"
	}
	return fmt.Sprintf("%d comparisons", n)
}

// aloneVerdict is that of a run of one control under several conditions.
func aloneVerdict(t *model.ControlTable) string {
	var parts []string
	for i, s := range t.Conditions {
		for _, c := range t.Cells {
			if c.Condition == i {
				parts = append(parts, figureText(t, &c, len(parts) == 0)+Under(s))
			}
		}
	}
	if rest := len(parts) - mostNamed; rest > 1 {
		parts = append(parts[:mostNamed], fmt.Sprintf("%d more", rest))
	}
	return t.Baseline + " " + say.And(parts) + "."
}

// comparedVerdict is about the control that is furthest from the baseline, and then
// about the others.
func comparedVerdict(t *model.ControlTable) string {
	of := map[string][]model.ControlContrast{}
	var names []string
	for _, c := range t.Contrasts {
		if of[c.Control] == nil {
			names = append(names, c.Control)
		}
		of[c.Control] = append(of[c.Control], c)
	}
	first := slices.MaxFunc(names, func(a, b string) int { return cmp.Compare(reach(of[a]), reach(of[b])) })
	sentences := []string{controlSentence(t, of[first])}
	others := slices.DeleteFunc(names, func(name string) bool { return name == first })
	if len(others) == 1 {
		sentences = append(sentences, controlSentence(t, of[others[0]]))
		others = nil
	}
	var same, some []string
	for _, name := range others {
		n := len(slices.DeleteFunc(slices.Clone(of[name]), func(c model.ControlContrast) bool { return !c.Separable }))
		if n == 0 {
			same = append(same, name)
		} else {
			some = append(some, fmt.Sprintf("%s differs from %s under %d of %s", name, t.Baseline, n, conditionsText(len(of[name]))))
		}
	}
	if len(same) > 0 {
		some = append(some, say.And(same)+" cannot be told from "+t.Baseline)
	}
	if len(some) > 0 {
		sentences = append(sentences, strings.Join(some, "; ")+".")
	}
	return strings.Join(sentences, " ")
}

// reach is how far a control is from the baseline where they are separable.
func reach(of []model.ControlContrast) (most float64) {
	for _, c := range of {
		if c.Separable && c.Ratio > 0 {
			most = max(most, math.Abs(math.Log(c.Ratio)))
		}
	}
	return most
}

func conditionsText(n int) string {
	if n == 1 {
		return "1 condition"
	}
	return fmt.Sprintf("%d conditions", n)
}

// controlSentence is what one control is to the baseline under all conditions.
func controlSentence(t *model.ControlTable, of []model.ControlContrast) string {
	var faster, slower, same []model.ControlContrast
	var parts []string
	for _, c := range of {
		other, baseline := t.Cell(c.Condition, c.Control), t.Cell(c.Condition, c.Baseline)
		switch {
		case !c.Separable:
			same = append(same, c)
		case other != nil && baseline != nil && bounded(t, other) && bounded(t, baseline): // the ratio is of two bounds
			parts = append(parts, strings.TrimSpace(places(t, []model.ControlContrast{c})+" "+clause(t, c, true)))
		case c.Ratio >= 1:
			faster = append(faster, c)
		default:
			slower = append(slower, c)
		}
	}
	name, base := of[0].Control, of[0].Baseline
	if len(faster) > 0 {
		parts = append(parts, timesClause(t, name, base, faster))
	}
	if len(slower) > 0 {
		parts = append(parts, timesClause(t, base, name, slower))
	}
	switch {
	case len(parts) == 0:
		return fmt.Sprintf("%s cannot be told from %s under any of %s.", name, base, conditionsText(len(of)))
	case len(same) > mostNamed:
		parts = append(parts, fmt.Sprintf("under %s they cannot be told apart", conditionsText(len(same))))
	case len(same) > 0:
		parts = append(parts, strings.TrimSpace(places(t, same))+" they cannot be told apart")
	}
	return strings.Join(parts, "; ") + "."
}

// places are the conditions of some comparisons: " at no loss and at 1 % loss".
func places(t *model.ControlTable, of []model.ControlContrast) string {
	var all []string
	for _, c := range of {
		s, _ := setting(t, c.Condition)
		all = append(all, strings.TrimSpace(Under(s)))
	}
	return " " + say.And(all)
}

// timesClause says how many times as fast one is as the other where that is certain:
// "bbr is 7.6 times as fast as cubic at 1 % loss and 12 times at 10 % loss".
func timesClause(t *model.ControlTable, name, other string, of []model.ControlContrast) string {
	does, as := " is ", " times as fast as "
	if t.Metric != byCompletion {
		does, as = " carries ", " times as much as "
	}
	slices.SortStableFunc(of, func(a, b model.ControlContrast) int {
		return cmp.Compare(reach([]model.ControlContrast{b}), reach([]model.ControlContrast{a}))
	})
	if len(of) > mostNamed {
		least, most := of[len(of)-1], of[0]
		return name + does + timesOf(t, least) + " to " + timesOf(t, most) + as + other + fmt.Sprintf(" under %s, most%s", conditionsText(len(of)), places(t, of[:1]))
	}
	var parts []string
	for i, c := range of {
		link := " times"
		if i == 0 {
			link = as + other
		}
		parts = append(parts, timesOf(t, c)+link+places(t, []model.ControlContrast{c}))
	}
	return name + does + say.And(parts)
}

// timesOf is how many times as fast the faster one is: at least so many where the
// other's time is not known in full.
func timesOf(t *model.ControlTable, c model.ControlContrast) string {
	ratio, low, slow := c.Ratio, c.Low, c.Baseline
	if ratio < 1 {
		ratio, low, slow = 1/ratio, 1/c.High, c.Control
	}
	if cell := t.Cell(c.Condition, slow); cell != nil && bounded(t, cell) {
		return atLeast(low)
	}
	return timesText(ratio)
}
