package bench

import (
	"cmp"
	"math"
	"slices"

	"pelt/model"
)

// Layers of a processor's busy time as charts pile them up, the lowest first: the
// metrics that each is the sum of. Of a stack, waiting and idle time is what is left.
var layers = [LayerCount][]string{
	{"cpu_softirq_ratio"}, {"cpu_irq_ratio"}, {"cpu_system_ratio"}, {"cpu_user_ratio", "cpu_nice_ratio"}, {"cpu_steal_ratio"},
}

// LayerCount is how many layers a processor's busy time has, LayerNames theirs.
const LayerCount = 5

// LayerNames are in top's words.
func LayerNames() [LayerCount]string { return [LayerCount]string{"sirq", "irq", "sys", "usr", "steal"} }

// Layers splits a processor's busy time as charts do.
func Layers(c model.CPUSplit) [LayerCount]float64 {
	return [LayerCount]float64{c.Softirq, c.IRQ, c.System, c.User + c.Nice, c.Steal}
}

// Stack is one core over time, or the whole router.
type Stack struct {
	Core        int // -1: the whole router
	Start, Step float64
	Layers      [LayerCount][]float64 // NaN where it was not observed
}

// Rate is one flow's series over time.
type Rate struct {
	Flow        string
	Start, Step float64
	PPS, BPS    []float64 // one may be missing
}

// Timeline is the seconds of one trial.
type Timeline struct {
	Rates  []Rate
	Stacks []Stack // the whole router first; none if it was not observed at all
}

// NewTimeline reads a trial's series. Those of another host, or with steps of no
// length, are left out.
func NewTimeline(r model.Result) Timeline {
	var t Timeline
	for _, f := range r.Flows {
		rate := Rate{Flow: f.Name}
		for _, s := range r.Series {
			if s.Flow != f.Name || s.At != f.To || s.Core != nil || !drawable(s) {
				continue
			}
			switch s.Metric {
			case "receive_pps":
				rate.PPS, rate.Start, rate.Step = s.Values, s.StartSeconds, s.StepSeconds
			case "goodput_bps":
				rate.BPS, rate.Start, rate.Step = s.Values, s.StartSeconds, s.StepSeconds
			}
		}
		if rate.Step > 0 {
			t.Rates = append(t.Rates, rate)
		}
	}
	if r.Router == nil {
		return t
	}
	cores := map[int]*Stack{}
	for _, s := range r.Series {
		layer := slices.IndexFunc(layers[:], func(metrics []string) bool { return slices.Contains(metrics, s.Metric) })
		if layer < 0 || s.At != r.Router.Node || s.Core == nil || !drawable(s) {
			continue
		}
		k := cores[*s.Core]
		if k == nil {
			k = &Stack{Core: *s.Core, Start: s.StartSeconds, Step: s.StepSeconds}
			cores[*s.Core] = k
		}
		if s.StartSeconds == k.Start && s.StepSeconds == k.Step {
			k.Layers[layer] = sum(k.Layers[layer], s.Values)
		}
	}
	for _, k := range cores {
		t.Stacks = append(t.Stacks, *k)
	}
	slices.SortFunc(t.Stacks, func(a, b Stack) int { return cmp.Compare(a.Core, b.Core) })
	if len(t.Stacks) > 0 {
		t.Stacks = slices.Insert(t.Stacks, 0, whole(t.Stacks))
	}
	return t
}

func drawable(s model.Series) bool {
	return len(s.Values) > 0 && s.StepSeconds > 0 && !math.IsInf(s.StepSeconds, 0) && !math.IsNaN(s.StartSeconds) && !math.IsInf(s.StartSeconds, 0)
}

func sum(a, b []float64) []float64 {
	if a == nil {
		return b
	}
	out := slices.Clone(a[:min(len(a), len(b))])
	for i := range out {
		out[i] += b[i]
	}
	return out
}

// whole is the mean of the cores, where all of them were observed.
func whole(cores []Stack) Stack {
	w := Stack{Core: -1, Start: cores[0].Start, Step: cores[0].Step}
	for _, k := range cores {
		if k.Start != w.Start || k.Step != w.Step {
			return w // its layers stay empty: the steps do not match
		}
		for i := range w.Layers {
			w.Layers[i] = sum(w.Layers[i], k.Layers[i])
		}
	}
	for i := range w.Layers {
		w.Layers[i] = slices.Clone(w.Layers[i])
		for j := range w.Layers[i] {
			w.Layers[i][j] /= float64(len(cores))
		}
	}
	return w
}
