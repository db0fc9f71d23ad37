package stats

import "math"

// Student is the quantile of Student's t for a probability from 0.5 to below 1.
func Student(probability float64, freedom int) float64 {
	return rising(probability, func(t float64) float64 { return (1 + studentWithin(t, freedom)) / 2 })
}

// StudentBeyond is the probability that t lies beyond ±t by chance.
func StudentBeyond(t float64, freedom int) float64 {
	return max(0, 1-studentWithin(math.Abs(t), freedom))
}

// studentWithin is the probability that t lies within ±t: Abramowitz and Stegun,
// 26.7.3 and 26.7.4, for a whole number of degrees of freedom.
func studentWithin(t float64, freedom int) float64 {
	angle := math.Atan(t / math.Sqrt(float64(freedom)))
	sin, cos := math.Sincos(angle)
	if freedom%2 == 0 {
		sum, term := 0.0, 1.0
		for i := 0; i <= freedom-2; i += 2 {
			sum += term
			term *= cos * cos * float64(i+1) / float64(i+2)
		}
		return sin * sum
	}
	sum, term := 0.0, cos
	for i := 1; i <= freedom-2; i += 2 {
		sum += term
		term *= cos * cos * float64(i+1) / float64(i+2)
	}
	return 2 / math.Pi * (angle + sin*sum)
}

// rising is the x > 0 at which a rising function reaches y.
func rising(y float64, f func(float64) float64) float64 {
	high := 1.0
	for f(high) < y && high < 1e9 {
		high *= 2
	}
	low := 0.0
	for high-low > 1e-4*high {
		if mid := (low + high) / 2; f(mid) < y {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}
