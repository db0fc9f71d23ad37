package run

import (
	"slices"
	"strings"

	"pelt/fleet"
	"pelt/model"
)

// ports are a real router's interfaces toward the sender and the receiver, as its
// counters showed them; "" while they did not.
type ports struct{ lan, wan string }

// A port is one that counted the most of a direction, and so many times the next
// one: of several that count the same packets, as a switch's port and its trunk do,
// none can be told to be it.
const (
	portDominance = 4
	portPackets   = 100
)

// learn takes the ports from a trial of one direction.
func (p *ports) learn(flows []fleet.PlacedFlow, o *model.Observation) {
	other := func(f fleet.PlacedFlow) bool { return f.Flow.From != flows[0].Flow.From }
	if p.lan != "" || slices.ContainsFunc(flows, other) {
		return
	}
	in, out := busiestPort(o.Counters, ".rx_packets"), busiestPort(o.Counters, ".tx_packets")
	switch {
	case in == "" || out == "" || in == out:
	case flows[0].Flow.From == model.Sender:
		*p = ports{in, out}
	default:
		*p = ports{out, in}
	}
}

func busiestPort(counters []model.Counter, kind string) string {
	best, next := model.Counter{}, uint64(portPackets/portDominance)
	for _, c := range counters {
		switch {
		case !strings.HasPrefix(c.Name, "dev.") || !strings.HasSuffix(c.Name, kind) || c.Reset ||
			c.Name == "dev.lo"+kind:
		case c.Whole > best.Whole:
			best, next = c, max(next, best.Whole)
		default:
			next = max(next, c.Whole)
		}
	}
	if best.Whole < portDominance*next {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(best.Name, "dev."), kind)
}
