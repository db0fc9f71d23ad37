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

// effects is what each fault moved beside the counter that names it when it was made on
// purpose, on Linux 6.18: by layer and causes, of which none fit all, at the receiver, or a line's
// own host between the ends, and at the sender. A counter speaks for a line if it moved as often; with ? also if it
// moved less often. With ! it is on every kernel and device, and speaks against the line if it did not.
var effects = [...]struct{ layer, causes, receiver, sender string }{
	{model.LayerSendCall, "EAGAIN EWOULDBLOCK", "", "Udp.SndbufErrors Ip.OutDiscards"},
	{model.LayerSendCall, "EPERM EACCES NETFILTER_DROP", "", "Ip.OutDiscards nft-output"},
	{model.LayerSendCall, "ENETUNREACH EHOSTUNREACH IP_OUTNOROUTES", "", "Ip.OutNoRoutes"},
	{model.LayerSenderQdisc, "TC_EGRESS", "", "tc-output"},
	{model.LayerSenderQdisc, "", "", "qdisc Ip.OutDiscards Udp.SndbufErrors"},
	{model.LayerSenderDevice, "", "", "tx_dropped tx_errors"},
	{model.LayerSenderDevice, "NEIGH_QUEUEFULL NEIGH_FAILED NEIGH_DEAD NEIGH_CREATEFAIL NEIGH_HH_FILLFAIL", "",
		"neighbour.unresolved_discards"},
	{model.LayerNetwork, "NETFILTER_DROP", "nft-forward", ""},
	{model.LayerReceiverRing, "", "rx_missed_errors rx_dropped softnet.time_squeeze?", ""},
	{model.LayerReceiverRing, model.CauseRingFull, "", "tx_dropped Ip.OutDiscards Udp.SndbufErrors"},
	{model.LayerReceiverXDP, "", "xdp", ""},
	{model.LayerReceiverTC, "", "tc-input", ""},
	{model.LayerReceiverBacklog, "", "softnet.dropped! rx_dropped", "tx_dropped Ip.OutDiscards Udp.SndbufErrors"},
	{model.LayerReceiverFilter, "",
		"conntrack.drop? conntrack.early_drop? conntrack.insert_failed? nft-input ip-gap", ""},
	{model.LayerReceiverIP, "IP_INADDRERRORS", "Ip.InAddrErrors!", ""},
	{model.LayerReceiverIP, "IP_INNOROUTES", "Ip.InNoRoutes!", ""},
	{model.LayerReceiverIP, "IP_NOPROTO", "Ip.InUnknownProtos!", ""},
	{model.LayerReceiverIP, "PKT_TOO_SMALL", "Ip.InTruncatedPkts!", ""},
	{model.LayerReceiverIP, "IP_CSUM", "Ip.InCsumErrors!", ""},
	{model.LayerReceiverIP, model.CauseIPDiscard, "Ip.InDiscards!", ""},
	{model.LayerReceiverIP, "IP_INHDR", "Ip.InHdrErrors!", ""},
	{model.LayerReceiverIP, "IP_RPFILTER", "TcpExt.IPReversePathFilter!", ""},
	{model.LayerReceiverIP, "OTHERHOST", "rx_otherhost_dropped", ""},
	{model.LayerReceiverIP, "FRAG_REASM_TIMEOUT " + model.CauseReassembly, "Ip.ReasmTimeout Ip.ReasmFails", ""},
	{model.LayerReceiverUDP, "NO_SOCKET", "Udp.NoPorts!", ""},
	{model.LayerReceiverUDP, "UDP_CSUM", "Udp.InCsumErrors! Udp.InErrors!", ""},
	{model.LayerReceiverUDP, "SOCKET_FILTER", "socket Udp.InErrors!", ""},
	{model.LayerReceiverMemory, "", "socket Udp.MemErrors", ""},
	{model.LayerReceiverBuffer, "", "socket Udp.RcvbufErrors! Udp.InErrors!", ""},
}

// support lists the further counters that moved with a line, or should have.
// They never make one: a single packet lost in a backlog moves five.
func (b *book) support(l model.Line) (list []model.Evidence) {
	for _, e := range effects {
		causes := strings.Fields(e.causes)
		if e.layer != l.Layer || len(causes) > 0 && !slices.Contains(causes, l.Cause) {
			continue
		}
		host := b.path.receiver
		if l.Layer == model.LayerNetwork {
			host = b.path.named(l.Host)
		}
		for _, end := range []struct {
			v        *view
			counters string
		}{{host, e.receiver}, {b.path.sender, e.sender}} {
			if end.v == nil || end.v.Observation == nil {
				continue
			}
			for _, counter := range strings.Fields(end.counters) {
				list = b.supportBy(list, l, end.v, counter)
			}
		}
	}
	return list
}

// supportBy adds one counter of an end.
func (b *book) supportBy(list []model.Evidence, l model.Line, v *view, counter string) []model.Evidence {
	name := strings.TrimRight(counter, "!?")
	r := b.counted(v, name)
	known := func(e model.Evidence) bool { return e.Counter == r.name && e.Host == v.Name }
	if !r.known || slices.ContainsFunc(l.Evidence, known) || slices.ContainsFunc(list, known) {
		return list
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
		return list
	}
	return append(list, e)
}

// counted reads a counter of a node by its name: FAMILY.NAME of its namespace, a field of its
// devices in travel order, or one of those that are put together here.
func (b *book) counted(v *view, name string) reading {
	t := &v.table
	family, field, ofNamespace := strings.Cut(name, ".")
	switch {
	case name == "qdisc":
		return t.queues(v.Out)
	case name == "tc-output":
		return b.classifier(v)
	case name == "tc-input":
		return t.classes(v.In)
	case name == "nft-output":
		return t.outputs
	case name == "nft-input":
		return t.rules
	case name == "nft-forward":
		return t.rules.add(t.outputs)
	case name == "xdp":
		return t.xdpDrops(v.In)
	case name == "ip-gap":
		gap, _ := b.ipGap(v)
		return gap
	case name == "socket":
		return reading{name: "SO_MEMINFO drops", scope: "socket", unit: "datagram", whole: b.in.SocketDrops,
			known: b.in.SocketKnown}
	case ofNamespace:
		return t.field(family, field)
	case strings.HasPrefix(name, "tx_"):
		return t.device(v.Out, name)
	}
	return t.device(v.In, name)
}
