package finding

import (
	"math"
	"slices"
)

const (
	// An event strays so many standard deviations from the running median.
	deep = 4.0
	// So few events have no rhythm.
	fewestStalls = 5
	// Events nearer together are one; a period is longer. Both are in values.
	muchApart      = 2
	shortestPeriod = 5.0
)

type event struct {
	from, to int     // places
	at       float64 // its centre, in steps of the series
}

// events returns where a rate is far below its running median, or a loss far above, for
// less than a level lasts and not beside a cut.
func (t *track) events(cuts []int) (out []event) {
	for i := 0; i < len(t.raw); i++ {
		if t.strays(i) < deep {
			continue
		}
		e := event{from: i, to: i + 1}
		for k := i + 1; k < len(t.raw) && k < e.to+muchApart; k++ {
			if t.strays(k) >= deep {
				e.to = k + 1
			}
		}
		i = e.to - 1
		at, _ := slices.BinarySearch(cuts, e.from-muchApart)
		besideCut := at < len(cuts) && cuts[at] <= e.to+muchApart
		if e.to-e.from >= shortest || e.from == 0 || e.to == len(t.raw) || besideCut {
			continue
		}
		var all, moment float64
		for k := e.from; k < e.to; k++ {
			s := max(0, t.off(k))
			all, moment = all+s, moment+s*float64(t.place[k])
		}
		e.at = moment / all
		out = append(out, e)
	}
	return out
}

// off is how far a value lies to the bad side of the running median.
func (t *track) off(i int) float64 {
	if t.use == lossSeries {
		return t.raw[i] - t.mid[i]
	}
	return t.mid[i] - t.raw[i]
}

// strays is the same in standard deviations, 0 where it is too small to count.
func (t *track) strays(i int) float64 {
	if s := t.off(i); s >= 2*t.least {
		return s / t.sigma[i]
	}
	return 0
}

type rhythm struct {
	period float64 // in steps of the series
	slack  float64 // by which times may differ from it
	events []event
	chance float64 // that events at any times keep such a rhythm, at any period
}

// regular finds the period at which most events follow each other. Were they to come at
// any time, the time from one to the next would be exponential (D. Cox and P. Lewis,
// 1966), and so many times within a narrow band a binomial chance.
func regular(events []event, n int, o odds) (best rhythm, ok bool) {
	if len(events) < fewestStalls {
		return rhythm{}, false
	}
	var gaps []float64
	for i := 1; i < len(events); i++ {
		gaps = append(gaps, events[i].at-events[i-1].at)
	}
	sorted := slices.Sorted(slices.Values(gaps))
	best.chance = math.Inf(1)
	for _, slack := range []float64{0.6, 1.1, 2.1} {
		for _, period := range slices.Compact(slices.Clone(sorted)) {
			low, high := between(sorted, period-slack, period+slack)
			period = sorted[(low+high-1)/2]
			low, high = between(sorted, period-slack, period+slack)
			if period < shortestPeriod || period <= 2*slack || high-low < fewestStalls-1 {
				continue
			}
			if p := spacingChance(sorted, high-low, period, slack, len(events), n); p < best.chance {
				best = rhythm{period: period, slack: slack, chance: p}
			}
		}
	}
	// Any period up to a quarter of the trial could have been found, in three bands.
	if best.chance = o.anywhere(best.chance, 3*float64(n)/4); !(best.chance <= o.allowed()) {
		return rhythm{}, false
	}
	keeps := make([]bool, len(events))
	sum, kept := 0.0, 0.0
	for i, g := range gaps {
		if math.Abs(g-best.period) <= best.slack {
			keeps[i], keeps[i+1] = true, true
			sum, kept = sum+g, kept+1
		}
	}
	best.period = sum / kept
	for i, k := range keeps {
		if k {
			best.events = append(best.events, events[i])
		}
	}
	return best, true
}

func between(sorted []float64, low, high float64) (from, to int) {
	from, _ = slices.BinarySearch(sorted, low)
	to, _ = slices.BinarySearch(sorted, math.Nextafter(high, math.Inf(1)))
	return from, to
}

// spacingChance is the chance that so many times between events fall within slack of a
// period. Events that come in clusters have more short times than exponential ones, so
// it is no less than if all times from half the period to one and a half were as likely.
func spacingChance(sorted []float64, hits int, period, slack float64, events, n int) float64 {
	const least = muchApart + 1
	mean := max(1, float64(n)/float64(events)-least)
	one := math.Exp(-max(0, period-slack-0.5-least)/mean) - math.Exp(-(period+slack+0.5-least)/mean)
	from, to := between(sorted, period/2, period*3/2)
	even := min(1, (2*slack+1)/(period*3/2-max(period/2, least)))
	return max(binomialTail(len(sorted), hits, one), binomialTail(to-from, hits, even))
}

func binomialTail(n, k int, p float64) (sum float64) {
	switch {
	case k <= 0 || p >= 1:
		return 1
	case p <= 0:
		return 0
	}
	all, _ := math.Lgamma(float64(n + 1))
	for i := k; i <= n; i++ {
		a, _ := math.Lgamma(float64(i + 1))
		b, _ := math.Lgamma(float64(n - i + 1))
		next := math.Exp(all - a - b + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
		if sum += next; float64(i) > float64(n)*p && next <= 1e-17*sum {
			break // they only fall from there on
		}
	}
	return min(1, sum)
}
