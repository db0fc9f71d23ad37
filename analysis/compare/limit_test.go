package compare

import (
	"slices"
	"testing"

	"pelt/model"
)

func TestJudge(t *testing.T) {
	effect := func(metric, kind string, separable bool, change, low, high float64) model.Effect {
		return model.Effect{Side: 1, Metric: metric, Kind: kind, Separable: separable, Change: change, Low: low, High: high, Text: "said"}
	}
	sides := []model.ComparedSide{{Name: "a"}, {Name: "b"}}
	for _, c := range []struct {
		name  string
		limit string
		e     model.Effect
		want  string
	}{
		{"breaks it", "goodput < -5%", effect("goodput_bps", model.Relative, true, -0.07, -0.10, -0.04), model.LimitFailed},
		{"separable, not so far", "goodput < -5%", effect("goodput_bps", model.Relative, true, -0.02, -0.03, -0.01), model.LimitPassed},
		{"separable, may be so far", "goodput < -5%", effect("goodput_bps", model.Relative, true, -0.04, -0.06, -0.02), model.LimitUntold},
		{"noise", "goodput < -5%", effect("goodput_bps", model.Relative, false, -0.07, -0.20, 0.06), model.LimitUntold},
		{"noise within it", "goodput < -5%", effect("goodput_bps", model.Relative, false, -0.01, -0.03, 0.01), model.LimitPassed},
		{"better", "goodput < -5%", effect("goodput_bps", model.Relative, true, 0.5, 0.4, 0.6), model.LimitPassed},
		{"points", "cpu > 10%", effect("router_cpu_busy_ratio", model.Points, true, 0.12, 0.11, 0.13), model.LimitFailed},
		{"round trips are delays", "delay_p99 > 20%", effect("round_trip_p99_ns", model.Relative, true, 0.4, 0.3, 0.5), model.LimitFailed},
		{"missing", "loss > 1%", effect("goodput_bps", model.Relative, true, -0.07, -0.10, -0.04), model.LimitMissing},
	} {
		l, err := ParseLimit(c.limit)
		if err != nil {
			t.Fatal(err)
		}
		got := Judge(model.Comparison{Sides: sides, Effects: []model.Effect{c.e}}, []Limit{l})
		if len(got) != 1 || got[0].State != c.want {
			t.Errorf("%s: %+v; want %s", c.name, got, c.want)
		}
	}
}

// A limit is on every setting that both sides were to measure: one that has no valid
// trial on one side leaves it unjudged, whatever the others show.
func TestJudgeWhatIsNotThere(t *testing.T) {
	limit := func(text string) []Limit {
		l, err := ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		return []Limit{l}
	}
	with := func(change func(r *model.Result) (keep bool)) model.Document {
		b := usual()
		b.pps = func(string, int) float64 { return 100e3 }
		d := b.document()
		d.Results = slices.DeleteFunc(d.Results, func(r model.Result) bool { return !change(&r) })
		for i := range d.Results {
			change(&d.Results[i])
		}
		return d
	}
	large := func(r *model.Result) bool {
		return r.Cell["frame_bytes"].Number == 1518 && r.Cell["variant"].Text == "log"
	}
	for _, c := range []struct {
		name   string
		limit  string
		change func(r *model.Result) bool
		want   []string
	}{
		{"all there", "goodput < -50%", func(*model.Result) bool { return true }, []string{model.LimitPassed}},
		{"none valid", "goodput < -50%", func(r *model.Result) bool {
			if large(r) {
				r.State = model.Invalid
			}
			return true
		}, []string{model.LimitMissing}},
		{"planned, not run", "goodput < -50%", func(r *model.Result) bool { return !large(r) }, []string{model.LimitMissing}},
		{"too few", "goodput < -50%", func(r *model.Result) bool { return !large(r) || r.Repeat < 2 }, []string{model.LimitMissing}},
		{"no figure", "delay_p50 > 500%", func(r *model.Result) bool {
			if large(r) {
				r.Flows = slices.Clone(r.Flows)
				r.Flows[0].Delay = nil
			}
			return true
		}, []string{model.LimitMissing}},
		{"no figure of another metric", "goodput < -50%", func(r *model.Result) bool {
			if large(r) {
				r.Flows = slices.Clone(r.Flows)
				r.Flows[0].Delay = nil
			}
			return true
		}, []string{model.LimitPassed}},
		{"0 on the baseline", "goodput > 50%", func(r *model.Result) bool {
			if r.Cell["frame_bytes"].Number == 1518 && r.Cell["variant"].Text == "plain" {
				r.Flows = slices.Clone(r.Flows)
				r.Flows[0].GoodputBPS = 0
			}
			return true
		}, []string{model.LimitUntold}},
		{"0 on both", "goodput > 50%", func(r *model.Result) bool {
			if r.Cell["frame_bytes"].Number == 1518 {
				r.Flows = slices.Clone(r.Flows)
				r.Flows[0].GoodputBPS = 0
			}
			return true
		}, []string{model.LimitPassed}},
	} {
		var got []string
		judged := Judge(levels(t, with(c.change), "variant", ""), limit(c.limit))
		for _, j := range judged {
			got = append(got, j.State)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v; want %q", c.name, judged, c.want)
		}
	}

	a, b := usual(), usual()
	b.id, b.frames = "b", []int{64}
	c, err := Runs([]model.Document{a.document(), b.document()}, all())
	if err != nil {
		t.Fatal(err)
	}
	if got := Judge(c, limit("goodput < -50%")); len(got) != 1 || got[0].State != model.LimitPassed {
		t.Errorf("a size that the other run never had: %+v; want it left out", got)
	}
}
