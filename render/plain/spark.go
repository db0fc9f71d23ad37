package plain

import "math"

var levels = []rune("▁▂▃▄▅▆▇█")

// Spark draws values as bars from 0 to top, in some rows. Where there are more values than columns, a column is the
// mean of several. A column without a value is empty.
func Spark(values []float64, top float64, columns, rows int) []string {
	columns = min(columns, len(values))
	lines := make([]string, rows)
	for i := range columns {
		sum, n, level := 0.0, 0.0, 0
		for _, v := range values[i*len(values)/columns : (i+1)*len(values)/columns] {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				sum, n = sum+v, n+1
			}
		}
		if mean := sum / n; mean > 0 && top > 0 {
			level = max(int(math.Round(min(mean/top, 1)*float64(rows*len(levels)))), 1)
		}
		for row := range rows {
			lines[rows-1-row] += string(bar(level-row*len(levels), row == 0 && n > 0))
		}
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
