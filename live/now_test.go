package live

import (
	"fmt"
	"testing"
)

func TestSeriesAreMeansOfSeconds(t *testing.T) {
	n := &Now{}
	take := func(e Event) {
		e.ID = n.Last + 1
		n.Take(e)
	}
	for trial := 1; trial <= 2; trial++ {
		take(Event{Next: &Next{Number: trial}})
		for i := range 25 { // ten a second
			take(Event{Sample: &Sample{Metric: "send_pps", Flow: "up", AtS: 0.1 + float64(i)/10,
				Value: float64(trial * (i / 10))}})
		}
	}
	x := n.Series[0]
	if got := fmt.Sprint(x.Values); got != "[0 1 2 0 2 4]" || x.Second != 2 || x.Trial != 2 {
		t.Errorf("seconds %s, the last whole one %g, trial %d", got, x.Second, x.Trial)
	}
	take(Event{Next: &Next{Number: 3}})
	for i := range 400 { // one a second, a little early or late
		take(Event{Sample: &Sample{Metric: "send_pps", Flow: "up", AtS: float64(i) + 0.02*float64(i%2), Value: 5}})
	}
	if x = n.Series[0]; len(x.Values) != mostKept || x.Values[0] != 5 {
		t.Errorf("%d values, the first %g", len(x.Values), x.Values[0])
	}
}
