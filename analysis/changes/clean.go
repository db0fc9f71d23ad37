package changes

import (
	"math"
	"slices"

	"pelt/model"
)

const (
	// shortest is the number of values that a level must last to be one; what is
	// shorter is a stall or a burst. The running median that cleans a series spans just
	// under twice as many, so that it follows a level of this length and no shorter one.
	shortest   = 8
	medianSpan = 2*shortest - 1

	// scaleSpan is the number of values whose differences give the scatter at a place.
	scaleSpan = 60

	// outlying is how many standard deviations a value may stray from the running
	// median before it is drawn in, and wide what that leaves of a normal variance.
	outlying = 3.0
	wide     = 0.99501

	// Of less nothing can be said.
	fewestValues   = 20
	fewestSeconds  = 20.0
	largestBelieve = 1e15  // beyond it squares lose their digits
	leastScatter   = 1e-50 // so that its square is more than 0
	shortestStep   = 1e-6  // s
	longestStep    = 1e6
)

// track is one series made ready to be searched. Gaps are taken out: all slices
// have one element for each value that there is.
type track struct {
	of     model.Series
	nature nature
	least  float64

	place []int     // of each value in the series
	raw   []float64 // as measured
	mid   []float64 // the running median
	clean []float64 // raw, with what is short and far drawn in towards the running median
	sigma []float64 // standard deviation of a value at that place, from its differences to its neighbours
	quiet float64   // the least of sigma
	noise noise     // how means of several values scatter beyond that

	sums, squares []float64 // prefix sums of clean and of sigma squared, from 0
	powers        []float64 // of clean squared; of a count
}

// lasted is how many seconds a series has, from its first value to its last; ok is
// false if it is too short to be searched.
func lasted(s model.Series) (seconds float64, ok bool) {
	if !timed(s) {
		return 0, false
	}
	first, last, n := 0, 0, 0
	for i, v := range s.Values {
		if believed(v) {
			if n == 0 {
				first = i
			}
			last = i
			n++
		}
	}
	seconds = float64(last-first+1) * s.StepSeconds
	return seconds, n >= fewestValues && seconds >= fewestSeconds
}

// timed reports whether the times of a series can be reckoned with.
func timed(s model.Series) bool {
	return s.StepSeconds >= shortestStep && s.StepSeconds <= longestStep && believed(s.StartSeconds)
}

// believed reports whether a value is a number that can be reckoned with.
func believed(v float64) bool { return math.Abs(v) <= largestBelieve }

// newTrack of a series that lasted long enough.
func newTrack(s model.Series, n nature) *track {
	t := &track{of: s, nature: n, place: make([]int, 0, len(s.Values)), raw: make([]float64, 0, len(s.Values))}
	for i, v := range s.Values {
		if believed(v) {
			t.place, t.raw = append(t.place, i), append(t.raw, v)
		}
	}
	t.mid = runningMedian(t.raw, medianSpan)
	usual := slices.Clone(t.raw)
	t.least = n.least(median(usual), s.StepSeconds)
	t.scale()
	t.clean = make([]float64, len(t.raw))
	t.sums, t.squares = make([]float64, len(t.raw)+1), make([]float64, len(t.raw)+1)
	for i, v := range t.raw {
		far := outlying * t.sigma[i]
		t.clean[i] = max(t.mid[i]-far, min(v, t.mid[i]+far))
		t.sums[i+1] = t.sums[i] + t.clean[i]
		t.squares[i+1] = t.squares[i] + t.sigma[i]*t.sigma[i]
	}
	t.quiet = slices.Min(t.sigma)
	t.noise = gauge(t.clean, t.sigma)
	return t
}

// mean of the clean values from one place up to another.
func (t *track) mean(from, to int) float64 {
	return (t.sums[to] - t.sums[from]) / float64(max(to-from, 1))
}

// variance of such a mean, by the series' own noise.
func (t *track) variance(from, to int) float64 {
	n := float64(max(to-from, 1))
	// Sums that hold a huge value have lost what small ones came to.
	return max(t.quiet*t.quiet, (t.squares[to]-t.squares[from])/n) * t.noise.of(to-from) / n
}

