package ledger

import (
	"strings"
	"testing"

	"pelt/model"
	"pelt/test/golden"
)

// TestMeetings: two hosts tell of a meeting of which all nine packets one way were lost. Nothing was measured after it.
// What the account makes of it stands in the golden file.
func TestMeetings(t *testing.T) {
	forbidden := func(in *Input, way string, n uint64) { // at the receiver, by verdict
		in.Nodes[1].Observation.Drops = &model.Drops{Sites: []model.Site{filter}, Flows: []model.FlowDrops{
			{Flow: "up", Counts: []model.SiteCount{{Packets: 90}}}, {Flow: "up", Way: way,
				Counts: []model.SiteCount{{Packets: n}}}}}
	}
	refused := model.ICMPErrors{From: "10.0.1.1", What: "port unreachable", Packets: 2}
	var out strings.Builder
	for _, c := range []struct {
		name   string
		change func(in *Input)
	}{
		{"a verdict is about the packets of its way", func(in *Input) { forbidden(in, model.WayAsks, 9) }},
		{"verdicts about the answers or the test packets are not about what was asked",
			func(in *Input) { forbidden(in, model.WayAnswers, 9) }},
		{"two of them arrived", func(in *Input) {
			in.Received = 2
			forbidden(in, model.WayAsks, 7)
		}},
		{"counters tell, though no part was measured", func(in *Input) {
			unwatched(in)
			add(&in.Nodes[1], 9, "nft.inet.filter.input.5.packets")
			in.Nodes[1].Observation.Counters[0].Measure = 0
			devices(in, 20, 11) // which others use, too
		}},
		{"the sender's system refused them", func(in *Input) {
			in.SendErrors = map[string]uint64{"EPERM": 9}
			in.Accepted = 0
		}},
		{"a few ICMP errors stand for all that nobody else saw",
			func(in *Input) { in.ICMP = []model.ICMPErrors{refused} }},
		{"what a kernel saw itself goes before ICMP errors", func(in *Input) {
			forbidden(in, model.WayAsks, 9)
			in.ICMP = []model.ICMPErrors{refused}
		}},
		{"a refusal is known better than what others may have moved", func(in *Input) {
			unwatched(in)
			add(&in.Nodes[1], 9, "Udp.NoPorts")
			in.ICMP = []model.ICMPErrors{refused}
		}},
		{"neighbours that other packets of the machine sought in vain", func(in *Input) {
			unwatched(in)
			add(&in.Nodes[0], 9, "arp_cache.unresolved_discards")
		}},
		{"multicasts for others are no answers lost", func(in *Input) {
			unwatched(in)
			add(&in.Nodes[1], 12, "Ip.InReceives")
			add(&in.Nodes[1], 4, "Ip.InDelivers")
			add(&in.Nodes[1], 8, "Ip6.InMcastPkts")
		}},
		{"nobody knows", unwatched},
	} {
		in := twoHosts(100)
		in.Way, in.Planned, in.Attempted, in.Accepted, in.Received = model.WayAsks, 0, 9, 9, 0
		in.Streams, in.Missing, in.MissingKnown, in.SocketKnown, in.SocketDrops = nil, nil, false, false, 0
		c.change(&in)
		tell(t, &out, c.name, in)
	}
	golden.File(t, "testdata/meetings.txt", out.String())
}
