package seconds

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"pelt/model"
	"pelt/report/internal/words"
	"pelt/unit"
)

// Mark is a moment at which something changed.
type Mark struct {
	AtS         float64
	LowS, HighS float64 // it lies between these with 95 % confidence; both are AtS where it is known
	Words       string  // short enough to stand in a chart
	Made        bool    // on order, as the plan says; else it was found in the series
}

func marks(r model.Result, end float64) []Mark {
	var out []Mark
	for _, m := range r.Made {
		if m.Failure == "" {
			out = append(out, Mark{m.AtS, m.AtS, m.AtS, words.Shorten(words.Plain(m.Words), 40), true})
		}
	}
	found := slices.Clone(r.Changes)
	slices.SortStableFunc(found, func(a, b model.Change) int { return cmp.Compare(a.Rank(), b.Rank()) })
	var kept []model.Change
	for _, c := range found {
		near := slices.ContainsFunc(kept, func(k model.Change) bool {
			return k.Alike(c) && math.Abs(k.StartS-c.StartS) <= model.Together
		})
		if !near {
			kept = append(kept, c)
			m := Mark{AtS: c.StartS, LowS: c.StartS, HighS: c.StartS, Words: changeWords(c)}
			if c.StartLowS <= c.StartS && c.StartS <= c.StartHighS {
				m.LowS, m.HighS = max(c.StartLowS, 0), min(c.StartHighS, end)
			}
			out = append(out, m)
		}
	}
	out = slices.DeleteFunc(out, func(m Mark) bool { return !(m.AtS >= 0 && m.AtS <= end) })
	slices.SortStableFunc(out, func(a, b Mark) int {
		return cmp.Or(cmp.Compare(math.Floor(a.AtS), math.Floor(b.AtS)), order(a)-order(b), cmp.Compare(a.AtS, b.AtS))
	})
	return out
}

// order puts what was done before what it did, within a second.
func order(m Mark) int {
	if m.Made {
		return 0
	}
	return 1
}

func changeWords(c model.Change) string {
	what := map[string]string{"receive_pps": "received", "send_pps": "sent", "goodput_bps": "goodput", "lost_pps": "lost"}[c.Metric]
	if what == "" {
		what = words.Name(c.At) + " " + words.Name(c.Metric)
	}
	switch c.Kind {
	case model.ChangeShift:
		return what + " " + fromTo(c)
	case model.ChangeDrift:
		return what + " drifts " + fromTo(c)
	case model.ChangeStall:
		return what + " stalls every " + unit.FormatNanos(c.PeriodS*1e9)
	case model.ChangeBurst:
		if c.Count > 1 {
			return fmt.Sprintf("%d bursts of loss", c.Count)
		}
		return "burst of loss"
	}
	return words.Name(c.Kind) + " of " + what
}

func fromTo(c model.Change) string {
	from, to := figure(c.Metric, c.Before), figure(c.Metric, c.After)
	return unit.Bare(from, to) + " → " + to
}

// figure prints a value by the unit in its metric's name.
func figure(metric string, v float64) string {
	if text, ok := unit.FormatNamed(metric, v); ok {
		return text
	}
	return fmt.Sprintf("%.3g", v)
}
