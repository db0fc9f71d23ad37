package ledger

import (
	"math"

	"pelt/model"
)

// background is what others added to a counter at least, by its rate while the path was idle. A few packets in that
// short time tell nothing of a rate.
func (b *book) background(r reading) uint64 {
	seen := r.idleHz * model.IdleSeconds
	return count(math.Floor(max(0, seen-2*math.Sqrt(seen)) / model.IdleSeconds * b.in.DurationS))
}

// stranger is how many packets that are not the test's, most of them pelt's own, a counter may hold without doubt about
// the rest.
const stranger = 32

// contest leaves open what more than one counter may have counted. None of them says whose packets it counts: what one
// holds beyond our losses may have been ours as well, and then another's were not. Where others have a good part of
// what one holds, all of it may be theirs.
func (b *book) contest() {
	if b.in.Way != "" {
		return // so few packets that any noise would hide what dropped them
	}
	spare := map[*claim]uint64{} // what each holds beyond what it was given
	all := uint64(0)
	var rivals []*claim
	for _, c := range b.claims {
		if c.unbound == 0 || c.hole {
			continue
		}
		if spare[c] = b.spare(c); c.order == byElimination {
			if spare[c] = b.between(c); spare[c] == 0 {
				continue
			}
		}
		for _, o := range rivals { // whose packets moved this one as well
			if c.covers != nil && c.covers(o) {
				spare[c] = minus(spare[c], spare[o])
			}
		}
		rivals, all = append(rivals, c), plus(all, spare[c])
	}
	left := uint64(0)
	for _, c := range rivals {
		c.open = min(c.taken, all-spare[c])
		if spare[c] > max(c.taken/4, stranger) {
			c.open = c.taken
		}
		left += c.open
	}
	for _, c := range rivals {
		c.taken -= c.open
		c.evidence.Excess = minus(c.evidence.Excess, left-c.open)
		c.open = min(plus(spare[c], c.open), left)
	}
	b.remaining += left
}

// spare is what a counter holds beyond the lost packets that it was given, and others that moved it.
func (b *book) spare(c *claim) uint64 {
	ours := plus(plus(c.taken, b.covered(c)), plus(b.warmupLost, b.in.Beside))
	return minus(c.unbound/uint64(max(b.in.Fragments, 1)), ours) // each piece of a datagram may have moved it
}

// between is how many of our packets, beyond those that it was given, a difference between the devices of the ends is
// sure to have lost, though other counters took them.
func (b *book) between(c *claim) uint64 {
	known := plus(c.taken, stranger)
	for _, o := range b.claims {
		if place := layerPlace(o.layer); o != c && place >= layerPlace(model.LayerNetwork) &&
			place <= layerPlace(model.LayerReceiverBacklog) {
			known = plus(known, o.taken)
		}
	}
	return minus(b.surelyBetween(c), known)
}

// surelyBetween is how many of our packets a difference between the devices of the ends is sure to have lost, whatever
// others sent there.
func (b *book) surelyBetween(c *claim) uint64 {
	sender := b.path.sender
	for _, v := range b.path.nodes {
		if v != sender && v != b.path.receiver && v.Observation != nil {
			return 0 // others may pass its devices
		}
	}
	if c.cause != model.CauseElimination || b.in.Fragments > 1 || b.in.Segments > 1 {
		return 0
	}
	ours := plus(b.in.Attempted, b.in.WarmupSent) // that came to the sender's device
	for _, o := range b.claims {
		if layerPlace(o.layer) < layerPlace(model.LayerNetwork) {
			ours = minus(ours, o.taken)
		}
	}
	others := minus(sender.table.device(sender.Out, "tx_packets").whole, ours)
	return minus(c.unbound, plus(others, plus(b.warmupLost, b.in.Beside)))
}

// possible are the places where what is unattributed may have been lost, those that hold most of it first.
func (b *book) possible() (list []model.Possible) {
	for _, c := range b.claims {
		if c.open > 0 {
			list = append(list, model.Possible{Layer: c.layer, Host: c.host, Cause: c.cause, Most: c.open,
				Evidence: []model.Evidence{c.evidence}})
		}
	}
	if b.remaining == 0 {
		return nil
	}
	list = model.JoinPossible(list)
	for i := range list {
		list[i].Most = min(list[i].Most, b.remaining)
	}
	return list
}
