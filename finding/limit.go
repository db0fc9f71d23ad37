package finding

import (
	"math"
	"slices"
	"strings"

	"pelt/model"
	"pelt/table"
)

// What held a group's rate back. The values end the codes of limit findings.
const (
	byLink     = "link"
	byRouter   = "router"
	bySender   = "sender"   // nearly all arrived, and the sender or its host was busy
	byQuiet    = "quiet"    // all arrived, and the sender was not busy: its interface held it back
	byReceiver = "receiver" // most of the loss is the receiver's own
	byPath     = "path"     // packets were lost on the way
	byOffer    = "offer"    // a rate was asked: no more was tried
	byBuffers  = "buffers"  // TCP waited for the peer's window or for its own buffer
	byFarEnd   = "busy"     // the receiver's processor held TCP back
	byControl  = "control"  // TCP's congestion control: nothing else did
	byUnknown  = "unknown"
)

const (
	// Below this share of lost packets a rate counts as carried whole: single losses
	// happen to a path that is far from its limit.
	lossless = 0.001
	// A path that loses less than this share of what a busy sender sends may lose it to
	// bursts or at random: only more is a sign that its limit was passed.
	overload = 0.05
	// A thread busier than this had no time left; a host, no core.
	busyThread = 0.9
	busyHost   = 0.95
	// A link is full within these shares of its rate: a burst may pass it for a moment.
	// What is above was not carried by that link.
	fullLink = 0.93
	overLink = 1.05
	// Payload of TCP fills a link from this share on: headers and acknowledgements take the rest.
	fullLinkTCP = 0.88
	// TCP that waits for buffers for this share of its time is held back by them.
	heldOften = 0.1
)

// limitOf says what held a group back.
func limitOf(g table.Group) string {
	link, wire, tcp := table.LinkRate(g.Rows[0]), middle(g, "wire_bps"), g.Rows[0].Flow.Protocol == model.TCP
	goodput := middle(g, "goodput_bps")
	switch {
	case !tcp && wire >= fullLink*link && wire <= overLink*link,
		tcp && goodput >= fullLinkTCP*link && goodput <= link:
		return byLink
	case middle(g, "router_thread_ratio") >= busyThread, middle(g, "router_busiest_core_ratio") >= busyHost,
		ringFull(g):
		return byRouter
	case tcp && middle(g, "tcp_held_back_ratio") >= heldOften:
		return byBuffers
	case tcp && busy(g, "sender"):
		return bySender
	case tcp && busy(g, "receiver"):
		return byFarEnd
	case tcp:
		return byUnknown
	case asked(g):
		return byOffer
	}
	return whoLost(g)
}

// busy reports whether an end of a group's flow had no processor time left.
func busy(g table.Group, end string) bool {
	return middle(g, end+"_cpu_thread_ratio") >= busyThread || middle(g, end+"_cpu_host_ratio") >= busyHost
}

// limitFinding says what held a group back.
func limitFinding(g table.Group) Finding { return limitedBy(limitOf(g), g) }

// limitedBy says that one thing held some groups back, with the figures of the first.
func limitedBy(limit string, groups ...table.Group) Finding {
	f := say("limit."+limit, Fact, groups...)
	for _, name := range []string{"router_thread_ratio", "router_busiest_core_ratio", "sender_cpu_thread_ratio",
		"receiver_cpu_thread_ratio", "tcp_held_back_ratio"} {
		f = f.median(name, "", groups[0])
	}
	return f.number("link_bps", "", table.LinkRate(groups[0].Rows[0]))
}

// whoLost says what held a group back that sent as fast as it could.
func whoLost(g table.Group) string {
	var lost, sender, receiver, refused float64
	for _, l := range Losses(g.Rows) {
		n := l.Packets
		lost += n
		switch l.Layer {
		case model.LayerSendCall, model.LayerSenderQdisc, model.LayerSenderDevice:
			sender += n
		case model.LayerReceiverXDP, model.LayerReceiverTC, model.LayerReceiverFilter,
			model.LayerReceiverIP, model.LayerReceiverUDP:
			refused += n // by a rule or as broken: at any rate, not for want of time
		case model.LayerReceiverBacklog, model.LayerReceiverMemory, model.LayerReceiverBuffer, model.LayerApplication:
			receiver += n
		}
	}
	lost -= refused
	share := lost / math.Max(g.Sum("attempted_packets"), 1)
	switch {
	case share >= lossless && 2*receiver >= lost:
		return byReceiver
	case share >= lossless && 2*sender >= lost, busy(g, "sender") && share < overload:
		return bySender
	case share >= lossless || middle(g, "loss_ratio") >= lossless:
		return byPath
	}
	return byQuiet
}

// ringFull reports whether most of what was lost found the ring of a lab's router full: its
// thread had all the time that the machine gave it.
func ringFull(g table.Group) bool {
	if math.IsNaN(middle(g, "router_thread_ratio")) || !(middle(g, "loss_ratio") >= lossless) {
		return false
	}
	var lost, full float64
	for _, l := range Losses(g.Rows) {
		lost += l.Packets
		if l.Cause == "ring-full" && l.Host != model.Sender && l.Host != model.Receiver {
			full += l.Packets
		}
	}
	return lost > 0 && 2*full > lost
}

// asked reports whether a group's flows were told a rate, by the plan or by a cell.
func asked(g table.Group) bool {
	return slices.ContainsFunc(g.Rows, func(r table.Row) bool {
		if v, ok := r.Trial.Cell["rate_pps"]; ok {
			return v.Text != "max"
		}
		if v, ok := r.Trial.Cell["interval_ns"]; ok {
			return v.Number > 0
		}
		i := slices.IndexFunc(r.Doc.Plan.Flows, func(f model.Flow) bool { return f.Name == r.Flow.Name })
		return i >= 0 && !r.Doc.Plan.Flows[i].Rate.IsMax()
	})
}

// LimitName is the short name of what a limit finding says.
func LimitName(f Finding) string {
	return map[string]string{byLink: "the link", byRouter: "the router", bySender: "the sender",
		byQuiet: "the sender's interface", byReceiver: "the receiver", byPath: "the path", byOffer: "the asked rate",
		byBuffers: "TCP buffers", byFarEnd: "the receiver", byControl: "the congestion control", "links": "the links",
		byUnknown: "not known"}[strings.TrimPrefix(f.Code, "limit.")]
}
