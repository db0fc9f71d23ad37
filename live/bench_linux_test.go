package live

import (
	"io"
	"math"
	"slices"
	"sync"
	"testing"

	"pelt/model"
	"pelt/run"
	"pelt/unit"
)

// watched runs one trial in a lab, with so many readers that encode each event, as browsers have them, or with none. It
// is not valid if the machine was too busy for it.
func watched(b *testing.B, rate unit.Rate, seconds float64, readers int) (pps float64, valid bool) {
	p := model.Plan{Format: model.PlanFormat, Target: "lab:direct", Engine: "udp", Command: "curve",
		Flows: []model.Flow{{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: 64,
			Rate: rate, Streams: 1}},
		Timing: model.Timing{WarmupSeconds: 0.2, MeasureSeconds: seconds, DrainSeconds: 0.2},
		Design: model.Design{Repeats: 1, Seed: 1}}
	o := run.Options{Version: "bench", Live: readers > 0}
	f, samples := Feed{Stream: &Stream{}}, 0
	var all sync.WaitGroup
	for range readers {
		past, r := f.Stream.Read()
		all.Go(func() {
			defer r.Close()
			if err := WriteLines(io.Discard, past, r); err != nil {
				b.Error(err)
			}
		})
	}
	if readers > 0 {
		o.Events = func(e run.Event) {
			if e.Progress != nil {
				samples++
			}
			f.Take(e)
		}
	}
	doc, err := run.Execute(b.Context(), p, o)
	f.End(doc, err)
	all.Wait()
	if err != nil {
		b.Fatal(err)
	}
	result := doc.Results[0]
	told := readers == 0 || samples >= int(2*seconds*10*0.7)
	return result.Flows[0].ReceivePPS, told && result.State == model.Valid
}

// BenchmarkWatchers compares a trial that ten readers watch to one that nobody does: pairs, whose order alternates. It
// prints the median ratio of what was received, and between which ratios it lies with a confidence of 95 %, by the sign
// test: a flood's rate has outliers. Pairs with a trial that is not valid are left out, and counted. It wants a machine
// with nothing else to do.
func BenchmarkWatchers(b *testing.B) {
	for _, c := range []struct {
		rate    string
		pairs   int
		seconds float64
	}{{"max", 36, 0.6}, {"20kpps", 10, 0.6}} {
		if testing.Short() {
			c.pairs, c.seconds = 1, 0.3
		}
		rate, err := unit.ParseRate(c.rate)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.rate, func(b *testing.B) {
			for b.Loop() {
				var ratios []float64
				for i := range c.pairs {
					var pps [2]float64
					var valid [2]bool
					for _, k := range []int{i % 2, 1 - i%2} {
						pps[k], valid[k] = watched(b, rate, c.seconds, 10*k)
					}
					if valid[0] && valid[1] {
						ratios = append(ratios, pps[1]/pps[0])
					}
				}
				b.ReportMetric(float64(c.pairs-len(ratios)), "pairs-left-out")
				b.ReportMetric(0, "ns/op")
				if len(ratios) == 0 {
					continue
				}
				slices.Sort(ratios)
				b.Logf("%.4f", ratios)
				n := float64(len(ratios))
				low := max(int(n/2-0.98*math.Sqrt(n)), 0)
				b.ReportMetric(ratios[len(ratios)/2], "ratio-median")
				b.ReportMetric(ratios[low], "ratio-low")
				b.ReportMetric(ratios[len(ratios)-1-low], "ratio-high")
			}
		})
	}
}
