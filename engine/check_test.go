package engine

import (
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"pelt/model"
)

// oneField is how an error names what is out of range.
var oneField = regexp.MustCompile(`^order\.[a-z_.]+: [^\n]+$`)

func TestOrderCheck(t *testing.T) {
	good := func() Order {
		return Order{
			Flow: model.Flow{Name: "up", Protocol: model.UDP, From: "sender", To: "receiver", PayloadBytes: 64,
				Streams: 1},
			Timing: model.Timing{MeasureSeconds: 1}, Role: Send, Peer: netip.MustParseAddr("127.0.0.1"), Ports: []uint16{9},
			Trial: 1, Key: make([]byte, KeyBytes), CPU: -1,
		}
	}
	tcp := func(o *Order) { o.Flow.Protocol = model.TCP }
	if err := good().Check(); err != nil {
		t.Fatalf("a good order: %v", err)
	}
	for _, c := range []struct {
		name   string
		change func(*Order)
	}{
		{"key", func(o *Order) { o.Key = o.Key[1:] }},
		{"core", func(o *Order) { o.CPU = -2 }},
		{"long name", func(o *Order) { o.Flow.Name = strings.Repeat("x", 256) }},
		{"listens to a peer", func(o *Order) { o.Listen = true }},
		{"a group", func(o *Order) { o.Peer = netip.MustParseAddr("224.0.0.1") }},
		{"everybody", func(o *Order) { o.Peer = netip.MustParseAddr("::ffff:255.255.255.255") }},
		{"peer of another family", func(o *Order) { o.Flow.Family = 6 }},
		{"record of a sender", func(o *Order) { o.Record = &model.RecordID{} }},
		{"flood as survey", func(o *Order) { o.Survey = true }},
		{"negative drain", func(o *Order) { o.Timing.DrainSeconds = -1 }},
		{"trial number", func(o *Order) { o.Trial = WarmupBit }},
		{"no streams", func(o *Order) { o.Flow.Streams = 0 }},
		{"too many streams", func(o *Order) { o.Flow.Streams = 129 }},
		{"no peer", func(o *Order) { o.Peer = netip.Addr{} }},
		{"source of IPv6, peer of IPv4",
			func(o *Order) { o.Flow.SourceAddresses = []netip.Addr{netip.IPv6Loopback()} }},
		{"source of IPv4, peer of IPv6", func(o *Order) {
			o.Peer, o.Flow.SourceAddresses = netip.IPv6Loopback(), []netip.Addr{o.Peer}
		}},
		{"source ports beyond 65535", func(o *Order) { o.Flow.SourcePort, o.Flow.Streams, o.Ports = 65535, 2, []uint16{1, 2} }},
		{"small payload", func(o *Order) { o.Flow.PayloadBytes = 15 }},
		{"large payload", func(o *Order) { o.Flow.PayloadBytes = 65508 }},
		{"no write", func(o *Order) { tcp(o); o.Flow.PayloadBytes = 0 }},
		{"large write", func(o *Order) { tcp(o); o.Flow.PayloadBytes = 1 << 30 }},
		{"too many segments", func(o *Order) { o.Flow.Segments = 65 }},
		{"segments too long", func(o *Order) { o.Flow.Segments, o.Flow.PayloadBytes = 64, 1024 }},
		{"negative segments", func(o *Order) { o.Flow.Segments = -1 }},
		{"send buffer", func(o *Order) { o.Flow.SendBuffer = model.MaxSocketBuffer + 1 }},
		{"receive buffer", func(o *Order) { o.Flow.ReceiveBuffer = 1 }},
		{"negative DSCP", func(o *Order) { o.Flow.DSCP = -1 }},
		{"negative burst", func(o *Order) { o.Flow.Burst = -1 }},
		{"no time", func(o *Order) { o.Timing.MeasureSeconds = 0 }},
		{"endless time", func(o *Order) { o.Timing.MeasureSeconds = 1e18 }},
		{"negative warm-up", func(o *Order) { o.Timing.WarmupSeconds = -1 }},
		{"listening probe", func(o *Order) { o.Role, o.Listen = Probe, true }},
		{"dialing echo", func(o *Order) { o.Role = Echo }},
		{"probe by TCP", func(o *Order) { tcp(o); o.Role = Probe }},
		{"unknown role", func(o *Order) { o.Role = "dance" }},
	} {
		o := good()
		c.change(&o)
		if err := o.Check(); err == nil || !oneField.MatchString(err.Error()) {
			t.Errorf("%s: %v; want one line that names the field", c.name, err)
		}
	}
}
