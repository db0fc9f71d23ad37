package report

import (
	"math"
	"slices"
	"testing"

	"pelt/model"
)

func TestLinkLosses(t *testing.T) {
	n := func(v uint64) *uint64 { return &v }
	doc := model.Document{Results: []model.Result{
		{State: model.Valid, Links: []model.LinkResult{{From: "a", To: "b", Frames: 100, Lost: n(3), QueueFull: n(2)}, {From: "b", To: "a", Frames: 50}}},
		{State: model.Invalid, Links: []model.LinkResult{{From: "a", To: "b", Frames: 1000, Lost: n(500)}}},
		{State: model.Valid, Links: []model.LinkResult{{From: "a", To: "b", Frames: 10, Lost: n(1)}, {From: "\x1b[31m", To: "c", Frames: math.MaxUint64}}},
		{State: model.Valid, Links: []model.LinkResult{{From: "\x1b[31m", To: "c", Frames: math.MaxUint64}}},
	}}
	got := linkLosses(doc)
	want := []string{
		"emulated link a to b: of 110 frames 4 lost as asked, 2 found its queue full",
		"emulated link b to a: of 50 frames 0 lost as asked, 0 found its queue full",
	}
	if len(got) != 3 || !slices.Equal(got[:2], want) || slices.Contains([]byte(got[2]), 0x1b) {
		t.Errorf("got %q, want %q and one more without escapes", got, want)
	}
	if list := linkLosses(model.Document{}); len(list) > 0 {
		t.Errorf("of nothing: %q", list)
	}
}
