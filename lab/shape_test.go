package lab

import (
	"fmt"
	"strings"
	"testing"

	"pelt/model"
	"pelt/test/golden"
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
	if !(linkPlan{Toward: [2]model.Link{{Rate: 1e6}}}).shaped(0) || (linkPlan{}).shaped(0) ||
		(linkPlan{User: true, Toward: [2]model.Link{{Rate: 1e6}}}).shaped(0) {
		t.Error("tbf keeps a rate, and no other")
	}
}

// TestAddresses: the addresses of the nodes of each topology stand in the golden file, and that of a far receiver.
func TestAddresses(t *testing.T) {
	var out strings.Builder
	for _, spec := range topologySpecs() {
		fmt.Fprintf(&out, "%s:\n", spec.name)
		for _, p := range spec.ports() {
			if p.host > 0 {
				fmt.Fprintf(&out, "\t%s %v\n", spec.nodes[p.node].name, p.prefixes())
			}
		}
	}
	fmt.Fprintf(&out, "host 60000 of a segment: %v\n", port{segment: 1, host: 60000}.prefixes())
	golden.File(t, "testdata/addresses.txt", out.String())
}
