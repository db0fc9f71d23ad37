package run

import (
	"testing"

	"pelt/lab"
	"pelt/lab/fastpath"
	"pelt/model"
)

func TestAddAccount(t *testing.T) {
	before := lab.RouterAccount{Setup: "log", Logged: 100, Lines: 90, Missed: 10,
		Fast: []fastpath.Count{{Reason: "carried", Frames: 5}, {Reason: "first", Frames: 1}}}
	after := lab.RouterAccount{Setup: "log", Logged: 1100, Lines: 840, Missed: 260,
		Fast: []fastpath.Count{{Reason: "carried", Frames: 5}, {Reason: "first", Frames: 3}}}
	var r model.Result
	addAccount(&r, "router", &before, &after)
	got := map[string]uint64{}
	for _, c := range r.Counters {
		got[c.Host+" "+c.Name] = c.Whole
	}
	want := map[string]uint64{"router log.packets": 1000, "router log.lines": 750, "router log.missed": 250,
		"router fastpath.first": 2}
	if len(got) != len(want) {
		t.Errorf("counters %v, want %v", got, want)
	}
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s is %d, want %d", name, got[name], n)
		}
	}
	if len(r.Warnings) != 1 || r.Warnings[0].Numbers["missed_ratio"] != 0.25 {
		t.Errorf("warnings %v", r.Warnings)
	}
	var none model.Result
	addAccount(&none, "router", &lab.RouterAccount{Setup: "plain"}, &after) // it was made something else meanwhile
	addAccount(&none, "router", nil, &after)
	if len(none.Counters)+len(none.Warnings) > 0 {
		t.Errorf("told %+v", none)
	}
}
