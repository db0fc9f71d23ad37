package compare

import (
	"math"

	"pelt/analysis/internal/stats"
	"pelt/model"
)

const (
	// wantedChange is the change whose discovery is planned for: 5 %, or 5 points.
	wantedChange = 0.05
	// power is how sure to be that it is found.
	power = 0.8
	// manyFreedom is as good as more: the plan asks for 2 % more repeats at most.
	manyFreedom = 100
	// mostNeeded is how many repeats a user may sensibly be told to make.
	mostNeeded = 1000
)

// need plans repeats for tests that share the chance of a false alarm.
type need struct {
	level   float64         // of one test: Bonferroni's, which Holm's reaches at its first step
	factors map[int]float64 // by repeats
}

func needs(tests int) need {
	return need{(1 - stats.Confidence) / float64(max(tests, 1)), map[int]float64{}}
}

// factor is how many standard deviations a change must have to be found with n repeats.
func (d need) factor(n int) float64 {
	f, known := d.factors[n]
	if !known {
		freedom := min(n-1, manyFreedom)
		f = (stats.Student(1-d.level/2, freedom) + stats.Student(power, freedom)) / math.Sqrt(float64(n))
		d.factors[n] = f
	}
	return f
}

// repeats is how many would show the wanted change, 0 if those made do, and one more
// than mostNeeded if no sensible number does.
func (d need) repeats(c contrast) int {
	sum := 0.0
	for _, s := range c.samples {
		sum += s.variance
	}
	wanted := wantedChange
	if c.metric.kind == model.Relative && !c.linear {
		wanted = math.Log1p(wanted)
	}
	wanted -= c.resolution()
	enough := func(n int) bool { return d.factor(n)*math.Sqrt(sum) <= wanted }
	if enough(c.effect.Repeats) {
		return 0
	}
	if !enough(mostNeeded) {
		return mostNeeded + 1
	}
	low, high := c.effect.Repeats, mostNeeded
	for high-low > 1 {
		if mid := (low + high) / 2; enough(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}
