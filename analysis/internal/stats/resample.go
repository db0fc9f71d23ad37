package stats

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// draws is how the median of a sample is distributed that is drawn with
// replacement from given values.
type draws struct {
	values  []float64 // ascending
	chances []float64
	sums    []float64 // of the chances up to each value
}

// negligible is a chance that no interval is moved by.
const negligible = 1e-12

// resampled is that distribution for sorted values. The median of an odd number is
// the value of one place, that of an even number the mean of two: B. Efron,
// Bootstrap methods: another look at the jackknife, Annals of Statistics 7 (1979),
// section 3, has the former; the latter follows from how many of the draws fall
// to each side of the two.
func resampled(s []float64) draws {
	n := len(s)
	half := (n + 1) / 2
	place := make([]float64, n) // that a value is drawn to the place of the lower middle
	last := 0.0
	reach := int(4*math.Sqrt(float64(n))) + 1 // eight standard deviations of the place
	for i := max(0, half-reach); i < min(n, half+reach); i++ {
		now := atLeast(half, n, float64(i+1)/float64(n))
		place[i], last = max(0, now-last), now
	}
	type draw struct{ value, chance float64 }
	var all []draw
	for i := range s {
		switch {
		case place[i] < negligible:
		case n%2 == 1:
			all = append(all, draw{s[i], place[i]})
		default:
			rest := place[i]
			for j := i + 1; j < n; j++ {
				if place[n-1-j] < negligible { // the upper middle is its mirror image
					continue
				}
				p := bothMiddles(i+1, j+1, n)
				rest -= p
				all = append(all, draw{s[i] + (s[j]-s[i])/2, p})
			}
			all = append(all, draw{s[i], max(0, rest)})
		}
	}
	slices.SortFunc(all, func(a, b draw) int { return cmp.Compare(a.value, b.value) })
	var d draws
	var sum float64
	for _, x := range all {
		sum += x.chance
		if k := len(d.values) - 1; k >= 0 && d.values[k] == x.value {
			d.chances[k], d.sums[k] = d.chances[k]+x.chance, sum
			continue
		}
		d.values, d.chances, d.sums = append(d.values, x.value), append(d.chances, x.chance), append(d.sums, sum)
	}
	return d
}

// bothMiddles is the chance that of an even number n of draws the i-th and the j-th
// value, i < j, come to the two places in the middle.
func bothMiddles(i, j, n int) float64 {
	m := float64(n / 2)
	ways := logChoose(n, n/2)
	power := func(k int) float64 { // half of the draws are among k values, in any arrangement
		return math.Exp(ways/2 + m*math.Log(float64(k)/float64(n)))
	}
	return (power(i) - power(i-1)) * (power(n-j+1) - power(n-j))
}

// atLeast is the chance of k or more successes in n tries.
func atLeast(k, n int, p float64) float64 {
	switch {
	case k <= 0 || p >= 1:
		return 1
	case p <= 0:
		return 0
	}
	var sum float64
	for i := k; i <= n; i++ {
		one := math.Exp(logChoose(n, i) + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
		if sum += one; float64(i) > p*float64(n) && one < negligible*sum/1000 {
			break // and ever smaller from here on
		}
	}
	return min(1, sum)
}

func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

// upTo is the chance of a median of at most x.
func (d draws) upTo(x float64) float64 {
	i := sort.Search(len(d.values), func(i int) bool { return d.values[i] > x })
	if i == 0 {
		return 0
	}
	return d.sums[i-1]
}

// below is the chance of a median less than x.
func (d draws) below(x float64) float64 {
	i := sort.SearchFloat64s(d.values, x)
	if i == 0 {
		return 0
	}
	return d.sums[i-1]
}

// quantile is the least median that has a chance of p to lie up to it.
func (d draws) quantile(p float64) float64 {
	i := sort.SearchFloat64s(d.sums, p)
	return d.values[min(i, len(d.values)-1)]
}

// normal is the standard normal distribution, and normalQuantile its inverse.
func normal(z float64) float64         { return 0.5 * math.Erfc(-z/math.Sqrt2) }
func normalQuantile(p float64) float64 { return -math.Sqrt2 * math.Erfcinv(2*p) }
