package finding

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pelt/model"
	"pelt/table"
	"pelt/unit"
	"pelt/words"
)

func generalRules() []Rule {
	return []Rule{unusableRule, silentRule, carriersRule, movesRule, heldRule, unacceptedRule, unexplainedRule,
		unevenRule, beyondRule, disorderRule, leftOutRule, accountsRule, watchingRule, reportedRule, commandRule,
		enginesRule, linksRule, pathMTURule, profilesRule, recordedRule, labRule}
}

// tooSlow is the share of planned packets that a sender leaves out from which on a reader can see it in two rates.
const tooSlow = 0.01

func noTrial(d *model.Document) []Finding {
	f := say("run.empty", Answer)
	if len(d.Host) == 0 && len(d.Warnings) > 0 { // its hosts were not reached
		f = f.with("why", model.Reasons(d.Warnings[:1])).In(d.Language)
	}
	return []Finding{f, nextOf("run.resume", d)}
}

// unusableRule answers a run of which no trial is usable: most often the sender was too
// slow, and a lower rate is what to do.
func unusableRule(rows []table.Row) []Finding {
	if len(rows) == 0 || len(table.Usable(rows)) > 0 || NothingThrough(rows) {
		return nil
	}
	d := rows[0].Doc
	why, unheard, slow := rows[0].Trial.Why, 0.0, model.Reason{}
	kept := func(of model.Reason) float64 { return of.Numbers["kept_pps"] / of.Numbers["asked_pps"] }
	for _, r := range rows {
		if r.Flow.Unheard != nil {
			unheard += float64(r.Flow.Unheard.Packets)
		}
		if of := r.Trial.Why; r.Trial.State != model.Aborted && len(of) > 0 && kept(of[0]) < 1-tooSlow &&
			(slow.Code == "" || kept(of[0]) < kept(slow)) {
			slow = of[0]
		}
	}
	f := say("none", Answer, "trials_count", len(d.Results), "why", why)
	switch {
	case why.Has(model.SendRefused, model.RefusedSince): // the reason says it: what was refused was not sent
	case unheard > 0:
		f = say("none.unheard", Answer, "unheard_packets", unheard)
	case slow.Code != "":
		f = say("none.slow", Answer, "send_pps:asked", slow.Numbers["asked_pps"],
			"send_pps:best", slow.Numbers["kept_pps"], "rate", below(slow.Numbers["kept_pps"]),
			"busy", when(slow.Code == model.SenderStarved || slow.Code == model.SenderStolen, "yes"))
	}
	found := slices.ContainsFunc(TypicalSearches(rows),
		func(r table.Row) bool { return !math.IsNaN(r.Search.Throughput) })
	if found { // searches have an answer, and only the floods that they began with have none
		f = say("none.floods", Doubt, "why", why)
	}
	return []Finding{f, nextOf("none.next", d)}
}

// below is a rate with two digits that is at most 95 % of another, as --rate reads it.
func below(pps float64) string {
	return unit.PacketRate(uint64(max(twoDigits(0.95*pps, math.Floor), 1))).String()
}

// flooded doubts a limit that a flood showed: what is carried without loss was not measured.
func flooded(g table.Group) []Finding {
	return []Finding{say("flood", Doubt), say("flood.ndr", Next, "target", g.Rows[0].Doc.Plan.Target)}
}

const mostPlaces = 3

type Loss struct {
	table.Loss
	Text string // where and why
}

// where says where and why packets were lost.
func where(l table.Loss) string {
	return phrase(l.Rows[0].Language(), l.Layer, l.Cause, spoken(l.Rows[0], l.Host))
}

// Losses are what the valid trials of some rows lost, the most first.
func Losses(rows []table.Row) (out []Loss) {
	for _, l := range table.Losses(rows) {
		text := maybe(l.Rows)
		if l.Layer != table.Unattributed {
			text = where(l) + figuresOf(l.Rows)
		}
		out = append(out, Loss{l, text})
	}
	return out
}

// Unexplained reports whether nothing is known of the place, not even that it may be one of several.
func (l Loss) Unexplained() bool {
	return l.Layer == table.Unattributed && !slices.ContainsFunc(table.Usable(l.Rows),
		func(r table.Row) bool { return len(r.Flow.Ledger.Possible) > 0 })
}

// ofTCP reports whether rows, which are accounted alike, are of segments that TCP sent again: not each was lost.
func ofTCP(rows []table.Row) bool { return len(rows) > 0 && rows[0].Flow.Protocol == model.TCP }

// maybe says where losses of some flows that nobody saw may have been: where counters moved that others move as well.
func maybe(rows []table.Row) string {
	packets, in := map[string]float64{}, table.Language(rows)
	for _, r := range table.Usable(rows) {
		for _, p := range r.Flow.Ledger.Possible {
			packets[phrase(in, p.Layer, p.Cause, spoken(r, p.Host))] += float64(p.Most)
		}
	}
	places := table.MostFirst(packets)
	switch {
	case len(places) == 0 && ofTCP(rows):
		return in.Say("not known to be lost")
	case len(places) == 0:
		return in.Say("unexplained")
	case len(places) == 1:
		return in.Sayf("possibly %s", places[0])
	case len(places) > mostPlaces:
		places = append(places[:mostPlaces], in.Say("others"))
	}
	return in.Sayf("one of: %s (not known which)", strings.Join(places, in.Say("; ")))
}

