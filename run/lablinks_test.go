package run

import (
	"testing"

	"pelt/model"
)

// A trial of some receivers is of the first ones.
func TestSomeReceivers(t *testing.T) {
	p := site{nodes: []node{{name: "sender", end: true}, {name: "switch"}}}
	for _, name := range []string{"receiver-1", "receiver-2", "receiver-3"} {
		p.nodes = append(p.nodes, node{name: name, branch: name, end: true})
	}
	for n, want := range map[int]int{0: 3, 1: 1, 2: 2, 3: 3, 9: 3} {
		if got := p.perReceiver(model.Flow{Name: "up", From: "sender", To: "receiver"}, n); len(got) != want ||
			got[0].To != "receiver-1" {
			t.Errorf("of %d: %v, want %d", n, got, want)
		}
	}
}
