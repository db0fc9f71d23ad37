package screen

import (
	"math"
	"strings"
)

var levels = []rune("▁▂▃▄▅▆▇█")

// spark draws values as bars from 0 to top, in some rows. Where there are more values than columns, a column is the
// mean of several; the newest are on the right.
func spark(values []float64, top float64, columns, rows int) []string {
	each := max((len(values)+columns-1)/max(columns, 1), 1)
	out := make([]strings.Builder, rows)
	for from := len(values) % each; from+each <= len(values); from += each {
		sum := 0.0
		for _, v := range values[from : from+each] {
			sum += v
		}
		level := 0
		if mean := sum / float64(each); mean > 0 && top > 0 {
			level = max(int(math.Round(mean/top*float64(rows*len(levels)))), 1)
		}
		for row := range rows {
			out[rows-1-row].WriteRune(bar(level-row*len(levels), row == 0))
		}
	}
	lines := make([]string, rows)
	for i := range out {
		lines[i] = out[i].String()
	}
	return lines
}

// bar is a column's part in one row. The lowest row shows nothing at all as a dot.
func bar(level int, lowest bool) rune {
	switch {
	case level > 0:
		return levels[min(level, len(levels))-1]
	case lowest:
		return '·'
	}
	return ' '
}
