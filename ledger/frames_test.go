package ledger

import (
	"strings"
	"testing"

	"pelt/model"
	"pelt/test/golden"
)

// Frames sent past the sockets, and taken off the device before IP: the device's
// counters tell of the same packets, and are not counted again.
func TestFramesOnTheirWay(t *testing.T) {
	counter := func(name, unit string, n uint64) model.Counter {
		return model.Counter{Name: name, Scope: "device", Unit: unit, After: n, Whole: n, Measure: n}
	}
	var out strings.Builder
	for _, c := range []struct {
		name       string
		cable, one bool   // a virtual cable; one kernel has both ends
		foreign    uint64 // dropped by another program
		elsewhere  uint64 // lost where no counter is
		cause      string // of what the device did not take
	}{
		{"a card", false, false, 0, 0, model.CauseRingFull},
		{"a cable to the next node", true, true, 0, 0, model.CauseRingFull},
		{"a cable out of sight", true, false, 0, 0, model.CauseRingFull},
		{"beside another XDP program", false, false, 5, 0, model.CauseRingFull},
		{"a cable that takes none", true, true, 0, 5, "ENXIO"},
	} {
		boot := "two"
		if c.one {
			boot = "one"
		}
		received := 60 - c.foreign - c.elsewhere
		in := Input{
			Sender: "sender", Receiver: "receiver", Flow: "up", Planned: 100, Attempted: 100, Accepted: 60,
			DurationS: 1, PastSockets: true, Cable: c.cable, Unsent: map[string]uint64{c.cause: 40},
			Received: received, TakenOff: 60 - c.foreign, SocketKnown: true,
			Nodes: []Node{
				{Name: "sender", Out: []string{"eth0"},
					Observation: &model.Observation{Boot: "one", Namespace: 1, Mode: model.DropsOff,
						Counters: []model.Counter{counter("dev.eth0.tx_packets", "skb", 60),
							counter("dev.eth0.tx_dropped", "skb", 40)}}},
				{Name: "receiver", In: []string{"eth0"},
					Observation: &model.Observation{Boot: boot, Namespace: 2, Mode: model.DropsOff,
						Counters: []model.Counter{counter("dev.eth0.rx_packets", "skb", 60),
							counter("ethtool.eth0.rx_queue_0_xdp_drops", "skb", 60),
							counter("Ip.InReceives", "skb", 0)}}},
			},
		}
		tell(t, &out, c.name, in)
	}
	golden.File(t, "testdata/frames.txt", out.String())
}
