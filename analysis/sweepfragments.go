package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"pelt/model"
)

// split is what the sizes of one number of fragments lost, beside what the
// largest size that fits lost under the same settings.
type split struct {
	fragments int
	spots     []spot
	attempted float64
	lost      float64
	expected  float64 // packets lost if each fragment is lost as a whole packet is
}

func (s split) loss() float64 { return min(1, s.lost/max(s.attempted, 1)) }

func (s split) expectedLoss() float64 { return s.expected / max(s.attempted, 1) }

// wholeLoss is what the unfragmented size lost that the splits are held against.
type wholeLoss struct{ attempted, lost float64 }

func (w wholeLoss) loss() float64 { return min(1, w.lost/max(w.attempted, 1)) }

// fragments tells the step between the largest size that fits one packet and
// those above it. Sizes are compared under the same settings of all else.
func (a *analyst) fragments(all []spot) {
	fit, above := 0, 0
	for _, s := range all {
		switch {
		case s.protocol != model.UDP || s.payload <= 0:
		case s.whole():
			fit = max(fit, s.payload)
		case above == 0 || s.payload < above:
			above = s.payload
		}
	}
	if fit == 0 || above < fit { // none on one of the sides, or the sizes do not tell the sides apart
		return
	}
	whole, splits, random := heldAgainst(all, fit)
	if len(splits) == 0 {
		return
	}
	below, beyond := fastest(all, fit), fastest(all, above)
	values := map[string]float64{
		"largest_whole_payload_bytes": float64(fit), "whole_goodput_bps": below.speed, "whole_loss_ratio": whole.loss(),
		"smallest_split_payload_bytes": float64(above), "split_goodput_bps": beyond.speed,
	}
	for _, s := range splits {
		values[fmt.Sprintf("loss_ratio_at_%d_fragments", s.fragments)] = s.loss()
		values[fmt.Sprintf("goodput_bps_at_%d_fragments", s.fragments)] = slices.MaxFunc(s.spots, bySpeed).speed
		if random {
			values[fmt.Sprintf("expected_loss_ratio_at_%d_fragments", s.fragments)] = s.expectedLoss()
		}
	}
	text := fmt.Sprintf("%d B is the largest size tried that fits one packet: it reaches %s, %d B in %d fragments %s.",
		fit, speedText(below.speed), above, beyond.fragments, speedText(beyond.speed))
	if room := a.fitting(below); room > fit && room < above {
		values["fitting_payload_bytes"] = float64(room)
		text += fmt.Sprintf(" Up to %d B would fit.", room)
	}
	text += " " + lossOfFragments(splits, whole, random, queuedOf(all, fit))
	var lossy []point
	for _, s := range splits {
		for _, x := range s.spots {
			if x.lost > 0 {
				lossy = append(lossy, x.point())
			}
		}
	}
	if len(lossy) > 0 {
		text += fmt.Sprintf(" Where split sizes end: %s.", causes(lossy))
	}
	a.tell(KindSweepFragments, []model.Cell{below.cell, beyond.cell}, values, "%s", text)
}

// fitting is the largest payload that the path's packets have room for; 0 where
// that is not known.
func (a *analyst) fitting(s spot) int {
	packet := packetBytes(a.doc, "")
	if packet == 0 {
		return 0
	}
	return model.PayloadOf(s.family, packet+etherBytes)
}

// lossOfFragments holds the losses against those of whole packets. Told are the
// fewest fragments and, of those that differ from what chance says, the worst.
func lossOfFragments(splits []split, whole wholeLoss, random bool, queued float64) string {
	first := splits[0]
	text := fmt.Sprintf("%d fragments lose %s where one packet loses p = %s", first.fragments, onePercent(first.loss()), onePercent(whole.loss()))
	if !random {
		share := "many"
		if queued > 0.5 {
			share = "most"
		}
		return text + "; full queues or hosts lost " + share + " of those, which no formula joins."
	}
	if whole.lost == 0 && !slices.ContainsFunc(splits, func(s split) bool { return s.lost > 0 }) {
		return "Neither loses anything: the cost is that of more headers."
	}
	text += judged(first, whole)
	last := splits[len(splits)-1]
	if last.fragments > first.fragments {
		text += fmt.Sprintf("; %d lose %s", last.fragments, onePercent(last.loss()))
		if asExpected(last, whole) != asExpected(first, whole) {
			text += judged(last, whole)
		}
	}
	return text + "."
}

