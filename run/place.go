package run

import (
	"fmt"
	"net/netip"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"pelt/engine"
	"pelt/engine/xdp"
	"pelt/finding"
	"pelt/fleet"
	"pelt/model"
)

// place turns a trial into orders for this path's agents. The sender's host
// dials wherever it can, so that a path with NAT works in both directions.
func (s *site) place(t model.Trial) (fleet.Trial, model.Doubts, error) {
	placed := fleet.Trial{Timing: t.Timing, OneClock: s.oneClock,
		Probe: s.silent == "" && (!s.oneClock || !s.local || t.Timing.LeadSeconds > 0)}
	var reasons model.Doubts
	because := func(why model.Reason) {
		told := func(one model.Reason) bool { return reflect.DeepEqual(one, why) }
		if why.Code != "" && !slices.ContainsFunc(reasons, told) {
			reasons = append(reasons, why)
		}
	}
	before := map[string]int{} // flows from each node so far
	for i, f := range s.flows(t) {
		from, to := s.end(f.From).agent, s.end(f.To).agent
		if from.ID == "" || to.ID == "" {
			return fleet.Trial{}, nil, refuse(fmt.Sprintf("flows[%d]", i),
				"the path has a sender and a receiver, not %s and %s", f.From, f.To)
		}
		carried := f
		// one engine at all rates of a search, that of its flood
		if _, loaded := t.Cell["load_ratio"]; loaded || t.Cell.Searching() {
			carried.Rate = s.floods
		}
		send, receive, why := carriersOf(s.engine, carried, s.noFrames(f, from, to))
		because(why)
		placed.Probe = placed.Probe || f.Protocol == model.TCP && s.silent == "" // TCP tells its own round trips only
		for _, e := range []struct {
			fleet.AgentInfo
			*fleet.Choice
		}{{from, &send}, {to, &receive}} {
			if !slices.Contains(e.Engines, e.Engine) {
				if e.Engine == string(model.TCP) {
					return fleet.Trial{}, nil, refuse("target", "%w", finding.NewFault(model.OnePortTCP,
						"node", e.Node))
				}
				if !e.Fallback {
					return fleet.Trial{}, nil, &finding.Fault{Reason: model.Reason{Code: model.AtHost, Node: e.Node,
						Of: model.Reasons{model.NewReason(model.EngineMissing, "name", e.Engine)}}}
				}
				because(socketsBecause(model.NewReason(model.EngineMissing, "name", e.Engine)).With(e.Node))
				*e.Choice = fleet.Choice{Engine: "udp"}
			}
		}
		dialer, listen, err := s.dial(f)
		if err != nil {
			return fleet.Trial{}, nil, err
		}
		if dialer == from.ID {
			f.Address = listen
		}
		placed.Flows = append(placed.Flows, fleet.PlacedFlow{
			Flow: f, Send: send, Receive: receive, From: from.ID, To: to.ID,
			Dialer: dialer, Listen: listen, CPU: s.core(f.From, before[f.From]),
			Breaker: !s.local && s.silent == "" && !s.searches && !s.judged && !seeksLoss(t, f),
		})
		before[f.From]++
	}
	return placed, reasons, nil
}

// seeksLoss reports whether losses of a flow are what the test looks for, and so no reason to end it.
func seeksLoss(t model.Trial, f model.Flow) bool {
	for _, knob := range []string{"rate_pps", "interval_ns", "pair"} {
		if _, varied := t.Cell[knob]; varied {
			return true
		}
	}
	return f.Rate.IsMax()
}

// dial returns the agent that dials for a flow, and the address of the other end.
func (s *site) dial(f model.Flow) (dialer string, listen netip.Addr, err error) {
	far, family := f.To, f.Family
	if far == model.Sender {
		far = f.From
	}
	if family == 0 && s.local {
		family = 4
	}
	if n := s.end(far); ofFamily(n.calls, family).IsValid() {
		return n.agent.ID, n.calls, nil
	}
	listen, err = s.end(far).at(family)
	return s.end(model.Sender).agent.ID, listen, err
}

func (n *node) at(family int) (a netip.Addr, err error) {
	if n.address != nil {
		a = n.address(family)
	}
	if !a.IsValid() {
		err = refuse("family", "%w", finding.NewFault(model.NoAddressOf, "node", n.name, "family", max(family, 4)))
	}
	return a, err
}

