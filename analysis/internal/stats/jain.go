package stats

// Jain is the index of fairness: 1 if all got the same, 1/n if one got all (R.
// Jain, D. Chiu, W. Hawe, A quantitative measure of fairness, DEC-TR-301, 1984);
// ok is false if nobody got anything.
func Jain(shares []float64) (index float64, ok bool) {
	var sum, squares float64
	for _, x := range shares {
		sum, squares = sum+x, squares+x*x
	}
	if !(squares > 0) {
		return 0, false
	}
	return sum * sum / (float64(len(shares)) * squares), true
}
