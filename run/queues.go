package run

import (
	"slices"

	"pelt/ledger"
	"pelt/model"
)

// queueDrops is what one shaped link direction of a lab dropped during a trial.
type queueDrops struct {
	from, to string
	drops    uint64 // frames
}

// watchQueues reads the lab's queues now; the returned function reads them
// again and tells what each dropped in between.
func (p *path) watchQueues() func() ([]queueDrops, error) {
	if p.shapers == nil {
		return func() ([]queueDrops, error) { return nil, nil }
	}
	before, err := p.shapers()
	return func() ([]queueDrops, error) {
		if err != nil {
			return nil, err
		}
		after, err := p.shapers()
		if err != nil {
			return nil, err
		}
		var list []queueDrops
		for i, b := range before[:min(len(before), len(after))] {
			// The kernel counts them in 32 bits.
			list = append(list, queueDrops{b.From, b.To, uint64(uint32(after[i].Dropped) - uint32(b.Dropped))})
		}
		return list, nil
	}
}

// onTheWay picks the queues that a flow passes, in travel order.
func (p *path) onTheWay(f model.Flow, drops []queueDrops) []ledger.Counter {
	if p.lab == nil {
		return nil
	}
	place := func(node string) int { return slices.Index(p.lab.Nodes, node) }
	toward := place(f.To) - place(f.From)
	var list []ledger.Counter
	for _, q := range drops {
		if step := place(q.to) - place(q.from); step != 0 && (step > 0) == (toward > 0) {
			list = append(list, ledger.Counter{Host: q.from, Cause: "queue of the link to " + q.to + " full", Unit: "skb", Delta: q.drops})
		}
	}
	if toward < 0 {
		slices.Reverse(list)
	}
	return list
}