// placesOf says where packets were lost, the most first, and which share of them has no known place.
func placesOf(rows []table.Row) (places string, unknown float64) {
	known, unknown := sharesOf(rows)
	return listed(known), unknown
}

// sharesOf are the known places of losses, the most first, with their shares as Packets.
func sharesOf(rows []table.Row) (known []Loss, unknown float64) {
	losses := Losses(table.Usable(rows))
	var all float64
	for i := range losses { // what reads alike stands once
		all += losses[i].Packets
		first := slices.IndexFunc(losses, func(l Loss) bool { return l.Text == losses[i].Text })
		if first < i {
			losses[first].Packets, losses[i].Packets = losses[first].Packets+losses[i].Packets, 0
		}
	}
	losses = only(losses, func(l Loss) bool { return l.Packets > 0 })
	for _, l := range losses {
		if l.Packets /= all; l.Unexplained() {
			unknown = l.Packets
		} else {
			known = append(known, l)
		}
	}
	return known, unknown
}

// listed names the first of some places with their shares.
func listed(known []Loss) string {
	var texts []string
	in := words.English
	if len(known) == 1 && known[0].Packets > almostAll {
		return known[0].Text
	}
	for _, l := range known[:min(len(known), mostPlaces)] {
		in = l.Rows[0].Language()
		texts = append(texts, in.Sayf("%[1]s %[2]s", unit.Ratio.Format(l.Packets), l.Text))
	}
	return in.Join(texts)
}

// unexplainedRule doubts losses that have no known place. It leads to the others, and to settings that would help.
func unexplainedRule(rows []table.Row) []Finding {
	places, unknown := placesOf(rows)
	if places == "" && unknown == 0 {
		return nil
	}
	out := []Finding{nextOf("explain", rows[0].Doc)}
	if slices.ContainsFunc(table.Lines(table.Usable(rows)), func(r table.Row) bool { return len(r.Line.Advice) > 0 }) {
		out = append(out, nextOf("advice.see", rows[0].Doc))
	}
	if unknown >= table.Lossless {
		f := say("loss.unknown", Doubt, "unknown_ratio", unknown, "all", when(unknown > almostAll, "yes"))
		if ofTCP(table.Accounted(rows)) {
			f.Code = "loss.again"
		}
		out = append(out, f)
	}
	return out
}

func leftOutRule(rows []table.Row) []Finding {
	rows = only(rows, func(r table.Row) bool { return !r.Trial.Unkept() })
	valid, invalid, aborted := table.Group{Rows: rows}.Trials()
	if invalid+aborted == 0 || valid == 0 {
		return nil
	}
	return []Finding{say("trials.left", Doubt, "left_count", invalid+aborted, "trials_count", valid+invalid+aborted)}
}

func labRule(rows []table.Row) []Finding {
	if len(rows) == 0 || rows[0].Doc.Lab == nil {
		return nil
	}
	return []Finding{say("lab.cores", Doubt)}
}

// spreadOften is how far repeats may differ before it is a doubt, as a share.
const spreadOften = 0.1

// enoughRepeats is how many repeats of a setting tell how much they differ.
const enoughRepeats = 3

// repeatsRule doubts a run of few usable repeats, or of repeats that differ much.
func repeatsRule(metric string) Rule {
	return func(all []table.Row) []Finding {
		rows := table.Usable(all)
		worst, where, fewest, least := spreadOften, "", enoughRepeats, ""
		var group table.Group
		for _, g := range table.Settled(rows) {
			s := g.Stat(table.MetricOf(metric))
			if s.N > 0 && s.N < fewest {
				fewest, least = s.N, at(g)
			}
			if spread := (s.High - s.Low) / s.Median; s.N > 1 && s.Median > 0 && spread > worst {
				worst, where, group = spread, at(g), g
			}
		}
		var out []Finding
		if worst > spreadOften {
			spread := say("repeats.spread", Doubt, "spread_ratio", worst, "where", where)
			if r, ok := lostBeside(group); ok {
				spread = spread.with("loss_ratio:worst", r.Flow.LossRatio, "trial", fmt.Sprint(r.TrialNumber()))
			}
			out = append(out, spread)
		}
		if len(rows) == 0 || fewest >= enoughRepeats {
			return out
		}
		few := say("repeats.few", Doubt, "repeats_count", fewest)
		planned := max(rows[0].Doc.Plan.Design.Repeats, fewest)
		again := runAgain(planned + enoughRepeats - fewest)
		switch {
		case fewest < planned && least == "" && len(leftOutRule(all)) > 0: // which says it
			return append(out, again)
		case fewest < planned:
			few.Code = "repeats.left"
			few = few.with("repeats_count:planned", planned, "where", least)
		case fewest == 1:
			few.Code = "repeats.once"
		}
		return append(out, few, again)
	}
}

const moreRepeats = "repeats.more"

func runAgain(repeats int) Finding {
	return say(moreRepeats, Next, "repeats_count", min(repeats, model.MaxRepeats))
}
