package finding

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"pelt/design"
	"pelt/model"
	"pelt/table"
	"pelt/unit"
)

// What held a group's rate back. The values end the codes of limit findings.
const (
	byLink     = "link"
	byRouter   = "router"
	bySender   = "sender"   // nearly all arrived, and the sender or its host was busy
	byQuiet    = "quiet"    // all arrived, and the sender was not busy: its interface held it back
	byReceiver = "receiver" // most of the loss is the receiver's own
	byPath     = "path"     // packets were lost on the way
	byQueue    = "queue"    // a queue of the sender's own host held its sockets back
	byOffer    = "offer"    // a rate was asked: no more was tried
	byBuffers  = "buffers"  // TCP waited for the peer's window or for its own buffer
	byFarEnd   = "busy"     // the receiver's processor held TCP back
	byControl  = "control"  // TCP's congestion control: nothing else did
	byUnsent   = "unsent"   // of a search: trials at a higher rate are invalid, by the sender's fault
	byLate     = "late"     // of a search: the sender missed a part of its schedule
	byInvalid  = "invalid"  // of a search: trials at a higher rate are invalid, not by the sender's fault
	byGrown    = "grown"    // a queue on the path grew for as long as the sender sent
	byDead     = "dead"     // streams that get nothing through: a part of the asked rate was not sent
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

func limitOf(g table.Group) string { return limitBeside(g, rateAsked(g)) }

// limitBeside is limitOf where the caller knows whether the asked rate can be the limit.
func limitBeside(g table.Group, asked bool) string {
	used, tcp := middle(g, "link_ratio"), g.Rows[0].Flow.Protocol == model.TCP
	switch {
	case !tcp && linkFull(g), tcp && used >= fullLinkTCP && used <= 1:
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
	case len(Held(g.Rows)) > 0:
		return byQueue
	case asked && slices.ContainsFunc(g.Rows, func(r table.Row) bool { return len(r.Flow.DeadStreams) > 0 }):
		return byDead
	case asked && grown(g) > 0:
		return byGrown
	case asked:
		return byOffer
	}
	return limitByLosses(g)
}

// A queue on the path has grown if this share of the packets was in it when the sender stopped, and the last of them
// came out that much later. Tests of less time than that cannot tell it from a pause of a host.
const (
	grownShare   = 0.1
	grownSeconds = 0.2
)

// grownIn returns the share of a flow's packets that were in a queue on the path when the sender stopped: more went in
// than came out, and a longer test loses packets. It returns 0 if no queue grew. A host that paused once delays few.
func grownIn(r table.Row) float64 {
	f, left := r.Flow, design.Waiting(r.Flow)
	over := f.DurationS * left / (1 - left)
	if f.Protocol != model.UDP || len(r.Trial.Outages) > 0 || left < grownShare || !(over >= grownSeconds) ||
		f.Delay != nil && f.Delay.P50-f.Delay.Min < over*1e9/4 {
		return 0
	}
	return left
}

// grown is the middle of these shares over the valid trials of a group.
func grown(g table.Group) float64 {
	var shares []float64
	for _, r := range Usable(g.Rows) {
		shares = append(shares, grownIn(r))
	}
	if len(shares) == 0 {
		return 0
	}
	return table.Summary(shares).Median
}

// Grown tells of asked rates of which a part was in a queue on the path when the sender stopped.
func Grown(rows []table.Row) []Finding {
	var out []Finding
	for _, g := range bySetting(Usable(rows)) {
		if g.Rows[0].Doc.Plan.Design.Search == nil && rateAsked(g) && grown(g) > 0 {
			f := grew(say("path.grown", Doubt, g), g).word("where", at(g))
			if middle(g, "loss_ratio") < lossless {
				f = f.word("whole", "yes")
			}
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return cmp.Compare(grown(b.Groups[0]), grown(a.Groups[0])) })
	return out[:min(len(out), 1)] // the worst is enough
}

// grew adds what went into such a queue and what came out.
func grew(f Finding, g table.Group) Finding {
	return f.median("send_pps", "grown", g).median("receive_pps", "grown", g).median("delay_max_ns", "grown", g)
}

// linkFull reports whether as much UDP arrived as the slowest link lets through.
func linkFull(g table.Group) bool {
	used := middle(g, "link_ratio")
	return used >= fullLink && used <= overLink
}

// cardQueues hold packets back only if the card below them does.
var cardQueues = []string{"pfifo_fast", "fq_codel", "mq", "fq", "pfifo", "bfifo", "sfq", "codel", "pie", "fq_pie",
	"prio",
	"multiq", "mqprio"}

// holder names what made the sender wait: a queue with its rate, the card below a queue without one, or a full send
// buffer.
func holder(r table.Row, l model.PacingLine) string {
	switch q := l.Queue; {
	case q == nil && l.BufferBytes > 0:
		return "a full send buffer of " + unit.FormatSize(l.BufferBytes)
	case q == nil:
		return "a full send buffer"
	case q.RateBPS > 0 || !slices.Contains(cardQueues, q.Kind):
		return q.String()
	default:
		for _, h := range r.Doc.Host {
			if h.Node == l.Host && h.Interface == q.Interface && h.LinkSpeedBits > 0 {
				return "card " + q.Interface + ", " + unit.BPS.Exact(float64(h.LinkSpeedBits))
			}
		}
		return "card " + q.Interface
	}
}

// holders are what made the senders of valid trials wait, the longest wait first.
func holders(g table.Group, is func(model.PacingLine) bool) (names []string) {
	waited := map[string]float64{}
	for _, r := range Usable(g.Rows) {
		for _, l := range r.Flow.Ledger.Pacing {
			if l.Cause == model.PacingBackpressure && is(l) {
				waited[holder(r, l)] += l.HeldS
			}
		}
	}
	names = slices.Sorted(maps.Keys(waited))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(waited[b], waited[a]) })
	return names
}

