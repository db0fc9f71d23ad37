package changes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pelt/model"
)

// noises are ways in which a rate of 200 kpps with a scatter of 1 % is noisy.
func noises() []steady {
	return []steady{
		{"white", "receive_pps", func(n int, r *rand.Rand) []float64 { return around(200e3, 2000, autoregressive(n, 0, r)) }},
		{"AR(1) 0.9", "receive_pps", func(n int, r *rand.Rand) []float64 { return around(200e3, 2000, autoregressive(n, 0.9, r)) }},
		{"Student 3", "receive_pps", func(n int, r *rand.Rand) []float64 {
			return drawn(n, func(int) float64 { return 200e3 + 2000*student(3, r)/math.Sqrt(3) })
		}},
	}
}

// BenchmarkPower reports in how many of 100 trials a shift of so many standard
// deviations in the middle is found, how far from its place, and how often its interval
// holds the place.
func BenchmarkPower(b *testing.B) {
	for _, s := range noises() {
		for _, n := range []int{60, 600, 3600} {
			for _, sizes := range []float64{0.5, 1, 2, 5, 20} {
				b.Run(fmt.Sprintf("%s/%ds/%gsd", s.name, n, sizes), func(b *testing.B) {
					for b.Loop() {
						found, held, off := power(s, n, 2000*sizes, rounds(100))
						b.ReportMetric(found, "found")
						b.ReportMetric(held, "held")
						b.ReportMetric(off, "s-off")
					}
				})
			}
		}
	}
}

// rounds of a benchmark; one where it is only asked whether it runs.
func rounds(n int) int {
	if testing.Short() {
		return 1
	}
	return n
}

func power(s steady, n int, size float64, times int) (found, held, off float64) {
	var offs []float64
	for seed := range uint64(times) {
		r := rand.New(rand.NewPCG(seed, 44))
		v := s.draw(n, r)
		for i := n / 2; i < n; i++ {
			v[i] -= size
		}
		got := Find(trial(s.metric, v))
		at := slices.IndexFunc(got, func(c model.Change) bool {
			return (c.Kind == model.ChangeShift || c.Kind == model.ChangeDrift) && c.Size < 0 && math.Abs(c.Size+size) < size/2
		})
		if at < 0 {
			continue
		}
		c, want := got[at], float64(n/2)
		offs = append(offs, math.Abs(c.StartS-want))
		if c.StartLowS <= want && want <= c.StartHighS {
			held++
		}
	}
	k := float64(len(offs))
	return k / float64(times), held / max(k, 1), median(offs)
}

// BenchmarkDelay reports how many seconds a shift is old when it is first found, if
// the series so far is asked about every second; the middle of 20 trials.
func BenchmarkDelay(b *testing.B) {
	for _, s := range noises() {
		for _, sizes := range []float64{2, 5, 20, 50} {
			b.Run(fmt.Sprintf("%s/%gsd", s.name, sizes), func(b *testing.B) {
				for b.Loop() {
					b.ReportMetric(delay(s, 600, 2000*sizes, rounds(20)), "s-delay")
				}
			})
		}
	}
}

func delay(s steady, at int, size float64, times int) float64 {
	var delays []float64
	for seed := range uint64(times) {
		r := rand.New(rand.NewPCG(seed, 45))
		v := s.draw(at+200, r)
		for i := at; i < len(v); i++ {
			v[i] -= size
		}
		k := at + 1
		for k < len(v) && len(Find(trial(s.metric, v[:k]))) == 0 {
			k++
		}
		delays = append(delays, float64(k-at))
	}
	return median(delays)
}

// What people would see in a chart is found, at the right second, and the interval
// holds it in nineteen of twenty.
func TestPower(t *testing.T) {
	for _, s := range noises() {
		if found, held, off := power(s, 600, 16000, 60); found < 0.95 || held < 0.9 || off > 3 {
			t.Errorf("%s: a shift of 8 %% found in %.2f of all, its place in the interval in %.2f, %v s off; want 0.95, 0.9, 3 s", s.name, found, held, off)
		}
		if d := delay(s, 300, 100e3, 3); d > 15 {
			t.Errorf("%s: a rate that falls by half is found after %v s; want 15 at most", s.name, d)
		}
	}
}

// BenchmarkMoments reports in how many of 100 trials regular stalls of one second, or one
// burst of losses, are found.
func BenchmarkMoments(b *testing.B) {
	share := func(b *testing.B, find func(r *rand.Rand) bool) {
		for b.Loop() {
			found := 0.0
			times := rounds(100)
			for seed := range uint64(times) {
				if find(rand.New(rand.NewPCG(seed, 46))) {
					found++
				}
			}
			b.ReportMetric(found/float64(times), "found")
		}
	}
	for _, s := range noises() {
		for _, depth := range []float64{0.05, 0.1, 0.3} {
			for _, every := range []float64{10, 60} {
				for _, times := range []int{5, 8, 20} {
					b.Run(fmt.Sprintf("stalls/%s/%g%%/every %gs/%d times", s.name, 100*depth, every, times), func(b *testing.B) {
						share(b, func(r *rand.Rand) bool {
							v := s.draw(int(every)*times+30, r)
							for k := range times {
								v[15+int(every*float64(k)+1.5*r.Float64())] -= depth * 200e3 // the timer is not quite regular
							}
							return slices.ContainsFunc(Find(trial(s.metric, v)), func(c model.Change) bool {
								return c.Kind == model.ChangeStall && math.Abs(c.PeriodS-every) < 1
							})
						})
					})
				}
			}
		}
	}
	for _, s := range nulls() {
		if s.metric != "lost_pps" {
			continue
		}
		for _, packets := range []float64{10, 30, 100, 1000, 10000} {
			b.Run(fmt.Sprintf("burst/%s/%g packets", s.name, packets), func(b *testing.B) {
				share(b, func(r *rand.Rand) bool {
					v := s.draw(600, r)
					v[300] += packets
					return slices.ContainsFunc(Find(trial(s.metric, v)), func(c model.Change) bool {
						return c.Kind == model.ChangeBurst && c.StartS <= 300 && c.EndS >= 301
					})
				})
			})
		}
	}
}
