package run

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"pelt/fleet"
	"pelt/model"
)

// place turns a trial into orders for this path's agents. The sender's host
// always dials, so that a path with NAT works in both directions.
func (p *path) place(t model.Trial) (fleet.Trial, string, error) {
	placed := fleet.Trial{Timing: t.Timing, OneClock: p.oneClock, Probe: !p.oneClock || p.lab == nil}
	var reasons []string
	because := func(text string) {
		if !slices.Contains(reasons, text) {
			reasons = append(reasons, text)
		}
	}
	before := map[string]int{} // flows from each node so far
	var flows []model.Flow
	for _, f := range t.Flows {
		flows = append(flows, p.each(f, p.among(t))...)
	}
	for i, f := range flows {
		from, to := p.ends[f.From], p.ends[f.To]
		if from.ID == "" || to.ID == "" {
			return fleet.Trial{}, "", &model.FieldError{Field: fmt.Sprintf("flows[%d]", i), Want: "the path has a sender and a receiver, not " + f.From + " and " + f.To}
		}
		send, receive := choices(p.engine)
		placed.Probe = placed.Probe || f.Protocol == model.TCP // TCP tells its own round trips only
		switch {
		case f.Protocol == model.TCP:
			send = fleet.Choice{Engine: "tcp"}
			receive = send
			because("the plan's flows are TCP")
		case send.Engine == "udp" && receive.Engine == "udp":
			because("udp sockets: they were asked for")
		}
		if why := p.onlySockets(f, to); why != "" && f.Protocol == model.UDP && p.engine == auto {
			because("udp sockets, because " + why)
			send, receive = fleet.Choice{Engine: "udp"}, fleet.Choice{Engine: "udp"}
		}
		for _, e := range []struct {
			fleet.AgentInfo
			*fleet.Choice
		}{{from, &send}, {to, &receive}} {
			if !slices.Contains(e.Engines, e.Engine) {
				if !e.Fallback {
					return fleet.Trial{}, "", fmt.Errorf("the %s has no %s engine", e.Node, e.Engine)
				}
				because(fmt.Sprintf("%s: udp sockets, because pelt offers no %s engine there", e.Node, e.Engine))
				*e.Choice = fleet.Choice{Engine: "udp"}
			}
		}
		family := f.Family
		if family == 0 && p.lab != nil {
			family = 4
		}
		far := f.To
		if far == model.Sender {
			far = f.From
		}
		if listen := p.address[far](family); !listen.IsValid() {
			return fleet.Trial{}, "", &model.FieldError{Field: "family", Want: fmt.Sprintf("the %s has no address of IPv%d here; a lab's link with an MTU below 1280 B has no IPv6", far, max(family, 4))}
		}
		if p.unready != "" && f.Protocol == model.UDP {
			because("frames are not carried here: " + p.unready)
		}
		placed.Flows = append(placed.Flows, fleet.PlacedFlow{
			Flow: f, Send: send, Receive: receive, From: from.ID, To: to.ID,
			Dialer: p.ends[model.Sender].ID, Listen: p.address[far](family), CPU: p.core(f.From, before[f.From]),
		})
		before[f.From]++
	}
	return placed, strings.Join(reasons, "; "), nil
}

// onlySockets says why auto has a flow carried by sockets at both ends: "" if
// frames may carry it. A flood of frames into sockets would say much of the
// receiver and little of the path, so that is done only if it is asked for.
func (p *path) onlySockets(f model.Flow, to fleet.AgentInfo) string {
	switch {
	case p.onSockets != "":
		return p.onSockets
	case f.Packets > 0:
		return "a number of packets was asked for"
	case p.strayed[passageOf(f)] != "":
		return p.strayed[passageOf(f)]
	case p.split(f) != "":
		return p.split(f)
	case f.Joined || f.ReceiveBuffer > 0:
		return ""
	case !slices.Contains(to.Engines, "xdp"):
		return "pelt offers no xdp engine at the " + to.Node
	case !to.Host.Privileged:
		return "pelt has no rights for XDP programs at the " + to.Node
	}
	return ""
}

