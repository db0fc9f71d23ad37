package finding

import (
	"cmp"
	"math"
	"slices"

	"pelt/model"
	"pelt/table"
	"pelt/unit"
	"pelt/words"
)

// grownRule tells of asked rates of which a part was in a queue on the path when the sender stopped.
func grownRule(rows []table.Row) []Finding {
	var out []Finding
	for _, g := range table.Settled(table.Usable(rows)) {
		if g.Rows[0].Doc.Plan.Design.Search == nil && g.Asked() && g.Grown() > 0 {
			f := say("path.grown", Doubt, "grown", g, "where", at(g))
			if g.Middle("loss_ratio") < table.Lossless {
				f = f.with("whole", "yes")
			}
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Compare(b.Places["grown"].Grown(), a.Places["grown"].Grown())
	})
	return out[:min(len(out), 1)] // the worst is enough
}

// cardQueues hold packets back only if the card below them does.
var cardQueues = []string{"pfifo_fast", "fq_codel", "mq", "fq", "pfifo", "bfifo", "sfq", "codel", "pie", "fq_pie",
	"prio", "multiq", "mqprio"}

// holder names what made the sender wait: a queue with its rate, the card below a queue without one, or a full send
// buffer.
func holder(r table.Row, l model.PacingLine) string {
	switch q := l.Queue; {
	case q == nil && l.BufferBytes > 0:
		return r.Sayf("a full send buffer of %s", unit.FormatSize(l.BufferBytes))
	case q == nil:
		return r.Say("a full send buffer")
	case q.RateBPS > 0 || !slices.Contains(cardQueues, q.Kind):
		return queueName(r.Language(), *q)
	default:
		for _, h := range r.Doc.Host {
			if h.Node == l.Host && h.Interface == q.Interface && h.LinkSpeedBits > 0 {
				return r.Sayf("card %s, %s", q.Interface, unit.BPS.Exact(float64(h.LinkSpeedBits)))
			}
		}
		return r.Sayf("card %s", q.Interface)
	}
}

// queueName names a queue: "tbf on eth0, 50 Mbit/s".
func queueName(l words.Language, q model.Queue) string {
	name := l.Sayf("%s on %s", q.Kind, q.Interface)
	if q.RateBPS == 0 {
		return name
	}
	return l.Join([]string{name, unit.BPS.Exact(float64(q.RateBPS))})
}

// said is the cause of a pacing line.
func said(r table.Row, p model.PacingLine) string {
	switch p.Cause {
	case model.PacingBackpressure:
		return r.Sayf("held back by %s", holder(r, p))
	case model.PacingLate:
		return r.Say("late: the sender gave them up")
	case model.PacingQuiet:
		return r.Say("not sent: the receiver no longer answered")
	}
	return p.Cause // of another version
}

// longestHolder is what made the senders of valid trials wait longest.
func longestHolder(g table.Group) string {
	waited := map[string]float64{}
	for _, r := range table.Usable(g.Rows) {
		for _, l := range r.Flow.Ledger.Pacing {
			if l.Cause == model.PacingBackpressure {
				waited[holder(r, l)] += l.HeldS
			}
		}
	}
	return table.MostFirst(waited)[0]
}

// heldBackBy says what held a group back, with the figure or the line of the ledger that tells.
func heldBackBy(l table.Limit, g table.Group) Finding {
	f := say("limit."+string(l.By), Fact, "limited", g, "limit", limitName(l, g))
	if m, ok := table.FindMetric(l.Proof); ok {
		f = f.with(m.Name, g.Middle(m.Name)) // and no other figure of the place
	}
	if l.Line != nil {
		f = f.with("place", where(*l.Line))
	}
	switch l.By {
	case table.ByPath:
		if l.Line == nil {
			f.Code = "limit.grown"
		}
	case table.ByQueue:
		f = f.with("holder", f.Words["limit"])
	case table.BySender:
		if !f.Has(l.Proof, "") && l.Line == nil {
			f = f.with("why", g.Rows[0].Trial.Why)
		}
	case table.Unproven:
		f = unproven(f, g)
	}
	return f.link(g.Rows[0])
}

