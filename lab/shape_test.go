package lab

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pelt/model"
)

func TestPlanLinks(t *testing.T) {
	for _, c := range []struct {
		name, topology string
		links          []model.Link
		want           []linkPlan
	}{
		{"nothing asked", "direct", nil, []linkPlan{{mtu: 1500}}},
		{"all links, both ways", "router", []model.Link{{Rate: 1e9}},
			[]linkPlan{{mtu: 1500, toward: [2]model.Link{{Rate: 1e9}, {Rate: 1e9}}}, {mtu: 1500, toward: [2]model.Link{{Rate: 1e9}, {Rate: 1e9}}}}},
		{"one node's link", "router", []model.Link{{Node: "sender", Rate: 1e6}},
			[]linkPlan{{mtu: 1500, toward: [2]model.Link{{Rate: 1e6}, {Rate: 1e6}}}, {mtu: 1500}}},
		{"a middle node's links", "router", []model.Link{{Node: "router", MTU: 9000}}, []linkPlan{{mtu: 9000}, {mtu: 9000}}},
		{"toward the far end, on all links", "nat", []model.Link{{Toward: "receiver", Rate: 1e6}},
			[]linkPlan{{mtu: 1500, toward: [2]model.Link{{Rate: 1e6}, {}}}, {mtu: 1500, toward: [2]model.Link{{Rate: 1e6}, {}}}}},
		{"toward the middle", "switch", []model.Link{{Toward: "switch", Rate: 1e6}},
			[]linkPlan{{mtu: 1500, toward: [2]model.Link{{Rate: 1e6}, {}}}, {mtu: 1500, toward: [2]model.Link{{}, {Rate: 1e6}}}}},
		{"later overrides field by field", "direct", []model.Link{{Rate: 1e6, QueuePackets: 5, OverheadBytes: 24}, {Node: "receiver", Rate: 2e6}, {Toward: "sender", QueueBytes: 4000}},
			[]linkPlan{{mtu: 1500, toward: [2]model.Link{{Rate: 2e6, QueuePackets: 5, OverheadBytes: 24}, {Rate: 2e6, QueueBytes: 4000, OverheadBytes: 24}}}}},
		{"what is taken back", "direct", []model.Link{{DelaySeconds: 0.005, LossRatio: 0.01, Rate: 1e6}, {Toward: "sender", Zero: "loss,delay,rate"}},
			[]linkPlan{{mtu: 1500, toward: [2]model.Link{{Rate: 1e6, DelaySeconds: 0.005, LossRatio: 0.01}, {}}}}},
		{"queue before its rate", "direct", []model.Link{{QueuePackets: 5}, {Rate: 1e6}},
			[]linkPlan{{mtu: 1500, toward: [2]model.Link{{Rate: 1e6, QueuePackets: 5}, {Rate: 1e6, QueuePackets: 5}}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, err := findTopology(c.topology)
			must(t, err)
			got, err := planLinks(spec, c.links)
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("planLinks(%s, %+v)\ngot  %+v, %v\nwant %+v", c.topology, c.links, got, err, c.want)
			}
		})
	}
}

func TestBadRequests(t *testing.T) {
	for _, c := range []struct {
		name, topology string
		link           model.Link
		want           []string // words of the message
	}{
		{"topology", "ring", model.Link{}, []string{`"ring"`, "direct, switch, router, nat"}},
		{"node", "direct", model.Link{Node: "router", Rate: 1e6}, []string{"link-router", `"router"`, "sender, receiver"}},
		{"toward", "switch", model.Link{Toward: "moon", Rate: 1e6}, []string{`"moon"`, "sender, switch, receiver"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Check(c.topology, []model.Link{c.link})
			if !refused(err, "") {
				t.Fatalf("Check(%s, %+v) = %v, want a *UsageError", c.topology, c.link, err)
			}
			for _, word := range c.want {
				if !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "\n") {
					t.Errorf("Check(%s, %+v)\ngot  %q\nwant one line with %q", c.topology, c.link, err, word)
				}
			}
		})
	}
}

