package model

import (
	"math"
	"slices"
	"testing"
)

// An end that was not heard for a while goes on where its next second is, not where its last one was.
func TestUnfinishedKeepsTime(t *testing.T) {
	told := func(from float64, send, receive []float64) Checkpoint {
		c := Checkpoint{ElapsedS: from + 2, Flows: []FlowSoFar{{Name: "up", Attempted: 10, Received: 10}}}
		for metric, values := range map[string][]float64{"send_pps": send, "receive_pps": receive} {
			if values != nil {
				c.Series = append(c.Series, Series{Metric: metric, Flow: "up", StartSeconds: from, StepSeconds: 1,
					Values: values})
			}
		}
		return c
	}
	r := Unfinished([]Checkpoint{told(0, []float64{5, 5}, []float64{4, 4}), told(2, []float64{6, 6}, nil),
		told(4, []float64{7, 7}, []float64{3, 3}), told(1e12, nil, []float64{1})})
	nan := math.NaN()
	for _, s := range r.Series {
		want := []float64{5, 5, 6, 6, 7, 7}
		if s.Metric == "receive_pps" {
			want = []float64{4, 4, nan, nan, 3, 3}
		}
		if !slices.EqualFunc(s.Values, want, func(a, b float64) bool {
			return a == b || math.IsNaN(a) && math.IsNaN(b)
		}) {
			t.Errorf("%s: %v, want %v", s.Metric, s.Values, want)
		}
	}
}

// The lines of a stored run make no series that are many times as long as themselves.
func TestUnfinishedStaysSmall(t *testing.T) {
	told := func(from float64) Checkpoint {
		return Checkpoint{ElapsedS: 1, Series: []Series{{Metric: "send_pps", Flow: "up", StartSeconds: from,
			StepSeconds: 1, Values: []float64{1}}}}
	}
	if s := Unfinished([]Checkpoint{told(0), told(604000)}).Series[0]; len(s.Values) != 1 {
		t.Errorf("%d values of two", len(s.Values))
	}
	var far []Checkpoint
	for i := range 100 {
		far = append(far, told(float64(3000*i)))
	}
	if s := Unfinished(far).Series[0]; len(s.Values) != 1 {
		t.Errorf("%d values of %d lines", len(s.Values), len(far))
	}
	if s := Unfinished([]Checkpoint{told(0), told(61)}).Series[0]; len(s.Values) != 62 {
		t.Errorf("%d values after a minute's silence, want 62", len(s.Values))
	}
}
