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

// TuneTrial says how a search for better settings ended.
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

// StillLost says where the trials that count still lose packets, the most first, and
// what is known that may help there. tried reports whether a setting was tried.
func StillLost(rows []table.Row, known []model.Advised, tried func(model.Advised) bool) []Finding {
	var out []Finding
	all := 0.0
	for _, l := range Losses(Usable(rows)) {
		all += l.Packets
		f := say("tune.left", Fact).number("lost_packets", "", l.Packets).word("place", l.Text)
		if l.Layer == table.Unattributed {
			f.Code = "tune.unknown"
		}
		for _, a := range known {
			if a.Host != l.Host || a.Layer != l.Layer || a.Cause != l.Cause {
				continue
			}
			words := adviceWords(a.Advice)
			words["place"], words["command"] = f.Words["place"], a.Command
			f.Words = words
			switch lab := rows[0].Doc.Lab != nil; {
			case !a.Proposes():
				f.Code = "tune.left-enough"
			case tried(a):
				f.Code = "tune.left-tried"
			case lab && !a.Apply: // of a lab's node, not of this host
			case a.Command != "":
				f.Code = "tune.left-try"
				if a.Here {
					f.Words["host"] = "this host"
				}
			}
		}
		out = append(out, f)
	}
	for i := range out {
		out[i] = out[i].number("share_ratio", "", out[i].Numbers[0].Value/all)
	}
	return out
}
