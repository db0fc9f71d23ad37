package finding

import (
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
		trial(model.Valid, of("sender", "router", 1000, 11, 0.01), model.LinkResult{From: "router", To: "sender", AskedRatio: 0.01}),
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
