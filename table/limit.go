package table

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"pelt/design"
	"pelt/model"
)

// Part is what may hold the rate of trials back. Its values end the codes of limit findings.
type Part string

const (
	ByLink     Part = "link"
	ByRouter   Part = "router"
	BySender   Part = "sender"
	ByReceiver Part = "receiver"
	ByPath     Part = "path"    // between the hosts
	ByOffer    Part = "offer"   // a rate was asked: no more was tried
	ByQueue    Part = "queue"   // a queue of the sender's own host held its sockets back
	ByBuffers  Part = "buffers" // TCP waited for the peer's window or for its own buffer
	ByControl  Part = "control" // TCP's congestion control: all else was read, and had room
	ByDead     Part = "dead"    // streams that get nothing through: a part of the asked rate was not sent
	Unproven   Part = "unknown"
)

// Limit is what held a group's rate back, and what proves it.
type Limit struct {
	By    Part
	Share float64 // of the lost packets that speak for it; 0 where a metric decided
	// Proof is the name of the metric that decided, or layer, cause and host of the ledger's line, or the code of
	// the reason why no trial is valid. It is "" only of what is not known.
	Proof string
	Line  *Loss // that line
}

const (
	// Below this share of lost packets a rate counts as carried whole: single losses happen to a path that is far
	// from its limit.
	Lossless = 0.001
	// A path that loses less than this share of what a busy sender sends may lose it to bursts or at random: only
	// more is a sign that its limit was passed.
	Overload = 0.05
	// A sender that sent this share of its schedule kept the rate.
	keptRate = 0.99
	// A thread busier than this had no time left; a host, no core.
	busyThread = 0.9
	busyHost   = 0.95
	// A link is full within these shares of its rate: a burst may pass it for a moment. What is above was not
	// carried by that link.
	FullLink = 0.93
	OverLink = 1.05
	// Payload of TCP fills a link from this share on: headers and acknowledgements take the rest.
	fullLinkTCP = 0.88
	// TCP that waits for buffers for this share of its time is held back by them.
	HeldOften = 0.1
)

// Limit says what held a group back. Nothing is guessed: where no figure and no line of a ledger decides, the limit is
// not known.
func (g Group) Limit() Limit { return g.limit(g.Asked()) }

// FloodLimit is the limit of a flood, whatever rate its plan asks of other trials.
func (g Group) FloodLimit() Limit { return g.limit(false) }

func (g Group) limit(asked bool) Limit {
	lost := g.Middle("loss_ratio") >= Lossless
	switch {
	case len(Usable(g.Rows)) == 0:
		return g.invalid()
	case g.Rows[0].Flow.Protocol == model.TCP:
		return g.limitTCP()
	case asked && !lost:
		return g.limitAsked()
	case g.LinkFull():
		return Limit{By: ByLink, Proof: "link_ratio"}
	}
	l := Limit{By: Unproven}
	if lost {
		l = g.limitByLosses()
	}
	if ends := l.By == ByReceiver || l.By == BySender; ends {
		return l
	}
	cpu := g.busy("sender")
	switch metric := g.busyRouter(); {
	case metric != "" && lost && !l.anyway(): // a router that lost nothing may carry more
		return Limit{By: ByRouter, Proof: metric}
	case !lost && g.heldBack(func(l model.PacingLine) bool { return l.Queue != nil }):
		return Limit{By: ByQueue, Proof: model.PacingBackpressure}
	case cpu != "" && !(g.Middle("loss_ratio") >= Overload):
		return Limit{By: BySender, Proof: cpu}
	}
	return l
}

// limitAsked is the limit of a rate that was asked, and of which next to nothing was lost.
func (g Group) limitAsked() Limit {
	dead := func(r Row) bool { return len(r.Flow.DeadStreams) > 0 }
	cpu := g.busy("sender")
	switch {
	case g.heldBack(func(model.PacingLine) bool { return true }):
		return Limit{By: ByQueue, Proof: model.PacingBackpressure}
	case slices.ContainsFunc(g.Rows, dead):
		return Limit{By: ByDead, Proof: "attempted_packets"}
	case g.Grown() > 0 && g.LinkFull():
		return Limit{By: ByLink, Proof: "link_ratio"}
	case g.Grown() > 0:
		return Limit{By: ByPath, Proof: "receive_pps"}
	case g.Sum("attempted_packets") >= keptRate*g.planned():
		return Limit{By: ByOffer, Proof: "loss_ratio"}
	case cpu != "":
		return Limit{By: BySender, Proof: cpu}
	}
	return Limit{By: Unproven}
}

