package lab

import (
	"testing"

	"pelt/internal/netns"
)

// What a holder tells of places that are none is refused before anybody looks there.
func TestWhole(t *testing.T) {
	spaces := []*netns.Handle{nil, nil, nil}
	nodes := []*Node{{info: nodeInfo{Name: "sender", Interfaces: []Interface{{}}}}, {info: nodeInfo{Name: "receiver", Interfaces: []Interface{{}}}}}
	way := kernelWay{Space: 2, Node: 1, Entries: []string{"to-sender"}}
	with := func(change func(*kernelWay)) []kernelWay {
		other := way
		change(&other)
		return []kernelWay{way, other}
	}
	for name, c := range map[string]struct {
		lab *Lab
		ok  bool
	}{
		"a lab":                 {&Lab{nodes: nodes, kernel: []kernelWay{way, way}, tbfs: []tbfPlace{{Space: 2}}}, true},
		"shaped nowhere":        {&Lab{nodes: nodes, tbfs: []tbfPlace{{Space: 3}}}, false},
		"shaped before all":     {&Lab{nodes: nodes, tbfs: []tbfPlace{{Space: -1}}}, false},
		"emulated nowhere":      {&Lab{nodes: nodes, kernel: with(func(w *kernelWay) { w.Space = 99 })}, false},
		"from no node":          {&Lab{nodes: nodes, kernel: with(func(w *kernelWay) { w.Node = -1 })}, false},
		"by no interface":       {&Lab{nodes: nodes, kernel: with(func(w *kernelWay) { w.Entries = nil })}, false},
		"with stages too many":  {&Lab{nodes: nodes, kernel: with(func(w *kernelWay) { w.Stages = make([]kernelStage, 2) })}, false},
		"half a link":           {&Lab{nodes: nodes, kernel: []kernelWay{way}}, false},
		"a node without a wire": {&Lab{nodes: append(nodes, &Node{})}, false},
	} {
		c.lab.held = spaces
		if err := c.lab.whole(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
