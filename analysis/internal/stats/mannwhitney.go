package stats

import (
	"math"
	"slices"
)

// mostExact is the largest sample whose ranks are tried in every arrangement.
const mostExact = 20

// MannWhitney is the probability that two samples of one distribution lie as far
// apart by their ranks, to either side, as these do: H. B. Mann, D. R. Whitney, On a
// test of whether one of two random variables is stochastically larger than the
// other, Annals of Mathematical Statistics 18 (1947). It is exact, over all ways to
// part the ranks, for samples of up to 20 values each; equal values share the mean
// of their ranks, and are parted in all ways too. Of larger ones it is the normal
// approximation, corrected for ties and for continuity (E. L. Lehmann,
// Nonparametrics, 1975, sections 1.3 and 1.4). Values may be infinite. NaN if a
// sample is empty or holds one.
func MannWhitney(a, b []float64) float64 {
	if len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, math.IsNaN) || slices.ContainsFunc(b, math.IsNaN) {
		return math.NaN()
	}
	all := append(slices.Clone(a), b...)
	place := ranks(all)
	n, m := len(a), len(b)
	var sum float64
	for _, r := range place[:n] {
		sum += r
	}
	// From the middle, in half ranks, which are whole: sum - n(n+m+1)/2.
	off := math.Abs(2*sum - float64(n*(n+m+1)))
	switch {
	case max(n, m) > mostExact:
		return normalRanks(off/2, n, m, place)
	case tied(place) == 0:
		return arranged(off, n, m)
	}
	return parted(off, n, place)
}

// MannWhitneyLeast is the least probability that samples of these sizes can give.
func MannWhitneyLeast(n, m int) float64 {
	return min(1, 2*math.Exp(-logChoose(n+m, n)))
}

// tied is the sum of t^3 - t over groups of t equal ranks.
func tied(place []float64) (sum float64) {
	s := slices.Sorted(slices.Values(place))
	for from := 0; from < len(s); {
		to := from
		for to < len(s) && s[to] == s[from] {
			to++
		}
		t := float64(to - from)
		sum += t*t*t - t
		from = to
	}
	return sum
}

// normalRanks is the approximation for a sum of ranks that is off its middle.
func normalRanks(off float64, n, m int, place []float64) float64 {
	all, product := float64(n+m), float64(n)*float64(m)
	variance := product / 12 * (all + 1 - tied(place)/(all*(all-1)))
	if !(variance > 0) {
		return 1
	}
	return math.Erfc(max(0, off-0.5) / math.Sqrt(2*variance))
}

// arranged is the probability without ties. How many arrangements have U pairs in
// which b is before a is the coefficient of q^U in the Gaussian binomial, which is
// what the recursion of Mann and Whitney counts.
func arranged(off float64, n, m int) float64 {
	ways := make([]float64, n*m+1)
	ways[0] = 1
	for i := 1; i <= n; i++ {
		for u := n * m; u >= m+i; u-- { // times 1 - q^(m+i)
			ways[u] -= ways[u-m-i]
		}
		for u := i; u <= n*m; u++ { // over 1 - q^i
			ways[u] += ways[u-i]
		}
	}
	var far, total float64
	for u, w := range ways {
		total += w
		if math.Abs(float64(2*u-n*m)) >= off {
			far += w
		}
	}
	return far / total
}

// parted is the probability with ties: it goes through all sums of n of the ranks.
func parted(off float64, n int, place []float64) float64 {
	var sum int
	for _, r := range place {
		sum += int(2 * r) // half ranks are whole
	}
	ways := make([][]float64, n+1) // ways to take k of the ranks so far, by their sum
	for k := range ways {
		ways[k] = make([]float64, sum+1)
	}
	ways[0][0] = 1
	reached := 0
	for i, r := range place {
		step := int(2 * r)
		reached += step
		for k := min(i+1, n); k >= 1; k-- {
			for s := reached; s >= step; s-- {
				ways[k][s] += ways[k-1][s-step]
			}
		}
	}
	var far, total float64
	mid := float64(n) / float64(len(place)) * float64(sum)
	for s, w := range ways[n] {
		total += w
		if math.Abs(float64(s)-mid) >= off-1e-6 {
			far += w
		}
	}
	return far / total
}
