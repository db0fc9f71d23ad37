package changes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pelt/model"
)

// moving makes a series of 200 s that goes from one level to another at a second.
func moving(r *rand.Rand, metric, at, layer, cause string, core int, before, after float64, when int, scatter float64) model.Series {
	s := model.Series{Metric: metric, At: at, Layer: layer, Cause: cause, StepSeconds: 1}
	if strings.HasPrefix(metric, "lost") || strings.HasPrefix(metric, "send") {
		s.Flow = "up"
	}
	if core >= 0 {
		s.Core = &core
	}
	s.Values = drawn(200, func(i int) float64 {
		return max(0, piecewise(i, before, float64(when), after)+scatter*r.NormFloat64())
	})
	return s
}

func names(of []model.Mover) string {
	var out []string
	for _, m := range of {
		name := m.Metric
		if m.Layer != "" {
			name += " " + m.Layer
		}
		if m.Core != nil {
			name += fmt.Sprint(" ", *m.Core)
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}

func TestCauses(t *testing.T) {
	for _, c := range []struct {
		name   string
		series func(r *rand.Rand) []model.Series
		want   string
	}{
		{"a full core of the router", func(r *rand.Rand) []model.Series {
			return []model.Series{
				moving(r, "cpu_softirq_ratio", "router", "", "", 0, 0.30, 0.30, 80, 0.02),
				moving(r, "cpu_softirq_ratio", "router", "", "", 1, 0.45, 0.99, 80, 0.01),
				moving(r, "lost_pps", "sender", "network", "CPU_BACKLOG", -1, 0, 110e3, 80, 300),
				moving(r, "lost_pps", "sender", "receiver-buffer", "SOCKET_RCVBUFF", -1, 0, 40e3, 80, 300),
				moving(r, "dropped_pps", "router", "network", "CPU_BACKLOG", -1, 0, 105e3, 81, 300), // its clock is a second off
			}
		}, "lost_pps network, dropped_pps network, cpu_softirq_ratio 1, lost_pps receiver-buffer"},
		{"its own sender", func(r *rand.Rand) []model.Series {
			return []model.Series{
				moving(r, "send_pps", "sender", "", "", -1, 262e3, 148e3, 80, 300),
				moving(r, "cpu_idle_ratio", "sender", "", "", 0, 0.5, 0.01, 80, 0.01),
			}
		}, "send_pps, cpu_idle_ratio 0"},
		{"what moved at another time, the other way, or too little", func(r *rand.Rand) []model.Series {
			return []model.Series{
				moving(r, "cpu_softirq_ratio", "router", "", "", 0, 0.4, 0.99, 120, 0.01),
				moving(r, "cpu_softirq_ratio", "router", "", "", 1, 0.4, 0.99, 60, 0.01),
				moving(r, "send_pps", "sender", "", "", -1, 262e3, 300e3, 80, 300),
				moving(r, "lost_pps", "sender", "network", "X", -1, 9e3, 2e3, 80, 300),
				moving(r, "cpu_busy_ratio", "router", "", "", -1, 0.40, 0.45, 80, 0.01),
				moving(r, "lost_pps", "sender", "receiver-udp", "Y", -1, 0, 100, 80, 3),
				moving(r, "temperature_c", "router", "", "", -1, 50, 51, 80, 0.1),
			}
		}, ""},
		{"noise", func(r *rand.Rand) []model.Series {
			var out []model.Series
			for core := range 40 {
				out = append(out, moving(r, "cpu_softirq_ratio", "router", "", "", core, 0.5, 0.5, 80, 0.3))
			}
			return out
		}, ""},
	} {
		for seed := range uint64(5) {
			r := rand.New(rand.NewPCG(seed, 6))
			res := trial("receive_pps", drawn(200, func(i int) float64 { return noisy(piecewise(i, 262e3, 80, 148e3), 0.01, r) }))
			res.Series = append(res.Series, c.series(r)...)
			found := Find(res)
			var got *model.Change
			for i := range found {
				if found[i].Metric == "receive_pps" {
					got = &found[i]
				}
			}
			if got == nil || names(got.Causes) != c.want {
				t.Errorf("%s, seed %d: got %+v; want one change with %q", c.name, seed, found, c.want)
			}
		}
	}
}

// Moments are compared with the moments of others.
func TestCausesOfBursts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	when := func(i int) bool { return i%30 == 7 }
	res := trial("lost_pps", drawn(600, func(i int) float64 {
		if when(i) {
			return 400 + poisson(20, r)
		}
		return poisson(2, r)
	}))
	core := 3
	add := func(metric, at, layer string, core *int, value func(i int) float64) {
		res.Series = append(res.Series, model.Series{Metric: metric, At: at, Layer: layer, Core: core, StepSeconds: 1, Values: drawn(600, value)})
	}
	add("dropped_pps", "router", "network", nil, func(i int) float64 {
		if when(i - 1) { // a second late
			return 390
		}
		return 0
	})
	add("dropped_pps", "receiver", "receiver-udp", nil, func(i int) float64 { return poisson(3, r) })
	add("cpu_softirq_ratio", "router", "", &core, func(i int) float64 {
		if when(i) {
			return 1
		}
		return 0.2 + 0.02*r.NormFloat64()
	})
	found := Find(res)
	if len(found) != 1 || math.Abs(found[0].PeriodS-30) > 0.01 || found[0].Count != 20 || names(found[0].Causes) != "dropped_pps network, cpu_softirq_ratio 3" {
		t.Fatalf("found %+v; want bursts every 30 s with two movers", found)
	}
	if m := found[0].Causes; math.Abs(m[0].After-390) > 5 || math.Abs(m[1].Before-0.2) > 0.02 || math.Abs(m[1].After-1) > 0.02 {
		t.Errorf("movers %+v", m)
	}
}
