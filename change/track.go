package change

import (
	"math"
	"slices"

	"pelt/model"
)

const (
	// A level lasts so many values at least; what is shorter is a stall. The running
	// median spans just under twice as many, so that it follows a level of this length.
	shortest   = 8
	medianSpan = 2*shortest - 1
	// The scatter at a place comes from the differences of so many values.
	scaleSpan = 60
	// A value that strays more standard deviations from the running median is drawn in;
	// wide is what that leaves of a normal variance.
	outlying = 3.0
	wide     = 0.99501
	// The noise of means is told from so many of them.
	fewestBlocks = 12

	// FewestValues is how many values a series has that is searched.
	FewestValues   = 20
	fewestSeconds  = 20.0
	largestBelieve = 1e15 // beyond it squares lose their digits
	shortestStep   = 1e-6 // s
	longestStep    = 1e6  // s
)

type track struct {
	of    model.Series
	use   Use
	least float64 // change of a level that counts

	place []int     // of each value in the series
	raw   []float64 // as measured
	mid   []float64 // the running median
	clean []float64 // raw, with short outliers drawn in
	sigma []float64 // standard deviation of a value, from the differences of its neighbours
	quiet float64   // the least of sigma
	noise noise

	sums, squares []float64 // prefix sums of clean and of sigma squared
}

// lasted returns the seconds from the first value of a series to its last; ok is false
// if the series is too short to be searched.
func lasted(s model.Series) (seconds float64, ok bool) {
	if !timed(s) {
		return 0, false
	}
	first, last, n := -1, 0, 0
	for i, v := range s.Values {
		if Believed(v) {
			if first < 0 {
				first = i
			}
			last, n = i, n+1
		}
	}
	seconds = float64(last-first+1) * s.StepSeconds
	return seconds, n >= FewestValues && seconds >= fewestSeconds
}

func timed(s model.Series) bool {
	return s.StepSeconds >= shortestStep && s.StepSeconds <= longestStep && Believed(s.StartSeconds)
}

// Believed reports whether a value may be a measured one.
func Believed(v float64) bool { return math.Abs(v) <= largestBelieve }

func newTrack(s model.Series, use Use) *track {
	t := &track{of: s, use: use}
	for i, v := range s.Values {
		if Believed(v) {
			t.place, t.raw = append(t.place, i), append(t.raw, v)
		}
	}
	n := len(t.raw)
	t.mid = runningMedian(t.raw, medianSpan)
	t.least = use.least(Median(slices.Clone(t.raw)), s.StepSeconds)
	t.sigma, t.clean = t.scale(), make([]float64, n)
	t.sums, t.squares = make([]float64, n+1), make([]float64, n+1)
	for i, v := range t.raw {
		far := outlying * t.sigma[i]
		t.clean[i] = max(t.mid[i]-far, min(v, t.mid[i]+far))
		t.sums[i+1] = t.sums[i] + t.clean[i]
		t.squares[i+1] = t.squares[i] + t.sigma[i]*t.sigma[i]
	}
	t.quiet = slices.Min(t.sigma)
	t.noise = noiseOf(t.clean, t.sigma)
	return t
}

func (t *track) mean(from, to int) float64 {
	return (t.sums[to] - t.sums[from]) / float64(max(to-from, 1))
}

func (t *track) variance(from, to int) float64 {
	n := float64(max(to-from, 1))
	// Sums that hold a huge value have lost what small values came to.
	return max(t.quiet*t.quiet, (t.squares[to]-t.squares[from])/n) * t.noise.of(to-from) / n
}

// time returns when the value at a place begins, in seconds. One place past the last is the end of the series.
func (t *track) time(place int) float64 {
	at := t.place[len(t.place)-1] + 1
	if place < len(t.place) {
		at = t.place[place]
	}
	return t.of.StartSeconds + float64(at)*t.of.StepSeconds
}

// scale returns the standard deviation at each place, from differences of neighbours,
// which a shift or a drift hardly touches. Of the spans before and after a place it
// takes the one that scatters more: a level may be quiet up to a shift and wild after it.
func (t *track) scale() []float64 {
	n, before := len(t.raw), 0.0
	sigma := make([]float64, n)
	for from := 0; from < n; from += scaleSpan / 2 {
		low := max(0, min(from, n-scaleSpan))
		after := t.scatter(low, min(n, low+scaleSpan))
		for i := from; i < min(n, from+scaleSpan/2); i++ {
			sigma[i] = max(before, after)
		}
		before = after
	}
	return sigma
}

