package run

import (
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
	if o == nil || len(flows) == 0 || p.lan != "" {
		return
	}
	for _, f := range flows {
		if f.Flow.From != flows[0].Flow.From {
			return
		}
	}
	in, out := busiestPort(o.Counters, ".rx_packets"), busiestPort(o.Counters, ".tx_packets")
	if in == "" || out == "" || in == out {
		return
	}
	p.lan, p.wan = in, out
	if flows[0].Flow.From != model.Sender {
		p.lan, p.wan = out, in
	}
}

func busiestPort(counters []model.Counter, kind string) string {
	var best, next uint64
	name := ""
	for _, c := range counters {
		port, ok := strings.CutPrefix(c.Name, "dev.")
		port, isKind := strings.CutSuffix(port, kind)
		switch {
		case !ok || !isKind || c.Reset || port == "lo":
		case c.Whole > best:
			best, next, name = c.Whole, best, port
		case c.Whole > next:
			next = c.Whole
		}
	}
	if best < portPackets || best < portDominance*next {
		return ""
	}
	return name
}

// put tells the ledger which interfaces of the router lie on the path.
func (p ports) put(s *seen) {
	if p.lan != "" {
		s.in, s.out = []string{p.lan}, []string{p.wan}
	}
}
