package ledger

import (
	"maps"
	"slices"
	"strings"

	"pelt/model"
)

// verdictsBehind lists what a kernel said of the very packets that send() was
// refused.
func (b *book) verdictsBehind(c *claim) (list []model.Evidence) {
	for _, i := range slices.Sorted(maps.Keys(c.verdicts)) {
		s := b.path.sites[i]
		list = append(list, model.Evidence{Counter: "verdict " + s.text(), Host: s.host, Scope: "packet", Unit: "datagram", Role: "confirms", Delta: c.verdicts[i]})
	}
	return list
}

// moved is a counter that a loss moves beside the one that names it.
type moved struct {
	host string
	reading
	always  bool // on every kernel and device: if it did not move, it speaks against the line
	partial bool // it speaks for the line even if it moved less often
}

// support lists the further counters that moved with a line, or should have.
// They never make one: a single packet lost in a backlog moves five.
func (b *book) support(l model.Line) (list []model.Evidence) {
	for _, m := range b.effects(l) {
		if !m.known || slices.ContainsFunc(l.Evidence, func(e model.Evidence) bool { return e.Counter == m.name && e.Host == m.host }) {
			continue
		}
		e := model.Evidence{Counter: m.name, Host: m.host, Scope: m.scope, Unit: m.unit, Role: "confirms",
			Before: m.before, After: m.after, Delta: m.whole}
		most := m.whole
		if m.unit == "skb" || m.unit == "frame" {
			most = times(most, b.in.Segments)
		}
		if most < l.Packets {
			switch {
			case m.always:
				e.Role = "contradicts"
			case m.whole == 0 || !m.partial:
				continue
			}
		}
		list = append(list, e)
	}
	return list
}

// effects is what each fault moved when it was made on purpose, on Linux 6.18.
func (b *book) effects(l model.Line) (all []moved) {
	s, r := b.path.sender, b.path.receiver
	sent := func(always bool, read func(*view) reading) {
		if s != nil && s.Observation != nil {
			all = append(all, moved{s.Name, read(s), always, false})
		}
	}
	came := func(always bool, read func(*view) reading) {
		if r != nil && r.Observation != nil {
			all = append(all, moved{r.Name, read(r), always, false})
		}
	}
	field := func(family, name string) func(*view) reading {
		return func(v *view) reading { return v.table.field(family, name) }
	}
	out := func(name string) func(*view) reading {
		return func(v *view) reading { return v.table.device(v.Out, name) }
	}
	in := func(name string) func(*view) reading {
		return func(v *view) reading { return v.table.device(v.In, name) }
	}
	partly := func(family, name string) {
		if r != nil && r.Observation != nil {
			all = append(all, moved{r.Name, r.table.field(family, name), false, true})
		}
	}
	socket := func() {
		if b.in.SocketKnown {
			came(false, func(*view) reading {
				return reading{name: "SO_MEMINFO drops", scope: "socket", unit: "datagram", whole: b.in.SocketDrops, known: true}
			})
		}
	}
	switch l.Layer {
	case model.LayerSendCall:
		switch l.Cause {
		case "EAGAIN", "EWOULDBLOCK":
			sent(false, field("Udp", "SndbufErrors"))
			sent(false, field("Ip", "OutDiscards"))
		case "EPERM", "EACCES", "NETFILTER_DROP":
			sent(false, field("Ip", "OutDiscards"))
			sent(false, func(v *view) reading { return v.table.outputs })
		case "ENETUNREACH", "EHOSTUNREACH", "IP_OUTNOROUTES":
			sent(false, field("Ip", "OutNoRoutes"))
		}
	case model.LayerSenderQdisc:
		if l.Cause == "TC_EGRESS" {
			sent(false, b.classifier)
		} else {
			sent(false, func(v *view) reading { return v.table.queues(v.Out) })
		}
		sent(false, field("Ip", "OutDiscards"))
		sent(false, field("Udp", "SndbufErrors"))
	case model.LayerSenderDevice:
		sent(false, out("tx_dropped"))
		sent(false, out("tx_errors"))
		if strings.HasPrefix(l.Cause, "NEIGH_") {
			sent(false, field("neighbour", "unresolved_discards"))
		}
	case model.LayerReceiverRing:
		came(false, in("rx_missed_errors"))
		came(false, in("rx_dropped"))
		partly("softnet", "time_squeeze")
		if l.Cause == model.CauseRingFull {
			sent(false, out("tx_dropped"))
			sent(false, field("Ip", "OutDiscards"))
			sent(false, field("Udp", "SndbufErrors"))
		}
	case model.LayerReceiverXDP:
		came(false, func(v *view) reading { return v.table.xdpDrops(v.In) })
	case model.LayerReceiverTC:
		came(false, func(v *view) reading { return v.table.classes(v.In) })
	case model.LayerReceiverBacklog:
		came(true, field("softnet", "dropped"))
		came(false, in("rx_dropped"))
		sent(false, out("tx_dropped"))
		sent(false, field("Ip", "OutDiscards"))
		sent(false, field("Udp", "SndbufErrors"))
	case model.LayerReceiverFilter:
		for _, name := range []string{"drop", "early_drop", "insert_failed"} {
			partly("conntrack", name)
		}
		came(false, func(v *view) reading { return v.table.rules })
		came(false, func(v *view) reading { g, _ := b.ipGap(v); return g })
	case model.LayerReceiverIP:
		for _, e := range ipErrors {
			if e.cause == l.Cause {
				came(true, field("Ip", e.field))
			}
		}
		switch l.Cause {
		case "IP_INHDR":
			came(true, field("Ip", "InHdrErrors"))
		case "IP_RPFILTER":
			came(true, field("TcpExt", "IPReversePathFilter"))
		case "OTHERHOST":
			came(false, in("rx_otherhost_dropped"))
		case "FRAG_REASM_TIMEOUT", model.CauseReassembly:
			came(false, field("Ip", "ReasmTimeout"))
			came(false, field("Ip", "ReasmFails"))
		}
	case model.LayerReceiverUDP:
		switch l.Cause {
		case "NO_SOCKET":
			came(true, field("Udp", "NoPorts"))
		case "UDP_CSUM":
			always := b.in.Broken == 0 // an XDP program finds it before the kernel's UDP could count it
			came(always, field("Udp", "InCsumErrors"))
			came(always, field("Udp", "InErrors"))
		case "SOCKET_FILTER":
			socket()
			came(true, field("Udp", "InErrors"))
		}
	case model.LayerReceiverMemory:
		socket()
		came(false, field("Udp", "MemErrors"))
	case model.LayerReceiverBuffer:
		socket()
		came(true, field("Udp", "RcvbufErrors"))
		came(true, field("Udp", "InErrors"))
	}
	return all
}
