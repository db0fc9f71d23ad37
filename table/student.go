package table

import "math"

// StudentBeyond is the chance that Student's t with some degrees of freedom is above x.
func StudentBeyond(x float64, free int) float64 {
	n := float64(free)
	half := incompleteBeta(n/(n+x*x), n/2, 0.5) / 2
	if x < 0 {
		return 1 - half
	}
	return half
}

// fisherBeyond is the chance that the ratio of two variances of the same noise is above a/b.
func fisherBeyond(a float64, freeA int, b float64, freeB int) float64 {
	if a <= 0 {
		return 1
	}
	n, m := float64(freeA), float64(freeB)
	return incompleteBeta(m*b/(m*b+n*a), m/2, n/2)
}

// StudentQuantile is the x that Student's t is below with the given chance, 0.5 to below 1.
func StudentQuantile(chance float64, free int) float64 {
	low, high := 0.0, 1.0
	for StudentBeyond(high, free) > 1-chance && high < 1e12 {
		high *= 2
	}
	for high-low > 1e-9*high {
		if middle := (low + high) / 2; StudentBeyond(middle, free) > 1-chance {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// NextOf is where one more value above 0 lies with a chance of 95 %, by two or more that came the same way: the
// prediction interval of their logarithms.
func NextOf(values []float64) (low, high float64) {
	n, middle, squares := float64(len(values)), 0.0, 0.0
	for _, v := range values {
		middle += math.Log(v) / n
	}
	for _, v := range values {
		squares += (math.Log(v) - middle) * (math.Log(v) - middle)
	}
	reach := StudentQuantile((1+confidence)/2, len(values)-1) * math.Sqrt(squares/(n-1)*(1+1/n))
	return math.Exp(middle - reach), math.Exp(middle + reach)
}

// nearQuantile is StudentQuantile to about 1 % from three degrees of freedom on: the
// expansion of Abramowitz and Stegun, 26.7.5. One and two have closed forms.
func nearQuantile(chance float64, free int) float64 {
	switch free {
	case 1:
		return math.Tan(math.Pi * (chance - 0.5))
	case 2:
		return (2*chance - 1) * math.Sqrt(2/(4*chance*(1-chance)))
	}
	z, n := math.Sqrt2*math.Erfinv(2*chance-1), float64(free)
	z2 := z * z
	return z * (1 + (z2+1)/(4*n) + ((5*z2+16)*z2+3)/(96*n*n) + (((3*z2+19)*z2+17)*z2-15)/(384*n*n*n))
}

// BinomialBeyond is the chance that k or more of n happen, each with chance p.
func BinomialBeyond(n, k int, p float64) float64 {
	switch {
	case k <= 0:
		return 1
	case k > n:
		return 0
	}
	return incompleteBeta(p, float64(k), float64(n-k+1))
}

// incompleteBeta is the regularised incomplete beta function by its continued
// fraction, evaluated by Lentz's method: Press et al., Numerical Recipes, section 6.4.
func incompleteBeta(x, a, b float64) float64 {
	if x <= 0 || x >= 1 {
		return min(max(x, 0), 1)
	}
	if x > (a+1)/(a+b+2) {
		return 1 - incompleteBeta(1-x, b, a)
	}
	const tiny, enough = 1e-300, 1e-14
	ab, _ := math.Lgamma(a + b)
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	nonzero := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/nonzero(1-(a+b)*x/(a+1))
	sum := d
	for m := 1.0; m <= 1e5; m++ {
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		d, c = 1/nonzero(1+even*d), nonzero(1+even/c)
		sum *= d * c
		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d, c = 1/nonzero(1+odd*d), nonzero(1+odd/c)
		sum *= d * c
		if math.Abs(d*c-1) < enough {
			break
		}
	}
	return sum * math.Exp(ab-la-lb+a*math.Log(x)+b*math.Log1p(-x)) / a
}