func inQueue(l model.PacingLine) bool { return l.Queue != nil }

func busy(g table.Group, end string) bool {
	return middle(g, end+"_cpu_thread_ratio") >= busyThread || middle(g, end+"_cpu_host_ratio") >= busyHost
}

func limitedBy(limit string, g table.Group) Finding {
	f := say("limit."+limit, Fact, g)
	for _, name := range []string{"router_thread_ratio", "router_busiest_core_ratio", "sender_cpu_thread_ratio",
		"sender_cpu_host_ratio", "receiver_cpu_thread_ratio", "tcp_held_back_ratio", "link_ratio"} {
		f = f.median(name, "", g)
	}
	switch {
	case limit != bySender || middle(g, "sender_cpu_thread_ratio") >= busyThread:
	case busy(g, "sender"):
		f = f.word("host", "busy")
	default:
		f = f.word("lost", "most")
	}
	if limit == byRouter && ringFull(g) && middle(g, "router_thread_ratio") < busyThread {
		f = f.word("starved", "yes")
	}
	if names := holders(g, func(model.PacingLine) bool { return true }); limit == byQueue && len(names) > 0 {
		f = f.word("holder", names[0])
	}
	return f.link(g.Rows[0])
}

// link adds the rate of the slowest link, and how many receivers have one each.
func (f Finding) link(r table.Row) Finding {
	if n := len(r.Flow.Receivers); n > 1 {
		f = f.number("receivers_count", "", float64(n))
	}
	return f.number("link_bps", "", table.LinkRate(r))
}

// Beyond doubts a rate that is higher than a link on the way carries.
func Beyond(rows []table.Row) []Finding {
	groups := bySetting(Usable(rows))
	if len(groups) == 0 {
		return nil
	}
	most := largest(groups, "link_ratio")
	if !(middle(most, "link_ratio") > overLink) || most.Rows[0].Doc.Lab == nil {
		return nil
	}
	return []Finding{say("link.beyond", Doubt, most).median("link_ratio", "", most).word("where", at(most))}
}

// Layers by what a loss there says: the end had no time, or a rule or a broken packet, at any rate.
var (
	senderLayers   = []string{model.LayerSendCall, model.LayerSenderQdisc, model.LayerSenderDevice}
	receiverLayers = []string{model.LayerReceiverBacklog, model.LayerReceiverMemory, model.LayerReceiverBuffer,
		model.LayerApplication}
	refusingLayers = []string{model.LayerReceiverXDP, model.LayerReceiverTC, model.LayerReceiverFilter,
		model.LayerReceiverIP, model.LayerReceiverUDP}
)

// lostWhere counts the lost packets of valid trials whose place "is" selects.
func lostWhere(g table.Group, is func(Loss) bool) (packets float64) {
	for _, l := range Losses(g.Rows) {
		if is(l) {
			packets += l.Packets
		}
	}
	return packets
}

// limitByLosses says what held a group back that sent as fast as it could.
func limitByLosses(g table.Group) string {
	in := func(layers []string) float64 {
		return lostWhere(g, func(l Loss) bool { return slices.Contains(layers, l.Layer) })
	}
	lost := lostWhere(g, func(l Loss) bool { return !slices.Contains(refusingLayers, l.Layer) })
	share := lost / math.Max(g.Sum("attempted_packets"), 1)
	switch {
	case share >= lossless && 2*in(receiverLayers) >= lost:
		return byReceiver
	case len(holders(g, inQueue)) > 0 && !(middle(g, "loss_ratio") >= lossless):
		return byQueue
	case share >= lossless && 2*in(senderLayers) >= lost, busy(g, "sender") && share < overload:
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
	full := lostWhere(g, func(l Loss) bool {
		return l.Cause == "ring-full" && l.Host != model.Sender && l.Host != model.Receiver
	})
	return 2*full > lostWhere(g, func(Loss) bool { return true })
}

// rateAsked reports whether a group's flows were told a rate, by the plan or by a cell.
func rateAsked(g table.Group) bool {
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

var limitNames = map[string]string{byLink: "the link", byRouter: "the router", bySender: "the sender",
	byQuiet: "the sender's interface", byReceiver: "the receiver", byPath: "the path", byQueue: "the sender's queue",
	byOffer: "the asked rate", byUnsent: "the sender", byLate: "the sender", byBuffers: "TCP buffers", byFarEnd: "the receiver", byControl: "the congestion control",
	byDead: "dead streams", byGrown: growing, byUnknown: "not known", byInvalid: "not known"}

func LimitName(f Finding) string {
	return cmp.Or(f.Words["holder"], limitNames[strings.TrimPrefix(f.Code, "limit.")])
}

func LimitedBy(g table.Group) string { return limitName(limitOf(g), g) }

// limitName names a limit in a table.
func limitName(limit string, g table.Group) string {
	if names := holders(g, inQueue); limit == byQueue && len(names) > 0 {
		return names[0]
	}
	return limitNames[limit]
}
