package ledger

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
)

var counterNames = []string{
	"Ip.InReceives", "Ip.InDelivers", "Ip.ForwDatagrams", "Ip6.OutForwDatagrams", "Ip.InHdrErrors", "Ip.InAddrErrors", "Ip.InDiscards", "Ip.OutDiscards",
	"Ip.ReasmFails", "Ip.ReasmTimeout", "Ip6.InNoRoutes", "IpExt.InCsumErrors", "Udp.InDatagrams", "Udp.InErrors", "Udp.RcvbufErrors", "Udp6.RcvbufErrors",
	"Udp.SndbufErrors", "Udp.NoPorts", "Udp.InCsumErrors", "Udp.MemErrors", "Udp.OutDatagrams", "TcpExt.IPReversePathFilter", "softnet.dropped", "softnet.time_squeeze",
	"dev.eth0.rx_packets", "dev.eth0.tx_packets", "dev.eth0.rx_dropped", "dev.eth0.tx_dropped", "dev.eth0.tx_errors", "dev.eth0.rx_missed_errors", "dev.eth0.10.rx_fifo_errors",
	"dev.eth0.rx_crc_errors", "dev.eth0.rx_otherhost_dropped", "qdisc.eth0.tbf.1:.drops", "qdisc.eth0.fq.2:.drops", "qdisc.eth0.clsact.ffff:.drops",
	"ethtool.eth0.rx_drops", "ethtool.eth0.rx_queue_0_drops", "ethtool.eth0.rx_queue_0_xdp_drops", "nft.inet.filter.input.5.packets", "nft.inet.filter.output.6.packets",
	"arp_cache.unresolved_discards", "conntrack.drop", "dev.", "qdisc..", "nft", "ethtool.x", "", "dev.lo.rx_packets",
}

func drawCounters(t *rapid.T) []model.Counter {
	count := rapid.OneOf(rapid.Uint64Range(0, 100), rapid.Uint64())
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) model.Counter {
		c := model.Counter{
			Name: rapid.SampledFrom(counterNames).Draw(t,
				"name"), Scope: rapid.SampledFrom([]string{"namespace", "device", "host", "socket", "?"}).Draw(t,
				"scope"),
			Unit: rapid.SampledFrom([]string{"skb", "frame", "datagram", "fragment", "event", ""}).Draw(t,
				"unit"), Before: count.Draw(t, "before"), After: count.Draw(t, "after"),
			Whole: count.Draw(t, "whole"), Measure: count.Draw(t, "measure"), IdleHz: rapid.OneOf(rapid.Just(0.0),
				rapid.Float64Range(0, math.MaxFloat64)).Draw(t, "idle"),
			Reset: rapid.Bool().Draw(t, "reset"),
		}
		c.Measure = min(c.Measure, c.Whole) // see Observation.Clamp
		return c
	}), 0, 30).Draw(t, "counters")
}

var drawMarks = rapid.Custom(func(t *rapid.T) model.Marks {
	var w model.MarksWriter
	for range rapid.IntRange(0, 12).Draw(t, "runs") {
		w.Add(rapid.Uint64Range(0, 120).Draw(t, "from"), rapid.Uint64Range(0, 9).Draw(t, "count"),
			rapid.Uint16Range(0, 7).Draw(t, "mark"))
	}
	m := w.Marks()
	if rapid.IntRange(0, 5).Draw(t, "lie") == 0 {
		m.Packets = rapid.Uint64().Draw(t, "packets")
	}
	if rapid.IntRange(0, 5).Draw(t, "overfull") == 0 {
		m.Unlisted = rapid.OneOf(rapid.Uint64Range(0, 50), rapid.Uint64()).Draw(t, "unlisted")
	}
	if n := len(m.Data); n > 0 && rapid.IntRange(0, 5).Draw(t, "spoil") == 0 {
		m.Data[rapid.IntRange(0, n-1).Draw(t, "at")] ^= rapid.Byte().Draw(t, "bits")
	}
	return m
})

func drawDrops(t *rapid.T) *model.Drops {
	count := rapid.OneOf(rapid.Uint64Range(0, 60), rapid.Uint64())
	d := &model.Drops{Unreadable: count.Draw(t, "unreadable"),
		Overwritten: rapid.Uint64Range(0, 3).Draw(t, "overwritten"), SitesLost: rapid.Uint64Range(0, 1).Draw(t, "lost")}
	d.Sites = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) model.Site {
		s := rapid.SampledFrom(append([]model.Site{{Reason: "FRAG_REASM_TIMEOUT", Namespace: 2, Received: true},
			{Reason: "NEW", Namespace: 0}}, drawnSites...)).Draw(t, "site")
		s.Namespace = rapid.Uint64Range(0, 4).Draw(t, "namespace")
		return s
	}), 0, 7).Draw(t, "sites")
	for range rapid.IntRange(0, 2).Draw(t, "flows") {
		d.Flows = append(d.Flows, model.FlowDrops{Flow: rapid.SampledFrom([]string{"up", "down"}).Draw(t, "flow"),
			Way:     rapid.SampledFrom([]string{"", model.WayAsks}).Draw(t, "way"),
			Streams: rapid.SliceOfN(drawMarks, 0, 3).Draw(t, "streams"),
			Counts: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) model.SiteCount {
				return model.SiteCount{Site: rapid.IntRange(-1, 8).Draw(t, "site"), Packets: count.Draw(t, "packets"),
					Unreadable: count.Draw(t, "unreadable"),
					Warmup:     count.Draw(t, "warmup"), Fragments: count.Draw(t, "fragments")}
			}), 0, 9).Draw(t, "counts")})
	}
	return d
}

