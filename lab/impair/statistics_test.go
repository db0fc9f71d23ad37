package impair

import (
	"math"
	"slices"
	"testing"
)

// The tests draw with fixed seeds: what passes once always passes. Their bounds
// are those of an honest test all the same.
const alpha = 1e-6

const (
	frameBytes = 1000
	frameGap   = 1e6 // ns between offers
)

// shaped is a distribution that there is.
func shaped(name string) *Table {
	shape, err := Distribution(name)
	if err != nil {
		panic(err)
	}
	return shape
}

// offers gives n frames to a new link, a millisecond apart.
func offers(t testing.TB, s Settings, n int) []Fate {
	t.Helper()
	if wrong := s.Check(); wrong != nil {
		t.Fatalf("%+v: %s", s, wrong)
	}
	l := New(s)
	fates := make([]Fate, n)
	for i := range fates {
		fates[i] = l.Offer(int64(i)*frameGap, frameBytes)
	}
	return fates
}

func lost(fates []Fate) []bool { return flags(fates, func(f Fate) bool { return f.Cause == Lost }) }

func flags(fates []Fate, is func(Fate) bool) []bool {
	out := make([]bool, len(fates))
	for i, f := range fates {
		out[i] = is(f)
	}
	return out
}

func count(flags []bool) (n int) {
	for _, f := range flags {
		if f {
			n++
		}
	}
	return n
}

func mean(flags []bool) float64 { return float64(count(flags)) / float64(len(flags)) }

// binomialTail is the smaller of P(X <= k) and P(X >= k).
func binomialTail(n, k int, p float64) float64 {
	if p <= 0 || p >= 1 {
		if want := int(p) * n; k == want {
			return 1
		}
		return 0
	}
	lg := func(x int) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	term := math.Exp(lg(n) - lg(k) - lg(n-k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
	sum, odds := 0.0, p/(1-p)
	if float64(k) < float64(n)*p {
		for ; k >= 0 && term > sum*1e-12; k-- {
			sum += term
			term *= float64(k) / float64(n-k+1) / odds
		}
	} else {
		for ; k <= n && term > sum*1e-12; k++ {
			sum += term
			term *= float64(n-k) / float64(k+1) * odds
		}
	}
	return sum
}

func wantShare(t *testing.T, what string, hits, of int, p float64) {
	t.Helper()
	if tail := binomialTail(of, hits, p); tail < alpha/2 {
		t.Errorf("%s: %d of %d (%.4g), want %.4g: chance of that %.2g", what, hits, of, float64(hits)/float64(of), p,
			tail)
	}
}

// correlation is that of two equally long lists.
func correlation(x, y []float64) float64 {
	var mx, my, xy, xx, yy float64
	for i := range x {
		mx += x[i] / float64(len(x))
		my += y[i] / float64(len(y))
	}
	for i := range x {
		a, b := x[i]-mx, y[i]-my
		xy, xx, yy = xy+a*b, xx+a*a, yy+b*b
	}
	return xy / math.Sqrt(xx*yy)
}

func lag1(x []float64) float64 { return correlation(x[:len(x)-1], x[1:]) }

func wantLag1(t *testing.T, what string, x []float64, want, within float64) {
	t.Helper()
	if got := lag1(x); math.Abs(got-want) > within {
		t.Errorf("%s: lag-1 correlation %.4f, want %.4f +-%.4f", what, got, want, within)
	}
}

// kolmogorov is the largest distance of the samples' distribution from one of
// whole nanoseconds, given as P(X < x).
func kolmogorov(samples []int64, under func(x float64) float64) float64 {
	s := slices.Sorted(slices.Values(samples))
	n, d := float64(len(s)), 0.0
	for i := 0; i < len(s); {
		j := i
		for j < len(s) && s[j] == s[i] {
			j++
		}
		x := float64(s[i])
		d = max(d, math.Abs(float64(i)/n-under(x-0.5)), math.Abs(float64(j)/n-under(x+0.5)))
		i = j
	}
	return d
}

func wantDistribution(t *testing.T, what string, samples []int64, under func(float64) float64) {
	t.Helper()
	if d, limit := kolmogorov(samples, under), 1.95/math.Sqrt(float64(len(samples))); d >= limit { // alpha 0.1 %
		t.Errorf("%s: D = %.4f of %d samples, want less than %.4f", what, d, len(samples), limit)
	}
}

// shapeUnder is P(delay < x) of a delay line.
func shapeUnder(s Settings) func(float64) float64 {
	delay, jitter := float64(s.Delay), float64(s.Jitter)
	return func(x float64) float64 {
		if x < 0 {
			return 0
		}
		if s.Shape == nil {
			return min(max((x-delay+jitter)/(2*jitter), 0), 1)
		}
		v := s.Shape.Values
		y := (x - delay) / jitter * tableScale
		i, _ := slices.BinarySearchFunc(v, y, func(a int16, y float64) int {
			if float64(a) < y {
				return -1
			}
			return 1
		})
		switch i {
		case 0:
			return 0
		case len(v):
			return 1
		}
		low, high := float64(v[i-1]), float64(v[i])
		return (float64(i-1) + (y-low)/(high-low)) / float64(len(v)-1)
	}
}

// delays of the frames that pass, from when each was offered.
func delays(fates []Fate) (out []int64) {
	for i, f := range fates {
		if f.Copies > 0 {
			out = append(out, f.Copy[0].At-int64(i)*frameGap)
		}
	}
	return out
}

func floats(x []int64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}
