package run

import (
	"math"
	"slices"

	"pelt/model"
)

// company decides which trials may run at the same time. It is the walking
// goroutine's alone.
type company struct {
	cores   int
	known   []demand // of trials that ran alone, by packets
	tooFast float64  // packets a second; from there on a trial runs alone, if crowded
	crowded bool     // a trial had too little of the machine in company
	well    int      // trials that went well in company since that was last changed
}

// demand is what a trial took of the machine: packets a second that it sent,
// fragments counted, and cores that were busy while it did.
type demand struct{ packets, cores float64 }

// sendingCores is for how many cores there may be one trial that sends. Sending
// takes the most of a core, and emulating and receiving as much again; one whose
// packets still arrive at the rate of its links takes little.
const sendingCores = 2

// wellInCompany is after how many good trials in company faster ones are tried again.
const wellInCompany = 20

func newCompany(cores int) *company { return &company{cores: cores, tooFast: math.Inf(1)} }

// alone reports whether a trial that sends so many packets a second runs by itself.
func (c *company) alone(packets float64) bool { return c.crowded && packets >= c.tooFast }

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
	for _, d := range c.known {
		if d.packets >= packets {
			return d.cores
		}
	}
	most := c.known[len(c.known)-1]
	return most.cores * packets / most.packets
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
// machine in company.
func (c *company) spoilt(packets float64) {
	c.tooFast, c.crowded, c.well = min(c.tooFast, packets), true, 0
}

// went notes that one went well in company.
func (c *company) went() {
	if c.well++; c.well >= wellInCompany {
		c.tooFast, c.well = c.tooFast*2, 0
	}
}
