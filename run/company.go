package run

import (
	"math"
	"slices"

	"pelt/model"
)

// company decides which trials may run at the same time. It is the walking
// goroutine's alone.
type company struct {
	cores int
	known []demand // of trials that ran alone, by packets
	bands [2*bandsBelow + 1]band
}

// band are trials whose packets a second differ by less than the root of two; the
// last one are those that send as fast as they can.
type band struct {
	most int // trials that may run beside one of it while it sends
	well int // that went well beside so many, since that was last changed
}

// bandsBelow octaves of packets a second are more than any host sends.
const bandsBelow = 40

// demand is what a trial took of the machine: packets a second that it sent,
// fragments counted, and cores that were busy while it did.
type demand struct{ packets, cores float64 }

// sendingCores is for how many cores there may be one trial that sends. Sending
// takes the most of a core, and emulating and receiving as much again; one whose
// packets still arrive at the rate of its links takes little.
const sendingCores = 2

// wellInCompany is after how many good trials of a band one more may run beside it.
const wellInCompany = 10

func newCompany(cores int) *company {
	c := &company{cores: cores}
	for i := range c.bands {
		c.bands[i].most = max(1, cores/sendingCores)
	}
	return c
}

func bandOf(packets float64) int {
	if math.IsInf(packets, 1) {
		return 2 * bandsBelow
	}
	return min(int(2*math.Log2(max(packets, 1))), 2*bandsBelow-1)
}

// beside is how many trials may run beside one that sends so many packets a second.
func (c *company) beside(packets float64) int { return c.bands[bandOf(packets)].most }

// bears reports whether one more trial may begin beside those that run.
func (c *company) bears(running []*current, next float64) bool {
	if len(running) > c.beside(next) {
		return false
	}
	for _, x := range running {
		if !x.sent && len(running) > c.beside(x.packets) {
			return false
		}
	}
	return c.room(sending(running), next)
}

// room reports whether one more trial may begin beside those that send. There is
// one for every two cores; more where all of them together are known to take less.
func (c *company) room(sending []float64, next float64) bool {
	if len(sending) < max(1, c.cores/sendingCores) {
		return true
	}
	sum := next
	for _, packets := range sending {
		sum += packets
	}
	return c.takes(sum) <= float64(c.cores)/sendingCores
}

// takes is how many cores so many packets a second keep busy, as far as trials that
// ran alone tell: never less than one of fewer packets took.
func (c *company) takes(packets float64) float64 {
	if len(c.known) == 0 || math.IsInf(packets, 1) {
		return math.Inf(1)
	}
	least := 0.0
	for _, d := range c.known {
		if least = max(least, d.cores); d.packets >= packets {
			return least
		}
	}
	most := c.known[len(c.known)-1]
	return max(least, most.cores*packets/most.packets)
}

// learn takes in what a trial that ran alone took.
func (c *company) learn(packets float64, r model.Result) {
	if math.IsInf(packets, 1) || packets <= 0 || r.State != model.Valid || len(r.Flows) == 0 || r.Flows[0].SenderCPU.HostRatio <= 0 {
		return
	}
	d := demand{packets, r.Flows[0].SenderCPU.HostRatio * float64(c.cores)}
	i, found := slices.BinarySearchFunc(c.known, d, func(a, b demand) int {
		switch {
		case a.packets < b.packets:
			return -1
		case a.packets > b.packets:
			return 1
		}
		return 0
	})
	switch {
	case !found:
		c.known = slices.Insert(c.known, i, d)
	default: // the mean of all would need their number; the last half of it serves
		c.known[i].cores = (c.known[i].cores + d.cores) / 2
	}
}

// spoilt notes that a trial of so many packets a second had too little of the
// machine with so many beside it: it, and any faster one, gets fewer.
func (c *company) spoilt(packets float64, beside int) {
	for i := bandOf(packets); i < len(c.bands); i++ {
		c.bands[i] = band{most: min(c.bands[i].most, max(beside-1, 0))}
	}
}

// went notes that one went well with so many beside it.
func (c *company) went(packets float64, beside int) {
	b := &c.bands[bandOf(packets)]
	if beside < b.most || b.most >= model.MaxSideBySide {
		return
	}
	if b.well++; b.well >= wellInCompany {
		*b = band{most: b.most + 1}
	}
}
