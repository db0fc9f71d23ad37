package test

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"pelt/design"
	"pelt/internal/testenv"
)

// TestClockNdr finds the rate of a link at two frame sizes, up to three times: where the machine stood still for a
// moment, a search finds that moment. Package design has the searches of other paths.
func TestClockNdr(t *testing.T) {
	testenv.Clock(t)
	for try := 1; ; try++ {
		work, wrong := t.TempDir(), ""
		pelt(t, work, "ndr", "lab:router", "--link-receiver", "rate=200mbit", "--frame", "512,1518", "--direction",
			"up", "--searches", "1", "--json", "ndr.json", "--no-store")
		d := document(t, filepath.Join(work, "ndr.json"), "")
		found := design.Answers(d.Plan, d.Results, d.Complete)
		for _, a := range found {
			if want := 200e6 / 8 / (a.Cell["frame_bytes"].Number - 4); !(math.Abs(a.Throughput-want) <= 0.015*want) {
				wrong += fmt.Sprintf("%s: %.0f pps; want %.0f. ", a.Cell.Key(), a.Throughput, want)
			}
		}
		if wrong == "" && len(found) == 2 {
			return
		}
		if try == 3 {
			t.Fatalf("%d answers, want 2: %s", len(found), wrong)
		}
		testenv.AwaitCalm(t.Logf)
	}
}
