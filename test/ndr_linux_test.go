package test

import (
	"math"
	"path/filepath"
	"testing"

	"pelt/design"
	"pelt/internal/testenv"
	"pelt/model"
)

// searched runs pelt ndr and returns what it found.
func searched(t *testing.T, args ...string) []design.Answer {
	t.Helper()
	work := t.TempDir()
	pelt(t, work, append([]string{"ndr", "--json", "ndr.json", "--no-store"}, args...)...)
	d := document(t, filepath.Join(work, "ndr.json"), "")
	return design.Answers(d.Plan, d.Results)
}

// TestClockNdr finds truths of a lab: the rate of a link at two frame sizes, a limit one way, and random loss.
func TestClockNdr(t *testing.T) {
	testenv.Clock(t)
	near := func(name string, found, want, within float64) {
		t.Logf("%s: %.0f pps, want %.0f", name, found, want)
		if !(math.Abs(found-want) <= within*want) {
			t.Errorf("%s: found %.0f pps; want %.0f within %.1f %%", name, found, want, 100*within)
		}
	}
	for _, a := range searched(t, "lab:router", "--link-receiver", "rate=200mbit", "--frame", "512,1518", "--direction", "up") {
		frame := a.Cell["frame_bytes"].Number
		near("tbf at "+a.Cell.Key(), a.Throughput, 200e6/8/(frame-4), 0.015)
	}
	for _, a := range searched(t, "lab:router", "--link-receiver", "rate=50mbit,toward=receiver", "--frame", "512", "--direction", "up,down", "--time", "250ms") {
		one := 50e6 / 8 / 508.0
		if a.Cell["direction"] == model.Word("up") {
			near("the limited way", a.Throughput, one, 0.025)
		} else if a.Throughput < 3*one {
			t.Errorf("the other way carries %.0f pps, no more than three times the limited one", a.Throughput)
		}
	}
	random := searched(t, "lab:router", "--link-receiver", "rate=20mbit,loss=1%", "--frame", "512", "--max-loss", "0,5%", "--direction", "up", "--time", "250ms")
	if len(random) != 2 || random[0].Throughput > 0.5*random[1].Throughput {
		t.Fatalf("with random loss: %d answers; want two, and a low rate without loss", len(random))
	}
	near("5 % loss on a link that loses 1 %", random[1].Throughput, 20e6/8/508.0, 0.05)
}
