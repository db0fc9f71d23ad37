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
