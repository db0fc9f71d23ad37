package finding

import (
	"math"
	"slices"

	"pelt/model"
	"pelt/table"
)

// Split is what datagrams of one number of fragments lose, beside whole ones under the same settings.
type Split struct {
	table.Group         // by the key fragments
	Chance      float64 // loss if each fragment were lost as often as a whole packet
}

// byChance is the share of a loss from which on chance made it, and not full queues and slow hosts.
const byChance = 0.8

// Splits holds the datagrams of several fragments against the largest ones that fit
// one packet: the first is that of whole packets. There are none if either is missing.
func (c Contest) Splits() (out []Split) {
	fit, above := c.sizes()
	groups := table.By(c.matched(fit), table.KeyOf("fragments"))
	if fit == 0 || above < fit || len(groups) < 2 {
		return nil
	}
	whole := middle(groups[0], "loss_ratio")
	for _, g := range groups {
		out = append(out, Split{g, 1 - math.Pow(1-whole, g.Level("fragments").Number)})
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
		whole := only(g.Rows, func(r table.Row) bool { return r.Flow.Fragments <= 1 && r.Flow.PayloadBytes == fit })
		split := only(g.Rows, func(r table.Row) bool { return r.Flow.Fragments > 1 })
		if len(whole) > 0 && len(split) > 0 && chanceOf(table.Group{Rows: whole}) >= byChance {
			out = append(out, append(whole, split...)...)
		}
	}
	return out
}

// chanceOf is the share of a group's lost packets that chance took, and no full queue, slow host or refused send.
func chanceOf(g table.Group) float64 {
	random := []string{model.CauseLinkLoss, model.CauseLinkFragment, model.CauseLinkDamage, model.CauseElimination,
		model.CauseInside, model.CauseDamaged}
	lost := g.Sum("lost_packets")
	if lost == 0 {
		return 1
	}
	return lostWhere(g, func(l Loss) bool {
		return l.Layer == model.LayerReceiverIP || // fragments never completed
			l.Layer == model.LayerNetwork && slices.Contains(random, l.Cause)
	}) / lost
}

func (c Contest) fragments() []Finding {
	fit, above := c.sizes()
	if fit == 0 || above < fit {
		return nil
	}
	f := say("sweep.fit", Fact)
	for role, payload := range []int{fit, above} {
		role := []string{"fit", "above"}[role]
		of := func(g table.Group) bool { return g.Rows[0].Flow.PayloadBytes == payload }
		best := foremost(only(c.Settings, of), "goodput_bps")
		f = f.number("payload_bytes", role, float64(payload)).median("goodput_bps", role, best).
			median("loss_ratio", role, best)
	}
	if !f.Has("goodput_bps", "fit") || !f.Has("goodput_bps", "above") {
		return nil
	}
	return []Finding{f}
}
