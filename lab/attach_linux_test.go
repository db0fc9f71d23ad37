package lab

import (
	"fmt"
	"testing"

	"pelt/internal/netns"
	"pelt/model"
)

// What a holder tells of places that are none is refused before anybody looks there.
func TestWhole(t *testing.T) {
	spaces := []*netns.Handle{nil, nil, nil}
	nodes := []*Node{{info: nodeInfo{Name: "sender", Interfaces: []Interface{{}}}}, {info: nodeInfo{Name: "receiver", Interfaces: []Interface{{}}}}}
	for name, c := range map[string]struct {
		lab *Lab
		ok  bool
	}{
		"a lab":                 {&Lab{nodes: nodes, tbfs: []tbfPlace{{Space: 2}}}, true},
		"shaped nowhere":        {&Lab{nodes: nodes, tbfs: []tbfPlace{{Space: 3}}}, false},
		"shaped before all":     {&Lab{nodes: nodes, tbfs: []tbfPlace{{Space: -1}}}, false},
		"a node without a wire": {&Lab{nodes: append(nodes, &Node{})}, false},
	} {
		c.lab.held = spaces
		if err := c.lab.whole(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a holder tells of emulated links is taken only if it is all there.
func TestKnow(t *testing.T) {
	told := []LinkWay{{From: "a", To: "b", Backend: model.BackendKernel}, {From: "b", To: "a", Backend: model.BackendKernel},
		{From: "b", To: "c", Backend: ByCable}, {From: "c", To: "b", Backend: ByCable}, {From: "c", To: "d", Backend: ByUser}, {From: "d", To: "c", Backend: ByUser}}
	way := kernelWay{Space: 2, Entries: []string{"to-a"}}
	with := func(change func(*kernelWay)) []kernelWay {
		other := way
		change(&other)
		return []kernelWay{way, other}
	}
	for name, c := range map[string]struct {
		kernel []kernelWay
		want   string // the links
	}{
		"a lab":            {[]kernelWay{way, way}, "[a b] by kernel, [c d] by user, "},
		"emulated nowhere": {with(func(w *kernelWay) { w.Space = 99 }), ""},
		"by no interface":  {with(func(w *kernelWay) { w.Entries = nil }), ""},
		"half a link":      {[]kernelWay{way}, ""},
	} {
		l, got := &Lab{held: []*netns.Handle{nil, nil, nil}}, ""
		err := l.know(told, c.kernel)
		for _, k := range l.Emulated() {
			got += fmt.Sprint(k.Ends, " by ", k.by.backend, ", ")
		}
		if (err == nil) != (c.want != "") || err == nil && got != c.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, c.want)
		}
	}
}
