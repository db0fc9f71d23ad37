package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pelt/analysis/internal/say"
	"pelt/model"
	"pelt/unit"
)

// byRuns is what a comparison of runs is by.
const byRuns = "run"

// Runs compares runs; the first is the baseline. Cells are matched by the settings
// that the runs share. An *AskError says that they cannot be matched, a
// *NothingError that nothing valid is there to compare.
func Runs(docs []model.Document, metrics Metrics) (model.Comparison, error) {
	for i, d := range docs {
		for _, other := range docs[:i] {
			if d.ID != "" && d.ID == other.ID {
				return model.Comparison{}, &AskError{fmt.Sprintf("run %s stands twice; want different runs", d.ID)}
			}
		}
	}
	shared, apart, err := sharedKnobs(docs)
	if err != nil {
		return model.Comparison{}, err
	}
	names := runNames(docs, apart)
	var sides []side
	for i, d := range docs {
		s := newSide(names[i], d)
		for _, r := range d.Results {
			settings := model.Cell{}
			for _, k := range shared {
				v, ok := r.Cell[k]
				if !ok && !slices.Contains(knobsOf(d), k) {
					v, ok = implied(r, k)
				}
				if ok {
					settings[k] = v
				}
			}
			s.add(settings, r)
		}
		sides = append(sides, s)
	}
	c := model.Comparison{By: byRuns, Differ: differences(docs, names, apart), Warnings: warnings(docs, names)}
	return finish(c, sides, metrics, &left{})
}

// Levels compares the levels of one knob of a run. base is the level that is the
// baseline, or "" for the plan's first. Errors are those of Runs.
func Levels(doc model.Document, knob, base string, metrics Metrics) (model.Comparison, error) {
	levels := levelsOf(doc, knob)
	if len(levels) == 0 {
		return model.Comparison{}, &AskError{fmt.Sprintf("the run has no setting %q; %s", knob, varied(doc))}
	}
	if knob == "direction" {
		return model.Comparison{}, &AskError{"the directions are different flows, which the run's own report sets beside each other; want another knob; " + varied(doc)}
	}
	if base != "" {
		i := slices.IndexFunc(levels, func(v model.Value) bool { return v.String() == base || levelName(knob, v) == base })
		if i < 0 {
			return model.Comparison{}, &AskError{fmt.Sprintf("%s has no level %q; want one of %s", knob, base, say.And(levelNames(knob, levels)))}
		}
		first := levels[i]
		levels = append([]model.Value{first}, slices.Delete(levels, i, i+1)...)
	}
	if len(levels) == 1 {
		return model.Comparison{}, &AskError{fmt.Sprintf("%s is %s in all trials: there is nothing to compare it with; %s", knob, levels[0], varied(doc))}
	}
	var sides []side
	for _, level := range levels {
		s := newSide(levelName(knob, level), doc)
		s.level = model.Cell{knob: level}
		for _, r := range doc.Results {
			if r.Cell[knob] == level {
				settings := maps.Clone(r.Cell)
				delete(settings, knob)
				s.add(settings, r)
			}
		}
		sides = append(sides, s)
	}
	var out left
	for _, r := range doc.Results {
		if _, has := r.Cell[knob]; !has {
			out.add("a trial that sets no %s", knob)
		}
	}
	c := model.Comparison{By: knob, Interleaved: true, Warnings: slices.Clone(doc.Warnings)}
	return finish(c, sides, metrics, &out)
}

// mostWarnings of each run are told.
const mostWarnings = 3

// warnings are the runs' own doubts about themselves, with their names.
func warnings(docs []model.Document, names []string) (list []string) {
	for i, d := range docs {
		for _, w := range d.Warnings[:min(len(d.Warnings), mostWarnings)] {
			list = append(list, names[i]+": "+w)
		}
		if n := len(d.Warnings) - mostWarnings; n > 0 {
			list = append(list, fmt.Sprintf("%s: %d more in its own report", names[i], n))
		}
	}
	return list
}

// Knob is what the levels of a run are compared by, if nobody says: its variants, or
// "" if it has none.
func Knob(doc model.Document) string {
	if len(levelsOf(doc, "variant")) > 1 {
		return "variant"
	}
	return ""
}

func levelNames(knob string, levels []model.Value) []string {
	var names []string
	for _, v := range levels {
		names = append(names, levelName(knob, v))
	}
	return names
}

// levelName is a level as the name of a side.
func levelName(knob string, v model.Value) string {
	switch {
	case v.Text != "":
		return v.Text
	case knob == "frame_bytes":
		return v.String() + " B frames"
	case strings.HasSuffix(knob, "_bytes"):
		return v.String() + " B"
	case strings.HasSuffix(knob, "_ratio"):
		return unit.FormatRatio(v.Number)
	case strings.HasSuffix(knob, "_ns"):
		return say.Level(unit.FormatNanos(v.Number))
	case strings.HasSuffix(knob, "_pps"):
		return say.Level(unit.FormatPPS(v.Number))
	case knob == "streams", knob == "receivers":
		return v.String() + " " + knob
	}
	return v.String()
}

// varied tells which knobs of a run have levels to compare.
func varied(doc model.Document) string {
	var list []string
	for _, k := range knobsOf(doc) {
		if len(levelsOf(doc, k)) > 1 {
			list = append(list, k)
		}
	}
	if len(list) == 0 {
		return "it varies nothing, so compare it with another run"
	}
	return "it varies " + say.And(list)
}

