package run

import (
	"net/netip"
	"strings"
	"testing"

	"pelt/fleet"
	"pelt/model"
	"pelt/plan"
)

func TestCarriersOf(t *testing.T) {
	const byRate, barred = "udp sockets: the asked rate needs no frames", "udp sockets, because no rights"
	udp := func(rate string, payload, streams int) model.Flow {
		return model.Flow{Protocol: model.UDP, Rate: mustRate(t, rate), PayloadBytes: payload, Streams: streams}
	}
	for _, c := range []struct {
		name, asked string
		flow        model.Flow
		noFrames    string
		want, why   string // engines of sender and receiver, ? behind one that may fall back
	}{
		{"a rate that sockets carry", "auto", udp("30kpps", 64, 1), "", "udp udp", byRate},
		{"the highest of them", "auto", udp("100kpps", 64, 1), "", "udp udp", byRate},
		{"one more", "auto", udp("100001pps", 64, 1), "", "xdp? xdp?", ""},
		{"as much in each stream", "auto", udp("400kpps", 64, 4), "", "udp udp", byRate},
		{"more in each stream", "auto", udp("400kpps", 64, 3), "", "xdp? xdp?", ""},
		{"bits of large packets", "auto", udp("95mbit", 1472, 1), "", "udp udp", byRate},
		{"bits of small packets", "auto", udp("95mbit", 64, 1), "", "xdp? xdp?", ""},
		{"as fast as can be", "auto", udp("max", 64, 1), "", "xdp? xdp?", ""},
		{"as fast as can be in many streams", "auto", udp("max", 64, 128), "", "xdp? xdp?", ""},
		{"no frames for a rate that needs none", "auto", udp("30kpps", 64, 1), "no rights", "udp udp", byRate},
		{"no frames for a rate that wants them", "auto", udp("max", 64, 1), "no rights", "udp udp", barred},
		{"TCP", "auto", model.Flow{Protocol: model.TCP}, "no rights", "tcp tcp", "the plan's flows are TCP"},
		{"TCP beside frames", "xdp", model.Flow{Protocol: model.TCP}, "", "tcp tcp", "the plan's flows are TCP"},
		{"sockets", "udp", udp("max", 64, 1), "", "udp udp", "udp sockets, as the plan says"},
		{"frames", "xdp", udp("1kpps", 64, 1), "no rights", "xdp xdp?", ""},
		{"frames at both ends or none", "xdp:xdp", udp("1kpps", 64, 1), "no rights", "xdp xdp", ""},
		{"frames into sockets", "xdp:udp", udp("1kpps", 64, 1), "", "xdp xdp? by sockets", ""},
		{"sockets into a program", "udp:xdp", udp("1kpps", 64, 1), "", "udp xdp", ""},
	} {
		send, receive, why := carriersOf(c.asked, c.flow, c.noFrames)
		if got := choiceWords(send) + " " + choiceWords(receive); got != c.want || why != c.why {
			t.Errorf("%s: %s (%s), want %s (%s)", c.name, got, why, c.want, c.why)
		}
	}
}

func choiceWords(c fleet.Choice) string {
	text := c.Engine
	if c.Fallback {
		text += "?"
	}
	if c.Sockets {
		text += " by sockets"
	}
	return text
}

func TestNoFrames(t *testing.T) {
	able := fleet.AgentInfo{Node: "x", Engines: []string{"udp", "xdp"}, Host: model.Host{Privileged: true}}
	without, ordinary := able, able
	without.Node, without.Engines = "receiver", []string{"udp"}
	ordinary.Node, ordinary.Host.Privileged = "sender", false
	flow := func(change func(*model.Flow)) model.Flow {
		f := model.Flow{Name: "up", Protocol: model.UDP, From: "sender", PayloadBytes: 1472, Streams: 1}
		if change != nil {
			change(&f)
		}
		return f
	}
	joined := flow(func(f *model.Flow) { f.Joined = true })
	for _, c := range []struct {
		name     string
		path     *site
		flow     model.Flow
		from, to fleet.AgentInfo
		want     string
	}{
		{"nothing against them", &site{}, flow(nil), able, able, ""},
		{"the path", &site{noXDP: "a star's flows are many"}, flow(nil), able, able, "a star's flows are many"},
		{"fragments", &site{mtus: []model.PathMTU{{Flow: "up", Family: 4, Bytes: 1400, PayloadBytes: 1372}}},
			flow(nil), able, able, "packets of 1500 B need fragments: the path MTU is 1400 B"},
		{"a number of packets", &site{}, flow(func(f *model.Flow) { f.Packets = 9 }), able, able,
			"frames are sent for a time, not by number"},
		{"a profile", &site{}, flow(func(f *model.Flow) { f.Profile = &model.Profile{} }), able, able,
			"frames leave at even gaps: a profile needs sockets"},
		{"no engine at the receiver", &site{}, flow(nil), able, without, "pelt offers no xdp engine at the receiver"},
		{"no rights at the sender", &site{}, flow(nil), ordinary, able,
			"pelt has no rights for XDP programs at the sender"},
		{"into a socket that joins", &site{}, joined, able, without, ""},
		{"into a socket, without rights at the sender", &site{}, joined, ordinary, able,
			"pelt has no rights for XDP programs at the sender"},
	} {
		if got := c.path.noFrames(c.flow, c.from, c.to); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// What looks for a rate is not stopped for its losses.
func TestBreakers(t *testing.T) {
	way := twoEnds()
	for i := range way.nodes {
		way.nodes[i].agent.Engines = []string{"udp"}
		way.nodes[i].address = func(int) netip.Addr { return netip.MustParseAddr("127.0.0.1") }
	}
	for _, c := range []struct {
		preset plan.Preset
		flags  string
		want   bool
	}{
		{plan.Curve, "payload=64", false}, {plan.Curve, "payload=64 rate=1kpps", true}, {plan.Soak, "rate=1kpps", true},
		{plan.Sweep, "payload=64 rate=1kpps,2kpps", false}, {plan.Sweep, "payload=64,128 interval=1ms", true},
		{plan.Ndr, "payload=64 rate=1kpps", false}, {plan.Ndr, "payload=64", false},
		{plan.Soak, "rate=1kpps max-loss=1%", false},
	} {
		p, err := c.preset.Of("192.0.2.1", strings.Fields(c.flags)...)
		if err != nil {
			t.Fatal(err)
		}
		way.searches, way.judged = p.Design.Search != nil, p.Limits.MaxLossRatio != nil
		trial, err := p.Trial(p.Cells()[len(p.Cells())-1], 0)
		if err != nil {
			t.Fatal(err)
		}
		placed, _, err := way.place(trial)
		if err != nil || placed.Flows[0].Breaker != c.want {
			t.Errorf("pelt %s %s: breaker %v, %v; want %v", c.preset.Command, c.flags, placed.Flows[0].Breaker, err,
				c.want)
		}
		lab := *way
		lab.local = true
		if placed, _, err = lab.place(trial); err != nil || placed.Flows[0].Breaker {
			t.Errorf("pelt %s %s: a breaker in a lab, %v", c.preset.Command, c.flags, err)
		}
	}
}
