package model

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/unit"
)

func TestPlanCheck(t *testing.T) {
	nan := math.NaN()
	flow := func(f func(*Flow)) func(*Plan) { return func(p *Plan) { f(&p.Flows[0]) } }
	factor := func(knob string, levels ...Value) func(*Plan) {
		return func(p *Plan) { p.Factors = []Factor{{knob, levels}} }
	}
	for name, c := range map[string]struct {
		change func(*Plan)
		want   string // field: start of the text; "" is no error
	}{
		"good":                {nil, ""},
		"no factors":          {func(p *Plan) { p.Factors = nil }, ""},
		"format":              {func(p *Plan) { p.Format = "pelt/plan/3" }, `format: is "pelt/plan/3"`},
		"no target":           {func(p *Plan) { p.Target = "" }, "target: want HOST"},
		"target of two words": {func(p *Plan) { p.Target = "a b" }, "target: want HOST"},
		"target with escapes": {func(p *Plan) { p.Target = "a\x1b[2J" }, "target: want HOST"},
		"command":             {func(p *Plan) { p.Command = "a\tb" }, "command: want a short word"},
		"name":                {flow(func(f *Flow) { f.Name = "\u202e" }), "flows: want a short name"},
		"node":                {func(p *Plan) { p.Links = []Link{{Node: strings.Repeat("x", 300)}} }, "links[0].node: want a short name"},
		"links without lab":   {func(p *Plan) { p.Target, p.Links = "host", []Link{{Rate: 1e9}} }, "links: only a lab"},
		"link":                {func(p *Plan) { p.Links = []Link{{}, {LossRatio: 2}} }, "links[1].loss_ratio: want 0 % to 100 %, not 200 %"},
		"link NaN":            {func(p *Plan) { p.Links = []Link{{DelaySeconds: nan}} }, "links[0].delay_s: want 0 s to 1 min, not NaN"},
		"no flows":            {func(p *Plan) { p.Flows = nil }, "flows: want 1 to 16"},
		"same flow twice":     {func(p *Plan) { p.Flows = append(p.Flows, p.Flows[0]) }, `flows: "up" stands twice`},
		"protocol":            {flow(func(f *Flow) { f.Protocol = "sctp" }), "protocol: want udp or tcp"},
		"ends":                {flow(func(f *Flow) { f.To = f.From }), "flows: want two different ends"},
		"payload 15":          {flow(func(f *Flow) { f.PayloadBytes = 15 }), "payload_bytes: a UDP payload is 16 to 65507 B, not 15"},
		"payload 65508":       {flow(func(f *Flow) { f.PayloadBytes = 65508 }), "payload_bytes: a UDP"},
		"write of 0":          {flow(func(f *Flow) { f.Protocol, f.PayloadBytes = TCP, 0 }), "payload_bytes: a TCP write"},
		"no streams":          {flow(func(f *Flow) { f.Streams = 0 }), "streams: want 1 to 128"},
		"family":              {flow(func(f *Flow) { f.Family = 5 }), "family: want 4 or 6"},
		"dscp":                {flow(func(f *Flow) { f.DSCP = 64 }), "dscp: want 0 to 63"},
		"burst":               {flow(func(f *Flow) { f.Burst = -1 }), "burst: want 1 to"},
		"ports past the last": {flow(func(f *Flow) { f.SourcePort, f.Streams = 65535, 2 }), "source_port: 2 streams from port 65535 pass"},
		"too many addresses":  {flow(func(f *Flow) { f.SourceAddresses = addresses("192.0.2.1", "192.0.2.2") }), "source_addresses: 1 streams cannot have 2 addresses"},
		"mixed addresses":     {flow(func(f *Flow) { f.SourceAddresses, f.Streams = addresses("192.0.2.1", "2001:db8::1"), 2 }), "source_addresses: 192.0.2.1 and 2001:db8::1 are of two IP versions"},
		"address twice":       {flow(func(f *Flow) { f.SourceAddresses, f.Streams = addresses("192.0.2.1", "192.0.2.1"), 2 }), "source_addresses: 192.0.2.1 stands twice"},
		"a group's address":   {flow(func(f *Flow) { f.SourceAddresses = addresses("224.0.0.1") }), "source_addresses: 224.0.0.1 is no address of a host"},
		"no address":          {flow(func(f *Flow) { f.SourceAddresses = []netip.Addr{{}} }), "source_addresses: invalid IP is no address of a host"},
		"without a zone":      {flow(func(f *Flow) { f.SourceAddresses = addresses("fe80::1") }), "source_addresses: fe80::1 is link-local, so say on which interface: fe80::1%eth0"},
		"the other version":   {flow(func(f *Flow) { f.SourceAddresses, f.Family = addresses("192.0.2.1"), 6 }), "source_addresses: 192.0.2.1 is no address of IPv6"},
		"port beyond int":     {flow(func(f *Flow) { f.SourcePort, f.Streams = math.MaxInt, 2 }), "source_port: want 1 to 65535"},
		"last ports":          {flow(func(f *Flow) { f.SourcePort, f.Streams = 65534, 2 }), ""},
		"segments":            {func(p *Plan) { p.Factors, p.Flows[0].Segments, p.Flows[0].PayloadBytes = nil, 64, 1023 }, ""},
		"one segment":         {flow(func(f *Flow) { f.Segments = 1 }), ""},
		"too many segments":   {flow(func(f *Flow) { f.Segments = 65 }), "segments: want 1 to 64, not 65"},
		"negative segments":   {flow(func(f *Flow) { f.Segments = -1 }), "segments: want 1 to 64"},
		"buffer too long":     {flow(func(f *Flow) { f.Segments, f.PayloadBytes = 64, 1024 }), "segments: a buffer holds 65507 B: 63 packets of 1024 B at most, not 64"},
		"TCP segments":        {flow(func(f *Flow) { f.Protocol, f.Segments = TCP, 2 }), "segments: is for UDP"},
		"burst below segments": {flow(func(f *Flow) { f.Segments, f.Burst = 8, 7 }),
			"burst: a buffer of 8 packets leaves at once; want a burst of at least as many, not 7"},
		"send buffer":        {flow(func(f *Flow) { f.SendBuffer = 2048 }), ""},
		"small send buffer":  {flow(func(f *Flow) { f.SendBuffer = 2047 }), "send_buffer_bytes: want 2048B to 1073741824B"},
		"receive buffer":     {flow(func(f *Flow) { f.ReceiveBuffer = 1<<30 + 1 }), "receive_buffer_bytes: want 2048B to"},
		"TCP receive buffer": {flow(func(f *Flow) { f.Protocol, f.ReceiveBuffer = TCP, 4096 }), "receive_buffer_bytes: is for UDP"},
		"segments of a size": {func(p *Plan) {
			p.Flows[0].Segments = 44
			p.Factors = []Factor{{"payload_bytes", []Value{Number(64), Number(1489)}}}
		}, "factors[0].levels[1]: segments: a buffer holds 65507 B: 43 packets"},
		"rate too high":     {flow(func(f *Flow) { f.Rate = unit.PacketRate(2e9) }), "rate_pps: 2Gpps is"},
		"engine":            {func(p *Plan) { p.Engine = "dpdk" }, "engine: want auto, udp, xdp, udp:xdp, xdp:udp or xdp:xdp, not"},
		"no time":           {func(p *Plan) { p.Timing.MeasureSeconds = 0 }, "measure_s: want 10 ms"},
		"time NaN":          {func(p *Plan) { p.Timing.MeasureSeconds = nan }, "measure_s: want 10 ms"},
		"warm-up":           {func(p *Plan) { p.Timing.WarmupSeconds = -1 }, "warmup_s: want 0 s"},
		"drain":             {func(p *Plan) { p.Timing.DrainSeconds = 61 }, "drain_s: want 0 s"},
		"limit":             {func(p *Plan) { p.Limits.MaxLossRatio = &nan }, "max_loss_ratio: want 0 % to 100 %"},
		"repeats":           {func(p *Plan) { p.Design.Repeats = 0 }, "repeats: want 1 to 1000"},
		"unknown knob":      {factor("colour", Number(1)), `factors[0].knob: unknown knob "colour"; want one of connections, control, direction,`},
		"no levels":         {factor("streams"), "factors[0].levels: want at least one"},
		"level twice":       {factor("streams", Number(1), Number(2), Number(1)), "factors[0].levels[2]: 1 stands twice"},
		"level NaN":         {factor("streams", Number(nan)), "factors[0].levels[0]: want a whole number"},
		"level infinite":    {factor("payload_bytes", Number(math.Inf(1))), "factors[0].levels[0]: want a whole number"},
		"level fraction":    {factor("streams", Number(1.5)), "factors[0].levels[0]: want a whole number"},
		"impossible size":   {factor("payload_bytes", Number(64), Number(15)), "factors[0].levels[1]: payload_bytes: a UDP payload"},
		"frame of 63":       {factor("frame_bytes", Number(63)), "factors[0].levels[0]: want 64B to 65573B, not 63B"},
		"rate word":         {factor("rate_pps", Word("fast")), "factors[0].levels[0]: rate \"fast\": want max, packets per second"},
		"rate max":          {factor("rate_pps", Word("max"), Number(1000)), ""},
		"interval":          {factor("interval_ns", Number(-1)), "factors[0].levels[0]: want 0 s to 24 h, not -1"},
		"control number":    {factor("control", Number(1)), "factors[0].levels[0]: want a word, not"},
		"no such direction": {factor("direction", Word("both")), "factors[0].levels[0]: the plan has no flow for direction both"},
		"direction word":    {factor("direction", Word("left")), "factors[0].levels[0]: want up, down or both, not"},
		"same knob twice": {func(p *Plan) { p.Factors = append(p.Factors, p.Factors[0]) },
			`factors[1].knob: "payload_bytes" stands twice`},
		"two knobs for one queue": {func(p *Plan) {
			p.Target = "lab:router"
			p.Factors = []Factor{{Knob: "link-receiver.queue_packets", Levels: []Value{Number(10)}}, {Knob: "link-receiver.queue_bytes", Levels: []Value{Number(1e4)}}}
		}, "factors[1].knob: link-receiver.queue_packets and link-receiver.queue_bytes set the same thing"},
		"two knobs for one thing": {func(p *Plan) {
			p.Factors = append(p.Factors, Factor{"frame_bytes", []Value{Number(64)}})
		}, "factors[1].knob: payload_bytes and frame_bytes set the same thing"},
		"too many trials": {func(p *Plan) {
			levels := make([]Value, 101)
			for i := range levels {
				levels[i] = Number(float64(i + 100))
			}
			p.Design.Repeats = 1000
			p.Factors = []Factor{{"payload_bytes", levels}}
		}, "factors: make more than 100000 trials"},
	} {
		t.Run(name, func(t *testing.T) {
			err := samplePlan(c.change).Check()
			if c.want == "" {
				if err != nil {
					t.Errorf("Check: %v, want none", err)
				}
				return
			}
			var field *FieldError
			if !errors.As(err, &field) || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("Check: got %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestTrial(t *testing.T) {
	p := samplePlan(func(p *Plan) {
		down := p.Flows[0]
		down.Name, down.From, down.To = "down", Receiver, Sender
		p.Flows = append(p.Flows, down)
	})
	both := Cell{"payload_bytes": Number(200), "direction": Word("both"), "streams": Number(3), "rate_pps": Number(1.5e6)}
	trial, err := p.Trial(both, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range trial.Flows {
		if f.PayloadBytes != 200 || f.Streams != 3 || f.Rate.String() != "1.5Mpps" {
			t.Errorf("flow %s of %s: %+v", f.Name, both.Key(), f)
		}
	}
	if len(trial.Flows) != 2 || trial.Repeat != 4 || trial.Timing != p.Timing {
		t.Errorf("trial: %+v", trial)
	}
	down, err := p.Trial(Cell{"direction": Word("down"), "frame_bytes": Number(64), "interval_ns": Number(5e6)}, 0)
	if err != nil || len(down.Flows) != 1 || down.Flows[0].Name != "down" || down.Flows[0].PayloadBytes != 18 || down.Flows[0].Rate.String() != "every 5ms" {
		t.Errorf("down: %+v, %v", down, err)
	}
	if p.Flows[0].PayloadBytes != 64 || len(p.Flows) != 2 {
		t.Errorf("Trial changed its plan: %+v", p.Flows)
	}
	for _, c := range []Cell{{"colour": Number(1)}, {"streams": Number(129)}, {"payload_bytes": Word("big")}, {"streams": Number(1e300)}} {
		if _, err := p.Trial(c, 0); err == nil {
			t.Errorf("Trial(%v): no error", c)
		}
	}
}

func TestCellKey(t *testing.T) {
	c := Cell{"streams": Number(2), "payload_bytes": Number(64), "direction": Word("up"), "rate_pps": Number(1e6)}
	if got, want := c.Key(), "direction=up payload_bytes=64 rate_pps=1000000 streams=2"; got != want {
		t.Errorf("Key() = %q, want %q", got, want)
	}
	if !c.Equal(Cell{"rate_pps": Number(1e6), "direction": Word("up"), "payload_bytes": Number(64), "streams": Number(2)}) || c.Equal(Cell{}) {
		t.Error("Equal is wrong")
	}
}

func TestFrameBytes(t *testing.T) {
	for _, c := range []struct {
		protocol        Protocol
		family, payload int
		want            int
	}{
		{UDP, 4, 16, 64}, {UDP, 4, 18, 64}, {UDP, 4, 19, 65}, {UDP, 0, 1472, 1518}, {UDP, 4, 1472, 1518}, {UDP, 6, 1452, 1518}, {UDP, 6, 16, 82},
		{TCP, 4, 1448, 1518}, {TCP, 6, 1428, 1518}, {TCP, 4, 1, 71},
	} {
		if got := FrameBytes(c.protocol, c.family, c.payload); got != c.want {
			t.Errorf("FrameBytes(%s, %d, %d) = %d, want %d", c.protocol, c.family, c.payload, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		family := rapid.SampledFrom([]int{0, 4, 6}).Draw(t, "family")
		frame := rapid.IntRange(84, 9000).Draw(t, "frame")
		if got := FrameBytes(UDP, family, PayloadOf(family, frame)); got != frame {
			t.Fatalf("a frame of %d B holds %d B, which make %d B", frame, PayloadOf(family, frame), got)
		}
	})
}

func TestFragments(t *testing.T) {
	for _, c := range []struct{ family, payload, mtu, want int }{
		{4, 1472, 1500, 1}, {4, 1473, 1500, 2}, {4, 2952, 1500, 2}, {4, 2953, 1500, 3}, {4, 6400, 1500, 5}, {4, 65507, 1500, 45}, {4, 65507, 65535, 1},
		{0, 1473, 1500, 2}, {6, 1452, 1500, 1}, {6, 1453, 1500, 2}, {6, 2888, 1500, 2}, {6, 2889, 1500, 3}, {4, 1472, 0, 1}, {4, 100, 68, 3}, {4, 100, 20, 1},
	} {
		if got := Fragments(c.family, c.payload, c.mtu); got != c.want {
			t.Errorf("Fragments(%d, %d, %d) = %d, want %d", c.family, c.payload, c.mtu, got, c.want)
		}
	}
}

func TestHostPort(t *testing.T) {
	for target, want := range map[string]struct {
		host string
		port uint16
	}{
		"192.168.1.5": {"192.168.1.5", 0}, "192.168.1.5:7358": {"192.168.1.5", 7358}, "nas": {"nas", 0}, "nas.local:80": {"nas.local", 80},
		"::1": {"::1", 0}, "[::1]": {"::1", 0}, "[::1]:80": {"::1", 80}, "fe80::1%eth0": {"fe80::1%eth0", 0}, "[fe80::1%eth0]:65535": {"fe80::1%eth0", 65535},
	} {
		host, port, err := HostPort(target)
		if err != nil || host != want.host || port != want.port {
			t.Errorf("HostPort(%q) = %q, %d, %v; want %q, %d", target, host, port, err, want.host, want.port)
		}
	}
	for _, target := range []string{"", ":80", "nas:", "nas:0", "nas:65536", "nas:+80", "nas:080", "nas:80:90", "nas:x", "1.2.3.4:0", "]::1[", "[::1", "[1.2.3.4]", "[nas]:80", "user@nas", "a/b", "a b", "a\nb"} {
		if host, port, err := HostPort(target); err == nil {
			t.Errorf("HostPort(%q) = %q, %d; want an error", target, host, port)
		}
	}
}

func TestParseLink(t *testing.T) {
	got, _, err := ParseLink("router", "rate=1gbit, queue=100,mtu=1400,delay=20ms,jitter=1ms,correlation=25%,distribution=normal,loss=0.1%,loss-correlation=10%,reorder=1%,gap=5,duplicate=2%,corrupt=3%,overhead=24,toward=receiver,seed=7")
	want := Link{Node: "router", Toward: "receiver", Rate: 1e9, QueuePackets: 100, MTU: 1400, DelaySeconds: 0.02, JitterSeconds: 0.001, Correlation: 0.25,
		Distribution: "normal", LossRatio: 0.001, LossCorrelation: 0.1, ReorderRatio: 0.01, Gap: 5, DuplicateRatio: 0.02, CorruptRatio: 0.03, OverheadBytes: 24, Seed: 7}
	if err != nil || got != want {
		t.Errorf("ParseLink: %+v, %v\nwant %+v", got, err, want)
	}
	if l, _, err := ParseLink("", "queue=64KiB"); err != nil || l.QueueBytes != 65536 || l.QueuePackets != 0 {
		t.Errorf("a queue in bytes: %+v, %v", l, err)
	}
	for _, text := range []string{
		"", ",", "rate", "rate=", "=1", "rate=fast", "rate=0", "rate=10bit", "speed=1gbit", "rate=1gbit,rate=2gbit", "mtu=67", "mtu=0", "mtu=70000", "queue=0", "queue=99999999999",
		"queue=-1", "delay=5", "delay=-1s", "delay=61s", "loss=101%", "loss=x", "distribution=flat", "loss-model=x", "seed=12abc", "seed=-1", "seed=1.5", "overhead=300",
	} {
		if l, _, err := ParseLink("", text); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("ParseLink(%q) = %+v, %v; want an error of one line", text, l, err)
		}
	}
}

func TestLinkLosses(t *testing.T) {
	for text, want := range map[string]string{
		"loss=1%":                    "0.01  [0 0 0 0 0]",
		"loss=ge:1%/10%/70%/0.1%":    "0 gilbert-elliott [0.01 0.1 0.7 0.001 0]",
		"loss=4state:1%/50%/2%/3%/0": "0 four-state [0.01 0.5 0.02 0.03 0]",
		"loss=ge:1%/10%":             "want ge:P/R/BAD/GOOD",
		"loss=ge:1%/10%/70%/120%":    "between 0 and 100%",
		"loss=5states:1%":            "want a share as 1%, ge:",
		"loss=120%":                  "between 0 and 100%",
		"gap=0":                      "gap",
		"backend=fast":               "want auto or user",
		"backend=user,toward=router": "both directions",
	} {
		l, _, err := ParseLink("", text)
		got := fmt.Sprint(l.LossRatio, " ", l.LossModel, " ", l.LossStates)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestImpaired(t *testing.T) {
	for text, want := range map[string]bool{"rate=1gbit,queue=100,mtu=1400,overhead=24,toward=receiver": false, "delay=1ms": true, "loss=1%": true, "loss=ge:1%/1%/1%/1%": true, "backend=user": false, "corrupt=1%": true, "seed=3": true, "rate=1mbit,backend=auto": false} {
		if l, _, err := ParseLink("", text); err != nil || l.Impaired() != want {
			t.Errorf("%s: impaired %v, %v; want %v", text, l.Impaired(), err, want)
		}
	}
}

// TestDistributionTable: a table survives as a word, and no other word is one.
func TestDistributionTable(t *testing.T) {
	values := []int16{-32768, -1, 0, 1, 32767}
	l := Link{Distribution: "file:a b.dist", DistributionTable: TableText(values)}
	got, err := l.Table()
	if err != nil || !slices.Equal(got, values) || l.DistributionFile() != "a b.dist" || l.check("link") != nil {
		t.Errorf("%+v, %v, %v", got, err, l.check("link"))
	}
	for _, l := range []Link{
		{Distribution: "file:x", DistributionTable: "not base64"}, {Distribution: "file:x", DistributionTable: "AAAA"}, {Distribution: "normal", DistributionTable: "AAA="},
		{Distribution: "file:x", DistributionTable: TableText(make([]int16, mostTable+1))}, {Distribution: "file:"}, {Distribution: "file:a\nb"},
	} {
		if err := l.check("link"); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60v gave %v", l, err)
		}
	}
}

func FuzzParseLink(f *testing.F) {
	f.Add("rate=1gbit,queue=100,mtu=1500")
	f.Add("delay=20ms,jitter=1ms,correlation=25%,loss=0.1%,seed=18446744073709551615")
	f.Fuzz(func(t *testing.T, text string) {
		l, _, err := ParseLink("n", text)
		if err != nil {
			return
		}
		if err := l.check("link"); err != nil {
			t.Fatalf("ParseLink(%q) = %+v, which cannot be: %v", text, l, err)
		}
	})
}

func FuzzHostPort(f *testing.F) {
	for _, target := range []string{"nas:80", "[::1]:80", "fe80::1%eth0", "1.2.3.4", "a:b:c"} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		host, _, err := HostPort(target)
		if err != nil {
			return
		}
		if again, port, err := HostPort(host); err != nil || again != host || port != 0 {
			t.Fatalf("HostPort(%q) names %q, which reads as %q, %d, %v", target, host, again, port, err)
		}
	})
}

func addresses(list ...string) (out []netip.Addr) {
	for _, a := range list {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}
