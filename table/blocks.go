package table

import "slices"

// Trials of one repeat ran close together, so what is slow for a while slows all of
// them. Where repeats clearly differ, the noise is what remains within repeats.

// clearly is how unlikely a difference between repeats must be to be believed. It is
// small because a lucky one makes the remaining noise too small.
const clearly = 0.01

// leastFree is the fewest degrees of freedom that tell what is within repeats from what is between them.
const leastFree = 4

// withinBlocks is the sum of squares that remains when each repeat's own level is
// taken out, and its degrees of freedom; ok is false unless all samples were
// measured in the same repeats, and these clearly differ.
func withinBlocks(samples []Sample, scaled [][]float64) (rest float64, free int, ok bool) {
	if len(samples) < 2 || (len(samples)-1)*(len(samples[0].blocks)-1) < leastFree {
		return 0, 0, false
	}
	order := samples[0].blocks
	levels := make([]float64, len(order)) // of each repeat above the mean of all
	var aligned [][]float64
	for i, s := range samples {
		v, same := align(s.blocks, order, scaled[i])
		if !same {
			return 0, 0, false
		}
		middle := mean(v)
		for j := range v {
			v[j] -= middle
			levels[j] += v[j] / float64(len(samples))
		}
		aligned = append(aligned, v)
	}
	between := float64(len(samples)) * squares(levels)
	for _, v := range aligned {
		for j := range v {
			rest += (v[j] - levels[j]) * (v[j] - levels[j])
		}
	}
	repeats := len(order) - 1
	free = (len(samples) - 1) * repeats
	return rest, free, fisherBeyond(between/float64(repeats), repeats, rest/float64(free), free) < clearly
}

// align puts values into the order of blocks; ok is false if they are not of the same blocks, each once.
func align(blocks, order []block, values []float64) (out []float64, ok bool) {
	if len(blocks) != len(order) || len(values) != len(order) {
		return nil, false
	}
	for j, b := range order {
		i := slices.Index(blocks, b)
		if i < 0 || slices.Contains(order[:j], b) {
			return nil, false
		}
		out = append(out, values[i])
	}
	return out, true
}

func inBlocks(p Pair, a, b []float64) []float64 {
	other, ok := align(p.B.blocks, p.A.blocks, b)
	if !ok {
		return nil
	}
	var out []float64
	for i := range a {
		out = append(out, a[i]-other[i])
	}
	return out
}