// unproven says why a limit is not known, and what would tell.
func unproven(f Finding, g table.Group) Finding {
	f = f.with("target", g.Rows[0].Doc.Plan.Target)
	unplaced, all := Loss{}, 0.0
	for _, l := range Losses(g.Rows) {
		if all += l.Packets; l.Layer == table.Unattributed {
			unplaced = l
		}
	}
	switch {
	case len(table.Usable(g.Rows)) == 0:
		return f.with("why", g.Rows[0].Trial.Why)
	case g.Rows[0].Flow.Protocol == model.TCP:
		return f.with("tcp", "yes")
	case g.Middle("loss_ratio") < table.Lossless && math.IsNaN(g.Middle("sender_cpu_thread_ratio")):
		return f.with("unread", "yes")
	case g.Middle("loss_ratio") < table.Lossless:
		return f.with("idle", "yes")
	case 2*unplaced.Packets >= all:
		d := g.Rows[0].Doc
		if !unplaced.Unexplained() {
			f = f.with("possible", unplaced.Text)
		} else if d.Lab == nil && slices.ContainsFunc(d.Host, func(h model.Host) bool { return !h.Privileged }) {
			f = f.with("unprivileged", "yes")
		}
		return f.with("unplaced", "yes")
	}
	return f.with("lost", "yes")
}

// atLeast reports whether a group shows only that the path carries that much: nothing of it was held back.
func atLeast(l table.Limit, g table.Group) bool {
	switch l.By {
	case table.BySender, table.ByReceiver, table.ByQueue:
		return true
	case table.Unproven:
		return g.Middle("loss_ratio") < table.Lossless
	}
	return false
}

// link adds the rate of the slowest link, and how many receivers have one each.
func (f Finding) link(r table.Row) Finding {
	if n := len(r.Flow.Receivers); n > 1 {
		f = f.with("receivers_count", float64(n))
	}
	return f.with("link_bps", table.LinkRate(r))
}

// beyondRule doubts a rate that is higher than a link on the way carries.
func beyondRule(rows []table.Row) []Finding {
	groups := table.Settled(table.Usable(rows))
	if len(groups) == 0 {
		return nil
	}
	most := largest(groups, "link_ratio")
	if !(most.Middle("link_ratio") > table.OverLink) || most.Rows[0].Doc.Lab == nil {
		return nil
	}
	return []Finding{say("link.beyond", Doubt, "", most, "where", at(most))}
}

var limitNames = map[table.Part]string{table.ByLink: "the link", table.ByRouter: "the router",
	table.BySender: "the sender", table.ByReceiver: "the receiver", table.ByPath: growing,
	table.ByOffer: "the asked rate", table.ByQueue: "the sender's queue", table.ByBuffers: "TCP buffers",
	table.ByControl: "the congestion control", table.ByDead: "streams that carry nothing", table.Unproven: "not known"}

func LimitedBy(g table.Group) string { return limitName(g.Limit(), g) }

// limitName names a limit in a table or a tile, with the line of the ledger that tells: "the router: device ring full".
func limitName(l table.Limit, g table.Group) string {
	in := g.Language()
	name := in.Say(limitNames[l.By])
	switch {
	case l.By == table.ByQueue:
		return longestHolder(g)
	case l.Line == nil || l.By == table.ByLink:
		return name
	case l.By == table.ByPath:
		return where(*l.Line)
	case l.By == table.ByRouter && l.Line.Host != "router":
		name = in.Say(l.Line.Host)
	}
	if why, known := phraseHere(in, l.Line.Layer, l.Line.Cause); known {
		return in.Sayf("%s: %s", name, why)
	}
	return name
}
