package changes

import (
	"cmp"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
)

// Whatever a document holds, every figure is one, times lie within the series, and nothing
// that was given is changed.
func TestFindAnything(t *testing.T) {
	odd := []float64{0, 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, -1e300, 1e14, 5e-324, 40000, 40001}
	rapid.Check(t, func(t *rapid.T) {
		var r model.Result
		dice := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for range rapid.IntRange(0, 4).Draw(t, "series") {
			s := model.Series{
				Metric:       rapid.SampledFrom([]string{"receive_pps", "send_pps", "lost_pps", "goodput_bps", "cpu_idle_ratio", "dropped_pps", "delay_p50_ns", "", "_"}).Draw(t, "metric"),
				Flow:         rapid.SampledFrom([]string{"", "up"}).Draw(t, "flow"),
				Layer:        rapid.SampledFrom([]string{"", "network"}).Draw(t, "layer"),
				StartSeconds: rapid.SampledFrom([]float64{0, 0, 0.5, -3, math.NaN(), 1e300}).Draw(t, "start"),
				StepSeconds:  rapid.SampledFrom([]float64{1, 1, 1, 0.1, 5, 0, -1, math.Inf(1), math.NaN(), 5e-324}).Draw(t, "step"),
			}
			n := rapid.IntRange(0, 200).Draw(t, "n")
			cut := rapid.IntRange(0, 200).Draw(t, "cut")
			level := rapid.SampledFrom([]float64{0, 1, 1e6, 1e15}).Draw(t, "level")
			wild := rapid.IntRange(0, 3).Draw(t, "wild") // of ten values
			for i := range n {
				v := level
				if i >= cut {
					v = level / 2
				}
				switch {
				case dice.IntN(20) < wild:
					v = odd[dice.IntN(len(odd))]
				case dice.IntN(10) < wild:
					v = 1e6 * dice.Float64()
				}
				s.Values = append(s.Values, v)
			}
			r.Series = append(r.Series, s)
		}
		before, _ := json.Marshal(model.Finite(r))
		found := Find(r)
		if after, _ := json.Marshal(model.Finite(r)); string(before) != string(after) {
			t.Fatal("what was given has changed")
		}
		if text, err := json.Marshal(found); err != nil {
			t.Fatalf("%v in %v %s", err, found, text)
		}
		for _, c := range found {
			if !(c.StartLowS <= c.StartS && c.StartS <= c.StartHighS && c.StartS < c.EndS) || c.PValue < 0 || c.PValue > surest {
				t.Fatalf("change %+v", c)
			}
			for _, m := range c.Causes {
				if !(m.Fit >= 0 && m.Fit <= 1) {
					t.Fatalf("mover %+v", m)
				}
			}
		}
		if !slices.IsSortedFunc(found, func(a, b model.Change) int { return cmp.Compare(a.StartS, b.StartS) }) {
			t.Fatal("not in the order of time")
		}
	})
}

// A change does not depend on the unit, the begin, or the length of a step.
func TestFindScales(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		scale := math.Exp2(float64(rapid.IntRange(0, 8).Draw(t, "scale"))) // exact in binary
		start := float64(rapid.IntRange(-5, 50).Draw(t, "start"))
		r := rand.New(rand.NewPCG(seed, 1))
		a := trial("goodput_bps", drawn(200, func(i int) float64 { return noisy(piecewise(i, 1e9, 80, 8e8), 0.01, r) }))
		b := trial("goodput_bps", slices.Clone(a.Series[0].Values))
		b.Series[0].StartSeconds = start
		for i := range b.Series[0].Values {
			b.Series[0].Values[i] *= scale
		}
		x, y := Find(a), Find(b)
		if len(x) != 1 || len(y) != 1 {
			t.Fatalf("found %v and %v; want one each", x, y)
		}
		want := x[0]
		want.StartS, want.StartLowS, want.StartHighS, want.EndS = want.StartS+start, want.StartLowS+start, want.StartHighS+start, want.EndS+start
		got := y[0]
		if math.Abs(got.Before/scale-want.Before) > 1 || math.Abs(got.PValue-want.PValue) > 1e-6*want.PValue {
			t.Fatalf("scaled %+v; want %+v", got, want)
		}
		got.Before, got.After, got.Size, got.PValue = want.Before, want.After, want.Size, want.PValue
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("scaled %+v; want %+v", got, want)
		}
	})
}

// Gaps in a series, and series of other begins and steps beside it.
func TestFindWithGaps(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	gaps := drawn(600, func(i int) float64 {
		if r.Float64() < 0.3 || i >= 200 && i < 260 {
			return math.NaN()
		}
		return noisy(piecewise(i, 262e3, 400, 148e3), 0.01, r)
	})
	res := trial("receive_pps", gaps)
	half := 0
	res.Series = append(res.Series,
		model.Series{Metric: "cpu_softirq_ratio", At: "router", Core: &half, StartSeconds: -2.5, StepSeconds: 2.5, Values: drawn(250, func(i int) float64 {
			if i%7 == 0 {
				return math.NaN()
			}
			return min(1, piecewise(i, 0.4, 161, 0.99)+0.01*r.NormFloat64()) // 400 s
		})},
		model.Series{Metric: "lost_pps", Flow: "up", At: "sender", Layer: "network", Cause: "X", StartSeconds: 0.25, StepSeconds: 0.5, Values: drawn(1200, func(i int) float64 {
			return poisson(piecewise(i, 0, 800, 114e3), r)
		})})
	found := Find(res)
	var shifts []model.Change
	for _, c := range found {
		if c.Metric == "receive_pps" {
			shifts = append(shifts, c)
		}
	}
	if len(shifts) != 1 || math.Abs(shifts[0].StartS-400) > 3 || shifts[0].Kind != model.ChangeShift || len(shifts[0].Causes) != 2 {
		t.Fatalf("found %+v; want one shift at 400 s with two movers", found)
	}
	if m := shifts[0].Causes; m[0].Metric != "lost_pps" || math.Abs(m[0].After-114e3) > 1e3 || m[1].Metric != "cpu_softirq_ratio" || math.Abs(m[1].Before-0.4) > 0.02 {
		t.Errorf("movers %+v; want the losses, then the core", m)
	}
	for i := range gaps {
		gaps[i] = math.NaN()
	}
	if found := Find(trial("receive_pps", gaps)); found != nil {
		t.Errorf("found %+v in a series of gaps", found)
	}
}
