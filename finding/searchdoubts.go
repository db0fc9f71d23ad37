package finding

import (
	"math"
	"slices"
	"strings"

	"pelt/design"
	"pelt/model"
	"pelt/table"
)

// differ doubts the answer of a search if others ended differently.
func differ(g table.Group, typical table.Row) (out []Finding) {
	kind := func(r table.Row) string {
		switch code := outcome(r); {
		case AtLeast(r):
			return "least"
		case code == "free.none" || code == "free.unknown":
			return strings.TrimPrefix(code, "free.")
		}
		return "found"
	}
	searches := ended(g)
	for _, other := range []string{"none", "unknown", "least", "found"} {
		such := only(searches, func(r table.Row) bool { return kind(r) == other })
		if len(such) == 0 || kind(typical) == other {
			continue
		}
		f := say("free.differ", Doubt, "searches_count:such", len(such), "searches_count", len(searches), other, "yes")
		out = append(out, f.with("loss_ratio:goal", some(typical.Search.Goal.LossRatio)))
	}
	return out
}

const (
	// Loads from this share of the flood's rate on are near the limit.
	nearLimit = 0.5
	// Loss ratios of loads that differ by more than this factor are not alike.
	alikeLoss = 4
	// Fewer loads tell nothing of how loss depends on them.
	fewLoads = 3
)

// randomLoss doubts a rate without loss where every rate far below the limit loses about the same share.
func randomLoss(r table.Row) []Finding {
	flood := table.Group{Rows: r.Flood()}.Middle("receive_pps")
	below := r.Around(func(pps float64) bool { return pps < nearLimit*flood })
	loads := table.By(table.Usable(below), table.KeyOf("rate_pps"))
	if len(loads) < fewLoads {
		return nil
	}
	var ratios []float64
	for _, g := range loads {
		ratios = append(ratios, g.Sum("lost_packets")/max(g.Sum("attempted_packets"), 1))
	}
	most, all := slices.Max(ratios), table.Group{Rows: table.RowsOf(loads)}
	typical := all.Sum("lost_packets") / max(all.Sum("attempted_packets"), 1)
	silent := only(ratios, func(x float64) bool { return x < typical/alikeLoss })
	if typical == 0 || most > alikeLoss*typical || 2*len(silent) > len(ratios) || typical <= r.Search.Goal.LossRatio {
		return nil
	}
	out := []Finding{say("free.random", Doubt, "loss_ratio:typical", typical, "receive_pps:below", nearLimit*flood)}
	if typical < mostAllowed {
		out = append(out, say("free.allow", Next, "share", percent(typical)))
	}
	return out
}

// mostAllowed is the share of random losses from which on no rate is worth a search.
const mostAllowed = 0.1

// percent is a share that a rate may lose where some loss is random: about five times as much, as --max-loss reads it.
func percent(share float64) string {
	for _, s := range []struct {
		share float64
		text  string
	}{{0.0002, "0.1%"}, {0.001, "0.5%"}, {0.002, "1%"}, {0.01, "5%"}} {
		if share <= s.share*1.5 {
			return s.text
		}
	}
	return "20%"
}

// shortBurst is how long the losses of a stall last at most, in s.
const shortBurst = 0.02

// bursts doubts an upper bound where each trial lost one burst: something stalled, and the rate is not the limit.
func bursts(r table.Row) []Finding {
	if r.Search.Limit != design.PathLimit {
		return nil
	}
	trials, single, longest := 0, 0, 0.0
	for _, one := range AboveLimit(r) {
		first, last, known := lossSpan(one.Flow)
		if one.Flow.Lost == 0 || !known || one.Flow.SendPPS <= 0 {
			continue
		}
		trials++
		if seconds := float64(last-first) / one.Flow.SendPPS; seconds <= shortBurst {
			single++
			longest = max(longest, seconds)
		}
	}
	if trials == 0 || single < trials {
		return nil
	}
	return []Finding{say("free.burst", Doubt, "fails_pps", r.Search.Upper, "burst_s", longest,
		"trials_count", float64(trials))}
}

// lossSpan is the first and the last sequence that a flow of one stream is known to have lost.
func lossSpan(f *model.FlowResult) (first, last uint64, known bool) {
	first = math.MaxUint64
	for _, l := range f.Ledger.Lines {
		for _, s := range l.Sequences {
			if s.Count > 0 {
				first, last = min(first, s.From), max(last, s.From+s.Count-1)
			}
		}
	}
	return first, last, first <= last && f.Streams == 1 && f.Ledger.Unattributed == 0
}
