package lab

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pelt/model"
)

// The one rule that must hold for every topology and every wish.
func TestNothingIsShapedOnAnEnd(t *testing.T) {
	for _, spec := range topologySpecs() {
		for link := range spec.links {
			for direction := range 2 {
				from := spec.nodes[spec.from(link, direction)]
				// What a fast path carries passes by the router's queueing disciplines.
				if want := !spec.fast && (from.role == forward || from.role == nat); spec.atRouter(link,
					direction) != want {
					t.Errorf("%s, from %s: shaped there is %v", spec.name, from.name, !want)
				}
			}
		}
	}
	if !(linkPlan{toward: [2]model.Link{{Rate: 1e6}}}).shaped(0) || (linkPlan{}).shaped(0) ||
		(linkPlan{user: true, toward: [2]model.Link{{Rate: 1e6}}}).shaped(0) {
		t.Error("tbf keeps a rate, and no other")
	}
}

func TestAddresses(t *testing.T) {
	lines := map[string][]string{}
	for _, spec := range topologySpecs() {
		for _, p := range spec.ports() {
			if p.host > 0 {
				lines[spec.name] = append(lines[spec.name],
					fmt.Sprint(spec.nodes[p.node].name, " ", p.prefixes()[0], " ", p.prefixes()[1]))
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
