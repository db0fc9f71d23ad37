package table

import (
	"testing"

	"pelt/model"
)

func TestMixes(t *testing.T) {
	f := &model.FlowResult{Name: "up", Protocol: model.TCP, Streams: 2, GoodputBPS: 100, DurationS: 1,
		TCP: &model.TCPFacts{Writes: 1, PerStream: []model.TCPStream{{Control: "cubic", GoodputBPS: 22},
			{Control: "bbr", GoodputBPS: 70}, {Control: "bbr", GoodputBPS: 8}}}}
	r := Row{Doc: &model.Document{}, Trial: &model.Result{State: model.Valid}, Flow: f}
	groups := By(Mixes([]Row{r}), KeyOf("control_part"))
	if len(groups) != 2 || groups[0].Name() != "BBR" || groups[1].Name() != "CUBIC" {
		t.Fatal(groups)
	}
	for i, want := range []float64{0.78, 0.22} {
		if got := groups[i].Stat(MetricOf("control_share_ratio")).Median; !near(got, want) {
			t.Errorf("%g; want %g", got, want)
		}
		if got := groups[i].Stat(MetricOf("goodput_bps")).Median; !near(got, 100*want) {
			t.Errorf("%g; want %g", got, 100*want)
		}
	}
	r.Flow.TCP.PerStream = r.Flow.TCP.PerStream[1:]
	if got := Mixes([]Row{r}); got != nil {
		t.Error("streams of one control are no mix")
	}
}

// TestLeastTold: more repeats tell smaller differences, more comparisons larger ones; two repeats tell nothing.
func TestFamilyOfLooks(t *testing.T) {
	m := MetricOf("goodput_bps")
	pairs := []Pair{{A: Sample{Values: []float64{120, 128, 124}}, B: Sample{Values: []float64{104, 109, 114}}}}
	once, often := Family(m, pairs, 1)[0], Family(m, pairs, 5)[0]
	if once.Verdict != BetterThan || often.Verdict != TooFew || !near(often.P, 5*once.P) {
		t.Errorf("%+v\n%+v", once, often)
	}
}

func TestControlNames(t *testing.T) {
	for name, want := range map[string]string{"cubic": "CUBIC", "bbr+reno": "BBR+Reno", "mine": "mine", "": ""} {
		if got := KeyOf("control").Format(Level{model.Word(name), name != ""}); got != want {
			t.Errorf("%q is %q; want %q", name, got, want)
		}
	}
}
