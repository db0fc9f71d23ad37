// Package stats is the arithmetic of samples: means, intervals, tests and their
// distributions.
//
// Numbers come in, numbers go out. It knows nothing of what they measure, keeps
// nothing, and may be called concurrently.
package stats

import "math"

// Confidence is how sure an interval or a comparison is.
const Confidence = 0.95

// Mean of the values; 0 if there are none.
func Mean(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += x
	}
	return sum / float64(max(len(v), 1))
}

// Variance of a sample; 0 for fewer than two values.
func Variance(v []float64) float64 {
	m, sum := Mean(v), 0.0
	for _, x := range v {
		sum += (x - m) * (x - m)
	}
	return sum / float64(max(len(v)-1, 1))
}

// HalfInterval is how far the true mean may lie from that of the values, with
// Confidence, if they scatter normally (Student's t); ok is false for fewer than two.
func HalfInterval(v []float64) (half float64, ok bool) {
	if len(v) < 2 {
		return 0, false
	}
	t := Student((1+Confidence)/2, len(v)-1)
	return t * math.Sqrt(Variance(v)/float64(len(v))), true
}
