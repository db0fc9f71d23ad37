package changes

import (
	"math/rand/v2"
	"syscall"
	"testing"

	"pelt/model"
)

// dayLong is a trial of 24 h with as many series as a soak with a watched router has.
func dayLong(changed bool) model.Result {
	const n = 86400
	r := rand.New(rand.NewPCG(24, 20))
	var out model.Result
	add := func(metric, flow, at string, values []float64) {
		out.Series = append(out.Series, model.Series{Metric: metric, Flow: flow, At: at, StepSeconds: 1, Values: values})
	}
	for _, flow := range []string{"up", "down"} {
		for range 3 {
			add("receive_pps", flow, "receiver", around(260e3, 2600, autoregressive(n, 0.7, r)))
			add("send_pps", flow, "sender", drawn(n, func(int) float64 { return 262e3 + float64(r.IntN(3)-1) }))
			add("lost_pps", flow, "sender", drawn(n, func(int) float64 { return poisson(40, r) }))
		}
	}
	add("receive_pps", "third", "receiver", around(260e3, 2600, autoregressive(n, 0, r)))
	add("send_pps", "third", "sender", around(260e3, 2600, autoregressive(n, 0, r)))
	if changed {
		for i := 1; i <= 50; i++ {
			for k := i * 1700; k < min(n, i*1700+600); k++ {
				out.Series[0].Values[k] -= 60e3
				out.Series[2].Values[k] += 60e3
			}
		}
	}
	return out
}

// BenchmarkFindDay also reports processor time, which a busy machine does not lengthen.
func BenchmarkFindDay(b *testing.B) {
	for name, changed := range map[string]bool{"steady": false, "100 shifts": true} {
		b.Run(name, func(b *testing.B) {
			day := dayLong(changed)
			b.ReportAllocs()
			found, rounds, before := 0, 0.0, processorSeconds(b)
			for b.Loop() {
				found = len(Find(day))
				rounds++
			}
			b.ReportMetric((processorSeconds(b)-before)/rounds, "cpu-s/op")
			b.ReportMetric(float64(found), "changes")
		})
	}
}

func processorSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
