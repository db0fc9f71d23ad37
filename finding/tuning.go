package finding

import (
	"cmp"
	"errors"

	"pelt/model"
	"pelt/table"
)

// JudgeSetting says whether a run that varied a setting shows it better than its base
// level: less loss or more goodput somewhere, and nowhere the contrary. The code is
// tune.kept if so, and tune.untold if too few trials were valid to judge by.
func JudgeSetting(d *model.Document, knob, base string) Finding {
	c, err := Compare(Question{Docs: []*model.Document{d}, Key: knob, Base: base,
		Metrics: []*table.Metric{table.MetricOf("loss_ratio"), table.MetricOf("goodput_bps")}})
	var no *Refusal
	if errors.As(err, &no) {
		return say("tune.untold", Answer).word("why", no.Text())
	}
	f := c.side(1)
	codes := map[string]string{"compare.better": "tune.kept", "compare.worse": "tune.worse",
		"compare.mixed": "tune.mixed", "compare.few": "tune.untold", "compare.tied": "tune.tied"}
	f.Code = cmp.Or(codes[f.Code], "tune.open")
	if f.Code == "tune.untold" {
		f.Words["why"] = say("tune.few", Fact).Text()
	}
	return f
}

func TuneTrial(t model.TuneTrial) []Finding {
	kept, untold := map[string]bool{}, 0
	for _, s := range t.Steps {
		if s.Kept {
			kept[s.Host+" "+s.Knob] = true
		}
		if s.Untold {
			untold++
		}
	}
	f := say("tune.same", Answer).number("loss_ratio", "first", t.First.Ratio).
		number("loss_ratio", "last", t.Last.Ratio).number("kept_count", "", float64(len(kept))).number("tried_count", "", float64(len(t.Steps))).
		number("trials_count", "", float64(t.First.Trials))
	switch {
	case t.First.Lost == 0:
		f.Code = "tune.whole"
	case len(t.Steps) == 0:
		f.Code = "tune.none"
	case len(kept) > 0 && t.Last.Ratio < t.First.Ratio:
		f.Code = "tune.lower"
	case len(kept) > 0:
		f.Code = "tune.changed"
	}
	out := []Finding{f}
	if untold > 0 {
		out = append(out, say("tune.unjudged", Doubt).number("settings_count", "", float64(untold)))
	}
	if t.Undo != "" {
		out = append(out, say("tune.undo", Next).word("undo", t.Undo))
	}
	if t.Flags != "" {
		out = append(out, say("tune.flags", Fact).word("flags", t.Flags))
	}
	return out
}
