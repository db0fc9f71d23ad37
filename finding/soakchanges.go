package finding

import (
	"cmp"
	"slices"
	"strings"

	"pelt/change"
	"pelt/model"
	"pelt/table"
	"pelt/unit"
	"pelt/words"
)

const mostEvents = 8

// changesOf tells the planned changes, and then the changes that were found and not planned, each
// with its causes. A table has the figures before and after.
func changesOf(rows []table.Row) (out []Finding) {
	trial := rows[0].Trial
	events := eventsOf(trial)
	planned, found := 0, 0
	for _, m := range trial.Made {
		if !change.Believed(m.AtS) {
			continue
		}
		if planned++; planned > mostEvents {
			continue
		}
		f := say("soak.made", Fact, "at_s", m.AtS, "what", madeWords(rows[0].Language(), m.Words))
		if len(m.Failure) > 0 {
			f.Code, f.Level = "soak.failed", Doubt
			out = append(out, f.with("why", m.Failure))
			continue
		}
		out = append(out, f)
		for _, e := range events {
			if e.madeBy(m) {
				out = append(out, causesOf(e, rows[0])...)
			}
		}
	}
	for _, e := range events {
		f, ok := changeFinding(rows[0].Language(), e.lead)
		if !ok || slices.ContainsFunc(trial.Made, e.madeBy) {
			continue
		}
		if found++; found <= mostEvents {
			out = append(append(out, f), causesOf(e, rows[0])...)
		}
	}
	if more := max(0, planned-mostEvents) + max(0, found-mostEvents); more > 0 {
		out = append(out, say("soak.more", Fact, "changes_count", float64(more)))
	}
	return out
}

// jointChange is what several series did at the same time; lead tells most.
type jointChange struct {
	lead   model.Change
	movers []model.Mover
}

func (h jointChange) madeBy(m model.MadeChange) bool {
	c := h.lead
	return len(m.Failure) == 0 && m.AtS >= min(c.StartLowS, c.StartS)-model.Together &&
		m.AtS-m.TookS <= max(c.StartHighS, c.StartS)+1
}

// eventsOf puts together the changes that began together, in the order of time.
func eventsOf(t *model.Result) (out []jointChange) {
	for _, c := range t.Changes {
		i := slices.IndexFunc(out, func(h jointChange) bool {
			f := h.lead
			return f.Alike(c) && c.StartLowS <= f.StartHighS+model.Together &&
				f.StartLowS <= c.StartHighS+model.Together
		})
		if i < 0 {
			out = append(out, jointChange{c, slices.Clone(c.Causes)})
			continue
		}
		out[i].movers = append(out[i].movers, c.Causes...)
		if c.Rank() < out[i].lead.Rank() {
			out[i].lead = c
		}
	}
	return out
}

var seriesNames = map[string]string{"receive_pps": "the received rate", "send_pps": "the sent rate",
	"goodput_bps": "goodput", "lost_pps": "loss", "delay_p50_ns": "the median delay",
	"round_trip_ns": "the round trip"}

func changeFinding(l words.Language, c model.Change) (Finding, bool) {
	code := map[string]string{model.ChangeShift: "change.shift", model.ChangeDrift: "change.drift",
		model.ChangeBurst: "change.burst"}[c.Kind]
	f := say(code, Fact, "metric", c.Metric, "what", l.Say(cmp.Or(seriesNames[c.Metric], c.Metric)))
	f.Numbers = []Number{{"at_s", "", c.StartS}, {"end_s", "", c.EndS}, {c.Metric, "before", c.Before},
		{c.Metric, "after", c.After}, {"events_count", "", float64(c.Count)}, {"more_packets", "", c.Packets}}
	if c.Flow != "" {
		f.Words["what"] = l.Sayf("%s (%s)", f.Words["what"], l.Say(c.Flow))
	}
	if c.Kind == model.ChangeBurst && c.Count > 1 {
		f.Code = "change.bursts"
	}
	wild := slices.ContainsFunc(f.Numbers, func(n Number) bool { return !change.Believed(n.Value) })
	return f, code != "" && !wild
}

const (
	mostCauses = 2
	// A series that is neither packets nor a processor is a cause only if it fits better.
	plainFit = 0.5
)

// causesOf tells what moved with a change: first what happened to packets, then why.
func causesOf(h jointChange, r table.Row) (out []Finding) {
	rank := func(m model.Mover) int { // of any other metric, behind all
		return (slices.Index([]string{"send_pps", "lost_pps", "dropped_pps"}, m.Metric) + 4) % 4
	}
	slices.SortStableFunc(h.movers, func(a, b model.Mover) int { return rank(a) - rank(b) })
	for _, m := range h.movers {
		l := r.Language()
		f := say("cause.other", Fact, m.Metric+":before", m.Before, m.Metric+":after", m.After, "at_s", m.StartS,
			"metric", m.Metric, "who", l.Say(m.At), "what", l.Say(cmp.Or(seriesNames[m.Metric], m.Metric)))
		part, isCPU := strings.CutPrefix(strings.TrimSuffix(m.Metric, "_ratio"), "cpu_")
		switch {
		case m.Metric == "lost_pps" && m.Layer != "":
			f.Code, f.Words["what"] = "cause.lost", placeOfLoss(r, m)
		case m.Metric == "dropped_pps":
			f.Code, f.Words["what"] = "cause.dropped", strings.TrimSpace(m.Layer+" "+m.Cause)
			if why, known := phraseHere(l, m.Layer, m.Cause); known {
				f.Words["what"] = why
			}
		case isCPU:
			f.Code, f.Words["what"] = "cause.cpu", l.Say(part)
			if m.Core != nil {
				f.Words["who"] = l.Sayf("core %s of %s", unit.Count.Format(float64(*m.Core)), l.Say(m.At))
			}
		case m.Metric != "send_pps" && m.Fit <= plainFit || m.Metric == "lost_pps":
			continue
		}
		same := func(o Finding) bool { // a core that is more softirq is less idle
			return o.Code == f.Code && o.Words["who"] == f.Words["who"] &&
				(isCPU || o.Words["what"] == f.Words["what"])
		}
		if len(out) < mostCauses && !slices.ContainsFunc(out, same) {
			out = append(out, f)
		}
	}
	return out
}

// placeOfLoss says where and why a mover's packets were lost: a series at the sender
// tells whose packets they were, and the ledger where.
func placeOfLoss(r table.Row, m model.Mover) string {
	host := m.At
	for _, f := range r.Trial.Flows {
		for _, l := range f.Ledger.Lines {
			if l.Layer == m.Layer && l.Cause == m.Cause && m.At == f.From {
				host = l.Host
			}
		}
	}
	return phrase(r.Language(), m.Layer, m.Cause, spoken(r, host))
}

// madeWords says a planned change, which is stored as --at has it: "router made to log
// each packet". Of words that are not known it returns them as they are.
func madeWords(l words.Language, text string) string {
	c, err := model.ParseTimedChange("0s:" + text)
	if err != nil {
		return text
	}
	if c.Link == nil {
		var parts []string
		for _, word := range strings.Split(c.Router, "+") {
			key, value, _ := strings.Cut(word, "=")
			parts = append(parts, say("made.router."+key, Fact, "value", value, "word", word).In(l).Text())
		}
		return strings.Join(parts, l.Say(" and "))
	}
	link := *c.Link
	link.Toward = ""
	settings := strings.NewReplacer("=", " ", ",", ", ").Replace(link.Words())
	return say("made.link", Fact, "settings", settings, "node", l.Say(c.Link.Node), "toward", l.Say(c.Link.Toward)).
		In(l).Text()
}
