package impair

import (
	"fmt"
	"math"
)

const (
	tableScale  = 8192 // NETEM_DIST_SCALE, include/uapi/linux/pkt_sched.h
	tableLength = 4096 // of those that iproute2 ships
)

// Table is a distribution: quantiles of a deviation in units of the jitter.
type Table struct {
	Name string
	// Values are those of tc's tables, ascending: 8192 is one unit.
	Values []int16
}

// Distribution returns the table of a name: uniform, which has none, normal, cut at 4 units,
// pareto of index 3, less its mean of 1.5 and cut at 4 units (its standard deviation is 0.82
// units), or paretonormal, a quarter of normal and three of pareto.
func Distribution(name string) (*Table, error) {
	var quantiles []int
	switch name {
	case "uniform":
		return nil, nil
	case "normal":
		quantiles = normalQuantiles()
	case "pareto":
		quantiles = paretoQuantiles()
	case "paretonormal":
		quantiles = normalQuantiles()
		for k, p := range paretoQuantiles() {
			quantiles[k] = (quantiles[k] + 3*p) / 4 // in whole numbers, so toward 0
		}
	default:
		return nil, fmt.Errorf("unknown distribution %q: there are uniform, normal, pareto, paretonormal", name)
	}
	t := &Table{Name: name}
	for _, q := range quantiles {
		t.Values = append(t.Values, int16(min(max(q, math.MinInt16), math.MaxInt16)))
	}
	return t, nil
}

// normalQuantiles are those that iproute2's netem/normal.c comes to: each the
// last point of a grid of 0.00005 from -10 on that lies below the quantile. The
// grid is summed up, for its rounding shows in the last digit.
func normalQuantiles() []int {
	values := make([]int, tableLength)
	x := -10.0
	for k := range values {
		quantile := math.Sqrt2 * math.Erfinv(2*(4*float64(k)+0.5)/(4*tableLength)-1)
		for x+0.00005 <= quantile {
			x += 0.00005
		}
		values[k] = int(math.RoundToEven(x * tableScale))
	}
	return values
}

// paretoQuantiles are those of iproute2's netem/pareto.c.
func paretoQuantiles() []int {
	values := make([]int, tableLength)
	for k := range values {
		x := 1 / math.Pow(1-float64(k)/tableLength, 1.0/3)
		values[k] = int(math.RoundToEven(min((x-1.5)*(4.0/3.0*tableScale), math.MaxInt16)))
	}
	return values
}