func (g Group) limitTCP() Limit {
	used, held := g.Middle("link_ratio"), g.Middle("tcp_held_back_ratio")
	router, sender, receiver := g.busyRouter(), g.busy("sender"), g.busy("receiver")
	room := func(metric string) bool { return !math.IsNaN(g.Middle(metric)) }
	switch {
	case used >= fullLinkTCP && used <= 1:
		return Limit{By: ByLink, Proof: "link_ratio"}
	case router != "":
		return Limit{By: ByRouter, Proof: router}
	case held >= HeldOften:
		return Limit{By: ByBuffers, Proof: "tcp_held_back_ratio"}
	case sender != "":
		return Limit{By: BySender, Proof: sender}
	case receiver != "":
		return Limit{By: ByReceiver, Proof: receiver}
	case g.Rows[0].Doc.Lab != nil && used < fullLinkTCP && room("tcp_held_back_ratio") &&
		room("sender_cpu_thread_ratio") && room("receiver_cpu_thread_ratio"):
		return Limit{By: ByControl, Proof: "link_ratio"} // all links of a lab are known
	}
	return Limit{By: Unproven}
}

// invalid is the limit of trials that did not run as ordered: the sender, if it was the reason.
func (g Group) invalid() Limit {
	for _, r := range g.Rows {
		for _, why := range r.Trial.Why {
			if strings.HasPrefix(why.Code, "sender-") {
				return Limit{By: BySender, Proof: why.Code}
			}
		}
	}
	return Limit{By: Unproven}
}

// limitByLosses is the part that lost most of the lost packets.
func (g Group) limitByLosses() Limit {
	sums, most, all := map[Part]float64{}, map[Part]*Loss{}, 0.0
	for _, l := range Losses(g.Rows) {
		by := l.part()
		sums[by], all = sums[by]+l.Packets, all+l.Packets
		if most[by] == nil {
			most[by] = &l
		}
	}
	for by, n := range sums {
		if 2*n > all && by != Unproven {
			l := most[by]
			return Limit{By: by, Share: n / all, Line: l,
				Proof: strings.TrimSpace(l.Layer + " " + l.Cause + " " + l.Host)}
		}
	}
	return Limit{By: Unproven}
}

// anyway reports whether most packets were lost to what drops them also where no processor is busy, as a rule or a
// policer does.
func (l Limit) anyway() bool {
	const dropping = "NETFILTER_DROP POLICER TC_INGRESS TC_EGRESS " + model.CauseLinkLoss
	return l.Line != nil && slices.Contains(strings.Fields(dropping), l.Line.Cause)
}

// OfRate reports whether what decided happens to a rate that is too high, and not to any rate.
func (l Limit) OfRate() bool {
	const full = model.CauseLinkQueue + " " + model.CauseStillQueued + " " + model.CauseRingFull + " " +
		model.CauseRingMissed + " CPU_BACKLOG QDISC_DROP QDISC_CONGESTED POLICER"
	switch {
	case l.By == Unproven:
		return false
	case l.Line == nil:
		return true
	}
	return slices.Contains(strings.Fields(full), l.Line.Cause)
}

// Loss is what some trials lost at one place for one reason.
type Loss struct {
	Group              // of lines of ledgers
	Layer, Cause, Host string
	Packets            float64
}

// Losses are what the valid trials of some rows lost, the most first.
func Losses(rows []Row) (out []Loss) {
	for _, g := range By(Lines(rows), KeyOf("layer"), KeyOf("cause"), KeyOf("host")) {
		l := Loss{g, g.Levels[0].Text, g.Levels[1].Text, g.Levels[2].Text, g.Sum("ended_packets")}
		if l.Packets > 0 {
			out = append(out, l)
		}
	}
	slices.SortStableFunc(out, func(a, b Loss) int { return cmp.Compare(b.Packets, a.Packets) })
	return out
}

