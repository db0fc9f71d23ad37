package finding

import (
	"net/netip"
	"slices"
	"testing"

	"pelt/model"
	"pelt/table"
)

// What links lost counts over all valid trials whose links stayed as they were, for each share that was asked.
func TestMadeLoss(t *testing.T) {
	of := func(from, to string, frames, lost uint64, asked float64) model.LinkResult {
		return model.LinkResult{From: from, To: to, Frames: frames, Lost: &lost, AskedRatio: asked}
	}
	trial := func(state model.State, links ...model.LinkResult) model.Result {
		return model.Result{State: state, Flows: []model.FlowResult{{Name: "up"}, {Name: "down"}}, Links: links}
	}
	changed := trial(model.Valid, of("sender", "router", 1000, 900, 0.05))
	changed.Made = []model.MadeChange{{Words: "link=loss=90%"}}
	d := model.Document{Results: []model.Result{
		trial(model.Valid, of("sender", "router", 1000, 40, 0.05), of("router", "receiver", 960, 0, 0)),
		trial(model.Valid, of("sender", "router", 1000, 58, 0.05), of("router", "sender", 500, 26, 0.05)),
		trial(model.Valid, of("sender", "router", 1000, 11, 0.01),
			model.LinkResult{From: "router", To: "sender", AskedRatio: 0.01}),
		trial(model.Invalid, of("sender", "router", 1000, 700, 0.05)), changed,
	}}
	var got []string
	for _, f := range madeLoss(table.Rows(&d)) {
		got = append(got, f.Text())
	}
	want := []string{"Loss of the emulated link sender to router: asked 1 %, made 1.1 % of 1 000 frames.",
		"Loss of the emulated link sender to router and 1 more: asked 5 %, made 4.96 % of 2 500 frames."}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// A change of a flow's source address is told once a trial, with how many streams it met and what was lost meanwhile.
func TestMoves(t *testing.T) {
	at := func(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }
	flow := func(streams int, lost uint64, moves ...model.Move) model.Result {
		f := model.FlowResult{Name: "up", Streams: streams, Moved: moves}
		if lost > 0 {
			f.Ledger.Lines = []model.Line{{Layer: model.LayerApplication, Cause: model.CauseNewAddress, Packets: lost}}
		}
		return model.Result{State: model.Valid, Flows: []model.FlowResult{f}}
	}
	port := model.Move{From: at("10.0.0.1:40000"), To: at("10.0.0.1:51123"), AtS: 3.2}
	address := model.Move{Stream: 2, From: at("10.0.0.1:40000"), To: at("[fd77::1]:40000"), AtS: 3.2}
	again := model.Move{From: at("10.0.0.1:51123"), To: at("10.0.0.1:9"), AtS: 5}
	d := model.Document{Results: []model.Result{flow(1, 150, port), flow(4, 0), flow(4, 0, address),
		flow(4, 1, port, again),
		flow(1, 0, again), flow(1, 0, again)}}
	var got []string
	for _, f := range Moves(table.Rows(&d)) {
		got = append(got, f.Text())
	}
	want := []string{
		"The path gave the flow another source port after 3.20 s: 40000 became 51123; 150 packets were lost meanwhile.",
		"The path gave 1 of 4 streams another source address after 3.20 s: 10.0.0.1:40000 became [fd77::1]:40000.",
		"The path gave 1 of 4 streams another source port after 3.20 s: 40000 became 51123, the first of 2 changes; 1 packet was lost meanwhile.",
		"The path changed a source port in 2 more trials.",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