func judged(s split, whole wholeLoss) string {
	formula := fmt.Sprintf("1-(1-p)^%d", s.fragments)
	switch asExpected(s, whole) {
	case 0:
		return ", as " + formula + " says"
	case 1:
		return fmt.Sprintf(", more than the %s that %s says", onePercent(s.expectedLoss()), formula)
	}
	return fmt.Sprintf(", less than the %s that %s says", onePercent(s.expectedLoss()), formula)
}

// asExpected is 0 if a loss is what chance makes of the loss of whole packets,
// 1 if it is more, -1 if less. Losses that come in runs scatter wider than
// chance, hence the tolerance.
func asExpected(s split, whole wholeLoss) int {
	const tolerance, deviations = 0.1, 3
	p, e, n := whole.loss(), s.expectedLoss(), float64(s.fragments)
	own := e * (1 - e) / max(s.attempted, 1)
	slope := n * math.Pow(1-p, n-1)
	wide := math.Sqrt(max(0, own+slope*slope*p*(1-p)/max(whole.attempted, 1)))
	difference := s.loss() - e
	if math.Abs(difference) <= max(tolerance*e, deviations*wide) {
		return 0
	}
	return cmp.Compare(difference, 0)
}

// queueRatio is the share of a loss that full queues and hosts may have before
// it is none of chance.
const queueRatio = 0.2

// heldAgainst sorts the split sizes by their number of fragments and holds each
// against the size that fits, under the same settings. random says that the latter's
// losses were of chance; settings where they were not count only if there are no others.
func heldAgainst(all []spot, fit int) (whole wholeLoss, splits []split, random bool) {
	chance, other := map[string]spot{}, map[string]spot{}
	for _, s := range all {
		if s.protocol != model.UDP || s.payload != fit || !s.whole() {
			continue
		}
		other[s.rest()] = s
		if s.queued() <= queueRatio {
			chance[s.rest()] = s
		}
	}
	for _, references := range []map[string]spot{chance, other} {
		if whole, splits = against(all, references); len(splits) > 0 {
			return whole, splits, len(chance) > 0
		}
		chance = nil
	}
	return whole, nil, false
}

func against(all []spot, references map[string]spot) (whole wholeLoss, splits []split) {
	byFragments := map[int]*split{}
	used := map[string]bool{}
	for _, s := range all {
		r, ok := references[s.rest()]
		if !ok || s.protocol != model.UDP || s.whole() {
			continue
		}
		if !used[s.rest()] {
			used[s.rest()] = true
			whole.attempted, whole.lost = whole.attempted+r.attempted, whole.lost+min(r.lost, r.attempted)
		}
		g := byFragments[s.fragments]
		if g == nil {
			g = &split{fragments: s.fragments}
			byFragments[s.fragments] = g
		}
		g.spots = append(g.spots, s)
		g.attempted, g.lost = g.attempted+s.attempted, g.lost+s.lost
		g.expected += s.attempted * (1 - math.Pow(1-r.loss(), float64(s.fragments)))
	}
	for _, n := range slices.Sorted(maps.Keys(byFragments)) {
		splits = append(splits, *byFragments[n])
	}
	return whole, splits
}

// rest is all of a cell but the size.
func (s spot) rest() string {
	rest := maps.Clone(s.cell)
	delete(rest, "payload_bytes")
	delete(rest, "frame_bytes")
	return rest.Key()
}

// queued is the share of what was lost that full queues, slow hosts and refused
// sends took, by the ledger.
func (s spot) queued() float64 {
	var queued float64
	for _, t := range s.point().trials {
		for _, l := range t.flow.Ledger.Lines {
			switch {
			case l.Layer == model.LayerNetwork && (l.Cause == model.CauseLinkLoss || l.Cause == model.CauseLinkFragment || l.Cause == model.CauseLinkDamage),
				l.Layer == model.LayerNetwork && (l.Cause == model.CauseElimination || l.Cause == model.CauseInside || l.Cause == model.CauseDamaged),
				l.Layer == model.LayerReceiverIP: // fragments never completed
			default:
				queued += float64(l.Packets)
			}
		}
	}
	return queued / max(s.lost, 1)
}

// queuedOf is that share of all whole packets of a size that were lost.
func queuedOf(all []spot, payload int) float64 {
	var queued, lost float64
	for _, s := range all {
		if s.protocol == model.UDP && s.payload == payload && s.whole() {
			queued, lost = queued+s.queued()*s.lost, lost+s.lost
		}
	}
	return queued / max(lost, 1)
}

func bySpeed(a, b spot) int { return cmp.Compare(a.speed, b.speed) }

// fastest is the best cell of a size.
func fastest(all []spot, payload int) spot {
	var of []spot
	for _, s := range all {
		if s.payload == payload {
			of = append(of, s)
		}
	}
	return slices.MaxFunc(of, bySpeed)
}
