package analysis

import (
	"strings"
	"testing"

	"pelt/model"
)

// TestPacketBytes: what was found before the test counts more than what the
// interfaces have, unless it is not known for all flows.
func TestPacketBytes(t *testing.T) {
	host := []model.Host{{Node: model.Sender, MTUBytes: 1500}}
	up, down := model.PathMTU{Flow: "up", Bytes: 1400}, model.PathMTU{Flow: "down", Bytes: 1380}
	for _, c := range []struct {
		name string
		list []model.PathMTU
		why  string
		want int
	}{
		{"not asked", nil, "", 1500},
		{"found", []model.PathMTU{up}, "", 1400},
		{"the least", []model.PathMTU{up, down}, "", 1380},
		{"one unknown", []model.PathMTU{up, {Flow: "down", Why: "no answer"}}, "", 1500},
		{"a bound is no size", []model.PathMTU{{Flow: "up", Bytes: 1200, AtLeast: true}}, "", 1500},
		{"told at the send", []model.PathMTU{up}, "message too long: the path takes IP packets of 1300 B at most", 1300},
	} {
		if got := packetBytes(model.Document{Host: host, PathMTU: c.list}, c.why); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestSwallowed(t *testing.T) {
	a := &analyst{doc: model.Document{PathMTU: []model.PathMTU{
		{Flow: "up", From: "sender", To: "receiver", Bytes: 1420, Found: model.MTUSearch},
		{Flow: "down", From: "receiver", To: "sender", Bytes: 1500, Found: model.MTUOfRoute},
	}}}
	a.swallowed()
	if len(a.found) != 1 || a.found[0].Kind != KindPathMTU || a.found[0].Values["up_path_mtu_bytes"] != 1420 ||
		!strings.HasPrefix(a.found[0].Text, "IP packets above 1420 B from sender to receiver vanish") {
		t.Errorf("found %+v", a.found)
	}
	for _, m := range []model.PathMTU{{Flow: "up", Bytes: 1400, Found: model.MTUTold}, {Flow: "up", Why: "no answer"}, {Flow: "up", Bytes: 1200, Found: model.MTUSearch, AtLeast: true}} {
		a := &analyst{doc: model.Document{PathMTU: []model.PathMTU{m}}}
		if a.swallowed(); len(a.found) != 0 {
			t.Errorf("%+v gave %+v", m, a.found)
		}
	}
}
