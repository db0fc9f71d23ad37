package sample

import (
	"pelt/model"
	"pelt/unit"
)

// Paced is a Poisson flow whose shortest gaps the sender did not keep, and one
// that is on and off.
func Paced() model.Document {
	d := Base("lab:direct", []int{64, 512}, 1, 10)
	d.Plan.Flows[0].Rate, d.Plan.Flows[0].Profile = unit.PacketRate(40_000), &model.Profile{Kind: model.Poisson}
	for i, p := range []int{64, 512} {
		f := UDP("up", p, 40e3, 40e3, 10, 20e3)
		f.Lost, f.LossRatio, f.Received, f.Ledger.Lost, f.Ledger.Unattributed = 0, 0, f.Attempted, 0, 0
		distance := []float64{0.062, 0.0001}[i]
		f.Pacing = &model.Pacing{Profile: "poisson", Seed: 7, Distance: &distance,
			AskedGap: &model.Percentiles{Count: 399_999, Min: 3, P50: 17_300, P90: 57_500, P99: 115_000,
				P999: 172_000, Max: 330_000, Mean: 25_000}}
		f.SendLate = &model.Percentiles{Count: 400_000, P50: 120, P90: 3_900, P99: 38_000, P999: 81_000, Max: 95_000,
			Mean: 2_100}
		f.SendGap = &model.Percentiles{Count: 399_999, Min: 900, P50: 17_600, P90: 57_100, P99: 118_000,
			P999: 175_000, Max: 331_000, Mean: 25_000}
		d.Results = append(d.Results, Result(p, 0, f))
	}
	return d
}