// Varied tells in words which knobs of a run Levels may compare.
func Varied(doc model.Document) string { return varied(doc) }

func finish(c model.Comparison, sides []side, metrics Metrics, out *left) (model.Comparison, error) {
	c.Format = model.CompareFormat
	for _, s := range sides {
		c.Sides = append(c.Sides, s.ComparedSide)
	}
	var all []contrast
	for i, s := range sides[1:] {
		all = append(all, contrasts(sides[0], s, i+1, c.Interleaved, metrics, out)...)
	}
	missing(sides, metrics, out)
	c.Uncompared = out.figures
	for _, text := range out.order {
		if n := out.count[text]; n > 1 {
			text += fmt.Sprintf(" (%d times)", n)
		}
		c.LeftOut = append(c.LeftOut, text)
	}
	if len(all) == 0 {
		return c, nothing(sides, c.LeftOut)
	}
	c.Tests = judge(all)
	for _, x := range all {
		if !slices.Contains(c.Settings, x.effect.Where) {
			c.Settings = append(c.Settings, x.effect.Where)
		}
	}
	slices.SortStableFunc(all, func(a, b contrast) int { return separableFirst(a.effect, b.effect) })
	for _, x := range all {
		x.effect.Text = effectText(c.Sides, x.effect)
		c.Effects = append(c.Effects, x.effect)
	}
	c.Findings = findings(c)
	c.Verdict = verdict(c)
	c.Notes = append(notes(c), unlike(c, sides)...)
	c.Limits = []model.JudgedLimit{}
	return c, nil
}

// unlike doubts sides of one run whose packets were not carried alike.
func unlike(c model.Comparison, sides []side) []string {
	var texts []string
	differ := false
	for _, s := range sides {
		by := engines(s.ran)
		differ = differ || by != engines(sides[0].ran)
		texts = append(texts, s.Name+" by "+by)
	}
	if !differ || !c.Interleaved {
		return nil
	}
	return []string{"Packets were not carried alike: " + say.And(texts) + ". Engines differ in what the hosts spend on a packet; --engine of the run makes them one."}
}

func separableFirst(a, b model.Effect) int {
	switch {
	case a.Separable == b.Separable:
		return 0
	case a.Separable:
		return -1
	}
	return 1
}

// contrasts makes every comparison of two sides.
func contrasts(base, s side, place int, paired bool, wanted Metrics, out *left) (all []contrast) {
	for _, key := range common(base, s) {
		a, b := base.cells[key], s.cells[key]
		for _, flow := range append(a.flows(), "") {
			protocol := protocolOf(a, flow)
			at := where(a.settings, flow, protocol)
			for _, m := range metrics() {
				if !wanted.has(m) || m.ofRouter != (flow == "") {
					continue
				}
				x, y := a.measured(m, flow), b.measured(m, flow)
				if len(x) == 0 && len(y) == 0 {
					continue // neither has it
				}
				c, why, ok := newContrast(m, x, y, paired)
				switch {
				case len(x) == 0 || len(y) == 0:
					lacks := s.Name
					if len(x) == 0 {
						lacks = base.Name
					}
					out.add("%s: %s has no figure for %s", at, lacks, metricWords(m.name))
					out.figure(m, false, "%s: %s has no figure for %s", at, lacks, metricWords(m.name))
				case !ok:
					if why != zeroOnBoth {
						out.figure(m, why == zeroBaseline, "%s: %s of %s and %s %s", at, metricWords(m.name), base.Name, s.Name, why)
					}
					out.add("%s: %s of %s and %s %s", at, metricWords(m.name), base.Name, s.Name, why)
				default:
					c.effect.Side, c.effect.Cell, c.effect.Flow, c.effect.Protocol, c.effect.Where = place, a.settings, flow, protocol, at
					all = append(all, c)
				}
			}
		}
	}
	return all
}

func protocolOf(c *cell, flow string) model.Protocol {
	f, _ := c.flow(flow)
	return f.Protocol
}

// nothing says why no comparison could be made.
func nothing(sides []side, why []string) error {
	most, valid, matched := 0, true, false
	for _, s := range sides {
		valid = valid && s.Valid > 0
		for key, c := range s.cells {
			if s.Name != sides[0].Name && sides[0].cells[key] != nil {
				matched = true
				most = max(most, min(len(c.trials), len(sides[0].cells[key].trials)))
			}
		}
	}
	for _, s := range sides {
		if s.Valid == 0 {
			return &NothingError{fmt.Sprintf("%s has no valid trial: nothing can be compared", s.Name)}
		}
	}
	switch {
	case !matched:
		return &NothingError{"no setting stands on both sides: nothing can be compared; " + say.And(why)}
	case most == 1:
		return &NothingError{"measured once each: nothing can be told apart; --repeats 3 or more"}
	case most == 2:
		return &NothingError{"measured twice each: how much it varies is unknown, so nothing can be told apart; --repeats 3 or more"}
	case len(why) > 0:
		return &NothingError{"nothing can be compared: " + why[0]}
	}
	return &NothingError{"nothing can be compared: none of the metrics was measured"}
}
