package analysis

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/analysis/internal/stats"
	"pelt/model"
)

// The order of results, and results that do not count, change nothing.
func TestSweepOrderDoesNotMatter(t *testing.T) {
	all := fields()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(all))).Draw(t, "field")
		doc := all[name].document()
		want := sweepText(doc)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		random.Shuffle(len(doc.Results), func(i, j int) { doc.Results[i], doc.Results[j] = doc.Results[j], doc.Results[i] })
		if got := sweepText(doc); got != want {
			t.Fatalf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	})
}

// What an invalid or aborted trial measured moves no figure.
func TestSweepInvalidDoesNotCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := usualField()
		w.seed = rapid.Uint64().Draw(t, "seed")
		doc := w.document()
		want := sweepText(doc)
		for range rapid.IntRange(1, 10).Draw(t, "more") {
			r := doc.Results[rapid.IntRange(0, len(doc.Results)-1).Draw(t, "which")]
			r.State = rapid.SampledFrom([]model.State{model.Aborted, model.Invalid}).Draw(t, "state")
			r.Why = "flow up: 3 of them"
			r.Flows = slices.Clone(r.Flows)
			r.Flows[0].GoodputBPS *= rapid.Float64Range(0, 100).Draw(t, "factor")
			doc.Results = append(doc.Results, r)
		}
		var kept []string
		invalid := false
		for _, block := range strings.SplitAfter(sweepText(doc), "\n") {
			if !strings.HasPrefix(block, " ") {
				invalid = strings.HasPrefix(block, KindInvalid+":")
			}
			if !invalid {
				kept = append(kept, block)
			}
		}
		if got := strings.Join(kept, ""); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// The best cell is the best in any unit.
func TestSweepScaleDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := usualField()
		w.seed, w.noise = rapid.Uint64().Draw(t, "seed"), rapid.Float64Range(0, 0.1).Draw(t, "noise")
		doc := w.document()
		best, ties := of(t, doc, KindSweepBest), of(t, doc, KindSweepTies)
		scale := rapid.Float64Range(1e-3, 1e3).Draw(t, "scale")
		for i := range doc.Results {
			f := &doc.Results[i].Flows[0]
			f.GoodputBPS *= scale
			f.SendGoodputBPS *= scale
		}
		after, tiesAfter := of(t, doc, KindSweepBest), of(t, doc, KindSweepTies)
		if !after.Cells[0].Equal(best.Cells[0]) || ties.Values["not_separable_cells"] != tiesAfter.Values["not_separable_cells"] {
			t.Fatalf("best %v, scaled %v; %v ties, scaled %v", best.Cells, after.Cells, ties.Values, tiesAfter.Values)
		}
	})
}

// Of cells that truly are alike, or of which one is best by less than the scatter,
// the truly best one is named or not cast out in 95 of 100 sweeps.
func TestSweepKeepsTheTrulyBest(t *testing.T) {
	const sweeps = 300
	for _, repeats := range []int{2, 3, 5} {
		out := 0
		for seed := range uint64(sweeps) {
			random := rand.New(rand.NewPCG(seed, uint64(repeats)))
			var all []spot
			for range 20 {
				var s spot
				for r := range repeats {
					s.trials = append(s.trials, sweepTrial{repeat: r, speed: 1e6 * (1 + 0.01*random.NormFloat64())})
				}
				s.speed = stats.Mean(s.speeds())
				all = append(all, s)
			}
			if best := bestSpot(all); best != 0 && !slices.Contains(compare(all, best).ties, 0) {
				out++
			}
		}
		if out > sweeps*7/100 {
			t.Errorf("%d repeats: the truly best cell was cast out in %d of %d sweeps; want at most 5 %%", repeats, out, sweeps)
		}
	}
}

// A difference of many times the scatter is always seen, drift of whole repeats or not.
func TestSweepSeparatesWhatDiffers(t *testing.T) {
	for seed := range uint64(50) {
		w := field{payloads: []int{512, 1024}, intervals: []float64{0}, repeats: 3, receivers: 10, rate: 1e6, noise: 0.0002, drift: 0.2, seed: seed}
		f := of(t, w.document(), KindSweepTies)
		if f.Values["not_separable_cells"] != 0 {
			t.Errorf("seed %d: %s", seed, f.Text)
		}
	}
}

// Whatever a document holds, one verdict comes first and every value is a number.
func TestAnySweep(t *testing.T) {
	figure := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, -1, math.NaN(), math.Inf(1), 1e300, 1e14}))
	rapid.Check(t, func(t *rapid.T) {
		doc := model.Document{Plan: model.Plan{Command: "sweep", Target: rapid.SampledFrom([]string{"lab:star", "lab:router", "x", "lab:star:3"}).Draw(t, "target"),
			Receivers: rapid.IntRange(0, 3).Draw(t, "receivers"), Links: []model.Link{{Rate: 1000, Node: rapid.SampledFrom([]string{"", "receiver", "receiver-1", "sender", "x"}).Draw(t, "node")}}}}
		for range rapid.IntRange(0, 12).Draw(t, "results") {
			r := model.Result{State: rapid.SampledFrom([]model.State{model.Valid, model.Valid, model.Valid, model.Invalid, model.Aborted, "x"}).Draw(t, "state"), Repeat: rapid.IntRange(0, 2).Draw(t, "repeat"),
				Cell: model.Cell{"interval_ns": model.Number(figure.Draw(t, "interval")), "control": model.Word("bbr")}}
			for range rapid.IntRange(0, 2).Draw(t, "flows") {
				f := model.FlowResult{
					Name: "up", To: rapid.SampledFrom([]string{"", "receiver", "sender"}).Draw(t, "to"), Protocol: rapid.SampledFrom([]model.Protocol{model.UDP, model.UDP, model.TCP, ""}).Draw(t, "protocol"),
					PayloadBytes: rapid.IntRange(-1, 3000).Draw(t, "payload"), FrameBytes: rapid.IntRange(-1, 2000).Draw(t, "frame"), Fragments: rapid.IntRange(-1, 3).Draw(t, "fragments"),
					SendPPS: figure.Draw(t, "send"), GoodputBPS: figure.Draw(t, "goodput"), Attempted: rapid.Uint64().Draw(t, "attempted"), Lost: rapid.Uint64().Draw(t, "lost"),
				}
				for range rapid.IntRange(0, 3).Draw(t, "shares") {
					f.Receivers = append(f.Receivers, model.ReceiverShare{Node: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "who"), GoodputBPS: figure.Draw(t, "share")})
				}
				r.Flows = append(r.Flows, f)
			}
			doc.Results = append(doc.Results, r)
		}
		for i, f := range Analyze(doc) {
			if (f.Kind == KindVerdict) != (i == 0) {
				t.Fatalf("finding %d is %s: want one verdict, first", i, f.Kind)
			}
			for k, x := range f.Values {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					t.Fatalf("%s: %s = %v", f.Kind, k, x)
				}
			}
			if strings.Contains(f.Text, "NaN") || strings.Contains(f.Text, "Inf") {
				t.Fatalf("%s: %s", f.Kind, f.Text)
			}
		}
		Warnings(doc)
	})
}
