package changes

import (
	"math"
)

// fewestBlocks is how many means of blocks a scatter is told from.
const fewestBlocks = 12

// noise says how many times more means scatter than those of independent values
// would: by the number of values in the mean, in powers of two. It is 1 for white
// noise and grows where neighbours are alike. It is Allan's variance (D. W. Allan,
// Statistics of atomic frequency standards, 1966) taken robustly: half the mean
// square of the difference of neighbouring blocks, times the values in each. As the
// blocks grow it tends to the long-run variance, and where there is none because a
// level wanders, it goes on growing.
type noise struct {
	factors []float64 // of 1, 2, 4, ... values; never falling, 1 at least
	slope   float64   // exponent by which it is taken to grow beyond the last
}

// gauge takes the noise of a series' clean values. Differences are taken from their
// middle one, so that a drift is none of the noise; a shift is in one of them only.
func gauge(clean, sigma []float64) noise {
	var out noise
	most := 1.0
	sums, scales := append([]float64(nil), clean...), append([]float64(nil), sigma...)
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
	// Longer means than those that were seen are trusted the less the shorter the series
	// is: in four minutes no more than the longest of those, in one even less.
	least := max(0.25, min(1.5, 1-math.Log2(float64(len(clean))/240)/4))
	out.slope = least
	if last := len(out.factors) - 1; last >= 1 {
		back := min(3, last)
		blocks := float64(len(clean)) / math.Exp2(float64(last))
		error := math.Sqrt(2/(0.6*blocks)) / math.Ln2 // of a variance's logarithm, about
		out.slope = max(least, min(2, (math.Log2(out.factors[last]/out.factors[last-back])+2*error)/float64(back)))
	}
	return out
}

// of is the factor for the mean of so many values.
func (n noise) of(values int) float64 {
	x := math.Log2(float64(max(values, 1)))
	last := len(n.factors) - 1
	i := int(x)
	if i >= last {
		return n.factors[last] * math.Exp2(n.slope*(x-float64(last)))
	}
	return n.factors[i] + (n.factors[i+1]-n.factors[i])*(x-float64(i))
}

// robustVariance around the median, with what is far drawn in.
func robustVariance(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	mid := median(v)
	off := make([]float64, len(v))
	for i, x := range v {
		off[i] = math.Abs(x - mid)
	}
	far := outlying * 1.4826 * median(off)
	squares := 0.0
	for _, x := range off {
		x = min(x, far)
		squares += x * x
	}
	return squares / (wide * float64(max(len(v)-1, 1)))
}
