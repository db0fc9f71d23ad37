package model

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestClampObservation: another host's observation keeps what can be, of the trial's flows.
func TestClampObservation(t *testing.T) {
	long := strings.Repeat("x", maxTextLength+1)
	o := Observation{Mode: "all", Why: Reasons{{Text: long}}, IdleS: math.Inf(1), Unread: slices.Repeat(Reasons{{Text: long}}, 1000),
		Router:   &RouterWatch{Gaps: []RouterGap{{Of: Reasons{{Text: long, Of: slices.Repeat([]Reason{{}}, 1000)}}}}},
		Counters: []Counter{{Name: "Udp.InErrors", Whole: 3, Measure: 9, IdleHz: math.NaN()}, {Name: long}, {}},
		Drops: &Drops{Flows: []FlowDrops{{Flow: "up", Streams: make([]Marks, 1)},
			{Flow: "up", Streams: make([]Marks, 2)}, {Flow: "other"},
			{Flow: "up", Way: "back"}, {Flow: "up", Way: WayAsks, Streams: make([]Marks, 1)}}}}
	o.Clamp([]Flow{{Name: "up", Streams: 1}})
	if o.Mode != DropsOff || len(o.Why[0].Text) != maxTextLength || o.IdleS != 0 || len(o.Unread) != 64 || len(o.Unread[0].Text) != maxTextLength ||
		len(o.Drops.Flows) != 1 {
		t.Errorf("what stays: %+v", o)
	}
	if of := o.Router.Gaps[0].Of[0]; len(of.Text) != maxTextLength || len(of.Of) != mostOf {
		t.Errorf("why a router was not watched: %d letters, of %d", len(of.Text), len(of.Of))
	}
	if len(o.Counters) != 2 || len(o.Counters[1].Name) != maxTextLength || o.Counters[0].Measure != 3 ||
		o.Counters[0].IdleHz != 0 {
		t.Errorf("counters %+v", o.Counters)
	}
	o.Drops = &Drops{Sites: make([]Site, maxSites+1)}
	o.Drops.Sites[0].Reason = long
	for i, address := range []string{"10.0.0.1", "fe80::1%eth0", "the sender"} {
		o.Drops.Sites[i].Address = address
	}
	if o.Clamp(nil); o.Drops.Sites[0].Address != "10.0.0.1" || o.Drops.Sites[1].Address+o.Drops.Sites[2].Address != "" {
		t.Errorf("addresses of sites: %+v", o.Drops.Sites[:3])
	}
	if len(o.Drops.Sites) != maxSites || len(o.Drops.Sites[0].Reason) != maxTextLength {
		t.Errorf("%d sites, %+v", len(o.Drops.Sites), o.Drops.Sites[0])
	}
}

func TestClampRouterFacts(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	f := RouterFacts{Model: long, Cores: -1, Told: make([]RouterFact, 1<<16), Before: make([]Text, 1<<10)}
	f.Told[0], f.Before[0] = RouterFact{Code: long, Words: map[string]string{"name": long},
		Of: Reasons{{Of: make([]Reason, 1000)}}}, Text{long, long}
	f.Clamp()
	if len(f.Model) != maxTextLength || f.Cores != 0 || len(f.Told) != 256 ||
		len(f.Told[0].Code) != maxTextLength || len(f.Told[0].Words["name"]) != maxTextLength ||
		len(f.Told[0].Of[0].Of) != mostOf ||
		len(f.Before) != 64 || len(f.Before[0].Name) != maxTextLength || len(f.Before[0].Text) != 64<<10 {
		t.Errorf("%d B, %d cores, %d and %d lines", len(f.Model), f.Cores, len(f.Told), len(f.Before))
	}
}

// TestClampByName: the unit in a JSON name says what a figure can be, also behind pointers and in tables.
func TestClampByName(t *testing.T) {
	share, core := 7., -3
	v := struct {
		Share  *float64               `json:"cost_ratio"`
		Values []float64              `json:"values"`
		Each   map[string]*Completion `json:"each"`
		Rank   map[int]CPUSplit       `json:"rank"`
		Delay  *Percentiles           `json:"round_trip_ns"`
		Gap    *Percentiles           `json:"gap"`
		Core   *int                   `json:"core"`
	}{&share, []float64{math.NaN(), math.Inf(1), 1e300, -1, 5}, map[string]*Completion{strings.Repeat("k", 256): nil,
		"k": {By: strings.Repeat("x", 256), Seconds: -1}},
		map[int]CPUSplit{1: {User: 3, Core: -1}}, &Percentiles{P50: 2, P90: 1}, &Percentiles{Min: -5}, &core}
	Clamp(&v)
	if share != 1 || core != -3 || len(v.Each) != 1 || v.Each["k"].Seconds != 0 || len(v.Each["k"].By) != 255 ||
		v.Rank[1].User != 1 || v.Rank[1].Core != -1 || v.Delay != nil || v.Gap.Min != -5 {
		t.Errorf("%v %v %+v %+v %v %v", share, core, v.Each["k"], v.Rank, v.Delay, v.Gap)
	}
	if w := v.Values; !math.IsNaN(w[0]) || w[1] != 0 || w[2] != maxFigure || w[3] != 0 || w[4] != 5 {
		t.Errorf("values %v", w)
	}
	many := map[string]uint64{}
	for i := range 1000 {
		many[strconv.Itoa(i)] = 1
	}
	if Clamp(&many); len(many) != maxNames || many["0"] == 0 {
		t.Errorf("%d names stay", len(many))
	}
}

func TestClampSeries(t *testing.T) {
	var all []Series
	for range 10_000 {
		all = append(all, Series{Metric: "x", StepSeconds: 1, Values: make([]float64, 100)},
			Series{Metric: "y", StepSeconds: -1, Values: []float64{1}})
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
