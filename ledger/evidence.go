package ledger

import (
	"maps"
	"slices"
	"strings"

	"pelt/model"
)

// verdictsBehind lists the kernel's verdicts on the packets that send() refused.
func (b *book) verdictsBehind(c *claim) (list []model.Evidence) {
	for _, i := range slices.Sorted(maps.Keys(c.verdicts)) {
		s := b.path.sites[i]
		list = append(list, model.Evidence{Counter: "verdict " + s.text(), Host: s.host, Scope: "packet",
			Unit: "datagram", Role: "confirms", Delta: c.verdicts[i]})
	}
	return list
}

// support lists the further counters that moved with a line, or should have.
// They never make one: a single packet lost in a backlog moves five.
func (b *book) support(l model.Line) (list []model.Evidence) {
	host := b.path.receiver
	switch place := layerPlace(l.Layer) - layerPlace(model.LayerNetwork); {
	case place < 0:
		host = b.path.sender
	case place == 0:
		host = b.path.named(l.Host)
	}
	c := Of(l.Layer, l.Cause)
	moves := c.moves
	if own, _, _ := strings.Cut(c.counts, " "); moves == "" && strings.Contains(own, ".") {
		moves = own + "!"
	}
	list = b.supportBy(list, l, host, moves)
	if host != b.path.sender {
		list = b.supportBy(list, l, b.path.sender, c.sender)
	}
	return list
}

// supportBy adds counters of a node. A counter speaks for a line if it moved as often; with ? also if it
// moved less often. With ! it is on every kernel and device, and speaks against the line if it did not.
func (b *book) supportBy(list []model.Evidence, l model.Line, v *view, counters string) []model.Evidence {
	if v == nil || v.Observation == nil {
		return list
	}
	for counter := range strings.FieldsSeq(counters) {
		r := b.counted(v, strings.TrimRight(counter, "!?"))
		known := func(e model.Evidence) bool { return e.Counter == r.name && e.Host == v.Name }
		if !r.known || slices.ContainsFunc(l.Evidence, known) || slices.ContainsFunc(list, known) {
			continue
		}
		e := r.evidence(v.Name, "confirms")
		most := r.whole
		if r.unit == "skb" || r.unit == "frame" {
			most = times(most, b.in.Segments)
		}
		always := strings.HasSuffix(counter, "!")
		if l.Cause == "UDP_CSUM" && b.in.Broken > 0 {
			always = false // an XDP program found them before the kernel's UDP could count them
		}
		switch {
		case most >= l.Packets:
		case always:
			e.Role = "contradicts"
		case r.whole == 0 || !strings.HasSuffix(counter, "?"):
			continue
		}
		list = append(list, e)
	}
	return list
}

// counters adds up counters of a node; those behind a minus count packets that have other causes.
func (b *book) counters(v *view, names string) (all reading) {
	for name := range strings.FieldsSeq(names) {
		if others, less := strings.CutPrefix(name, "-"); less {
			all = all.less(b.counted(v, others))
		} else {
			all = all.add(b.counted(v, name))
		}
	}
	return all
}

// counted reads a counter of a node by its name: FAMILY.NAME of its namespace, a field of its
// devices in travel order, or one of those that are put together here, of the counters in brackets.
func (b *book) counted(v *view, name string) reading {
	t := &v.table
	name, _, _ = strings.Cut(name, "(")
	family, field, ofNamespace := strings.Cut(name, ".")
	switch {
	case name == "ring":
		return t.ring(v.In)
	case name == "backlog":
		return b.backlog(v)
	case name == "qdisc":
		return t.queues(v.Out)
	case name == "policed-input":
		return t.policers.capped(t.classes(v.In))
	case name == "policed-output":
		return t.policers.capped(b.classifier(v))
	case name == "redirected-input": // policers and redirects may count the same drops
		all := t.classes(v.In)
		return t.redirects.capped(all.less(t.policers.capped(all)))
	case name == "redirected-output":
		all := b.classifier(v)
		return t.redirects.capped(all.less(t.policers.capped(all)))
	case name == "queue":
		return b.queueDrops(v)
	case name == "tc-output":
		return b.classifier(v)
	case name == "tc-input":
		return t.classes(v.In)
	case name == "nft" && v == b.path.receiver:
		return t.rules
	case name == "nft" && v == b.path.sender:
		return t.outputs
	case name == "nft":
		return t.rules.add(t.outputs)
	case name == "xdp":
		return b.xdpDrops(v)
	case name == "ip-gap":
		gap, _ := b.ipGap(v)
		return gap
	case name == uncountedByIP:
		gap, _ := b.ipGap(v)
		return gap.less(v.ipErrors)
	case name == "socket":
		return reading{name: "SO_MEMINFO drops", scope: "socket", unit: "datagram", whole: b.in.SocketDrops,
			known: b.in.SocketKnown}
	case ofNamespace:
		return t.moved(family, field)
	case strings.HasPrefix(name, "tx_"):
		return t.device(v.Out, name)
	}
	return t.device(v.In, name)
}

// Reads reports whether a row of the table of causes names a counter of a kernel's namespace or device, as in
// "Udp6.NoPorts" or "rx_dropped".
func Reads(counter string) bool {
	if family, name, ok := strings.Cut(counter, "."); ok {
		counter = families[family] + "." + name
	}
	return slices.ContainsFunc(causes[:], func(c Cause) bool {
		names := strings.FieldsFunc(c.counts+" "+c.moves+" "+c.sender, func(r rune) bool {
			return strings.ContainsRune(" (,)-!?", r)
		})
		return slices.Contains(names, counter)
	})
}
