package table

import (
	"math"
	"testing"

	"pelt/model"
)

// TestProbeFigures: figures of the thin flow are those of its facts; what it does not know is none.
func TestProbeFigures(t *testing.T) {
	nan := math.NaN()
	trip := &model.Percentiles{Count: 3, P50: 50e6, Mean: 60e6}
	for _, c := range []struct {
		trip                        *model.Percentiles
		probe                       *model.ProbeFacts
		lost, more, up, down, every float64
	}{
		{trip, &model.ProbeFacts{Sent: 4, Answered: 3, IdleNS: 20e6, Up: &model.Percentiles{Count: 3, P50: 30e6}},
			0.25, 30e6, 30e6, nan, 1000},
		{trip, &model.ProbeFacts{Sent: 3, Answered: 3}, 0, nan, nan, nan, 1000},
		{trip, &model.ProbeFacts{Sent: 3, Answered: 3, IdleNS: 51e6}, 0, 0, nan, nan, 1000},
		{nil, &model.ProbeFacts{Sent: 3, IdleNS: 20e6}, 1, nan, nan, nan, nan},
		{trip, nil, nan, nan, nan, nan, nan},
	} {
		f := model.FlowResult{Name: "up", Protocol: model.UDP, Attempted: 1, RoundTrip: c.trip, Probe: c.probe}
		r := Row{Doc: &model.Document{}, Trial: &model.Result{State: model.Valid}, Flow: &f}
		for name, want := range map[string]float64{"probe_loss_ratio": c.lost, "round_trip_increase_ns": c.more,
			"up_increase_p50_ns": c.up, "down_increase_p50_ns": c.down, "round_trips_per_minute": c.every} {
			if got := figureOf(name, r); !same(got, want) {
				t.Errorf("%+v: %s is %v, want %v", c.probe, name, got, want)
			}
		}
	}
}