// split says that a flow's packets come in fragments, by the path MTU; "" if they
// do not, or it is not known.
func (p *path) split(f model.Flow) string {
	if m, n := p.fragments(f); n > 1 {
		return fmt.Sprintf("packets of %d B need fragments: the path MTU is %d B", f.PayloadBytes+m.Bytes-m.PayloadBytes, m.Bytes)
	}
	return ""
}

// fragments is how many packets one of the flow's datagrams becomes by the path MTU
// that makes most of it; 1 where none is known.
func (p *path) fragments(f model.Flow) (by model.PathMTU, n int) {
	n = 1
	for _, m := range p.mtus {
		if m.Flow == base(f.Name) && m.Bytes > 0 && !m.AtLeast {
			if k := model.Fragments(m.Family, f.PayloadBytes, m.Bytes); k > n {
				by, n = m, k
			}
		}
	}
	return by, n
}

// passage is what decides where a flow's packets go, and in how many pieces.
type passage struct {
	from            string
	payload, family int
}

func passageOf(f model.Flow) passage { return passage{f.From, f.PayloadBytes, f.Family} }

// astray notes flows of a trial whose frames came another way than past the
// receiver's program, or not at all: in pieces that a router on the path made,
// through another interface, or nowhere, since a host that hears that its packets
// are too big tells its sockets only. It reports whether auto should try again.
func (p *path) astray(placed fleet.Trial, out fleet.Outcome) (again bool) {
	if p.engine != auto || out.Cut != "" {
		return false
	}
	for i, f := range placed.Flows {
		o := out.Flows[i]
		if o.Send == nil || o.Send.Send == nil || o.Receive == nil || o.Receive.Receive == nil || p.strayed[passageOf(f.Flow)] != "" {
			continue
		}
		why := ""
		switch {
		case o.Receive.Receive.Strays > 0: // also what the sender's sockets sent in pieces
			why = "frames came to the " + f.Flow.To + " another way than past its XDP program: as fragments, or through another interface"
		case o.Send.Engine == "xdp" && o.Send.Send.Accepted > 0 && o.Receive.Receive.Tally.Received == 0 && o.Receive.Receive.WarmupReceived == 0:
			why = "no frame arrived at the " + f.Flow.To
		}
		if why != "" {
			if p.strayed == nil {
				p.strayed = map[passage]string{}
			}
			p.strayed[passageOf(f.Flow)] = why
			again = true
		}
	}
	return again
}

// auto takes frames where they can be had.
const auto = "auto"

// choices are the engines of sender and receiver for what the plan asks.
func choices(asked string) (send, receive fleet.Choice) {
	from, to, both := strings.Cut(asked, ":")
	switch {
	case asked == "xdp:udp": // the interface must be ready for what comes
		return fleet.Choice{Engine: from}, fleet.Choice{Engine: from, Fallback: true, Sockets: true}
	case both:
		return fleet.Choice{Engine: from}, fleet.Choice{Engine: to}
	case asked == auto:
		return fleet.Choice{Engine: "xdp", Fallback: true}, fleet.Choice{Engine: "xdp", Fallback: true}
	case asked == "xdp": // a receiver without the rights for it is still one
		return fleet.Choice{Engine: "xdp"}, fleet.Choice{Engine: "xdp", Fallback: true}
	}
	return fleet.Choice{Engine: "udp"}, fleet.Choice{Engine: "udp"}
}

// core gives the sender of a node's k-th flow its first core, each direction its
// own; the engines put the receiver's threads on the next ones. Ends that share a
// machine are pinned, so that they do not chase each other; on a real host the
// scheduler knows better.
func (p *path) core(node string, k int) int {
	if !p.pin || runtime.NumCPU() < 2 {
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

// coreAcross is where the work of an interface is done that a node's frames
// meet first: not on that node's sending core.
func coreAcross(peer string) int { return 1 - senderCore(peer) }

func (p *path) family(f fleet.PlacedFlow) int {
	if f.Listen.Is4() || f.Listen.Is4In6() {
		return 4
	}
	return 6
}
