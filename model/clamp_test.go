package model

import (
	"math"
	"strings"
	"testing"
)

// TestClampObservation: another host's observation keeps what can be, of the trial's flows.
func TestClampObservation(t *testing.T) {
	long := strings.Repeat("x", maxTextLength+1)
	o := Observation{Mode: "all", Why: long, IdleS: math.Inf(1), Unread: make([]string, 1000),
		Counters: []Counter{{Name: "Udp.InErrors", Whole: 3, Measure: 9, IdleHz: math.NaN()}, {Name: long}, {}},
		Drops:    &Drops{Flows: []FlowDrops{{Flow: "up", Streams: make([]Marks, 1)}, {Flow: "up", Streams: make([]Marks, 2)}, {Flow: "other"}}}}
	o.Clamp([]Flow{{Name: "up", Streams: 1}})
	if o.Mode != DropsOff || len(o.Why) != maxTextLength || o.IdleS != 0 || len(o.Unread) != maxUnread || len(o.Drops.Flows) != 1 {
		t.Errorf("what stays: %+v", o)
	}
	if len(o.Counters) != 1 || o.Counters[0].Measure != 3 || o.Counters[0].IdleHz != 0 {
		t.Errorf("counters %+v", o.Counters)
	}
	o.Drops = &Drops{Sites: []Site{{Reason: long}}}
	if o.Clamp(nil); o.Drops != nil {
		t.Errorf("drops %+v", o.Drops)
	}
}

func TestClampRouterFacts(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	f := RouterFacts{Model: long, Cores: -1, Tuning: make([]string, 1<<16), Before: make([]Text, 1<<10)}
	f.Tuning[0], f.Before[0] = long, Text{long, long}
	f.Clamp()
	if len(f.Model) != maxTextLength || f.Cores != 0 || len(f.Tuning) != maxLines || len(f.Tuning[0]) != maxGapText ||
		len(f.Before) != maxTexts || len(f.Before[0].Name) != maxTextLength || len(f.Before[0].Text) != maxText {
		t.Errorf("%d B, %d cores, %d and %d lines", len(f.Model), f.Cores, len(f.Tuning), len(f.Before))
	}
}

func TestClampSeries(t *testing.T) {
	var all []Series
	for range 10_000 {
		all = append(all, Series{Metric: "x", StepSeconds: 1, Values: make([]float64, 100)}, Series{Metric: "y", StepSeconds: -1, Values: []float64{1}})
	}
	n := 0
	for _, s := range ClampSeries(all, 15) {
		n += len(s.Values)
		if !(s.StepSeconds > 0) {
			t.Fatalf("%+v", s)
		}
	}
	if n == 0 || n > maxSeries*16 {
		t.Errorf("%d values stay", n)
	}
}
