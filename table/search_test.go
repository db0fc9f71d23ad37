package table_test

import (
	"math"
	"testing"

	"pelt/design"
	"pelt/table"
)

// The time that a path buffers for is of the packets that came in while it passed others on: RFC 9004 section 6.4.
func TestBufferTime(t *testing.T) {
	for name, c := range map[string]struct {
		throughput float64
		found      design.Standard
		want       [3]float64 // packets, seconds, corrected seconds
	}{
		"corrected":    {250e3, design.Standard{Bursts: []design.Burst{{Packets: 1000, PPS: 1e6}, {Packets: 3000, PPS: 1e6}}}, [3]float64{2000, 0.002, 0.0015}},
		"two rates":    {250e3, design.Standard{Bursts: []design.Burst{{Packets: 1000, PPS: 1e6}, {Packets: 1000, PPS: 5e5}}}, [3]float64{1000, 0.0015, 0.000875}},
		"no loss":      {250e3, design.Standard{Bursts: []design.Burst{{Packets: 1000, PPS: 1e6}}, Unlost: true}, [3]float64{1000, 0.001, math.NaN()}},
		"slow sender":  {250e3, design.Standard{Bursts: []design.Burst{{Packets: 1000, PPS: 2e5}}}, [3]float64{1000, 0.005, math.NaN()}},
		"not one":      {250e3, design.Standard{Bursts: []design.Burst{{PPS: math.NaN()}}}, [3]float64{0, math.NaN(), math.NaN()}},
		"not measured": {250e3, design.Standard{}, [3]float64{math.NaN(), math.NaN(), math.NaN()}},
	} {
		r := table.Row{Search: &table.Search{Answer: design.Answer{Bounds: design.Bounds{Throughput: c.throughput}, Standard: c.found}}}
		for i, metric := range []string{"burst_packets", "burst_s", "buffer_s"} {
			got, known := table.MetricOf(metric).Value(r)
			if known == math.IsNaN(c.want[i]) || known && math.Abs(got-c.want[i]) > 1e-9 {
				t.Errorf("%s: %s %v (%v), want %v", name, metric, got, known, c.want[i])
			}
		}
	}
}
