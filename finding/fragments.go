package finding

import (
	"math"
	"slices"

	"pelt/model"
	"pelt/table"
)

// Split is what datagrams of one number of fragments lose, beside whole ones under the
// same settings.
type Split struct {
	table.Group         // by the key fragments
	Chance      float64 // loss if each fragment were lost as often as a whole packet
	Agrees      bool    // the loss is that by chance, within its interval
}

// queueShare is the share of a loss from which on full queues and slow hosts made it,
// and not chance.
const queueShare = 0.2

// Splits holds the datagrams of several fragments against the largest ones that fit
// one packet: the first is that of whole packets. There are none if either is missing.
func (c Contest) Splits() (out []Split) {
	fit, above := c.sizes()
	groups := table.By(c.matched(fit), table.KeyOf("fragments"))
	if fit == 0 || above < fit || len(groups) < 2 {
		return nil
	}
	whole := middle(groups[0], "loss_ratio")
	low, high := lossInterval(groups[0])
	for _, g := range groups {
		law := func(p float64) float64 { return 1 - math.Pow(1-p, g.Level("fragments").Number) }
		from, to := lossInterval(g)
		out = append(out, Split{g, law(whole), law(low) <= to && law(high) >= from})
	}
	return out
}

// sizes are the largest payload that fits one packet and the smallest that does not.
func (c Contest) sizes() (fit, above int) {
	for _, r := range c.Under.Rows {
		switch f := r.Flow; {
		case f.Protocol != model.UDP:
		case f.Fragments <= 1:
			fit = max(fit, f.PayloadBytes)
		case above == 0 || f.PayloadBytes < above:
			above = f.PayloadBytes
		}
	}
	return fit, above
}

// matched are the rows of the size that fits and those of split sizes, of settings
// that both have, but for those that lost whole packets in queues.
func (c Contest) matched(fit int) []table.Row {
	var out []table.Row
	rest := only(c.Settings[0].Keys, func(k table.Key) bool {
		return k.Name != "payload_bytes" && k.Name != "frame_bytes"
	})
	for _, g := range table.By(c.Under.Rows, rest...) {
		whole := table.Group{Rows: rowsWhere(g.Rows, func(f *model.FlowResult) bool {
			return f.Fragments <= 1 && f.PayloadBytes == fit
		})}
		split := rowsWhere(g.Rows, func(f *model.FlowResult) bool { return f.Fragments > 1 })
		if _, queues := lostBy(whole); len(whole.Rows) > 0 && len(split) > 0 && queues <= queueShare {
			out = append(out, append(whole.Rows, split...)...)
		}
	}
	return out
}

func rowsWhere(rows []table.Row, is func(*model.FlowResult) bool) []table.Row {
	return only(rows, func(r table.Row) bool { return is(r.Flow) })
}

// lostBy are the shares of a group's lost packets that chance took, and that full
// queues, slow hosts and refused sends took. Nobody knows of the others.
func lostBy(g table.Group) (chance, queues float64) {
	random := []string{model.CauseLinkLoss, model.CauseLinkFragment, model.CauseLinkDamage, model.CauseElimination,
		model.CauseInside, model.CauseDamaged}
	lost := max(g.Sum("lost_packets"), 1)
	for _, l := range Losses(g.Rows) {
		share := l.Packets / lost
		switch {
		case l.Layer == table.Unattributed:
		case l.Layer == model.LayerReceiverIP, // fragments never completed
			l.Layer == model.LayerNetwork && slices.Contains(random, l.Cause):
			chance += share
		default:
			queues += share
		}
	}
	return chance, queues
}

// lossInterval is the interval of a group's loss: that of its trials, and at least
// that of counting so many packets, with 95 % confidence.
func lossInterval(g table.Group) (low, high float64) {
	s := g.Stat(table.MetricOf("loss_ratio"))
	wide := 1.96 * math.Sqrt(s.Median*(1-s.Median)/max(g.Sum("attempted_packets"), 1))
	return min(s.Low, s.Median-wide), max(s.High, s.Median+wide)
}

// fragments tells what it costs to send more than fits one packet.
func (c Contest) fragments() []Finding {
	splits := c.Splits()
	if len(splits) == 0 {
		return nil
	}
	fit, above := c.sizes()
	sized := func(payload int) table.Group {
		of := func(g table.Group) bool { return g.Rows[0].Flow.PayloadBytes == payload }
		return foremost(only(c.Settings, of), "goodput_bps")
	}
	f := say("sweep.fit", Fact).number("payload_bytes", "fit", float64(fit)).median("goodput_bps", "fit", sized(fit)).
		number("payload_bytes", "above", float64(above)).median("goodput_bps", "above", sized(above))
	if !f.Has("goodput_bps", "fit") || !f.Has("goodput_bps", "above") {
		return nil
	}
	out := []Finding{f}
	whole := middle(splits[0].Group, "loss_ratio")
	shown := splits[1:2]
	if last := len(splits) - 1; last > 1 {
		shown = []Split{splits[1], splits[last]}
	}
	for _, s := range shown {
		lost := middle(s.Group, "loss_ratio")
		one := say("sweep.split.law", Fact, s.Group).number("fragments_count", "", s.Level("fragments").Number).
			number("loss_ratio", "split", lost).number("loss_ratio", "whole", whole).
			number("chance_ratio", "", s.Chance)
		switch {
		case lost == 0 && whole == 0:
			continue // the table shows it
		case !s.Agrees:
			one.Code = "sweep.split.other"
		}
		out = append(out, one)
	}
	return out
}