// drawInput draws anything that hosts might say, true or not.
func drawInput(t *rapid.T) Input {
	count := rapid.OneOf(rapid.Uint64Range(0, 200), rapid.Uint64())
	errnos := []string{"EAGAIN", "ENOBUFS", "EPERM", "EMSGSIZE", "?"}
	in := Input{
		Sender: "sender", Receiver: "receiver", Flow: "up", Way: rapid.SampledFrom([]string{"",
			model.WayAsks}).Draw(t, "asked way"),
		ICMP: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) model.ICMPErrors {
			return model.ICMPErrors{From: "10.0.1.1", What: "port unreachable", Packets: count.Draw(t, "ICMP errors"),
				Of: []model.Span{{From: count.Draw(t, "quoted"), Count: 1}}}
		}), 0, 2).Draw(t, "ICMP"),
		TCP: rapid.Bool().Draw(t, "TCP"), Planned: count.Draw(t, "planned"), Attempted: count.Draw(t, "attempted"), Accepted: count.Draw(t, "accepted"),
		SendErrors: rapid.MapOfN(rapid.SampledFrom(errnos), count, 0, 4).Draw(t, "errors"),
		Streams:    rapid.SliceOfN(rapid.Uint64Range(0, 150), 0, 3).Draw(t, "streams"),
		Refused: rapid.SliceOfN(drawMarks, 0, 3).Draw(t,
			"refused"), Errnos: rapid.SliceOfN(rapid.SampledFrom(errnos), 0, 4).Draw(t, "errnos"),
		Retried: count.Draw(t, "retried"), Segments: rapid.IntRange(-1, 64).Draw(t, "segments"),
		WarmupSent: count.Draw(t, "warm-up"), WarmupReceived: count.Draw(t, "warm"),
		Received: count.Draw(t, "received"), Late: count.Draw(t, "late"), WrongLength: count.Draw(t, "length"),
		SocketDrops: count.Draw(t, "drops"), SocketKnown: rapid.Bool().Draw(t, "known"), Unread: count.Draw(t,
			"unread"),
		Missing: rapid.SliceOfN(drawMarks, 0, 3).Draw(t, "missing"), MissingKnown: rapid.Bool().Draw(t, "listed"),
		PastSockets: rapid.Bool().Draw(t, "past sockets"), Cable: rapid.Bool().Draw(t, "cable"),
		Unsent: rapid.MapOfN(rapid.SampledFrom([]string{model.CauseRingFull, model.CauseNotRedirected, "ENXIO",
			""}), count, 0, 3).Draw(t, "unsent"),
		TakenOff: count.Draw(t, "taken off"), Broken: count.Draw(t, "broken"), Overrun: count.Draw(t, "overrun"),
		SlotsLate: count.Draw(t, "slots late"), SlotsHeld: count.Draw(t, "slots held"), SendBuffer: rapid.IntRange(0,
			1<<20).Draw(t, "send buffer"),
		Fragments: rapid.IntRange(-1, 45).Draw(t, "fragments"), DurationS: rapid.Float64Range(0, 1e12).Draw(t,
			"seconds"),
	}
	for _, name := range rapid.SampledFrom([][]string{{"sender", "receiver"}, {"sender", "router", "receiver"},
		{"receiver"}, {}, {"x", "x"}}).Draw(t, "nodes") {
		n := Node{Name: name}
		if rapid.IntRange(0, 3).Draw(t, "observed") > 0 {
			n.Observation = &model.Observation{
				Boot: rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "boot"), Namespace: rapid.Uint64Range(0,
					3).Draw(t, "namespace"),
				Mode: rapid.SampledFrom([]model.DropMode{model.DropsSeq, model.DropsCount, model.DropsOff,
					""}).Draw(t, "mode"),
				Counters: drawCounters(t), Unsettled: rapid.Bool().Draw(t, "unsettled"),
			}
			if rapid.Bool().Draw(t, "watched") {
				n.Observation.Drops = drawDrops(t)
			}
		}
		if rapid.Bool().Draw(t, "interfaces") {
			n.In, n.Out = []string{"eth0"}, []string{"eth0"}
		}
		in.Nodes = append(in.Nodes, n)
	}
	return in
}

// Whatever comes in, the account balances, is in order, and is the same again.
func TestAnyInputBalances(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		l := Balance(in)
		agree(t, in, l)
		if again := Balance(in); !reflect.DeepEqual(l, again) {
			t.Fatalf("two accounts of one input:\n%+v\n%+v", l, again)
		}
	})
}

func exact(l model.Ledger) (n uint64) {
	for _, x := range l.Lines {
		if x.Confidence == ExactSeq || x.Confidence == ExactCount {
			n += x.Packets
		}
	}
	return n
}

// Other traffic on the hosts moves their counters; what is exact comes from the
// flow's own packets, so it never becomes more. Only where a queue's counter
// says which place an ENOBUFS came from does a counter lend its certainty.
func TestForeignTrafficMakesNothingSurer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		in.Broken = 0 // a line of some that the program counted and some that a counter bounds is bounded as a whole
		delete(in.SendErrors, "ENOBUFS")
		for i, e := range in.Errnos {
			if e == "ENOBUFS" {
				in.Errnos[i] = "EPERM"
			}
		}
		before := Balance(in)
		for _, n := range in.Nodes {
			if n.Observation == nil {
				continue
			}
			for i := range n.Observation.Counters {
				c := &n.Observation.Counters[i]
				more := rapid.Uint64Range(0, 1000).Draw(t, "foreign")
				c.Whole, c.Measure, c.After = plus(c.Whole, more), plus(c.Measure, more), c.After+more
			}
		}
		after := Balance(in)
		agree(t, in, after)
		if exact(after) > exact(before) {
			t.Fatalf("with foreign traffic\n%s\nwithout\n%s", inWords(after), inWords(before))
		}
	})
}
