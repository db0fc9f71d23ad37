package run

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pelt/finding"
	"pelt/fleet"
	"pelt/model"
	"pelt/plan"
	"pelt/test/golden"
)

// TestPlaces: each line of the file is a test with its settings, and behind the ; what its path is unlike two hosts
// that can all. Below stand the engines of the flows of its last cell, ? behind one that may fall back, and why; or
// what is refused.
func TestPlaces(t *testing.T) {
	presets := []plan.Preset{plan.Curve, plan.Soak, plan.Sweep, plan.Ndr, plan.Latency}
	choice := func(c fleet.Choice) string {
		return c.Engine + map[bool]string{true: "?"}[c.Fallback] + map[bool]string{true: " by sockets"}[c.Sockets]
	}
	golden.Table(t, "testdata/places.txt", func(question string) string {
		settings, unlike, _ := strings.Cut(question, ";")
		words := strings.Fields(settings)
		i := slices.IndexFunc(presets, func(p plan.Preset) bool { return p.Command == words[0] })
		p, err := presets[i].Of("192.0.2.1", words[1:]...)
		if err != nil {
			t.Fatalf("%s: %v", question, err)
		}
		way := twoEnds()
		way.engine = p.Engine
		for i := range way.nodes {
			n := &way.nodes[i]
			n.agent.Engines, n.agent.Host.Privileged = []string{"udp", "tcp", "xdp"}, true
			n.address = func(int) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, 1}) }
		}
		for _, word := range strings.Fields(unlike) {
			name, value, _ := strings.Cut(word, "=")
			n, _ := strconv.Atoi(value)
			switch name {
			case "local":
				way.local = true
			case "star":
				way.noXDP.Code = model.FramesStar
			case "mtu":
				way.mtus = []model.PathMTU{{Flow: "up", Family: 4, Bytes: n, PayloadBytes: n - 28}}
			case "without-xdp":
				way.end(value).agent.Engines = []string{"udp", "tcp"}
			case "ordinary":
				way.end(value).agent.Host.Privileged = false
			case "max-rate":
				way.end(model.Receiver).agent.Limits.MaxRatePPS = float64(n)
			}
		}
		if err := way.check(t.Context(), p); err != nil {
			return err.Error()
		}
		cells := p.Cells()
		trial, err := p.Trial(cells[len(cells)-1], 0)
		if err != nil {
			t.Fatal(err)
		}
		placed, why, err := way.place(trial)
		if err != nil {
			return err.Error()
		}
		f := placed.Flows[0]
		text := choice(f.Send) + " " + choice(f.Receive)
		if f.Breaker {
			text += ", with a breaker"
		}
		return text + "\n" + finding.Why(model.Reasons(why))
	})
}