// carriersOf decides which engines carry the two ends of a flow, and says why if the ends' reports do not.
// Frames pass both hosts' packet filters, queues and socket buffers. So auto takes them only for rates
// that sockets do not carry. noFrames is why this path cannot carry the flow by frames; without a code it can.
func carriersOf(asked string, f model.Flow, noFrames model.Reason) (send, receive fleet.Choice, why model.Reason) {
	tcp, sockets, frames := fleet.Choice{Engine: "tcp"}, fleet.Choice{Engine: "udp"}, fleet.Choice{Engine: "xdp"}
	framesOrSockets := fleet.Choice{Engine: "xdp", Fallback: true}
	from, to, both := strings.Cut(asked, ":")
	switch {
	case f.Protocol == model.TCP:
		return tcp, tcp, model.Reason{Code: model.FlowsTCP}
	case asked == model.EngineAuto && f.SocketsCarry():
		return sockets, sockets, model.Reason{Code: model.SocketsFit}
	case asked == model.EngineAuto && noFrames.Code != "":
		return sockets, sockets, socketsBecause(noFrames)
	case asked == model.EngineAuto:
		return framesOrSockets, framesOrSockets, why
	case asked == "xdp": // a receiver without the rights for it is still one
		return frames, framesOrSockets, why
	case asked == "xdp:udp": // the interface must be ready for what comes
		return frames, fleet.Choice{Engine: "xdp", Fallback: true, Sockets: true}, why
	case both:
		return fleet.Choice{Engine: from}, fleet.Choice{Engine: to}, why
	}
	return sockets, sockets, model.Reason{Code: model.SocketsPlanned}
}

// socketsBecause is why sockets carry a flow that frames might have carried.
func socketsBecause(why ...model.Reason) model.Reason {
	return model.Reason{Code: model.SocketsBecause, Of: why}
}

// noFrames says why XDP frames cannot carry a flow on this path; without a code nothing is known.
func (s *site) noFrames(f model.Flow, from, to fleet.AgentInfo) model.Reason {
	why := model.FirstReason(s.noXDP, s.needsFragments(f), xdp.Unfit(engine.Send, f))
	ends := []fleet.AgentInfo{from, to}
	if xdp.Unfit(engine.Receive, f).Code != "" { // the receiver's sockets were asked for, and frames go into them
		ends = ends[:1]
	}
	for _, e := range ends {
		switch {
		case why.Code != "":
		case !slices.Contains(e.Engines, "xdp"):
			why = model.Reason{Code: model.FramesUnoffered, Node: e.Node}
		case !e.Host.Privileged:
			why = model.Reason{Code: model.FramesRights, Node: e.Node}
		}
	}
	return why
}

// needsFragments says that a flow's packets exceed the path MTU; without a code not, or it is unknown.
func (s *site) needsFragments(f model.Flow) (why model.Reason) {
	for _, m := range s.mtus {
		known := m.Flow == model.PlanFlow(f.Name) && m.Bytes > 0 && !m.AtLeast
		if known && model.Fragments(m.Family, f.PayloadBytes, m.Bytes) > 1 {
			return model.NewReason(model.NeedsFragments, "packet_bytes", float64(f.PayloadBytes+m.Bytes-m.PayloadBytes),
				"mtu_bytes", float64(m.Bytes))
		}
	}
	return why
}

// core returns the first core for the sender of a node's k-th flow, -1 for any. Ends that
// share a machine are pinned, each direction to its own core; the engines put receivers on
// the next ones. A real host leaves it to the scheduler.
func (s *site) core(node string, k int) int {
	if !s.pin || runtime.NumCPU() < 2 {
		return -1
	}
	return (senderCore(node) + 2*k) % runtime.NumCPU()
}

func senderCore(node string) int {
	if node == model.Sender {
		return 0
	}
	return 1
}

// coreAcross is the core for the interface across a node's cable: not its sending core.
func coreAcross(peer string) int { return 1 - senderCore(peer) }

func familyOf(f fleet.PlacedFlow) int {
	if f.Listen.Is4() || f.Listen.Is4In6() {
		return 4
	}
	return 6
}