// time at which the value at a place begins, in seconds. One past the last is the
// end of the series.
func (t *track) time(place int) float64 {
	if place >= len(t.place) {
		return t.of.StartSeconds + float64(t.place[len(t.place)-1]+1)*t.of.StepSeconds
	}
	return t.of.StartSeconds + float64(t.place[place])*t.of.StepSeconds
}

// scale sets sigma from the differences of neighbours, which a level shift or a
// drift does not touch (J. von Neumann and others, 1941): their median, then one
// step of a variance with what is far drawn in (P. Huber, Robust Statistics, 1981).
// Of the spans before and after a place it takes the one that scatters more: a level
// may be quiet up to a shift and wild after it.
func (t *track) scale() {
	n := len(t.raw)
	t.sigma = make([]float64, n)
	diffs := make([]float64, 0, scaleSpan)
	before := 0.0
	for from := 0; from < n; from += scaleSpan / 2 {
		low := max(0, min(from, n-scaleSpan))
		after := t.scatter(low, min(n, low+scaleSpan), diffs)
		for i := from; i < min(n, from+scaleSpan/2); i++ {
			t.sigma[i] = max(before, after)
		}
		before = after
	}
}

// scatter of the values from one place up to another.
func (t *track) scatter(from, to int, diffs []float64) float64 {
	level := math.Abs(t.mid[from])
	for i := from + 1; i < to; i++ {
		diffs = append(diffs, math.Abs(t.raw[i]-t.raw[i-1]))
		level += math.Abs(t.mid[i])
	}
	floor := t.floor(level / float64(to-from))
	far := outlying * max(1.4826*median(diffs), math.Sqrt2*floor)
	squares := 0.0
	for _, d := range diffs {
		d = min(d, far)
		squares += d * d
	}
	return max(floor, math.Sqrt(squares/(2*wide*float64(len(diffs)))))
}

// floor is the least scatter of values around a level: what counting packets, or the
// measure itself, brings in.
func (t *track) floor(usual float64) float64 {
	step := t.of.StepSeconds
	if t.nature == count {
		return math.Sqrt(usual/step + 0.25/(step*step)) // Poisson's, and no less than half a packet
	}
	return max(t.least/2, leastScatter)
}

// runningMedian of an odd number of values around each; near the ends, of those that
// there are.
func runningMedian(v []float64, span int) []float64 {
	out := make([]float64, len(v))
	half := span / 2
	window := make([]float64, 0, span+1)
	for i := range min(half, len(v)) {
		window = insert(window, v[i])
	}
	for i := range v {
		if i+half < len(v) {
			window = insert(window, v[i+half])
		}
		if i-half-1 >= 0 {
			at, _ := slices.BinarySearch(window, v[i-half-1])
			window = slices.Delete(window, at, at+1)
		}
		k := len(window)
		out[i] = (window[k/2] + window[(k-1)/2]) / 2
	}
	return out
}

func insert(sorted []float64, v float64) []float64 {
	at, _ := slices.BinarySearch(sorted, v)
	return slices.Insert(sorted, at, v)
}

// median puts the values in another order; 0 if there are none.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	upper := choose(v, len(v)/2)
	if len(v)%2 == 1 {
		return upper
	}
	return (slices.Max(v[:len(v)/2]) + upper) / 2
}

// choose is the value that would be the k-th if v were sorted, and has all smaller ones
// stand before it: C. A. R. Hoare, Algorithm 65: Find (1961).
func choose(v []float64, k int) float64 {
	for low, high := 0, len(v)-1; low < high; {
		pivot := v[low+(high-low)/2]
		i, j := low, high
		for i <= j {
			for v[i] < pivot {
				i++
			}
			for v[j] > pivot {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case k <= j:
			high = j
		case k >= i:
			low = i
		default:
			return v[k]
		}
	}
	return v[k]
}
