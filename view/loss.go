package view

import (
	"slices"
	"strings"

	"pelt/finding"
	"pelt/model"
	"pelt/table"
)

// accountOf adds up where the packets of a group's valid trials ended, in travel order.
func accountOf(g table.Group) []model.Line {
	var out []model.Line
	keys := []table.Key{table.KeyOf("layer"), table.KeyOf("cause"), table.KeyOf("host"), table.KeyOf("confidence")}
	for _, l := range table.By(table.Lines(g.Rows), keys...) {
		n := l.Sum("ended_packets")
		if n == 0 {
			continue
		}
		first := l.Rows[0].Line
		line := model.Line{Layer: first.Layer, Host: first.Host, Cause: first.Cause, Confidence: first.Confidence,
			Packets: uint64(n), Evidence: []model.Evidence{}}
		for _, r := range l.Rows {
			if r.Valid() {
				line.Evidence = append(line.Evidence, r.Line.Evidence...)
			}
		}
		out = append(out, line)
	}
	return out
}

// paths shows for each flow of a run where its packets ended.
func paths(rows []table.Row) []Section {
	var out []Section
	flows := table.By(rows, table.KeyOf("flow"))
	for _, g := range flows {
		if g.Sum("attempted_packets") == 0 || g.Rows[0].Flow.Protocol != model.UDP {
			continue
		}
		p := pathOf(g)
		if len(flows) > 1 {
			p.Title += ", " + g.Name()
		}
		out = append(out, p)
	}
	return out
}

// pathOf places the losses of one flow on the nodes and links that it passed.
func pathOf(g table.Group) Path {
	f := g.Rows[0].Flow
	p := Path{Title: "Where the packets went", Nodes: nodesOf(g.Rows[0].Doc, f.From, f.To),
		Sent: uint64(g.Sum("attempted_packets")), Received: uint64(g.Sum("received_packets"))}
	for _, l := range finding.Losses(g.Rows) {
		node, link := p.place(l.Layer, l.Host)
		p.Losses = append(p.Losses, Loss{Node: node, Link: link, Packets: uint64(l.Packets), Text: l.Text})
	}
	return p
}

// mostNodes is how many nodes a picture of a path has at most.
const mostNodes = 6

// nodesOf are the nodes between two ends, in the order in which the flow passes them.
func nodesOf(d *model.Document, from, to string) []string {
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

// place finds the node, or the link behind it, where packets ended.
func (p Path) place(layer, host string) (node int, link bool) {
	last := len(p.Nodes) - 1
	switch {
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
	return max(last-1, 0), true
}

// ledgerOf accounts for all packets of a group's valid trials: attempted = received + lines
// + unattributed.
func ledgerOf(title string, g table.Group) Table {
	t := listing(title, "place Place", "cause Cause", "packets_count Packets", "share_ratio Share",
		"confidence Confidence", "evidence Evidence")
	sent, unattributed := g.Sum("attempted_packets"), 0.0
	add := func(place, cause string, packets float64, tone Tone, confidence, evidence string) {
		t.add(place, cause, Cell{Value: packets, Tone: tone}, Cell{Value: packets / sent, Tone: tone}, confidence,
			evidence)
	}
	add("Attempted", "", sent, Plain, "", "")
	for _, l := range accountOf(g) {
		if l.Layer == table.Unattributed {
			unattributed += float64(l.Packets)
			continue
		}
		var counters []string
		for _, e := range l.Evidence {
			if !slices.Contains(counters, e.Counter) {
				counters = append(counters, e.Counter)
			}
		}
		add(strings.TrimSuffix(l.Layer+", "+l.Host, ", "), model.Phrase(l.Layer, l.Cause, l.Host), float64(l.Packets),
			Bad, l.Confidence, strings.Join(counters, ", "))
	}
	tone := Muted
	if unattributed > 0 {
		tone = Bad
	}
	add("Unattributed", "", unattributed, tone, "", "")
	add("Received", "", g.Sum("received_packets"), Plain, "", "")
	return t
}
