package ledger

import (
	"testing"

	"pelt/model"
)

// What two hosts tell of a meeting of which all nine packets one way were lost. Nothing was measured after it.
func TestMeetings(t *testing.T) {
	forbidden := func(in *Input, way string, n uint64) { // at the receiver, by verdict
		in.Nodes[1].Observation.Drops = &model.Drops{Sites: []model.Site{filter}, Flows: []model.FlowDrops{
			{Flow: "up", Counts: []model.SiteCount{{Packets: 90}}}, {Flow: "up", Way: way,
				Counts: []model.SiteCount{{Packets: n}}}}}
	}
	refused := model.ICMPErrors{From: "10.0.1.1", What: "port unreachable", Packets: 2}
	for _, c := range []struct {
		name   string
		change func(in *Input)
		want   string
	}{
		{"a verdict is about the packets of its way", func(in *Input) { forbidden(in, model.WayAsks, 9) },
			"receiver-filter@receiver/NETFILTER_DROP=9(exact-count) lost=9 rest=0"},
		{"verdicts about the answers or the test packets are not about what was asked",
			func(in *Input) { forbidden(in, model.WayAnswers, 9) },
			"network@/wire/DUT (by elimination)=9(inferred) lost=9 rest=0"},
		{"two of them arrived", func(in *Input) {
			in.Received = 2
			forbidden(in, model.WayAsks, 7)
		}, "receiver-filter@receiver/NETFILTER_DROP=7(exact-count) lost=7 rest=0"},
		{"counters tell, though no part was measured", func(in *Input) {
			unwatched(in)
			add(&in.Nodes[1], 9, "nft.inet.filter.input.5.packets")
			in.Nodes[1].Observation.Counters[0].Measure = 0
			devices(in, 20, 11) // which others use, too
		}, "receiver-filter@receiver/NETFILTER_DROP=9(bounded) lost=9 rest=0"},
		{"the sender's system refused them", func(in *Input) {
			in.SendErrors = map[string]uint64{"EPERM": 9}
			in.Accepted = 0
		}, "send-call@sender/EPERM=9(exact-count) lost=9 rest=0"},
		{"a few ICMP errors stand for all that nobody else saw",
			func(in *Input) { in.ICMP = []model.ICMPErrors{refused} },
			"network@10.0.1.1/icmp: port unreachable=9(bounded)[2, 0 over] lost=9 rest=0"},
		{"what a kernel saw itself goes before ICMP errors", func(in *Input) {
			forbidden(in, model.WayAsks, 9)
			in.ICMP = []model.ICMPErrors{refused}
		}, "receiver-filter@receiver/NETFILTER_DROP=9(exact-count) lost=9 rest=0"},
		{"a refusal is known better than what others may have moved", func(in *Input) {
			unwatched(in)
			add(&in.Nodes[1], 9, "Udp.NoPorts")
			in.ICMP = []model.ICMPErrors{refused}
		}, "network@10.0.1.1/icmp: port unreachable=9(bounded)[2, 0 over] lost=9 rest=0"},
		{"neighbours that other packets of the machine sought in vain", func(in *Input) {
			unwatched(in)
			add(&in.Nodes[0], 9, "arp_cache.unresolved_discards")
		}, "lost=9 rest=9"},
		{"nobody knows", unwatched, "lost=9 rest=9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := twoHosts(100)
			in.Way, in.Planned, in.Attempted, in.Accepted, in.Received = model.WayAsks, 0, 9, 9, 0
			in.Streams, in.Missing, in.MissingKnown, in.SocketKnown, in.SocketDrops = nil, nil, false, false, 0
			c.change(&in)
			l := Balance(in)
			agree(t, in, l)
			if got := words(l); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
