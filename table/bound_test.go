package table

import (
	"math"
	"testing"
)

func TestJudge(t *testing.T) {
	l, err := ParseBound("goodput < -5%")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		e    Effect
		want Outcome
	}{
		{"far below", Effect{Change: -0.1, Low: -0.11, High: -0.09, P: 0.001}, Failed},
		{"told, the interval reaches above", Effect{Change: -0.06, Low: -0.09, High: -0.03, P: 0.001}, Failed},
		{"perhaps below", Effect{Change: -0.1, Low: -0.3, High: 0.1, P: 0.4}, Undecided},
		{"the interval reaches below", Effect{Change: 0, Low: -0.06, High: 0.06, P: 1}, Undecided},
		{"told, but small", Effect{Change: -0.01, Low: -0.02, High: -0.001, P: 0.001}, Passed},
		{"too few", Effect{Change: 0, Low: math.NaN(), High: math.NaN(), P: 1}, Undecided},
		{"better", Effect{Change: 0.2, Low: 0.1, High: 0.3, P: 0.001}, Passed},
	} {
		if got := l.Judge(c.e); got != c.want {
			t.Errorf("%s: %s; want %s", c.name, got, c.want)
		}
	}
}