func TestTBF(t *testing.T) {
	for _, c := range []struct {
		name string
		s    model.Link
		mtu  int
		want tbfPlan
	}{
		{"gigabit", model.Link{Rate: 1e9}, 1500, tbfPlan{125e6, 31250, queueMostBytes, 0, 0, 60}},
		{"slow: least burst and queue", model.Link{Rate: 1e6}, 1500, tbfPlan{125e3, 2 * 1514, 16 * 1514, 0, 0, 60}},
		{"queue is 50 ms", model.Link{Rate: 1e8}, 1500, tbfPlan{125e5, 3125, 625000, 0, 0, 60}},
		{"queue in bytes", model.Link{Rate: 1e8, QueueBytes: 1000}, 1500, tbfPlan{125e5, 3125, 1000, 0, 0, 60}},
		{"queue in packets", model.Link{Rate: 1e8, QueuePackets: 10}, 1500, tbfPlan{125e5, 3125, 0, 10, 0, 60}},
		{"overhead", model.Link{Rate: 1e8, OverheadBytes: 24}, 1500, tbfPlan{125e5, 3125, 625000, 0, 24, 84}},
		{"large mtu", model.Link{Rate: 1e6}, 65535, tbfPlan{125e3, 2 * 65549, 16 * 65549, 0, 0, 60}},
	} {
		if got := tbfOf(c.s, c.mtu); got != c.want {
			t.Errorf("%s: tbfOf(%+v, %d)\ngot  %+v\nwant %+v", c.name, c.s, c.mtu, got, c.want)
		}
	}
}

// The one rule that must hold for every topology and every wish.
func TestNothingIsShapedOnAnEnd(t *testing.T) {
	for _, spec := range topologySpecs() {
		for link := range spec.links {
			for direction := range 2 {
				from := spec.nodes[spec.from(link, direction)]
				// What a fast path carries passes by the router's queueing disciplines.
				if want := !spec.fast && (from.role == forward || from.role == nat); spec.atRouter(link, direction) != want {
					t.Errorf("%s, from %s: shaped there is %v", spec.name, from.name, !want)
				}
			}
		}
	}
	if !(linkPlan{toward: [2]model.Link{{Rate: 1e6}}}).shaped(0) || (linkPlan{}).shaped(0) || (linkPlan{user: true, toward: [2]model.Link{{Rate: 1e6}}}).shaped(0) {
		t.Error("tbf keeps a rate, and no other")
	}
}

func TestAddresses(t *testing.T) {
	lines := map[string][]string{}
	for _, spec := range topologySpecs() {
		for _, p := range spec.ports() {
			if p.host > 0 {
				lines[spec.name] = append(lines[spec.name], fmt.Sprint(spec.nodes[p.node].name, " ", p.prefixes()[0], " ", p.prefixes()[1]))
			}
		}
	}
	flat := []string{"sender 198.18.0.1/16 2001:2::1/64", "receiver 198.18.0.2/16 2001:2::2/64"}
	routed := []string{"sender 198.18.0.1/16 2001:2::1/64", "router 198.18.0.2/16 2001:2::2/64",
		"router 198.19.0.1/16 2001:2:0:1::1/64", "receiver 198.19.0.2/16 2001:2:0:1::2/64"}
	for name, want := range map[string][]string{"direct": flat, "switch": flat, "router": routed, "nat": routed} {
		if !slices.Equal(lines[name], want) {
			t.Errorf("%s\ngot  %q\nwant %q", name, lines[name], want)
		}
	}
	far := port{segment: 1, host: 60000}.prefixes()
	for i, net := range []string{"198.18.0.0/15", "2001:2::/48"} {
		if !netip.MustParsePrefix(net).Contains(far[i].Addr()) {
			t.Errorf("addresses leave %s", net)
		}
	}
}

func TestNoLab(t *testing.T) {
	for name, want := range map[string]string{"roter": "did you mean lab:router?", "swich": "did you mean lab:switch?", "nta": "lab list", "na": "did you mean lab:nat?",
		"dmz": "lab list", "office": "lab list", strings.Repeat("r", 64): "lab list"} {
		if got := noLab(name); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
