package stats

import "math"

// Dunnett is how many standard errors of a difference all of others may fall
// short of one of their equals by chance, one-sided, with confidence: C. W.
// Dunnett, A multiple comparison procedure for comparing several treatments with
// a control, JASA 50 (1955), with equal numbers of repeats (correlation 1/2).
func Dunnett(others, freedom int) float64 {
	const z0, z1, steps = -6.0, 6.0, 60
	const wide = (z1 - z0) / steps
	scales, weights := chi(freedom)
	return rising(Confidence, func(d float64) float64 {
		var all float64
		for i, s := range scales {
			if weights[i] < 1e-8 {
				continue
			}
			var p float64
			for j := range steps + 1 {
				z := z0 + float64(j)*wide
				p += math.Exp(-z*z/2) * math.Pow(0.5*math.Erfc(-(z+math.Sqrt2*d*s)/math.Sqrt2), float64(others))
			}
			all += weights[i] * p * wide / math.Sqrt(2*math.Pi)
		}
		return all
	})
}

// chi returns values of an estimated standard deviation where the true one is 1,
// with weights that add up to 1. They are even in its logarithm, u: there its
// density is smooth, however few degrees of freedom there are.
func chi(freedom int) (scales, weights []float64) {
	const steps = 32
	n := float64(freedom)
	low, high := -12/n-6/math.Sqrt(2*n), math.Log(1+8/math.Sqrt(2*n))
	var sum float64
	for i := range steps + 1 {
		u := low + (high-low)*float64(i)/steps
		s := math.Exp(u)
		w := math.Exp(n*u - n*(s*s-1)/2)
		scales, weights = append(scales, s), append(weights, w)
		sum += w
	}
	for i := range weights {
		weights[i] /= sum
	}
	return scales, weights
}
