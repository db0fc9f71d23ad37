package view

import (
	"math"
	"slices"
	"strings"

	"pelt/finding"
	"pelt/model"
	"pelt/table"
)

func paths(rows []table.Row) []Section {
	return eachFlow(rows, func(g table.Group, of string) Section {
		p := pathOf(g)
		p.Title, p.Flow = g.Language().Names(g.Say(p.Title), of), of
		return p
	})
}

// Paths show where the packets of a document's valid trials went, flow by flow.
func Paths(d *model.Document) (out []Path) {
	for _, s := range paths(table.Rows(d)) {
		out = append(out, s.(Path))
	}
	return out
}

func ledgers(rows []table.Row) []Section {
	return eachFlow(rows, func(g table.Group, of string) Section {
		return ledgerOf(g.Language().Names(everyPacket(g), of), g)
	})
}

// mostly is where most of some rows' packets were lost.
func mostly(rows []table.Row) string {
	for _, l := range finding.Losses(rows) {
		return l.Text
	}
	return ""
}

// accountOf shows where the packets of one flow of one trial went.
func accountOf(r table.Row) []Section {
	g := table.Group{Rows: []table.Row{r}}
	return []Section{pathOf(g), ledgerOf(g.Language().Names(everyPacket(g), g.Say(r.Flow.Name)), g)}
}

// everyPacket names the account of a flow.
func everyPacket(g table.Group) string {
	if g.Rows[0].Flow.Protocol == model.TCP {
		return g.Say("Every segment")
	}
	return g.Say("Every packet")
}

// eachFlow makes a section of each accounted flow; of is its name, if there are several.
func eachFlow(rows []table.Row, section func(g table.Group, of string) Section) (out []Section) {
	flows := table.By(table.Accounted(rows), table.KeyOf("flow"))
	for _, g := range flows {
		of := ""
		if len(flows) > 1 {
			of = g.Name()
		}
		if g.Sum("attempted_packets") > 0 {
			out = append(out, section(g, of))
		}
	}
	return out
}

// pathOf places the losses of one flow on the nodes and links that it passed.
func pathOf(g table.Group) Path {
	f := g.Rows[0].Flow
	in := g.Language()
	p := Path{Language: in, Title: "Where the packets went", Nodes: Nodes(g.Rows[0].Doc, f.From, f.To),
		Sent: uint64(g.Sum("attempted_packets")), Received: uint64(g.Sum("received_packets"))}
	t := g.Rows[0].Trial
	runs := t.State == model.Valid && t.Why.Has(model.StillOpen)
	for _, l := range finding.Losses(g.Rows) {
		node, link := p.place(l.Layer, l.Host)
		if runs && l.Layer == table.Unattributed {
			l.Text = in.Say("not yet explained") // verdicts come later than counts
		}
		p.Losses = append(p.Losses, Loss{Node: node, Link: link, Packets: uint64(l.Packets), Text: l.Text})
	}
	p.Nodes = in.SayAll(p.Nodes) // once each loss has its place, which names of files tell
	return p
}

const mostNodes = 6

// Nodes are the nodes between two ends, in the order in which the flow passes them.
func Nodes(d *model.Document, from, to string) []string {
	nodes := []string{from, to}
	switch {
	case d.Lab != nil && len(d.Lab.Nodes) > 1:
		nodes = slices.Clone(d.Lab.Nodes)
	case d.Router != nil:
		nodes = []string{from, "router", to}
	}
	if nodes[0] == to && nodes[len(nodes)-1] == from {
		slices.Reverse(nodes)
	}
	if len(nodes) > mostNodes { // a star: its receivers are one place
		nodes = []string{from, "receivers"}
	}
	return nodes
}

// place finds the node, or the link behind it, where packets ended; -1 if that is not known.
func (p Path) place(layer, host string) (node int, link bool) {
	last := len(p.Nodes) - 1
	switch {
	case layer == table.Unattributed:
		return -1, false
	case strings.HasPrefix(layer, "receiver-"), layer == model.LayerApplication:
		return last, false
	case strings.HasPrefix(layer, "send"):
		return 0, false
	}
	if i := slices.Index(p.Nodes, host); i >= 0 {
		return i, false
	}
	for i := range last {
		a, b := p.Nodes[i], p.Nodes[i+1]
		if host == "link "+a+"-"+b || host == "link "+b+"-"+a {
			return i, true
		}
	}
	if last == 1 { // there is one way between them
		return 0, true
	}
	return -1, false
}

// ledgerOf accounts for all packets of a group's valid trials: attempted = received + lines + unattributed.
func ledgerOf(title string, g table.Group) Table {
	in := g.Language()
	attempted, unknown, received, ofLosses := "Attempted", in.Say("Unexplained"), "Received", "Of losses"
	if g.Rows[0].Flow.Protocol == model.TCP {
		attempted, unknown, received, ofLosses = "Sent", in.Say("Sent again, not known to be lost"), "Sent once",
			"Of sent again"
	}
	t := listing(title, "cause What", "packets_count Packets", "share_ratio Of all", "loss_share_ratio "+ofLosses,
		"confidence Known from", "evidence Evidence")
	losses, sent, unattributed := finding.Losses(g.Rows), g.Sum("attempted_packets"), 0.0
	lost := math.NaN() // of one cause the share says nothing
	if len(losses) > 1 {
		lost = g.Sum("lost_packets")
	}
	add := func(cause string, packets float64, tone Tone, confidence, evidence string) {
		share := Cell{Value: packets / lost, Tone: tone}
		if tone == Plain {
			share.Value = math.NaN()
		}
		t.add(cause, Cell{Value: packets, Tone: tone}, Cell{Value: packets / sent, Tone: tone}, share, confidence,
			evidence)
	}
	add(attempted, sent, Plain, "", "")
	for _, l := range losses {
		if l.Layer == table.Unattributed {
			if unattributed = l.Packets; !l.Unexplained() {
				unknown = in.Names(unknown, l.Text)
			}
			continue
		}
		var counters, confidence []string
		for _, r := range l.Rows {
			for _, e := range r.Line.Evidence {
				if name := in.Say(finding.CounterName(e.Counter)); r.Valid() && e.Role != model.RoleFact &&
					!slices.Contains(counters, name) {
					counters = append(counters, name)
				}
			}
			if known := finding.KnownFrom(in, r.Line.Confidence); r.Line.Packets > 0 &&
				!slices.Contains(confidence, known) {
				confidence = append(confidence, known)
			}
		}
		add(l.Text, l.Packets, Bad, in.Join(confidence), in.Join(counters))
	}
	tone := Muted
	if unattributed > 0 {
		tone = Bad
	}
	add(unknown, unattributed, tone, "", "")
	add(received, g.Sum("received_packets"), Plain, "", "")
	return t
}