// scatter of the values from one place up to another: the median of their differences,
// then one step of a variance with what is far drawn in (P. Huber, 1981).
func (t *track) scatter(from, to int) float64 {
	var diffs [scaleSpan]float64
	level := math.Abs(t.mid[from])
	for i := from + 1; i < to; i++ {
		diffs[i-from-1] = math.Abs(t.raw[i] - t.raw[i-1])
		level += math.Abs(t.mid[i])
	}
	n := to - from - 1
	step := t.of.StepSeconds
	floor := max(t.least/2, 1e-50) // so that its square is more than 0
	if t.use == Loss {             // Poisson's, and no less than half a packet
		floor = math.Sqrt(level/float64(n+1)/step + 0.25/(step*step))
	}
	far := outlying * max(1.4826*Median(diffs[:n]), math.Sqrt2*floor)
	squares := 0.0
	for _, d := range diffs[:n] {
		d = min(d, far)
		squares += d * d
	}
	return max(floor, math.Sqrt(squares/(2*wide*float64(n))))
}

// noise says how many times more the means of 1, 2, 4, ... values scatter than means of
// independent values would. It is Allan's variance (D. W. Allan, 1966), taken robustly:
// 1 for white noise, more where neighbours are alike.
type noise struct {
	factors []float64 // never falling, 1 at least
	slope   float64   // exponent of the growth beyond the last factor
}

// noiseOf measures the noise of clean values. Differences are taken from their middle,
// so that a drift is no noise; a shift is in one difference only.
func noiseOf(clean, sigma []float64) noise {
	var out noise
	most := 1.0
	sums, scales := slices.Clone(clean), slices.Clone(sigma)
	for size := 1.0; len(sums) >= fewestBlocks || size == 1; size *= 2 {
		diffs := make([]float64, 0, len(sums))
		for i := 1; i < len(sums); i++ {
			diffs = append(diffs, (sums[i]-sums[i-1])/((scales[i]+scales[i-1])/2))
		}
		most = max(most, robustVariance(diffs)*size/2)
		out.factors = append(out.factors, most)
		half := len(sums) / 2
		for i := range half {
			sums[i], scales[i] = (sums[2*i]+sums[2*i+1])/2, (scales[2*i]+scales[2*i+1])/2
		}
		sums, scales = sums[:half], scales[:half]
	}
	// Of longer means than were seen, a short series tells less than a long one.
	out.slope = max(0.25, min(1.5, 1-math.Log2(float64(len(clean))/240)/4))
	if last := len(out.factors) - 1; last >= 1 {
		back := min(3, last)
		blocks := float64(len(clean)) / math.Exp2(float64(last))
		doubt := 2 * math.Sqrt(2/(0.6*blocks)) / math.Ln2 // of a variance's logarithm
		growth := math.Log2(out.factors[last]/out.factors[last-back]) + doubt
		out.slope = max(out.slope, min(2, growth/float64(back)))
	}
	return out
}

// of is the factor for the mean of so many values.
func (n noise) of(values int) float64 {
	x := math.Log2(float64(max(values, 1)))
	last := len(n.factors) - 1
	if i := int(x); i < last {
		return n.factors[i] + (n.factors[i+1]-n.factors[i])*(x-float64(i))
	}
	return n.factors[last] * math.Exp2(n.slope*(x-float64(last)))
}

// robustVariance is the variance around the median, with what is far drawn in. It puts the values in another order.
func robustVariance(v []float64) float64 {
	mid := Median(v)
	for i, x := range v {
		v[i] = math.Abs(x - mid)
	}
	far := outlying * 1.4826 * Median(v)
	squares := 0.0
	for _, x := range v {
		x = min(x, far)
		squares += x * x
	}
	return squares / (wide * float64(max(len(v)-1, 1)))
}

// runningMedian of an odd number of values around each; near the ends, of those that there are.
func runningMedian(v []float64, span int) []float64 {
	out, window, half := make([]float64, len(v)), make([]float64, 0, span+1), span/2
	for i := -half; i < len(v); i++ {
		if next := i + half; next < len(v) {
			at, _ := slices.BinarySearch(window, v[next])
			window = slices.Insert(window, at, v[next])
		}
		if old := i - half - 1; old >= 0 {
			at, _ := slices.BinarySearch(window, v[old])
			window = slices.Delete(window, at, at+1)
		}
		if k := len(window); i >= 0 {
			out[i] = (window[k/2] + window[(k-1)/2]) / 2
		}
	}
	return out
}

// Median is the value in the middle, 0 of none. It sorts the values that it is given.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return (v[len(v)/2] + v[(len(v)-1)/2]) / 2
}