// part is whose loss it is.
func (l Loss) part() Part {
	r := l.Rows[0]
	switch {
	case l.Layer == Unattributed:
		return Unproven
	case strings.HasPrefix(l.Layer, "receiver-"), l.Layer == model.LayerApplication:
		return ByReceiver
	case strings.HasPrefix(l.Layer, "send"):
		return BySender
	case strings.HasPrefix(l.Host, "link"):
		return ByLink
	case l.Host == "":
		return ByPath
	case l.Host == r.Flow.To, slices.ContainsFunc(r.Flow.Receivers, l.at):
		return ByReceiver
	case l.Host == r.Flow.From:
		return BySender
	case l.Host == "router", r.Doc.Lab != nil && slices.Contains(r.Doc.Lab.Nodes, l.Host):
		return ByRouter
	}
	return ByPath
}

func (l Loss) at(one model.ReceiverShare) bool { return one.Node == l.Host }

// Usable are the rows with figures: of trials that ran as ordered and measured something.
func Usable(rows []Row) (out []Row) {
	for _, r := range rows {
		if r.Valid() && Measured(r.Flow) {
			out = append(out, r)
		}
	}
	return out
}

// busy names the figure that shows an end without time left, "" if none does.
func (g Group) busy(end string) string {
	return g.used(end+"_cpu_thread_ratio", end+"_cpu_host_ratio")
}

// busyRouter is likewise of a router.
func (g Group) busyRouter() string { return g.used("router_thread_ratio", "router_busiest_core_ratio") }

// used names the one of two figures, of a thread and of a host, that says that no time was left.
func (g Group) used(thread, host string) string {
	switch {
	case g.Middle(thread) >= busyThread:
		return thread
	case g.Middle(host) >= busyHost:
		return host
	}
	return ""
}

// LinkFull reports whether as much UDP arrived as the slowest link lets through.
func (g Group) LinkFull() bool {
	used := g.Middle("link_ratio")
	return used >= FullLink && used <= OverLink
}

func (g Group) planned() (packets float64) {
	for _, r := range Usable(g.Rows) {
		packets += float64(r.Flow.Planned)
	}
	return packets
}

// heldBack reports whether what is selected held a share of the schedule back that counts.
func (g Group) heldBack(is func(model.PacingLine) bool) bool {
	var lists [][]model.PacingLine
	for _, r := range Usable(g.Rows) {
		lists = append(lists, r.Flow.Ledger.Pacing)
	}
	return slices.ContainsFunc(model.JoinPacing(lists...), func(l model.PacingLine) bool {
		return l.Cause == model.PacingBackpressure && is(l) && float64(l.Packets) >= Lossless*g.planned()
	})
}

// A queue on the path has grown if this share of the packets was in it when the sender stopped, and the last of them
// came out that much later. Tests of less time than that cannot tell it from a pause of a host.
const (
	grownShare   = 0.1
	grownSeconds = 0.2
)

// grownIn returns the share of a flow's packets that were in a queue on the path when the sender stopped: more went in
// than came out, and a longer test loses packets. It returns 0 if no queue grew. A host that paused once delays few.
func grownIn(r Row) float64 {
	f, left := r.Flow, design.Waiting(r.Flow)
	over := f.DurationS * left / (1 - left)
	if f.Protocol != model.UDP || len(r.Trial.Outages) > 0 || left < grownShare || !(over >= grownSeconds) ||
		f.Delay != nil && f.Delay.P50-f.Delay.Min < over*1e9/4 {
		return 0
	}
	return left
}

// Grown is the middle of these shares over the valid trials of a group.
func (g Group) Grown() float64 {
	var shares []float64
	for _, r := range Usable(g.Rows) {
		shares = append(shares, grownIn(r))
	}
	return median(shares)
}

// Asked reports whether a group's flows were told a rate, by the plan or by a cell.
func (g Group) Asked() bool {
	return slices.ContainsFunc(g.Rows, func(r Row) bool {
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
