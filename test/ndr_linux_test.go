package test

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"pelt/design"
	"pelt/internal/testenv"
	"pelt/model"
)

// searches runs pelt ndr up to three times, until right returns "": where the machine stood still for a moment, a search
// finds that moment.
func searches(t *testing.T, right func(found []design.Answer) string, args ...string) {
	t.Helper()
	for try := 1; ; try++ {
		work := t.TempDir()
		pelt(t, work, append([]string{"ndr", "--json", "ndr.json", "--no-store"}, args...)...)
		d := document(t, filepath.Join(work, "ndr.json"), "")
		found := design.Answers(d.Plan, d.Results)
		if len(found) != 2 {
			t.Fatalf("pelt ndr %v: %d answers, want 2", args, len(found))
		}
		wrong := right(found)
		if wrong == "" {
			return
		}
		if t.Logf("pelt ndr %v, search %d: %s", args, try, wrong); try == 3 {
			t.Error("none was right")
			return
		}
	}
}

// far says how far a rate is from what it should be; "" if it is within a share of that.
func far(name string, found, want, within float64) string {
	if math.Abs(found-want) <= within*want {
		return ""
	}
	return fmt.Sprintf("%s: %.0f pps; want %.0f within %.1f %%. ", name, found, want, 100*within)
}

// TestClockNdr finds truths of a lab: the rate of a link at two frame sizes, a limit one way, and random loss.
func TestClockNdr(t *testing.T) {
	testenv.Clock(t)
	searches(t, func(found []design.Answer) (wrong string) {
		for _, a := range found {
			wrong += far("tbf at "+a.Cell.Key(), a.Throughput, 200e6/8/(a.Cell["frame_bytes"].Number-4), 0.015)
		}
		return wrong
	}, "lab:router", "--link-receiver", "rate=200mbit", "--frame", "512,1518", "--direction", "up")
	searches(t, func(found []design.Answer) (wrong string) {
		const one = 50e6 / 8 / 508.0
		for _, a := range found {
			if a.Cell["direction"] == model.Word("up") {
				wrong += far("the limited way", a.Throughput, one, 0.025)
			} else if a.Throughput < 3*one {
				wrong += fmt.Sprintf("the other way carries %.0f pps, no more than three times the limited one", a.Throughput)
			}
		}
		return wrong
	}, "lab:router", "--link-receiver", "rate=50mbit,toward=receiver", "--frame", "512", "--direction", "up,down", "--time", "250ms")
	searches(t, func(found []design.Answer) string {
		if found[0].Throughput > 0.5*found[1].Throughput {
			return fmt.Sprintf("%.0f pps without loss, with a random loss of 1 %%", found[0].Throughput)
		}
		return far("5 % loss on a link that loses 1 %", found[1].Throughput, 20e6/8/508.0, 0.05)
	}, "lab:router", "--link-receiver", "rate=20mbit,loss=1%", "--frame", "512", "--max-loss", "0,5%", "--direction", "up", "--time", "250ms")
}
