package changes

import (
	"math"
	"slices"
)

const (
	// deep is how far off the running median a value is an event, in standard deviations.
	deep = 4.0
	// fewestStalls have a rhythm.
	fewestStalls = 5
	// shortestPeriod is the least that events can be told apart at, in values; what lies
	// nearer together than apart is one.
	shortestPeriod = 5.0
	apart          = 2
)

// event is a short time in which a series was far from its level.
type event struct {
	from, to int     // places
	at       float64 // its centre, weighted by how far it strayed, in steps of the series
	size     float64 // mean of what it strayed
}

// events are the places where a rate is far below its running median, or a count far
// above, for less than a level lasts. Cuts are none, so values beside them are left out.
func (t *track) events(cuts []int) (out []event) {
	for i := 0; i < len(t.raw); i++ {
		if t.strays(i) < deep {
			continue
		}
		e := event{from: i, to: i + 1}
		for k := i + 1; k < len(t.raw) && k <= e.to-1+apart; k++ {
			if t.strays(k) >= deep {
				e.to = k + 1
			}
		}
		i = e.to - 1
		if e.to-e.from >= shortest || e.from == 0 || e.to == len(t.raw) || besideCut(cuts, e.from, e.to) {
			continue
		}
		var all, moment float64
		for k := e.from; k < e.to; k++ {
			s := max(0, t.off(k))
			all, moment = all+s, moment+s*float64(t.place[k])
		}
		e.at, e.size = moment/all, all/float64(e.to-e.from)
		out = append(out, e)
	}
	return out
}

// off is how far a value lies to the bad side of the running median.
func (t *track) off(i int) float64 {
	if t.nature == count {
		return t.raw[i] - t.mid[i]
	}
	return t.mid[i] - t.raw[i]
}

// strays is the same in standard deviations, and 0 of what is too small to be believed.
func (t *track) strays(i int) float64 {
	if s := t.off(i); s >= 2*t.least {
		return s / t.sigma[i]
	}
	return 0
}

// besideCut reports whether a level begins or ends within a few values.
func besideCut(cuts []int, from, to int) bool {
	at, _ := slices.BinarySearch(cuts, from-apart)
	return at < len(cuts) && cuts[at] <= to+apart
}

// rhythm is a regular time between events.
type rhythm struct {
	period float64 // in steps of the series
	events []event // those that keep it
	chance float64 // that events at any times keep such a rhythm, at any period
}

// regular finds the period at which most events follow each other. Were they to come
// at any time, the time from one to the next would be exponential (D. Cox and P.
// Lewis, The statistical analysis of series of events, 1966), and so many within a
// narrow band of times a binomial chance. Because events that come in clusters have more
// short times than that, the chance is not taken for less than if all times from half the period to one and a half were equally likely.
func regular(events []event, n int, o odds) (best rhythm, ok bool) {
	if len(events) < fewestStalls {
		return rhythm{}, false
	}
	gaps := make([]float64, 0, len(events)-1)
	for i := 1; i < len(events); i++ {
		gaps = append(gaps, events[i].at-events[i-1].at)
	}
	sorted := slices.Sorted(slices.Values(gaps))
	best.chance = math.Inf(1)
	within := func(period, slack float64) (low, high int) {
		low, _ = slices.BinarySearch(sorted, period-slack)
		high, _ = slices.BinarySearch(sorted, math.Nextafter(period+slack, math.Inf(1)))
		return low, high
	}
	var slackOfBest float64
	for _, slack := range []float64{0.6, 1.1, 2.1} {
		for i := 0; i < len(sorted); {
			period := sorted[i]
			low, high := within(period, slack)
			period = sorted[(low+high-1)/2] // the middle of those near it
			if low, high = within(period, slack); period >= shortestPeriod && period > 2*slack && high-low >= fewestStalls-1 {
				p := spacingChance(sorted, high-low, period, slack, len(events), n)
				if p < best.chance {
					best, slackOfBest = rhythm{period: period, chance: p}, slack
				}
			}
			for at := sorted[i]; i < len(sorted) && sorted[i] <= at+slack/2; {
				i++
			}
		}
	}
	if math.IsInf(best.chance, 1) {
		return rhythm{}, false
	}
	// Any period up to a quarter of the trial could have been found, each with three
	// widths of the band.
	best.chance = o.anywhere(best.chance, 3*float64(n)/4)
	keeps := make([]bool, len(events))
	sum, kept := 0.0, 0.0
	for i, g := range gaps {
		if math.Abs(g-best.period) <= slackOfBest {
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
	return best, best.chance <= o.allowed()
}

// spacingChance is that of hits or more times between events to fall within slack of
// a period.
func spacingChance(sorted []float64, hits int, period, slack float64, events, n int) float64 {
	least := float64(apart + 1) // nearer ones are one event
	mean := max(1, float64(n)/float64(events)-least)
	band := 2*slack + 1 // times are known to a whole step
	any := math.Exp(-max(0, period-slack-0.5-least)/mean) - math.Exp(-(period+slack+0.5-least)/mean)
	p := binomialTail(len(sorted), hits, any)
	from, _ := slices.BinarySearch(sorted, period/2)
	to, _ := slices.BinarySearch(sorted, math.Nextafter(period*3/2, math.Inf(1)))
	return max(p, binomialTail(to-from, hits, min(1, band/(period*3/2-max(period/2, least)))))
}

// binomialTail is the chance of k or more of n where each has probability p.
func binomialTail(n, k int, p float64) float64 {
	switch {
	case k <= 0 || p >= 1:
		return 1
	case p <= 0:
		return 0
	}
	a, _ := math.Lgamma(float64(n + 1))
	sum := 0.0
	for i := k; i <= n; i++ {
		b, _ := math.Lgamma(float64(i + 1))
		c, _ := math.Lgamma(float64(n - i + 1))
		one := math.Exp(a - b - c + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
		if sum += one; float64(i) > p*float64(n) && one < sum*1e-12 {
			break
		}
	}
	return min(1, sum)
}
