package finding

import (
	"math"
	"slices"

	"pelt/model"
	"pelt/table"
	"pelt/unit"
	"pelt/words"
)

type Judged struct {
	Outcome table.Outcome
	Finding
}

// judge tells what became of each limit: each effect that breaks it, or that may; else that it held.
func (c *Comparison) judge(limits []table.Bound) {
	for _, l := range limits {
		before := len(c.Limits)
		add := func(o table.Outcome, e Effect, what string) {
			f := say("asked."+string(o), Fact, "limit", l.Text, "what", what)
			if e.Side > 0 {
				f.Words["side"] = c.Sides[e.Side].Name
			}
			c.Limits = append(c.Limits, Judged{o, f})
		}
		seen := false
		for _, e := range c.Effects {
			if !slices.Contains(l.Metrics, e.Metric) {
				continue
			}
			seen = true
			switch o := l.Judge(e.Effect); {
			case e.few():
				add(table.NotMeasured, e, c.language().Say(e.Metric.Label)+c.at(e))
			case o == table.Failed:
				add(o, e, c.phrase(e))
			case o == table.Undecided:
				add(o, e, c.language().Sayf("%s, 95 %%: %s", c.phrase(e), e.interval(c.language())))
			}
		}
		for _, e := range c.missing {
			if slices.Contains(l.Metrics, e.Metric) && c.expected(e) {
				seen = true
				add(table.NotMeasured, e, c.language().Say(e.Metric.Label)+c.at(e))
			}
		}
		for _, e := range c.Flooded {
			if !seen && slices.Contains(l.Metrics, e.Metric) {
				seen = true
				add(table.NotMeasured, e, "")
				c.Limits[len(c.Limits)-1].Code = "asked.flood"
			}
		}
		switch {
		case !seen:
			add(table.NotMeasured, Effect{Side: 1}, c.language().Say(l.Metrics[0].Label))
		case len(c.Limits) == before:
			add(table.Passed, Effect{}, "")
		}
	}
}

// interval prints an effect's interval. It has no end where the baseline is 0.
func (e Effect) interval(l words.Language) string {
	low := l.Say(unit.Change(e.Low, e.Points))
	if math.IsInf(e.High, 1) {
		return l.Sayf("%s or more", low)
	}
	return l.Sayf("%s to %s", low, l.Say(unit.Change(e.High, e.Points)))
}

// expected reports whether both sides were to measure at a place: each tried, or was cut before it could.
func (c Comparison) expected(e Effect) bool {
	for _, s := range []int{0, e.Side} {
		if len(c.Group(e.Condition, s).Rows) == 0 && c.Sides[s].Doc.Complete {
			return false
		}
	}
	return true
}

// Outcome is the worst outcome of all limits: failed, not measured, cannot be told, passed.
func (c Comparison) Outcome() table.Outcome {
	worst := table.Passed
	rank := map[table.Outcome]int{table.Failed: 3, table.NotMeasured: 2, table.Undecided: 1}
	for _, l := range c.Limits {
		if rank[l.Outcome] > rank[worst] {
			worst = l.Outcome
		}
	}
	return worst
}

const compareFormat = "pelt/compare/2"

// CompareDocument is a comparison as files have it. Its figures are those of the tables.
type CompareDocument struct {
	Format   string          `json:"format"`
	Tool     model.Tool      `json:"tool"`
	By       string          `json:"by"` // a setting, or "run"
	Sides    []SideEntry     `json:"sides"`
	Differ   []Difference    `json:"differ"`
	Effects  []model.Finding `json:"effects"`
	Findings []model.Finding `json:"findings"` // with what became of limits: asked.failed and the like
}

// SideEntry is a side; the first is the baseline.
type SideEntry struct {
	Name    string `json:"name"`
	Run     string `json:"run"`
	Started string `json:"started"` // RFC 3339
	Command string `json:"command"`
	Target  string `json:"target"`
	Valid   int    `json:"valid_trials"`
	Invalid int    `json:"invalid_trials"` // aborted ones included
}

func (c Comparison) Document(tool model.Tool) CompareDocument {
	out := CompareDocument{Format: compareFormat, Tool: tool, By: c.By, Differ: append([]Difference{}, c.Differ...),
		Findings: Stored(c.Findings(), true)}
	for _, s := range c.Sides {
		valid, invalid, aborted := table.Group{Rows: s.Rows}.Trials()
		started := s.Doc.Started.UTC().Format(model.TimeLayout)
		out.Sides = append(out.Sides, SideEntry{s.Name, s.Doc.ID, started, s.Doc.Plan.Command, s.Doc.Plan.Target,
			valid, invalid + aborted})
	}
	for _, e := range c.Effects {
		out.Effects = append(out.Effects, c.effect(e).Stored(true))
	}
	return out
}

// effect is an effect of a side against the baseline with all its figures, and the levels
// of its place by their keys.
func (c Comparison) effect(e Effect) Finding {
	name, change := e.Metric.Name, "change_ratio"
	if e.Points {
		change = "points_ratio"
	}
	other, base := c.Group(e.Condition, e.Side), c.Group(e.Condition, 0)
	f := say("compare.effect", Fact, "side", c.Sides[e.Side].Name, "figure", e.figure(c.language()), "at", c.at(e),
		"metric", name, "verdict", string(e.Verdict), "side", other, "base", base,
		"repeats_count:side", float64(c.Stat(e, e.Side).N), "repeats_count:base", float64(c.Stat(e, 0).N),
		"repeats_count:more", float64(e.Needed), change+":"+name, e.Change, change+":"+name+"-low", e.Low,
		change+":"+name+"-high", e.High, "p_ratio", e.P)
	for i, k := range other.Keys {
		f = f.with(k.Name, other.Levels[i].String())
	}
	return f
}
