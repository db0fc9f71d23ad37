package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"pelt/report/internal/words"
	"pelt/report/rows"
	"pelt/unit"
)

// gapView is a histogram of gaps, asked and sent, for each row with a profile;
// it needs no script.
type gapView struct {
	Charts []gapChart
	Left   int // rows that have none here
}

type gapChart struct {
	Title, Sentence     string
	Width, Height, Base int
	Sent                string // path of the filled bars
	Asked               string // path of the outline
	Ticks               []gapTick
	Top                 string // share that the highest bar stands for
}

type gapTick struct {
	X    string
	Text string
}

const (
	mostGapCharts = 12
	gapWidth      = 520
	gapHeight     = 170
	gapBase       = 145 // where bars stand; below it are the times
	gapRoom       = 118 // of the highest one
)

func newGapView(t rows.Table) (v gapView) {
	for _, r := range t.Rows {
		if r.Pacing == nil {
			continue
		}
		upTo, asked, sent := r.Pacing.Bars()
		if len(upTo) == 0 {
			continue
		}
		if len(v.Charts) == mostGapCharts {
			v.Left++
			continue
		}
		v.Charts = append(v.Charts, newGapChart(upTo, asked, sent))
		c := &v.Charts[len(v.Charts)-1]
		c.Title, c.Sentence = rowWords(t, r), words.Pacing(r)
	}
	return v
}

func newGapChart(upTo []int64, asked, sent []float64) gapChart {
	c := gapChart{Width: gapWidth, Height: gapHeight, Base: gapBase}
	low, high := math.Log10(float64(upTo[0]))-0.1, math.Log10(float64(upTo[len(upTo)-1]))
	if high-low < 0.5 {
		high = low + 0.5
	}
	x := func(v float64) float64 { return 8 + (v-low)/(high-low)*(gapWidth-16) }
	top := max(slices.Max(asked), slices.Max(sent))
	y := func(share float64) float64 { return gapBase - share/top*gapRoom }
	at := func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
	var bars, outline strings.Builder
	last := low
	fmt.Fprintf(&outline, "M%s %d", at(x(low)), gapBase)
	for i, bound := range upTo {
		edge := math.Log10(float64(bound))
		if sent[i] > 0 {
			fmt.Fprintf(&bars, "M%s %dV%sH%sV%dZ", at(x(last)), gapBase, at(y(sent[i])), at(x(edge)), gapBase)
		}
		fmt.Fprintf(&outline, "V%sH%s", at(y(asked[i])), at(x(edge)))
		last = edge
	}
	fmt.Fprintf(&outline, "V%d", gapBase)
	c.Sent, c.Asked, c.Top = bars.String(), outline.String(), unit.FormatRatio(top)
	for decade := math.Ceil(low); decade <= high; decade++ {
		c.Ticks = append(c.Ticks, gapTick{at(x(decade)), unit.FormatNanos(math.Pow(10, decade))})
	}
	return c
}
