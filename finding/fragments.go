package finding

import (
	"slices"

	"pelt/model"
	"pelt/table"
)

// byChance is the share of a loss from which on chance made it, and not full queues and slow hosts.
const byChance = 0.8

// sizes are the largest payload that fits one packet and the smallest that does not.
func (c Ranking) sizes() (fit, above int) {
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

func (c Ranking) fragments() []Finding {
	fit, above := c.sizes()
	if fit == 0 || above < fit {
		return nil
	}
	f := say("sweep.fit", Fact)
	for role, payload := range []int{fit, above} {
		role := []string{"fit", "above"}[role]
		of := func(g table.Group) bool { return g.Rows[0].Flow.PayloadBytes == payload }
		best := largest(only(c.Settings, of), "goodput_bps")
		f = f.number("payload_bytes", role, float64(payload)).median("goodput_bps", role, best).
			median("loss_ratio", role, best)
	}
	if !f.Has("goodput_bps", "fit") || !f.Has("goodput_bps", "above") {
		return nil
	}
	return []Finding{f}
}
