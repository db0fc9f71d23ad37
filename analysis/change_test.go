package analysis

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pelt/analysis/changes"
	"pelt/model"
)

// degrading is a trial whose router gives out at 80 s, and the series that soak tells.
func degrading(seed uint64) model.Result {
	r := rand.New(rand.NewPCG(seed, 8))
	series := func(metric, flow, at, layer, cause string, core int, before, after, scatter float64) model.Series {
		s := model.Series{Metric: metric, Flow: flow, At: at, Layer: layer, Cause: cause, StepSeconds: 1}
		if core >= 0 {
			s.Core = &core
		}
		for i := range 200 {
			level := before
			if i >= 80 {
				level = after
			}
			v := max(0, level+scatter*r.NormFloat64()*math.Sqrt(level))
			if strings.HasSuffix(metric, "_ratio") {
				v = min(1, v)
			}
			s.Values = append(s.Values, v)
		}
		return s
	}
	const backlog, drop = model.LayerNetwork, "CPU_BACKLOG"
	return model.Result{
		State: model.Valid, Cell: model.Cell{},
		Flows: []model.FlowResult{{Name: "up", From: "sender", To: "receiver", Ledger: model.Ledger{Lines: []model.Line{{Layer: backlog, Host: "router", Cause: drop}}}}},
		Series: []model.Series{
			series("send_pps", "up", "sender", "", "", -1, 262e3, 262e3, 1),
			series("receive_pps", "up", "receiver", "", "", -1, 262e3, 148e3, 3),
			series("lost_pps", "up", "sender", "", "", -1, 0, 114e3, 3),
			series("lost_pps", "up", "sender", backlog, drop, -1, 0, 110e3, 3),
			series("lost_pps", "up", "sender", model.LayerReceiverBuffer, "SOCKET_RCVBUFF", -1, 0, 4e3, 1),
			series("dropped_pps", "", "router", backlog, drop, -1, 0, 110e3, 3),
			series("cpu_softirq_ratio", "", "router", "", "", 0, 0.3, 0.31, 0.02),
			series("cpu_softirq_ratio", "", "router", "", "", 1, 0.43, 1, 0.005),
			series("cpu_idle_ratio", "", "router", "", "", 1, 0.55, 0, 0.02),
			series("temperature_c", "", "router", "", "", -1, 50, 50.2, 0.1),
		},
	}
}

func TestChangeIsTold(t *testing.T) {
	doc := model.Document{Plan: model.Plan{Target: "lab:router"}}
	r := degrading(1)
	r.Changes = changes.Find(r)
	r.Made = []model.MadeChange{{AtS: 79.6, Words: "router=limit=50mbit"}, {AtS: 20, Words: "link=loss=1%"}, {AtS: 80, Words: "router=plain", Failure: "x"}}
	doc.Results = []model.Result{r}
	var got []string
	for _, f := range Analyze(doc) {
		if f.Kind == KindChange {
			got = append(got, f.Text)
			if f.Values["start_s"] != 80 || math.Abs(f.Values["size"]+114e3) > 1e3 {
				t.Errorf("values of the finding: %v; want a start at 80 s and a size of -114 kpps", f.Values)
			}
		}
	}
	want := "After 80 s the rate that arrived (up) fell from 262 to 148 kpps; losses moved from 0 to 110 kpps: CPU backlog at router full (network CPU_BACKLOG); " +
		"the kernel of the router dropped 110 kpps after 0 pps (network CPU_BACKLOG); core 1 of the router went from 43 to 100 % softirq; the lab was changed at 80 s, as asked: router=limit=50mbit."
	if len(got) != 1 || got[0] != want {
		t.Errorf("a router that gives out:\n got %s\nwant %s", strings.Join(got, "\n     "), want)
	}
}

// Sentences of each kind, of documents that others may have made.
func TestChangeText(t *testing.T) {
	for _, c := range []struct {
		name   string
		change model.Change
		want   string
	}{
		{"drift", model.Change{Kind: model.ChangeDrift, Metric: "goodput_bps", Flow: "down", StartS: 60, EndS: 4000, Before: 9e8, After: 7e8, Size: -2e8},
			"From 60 s to 1 h 6 min 40 s goodput (down) fell steadily from 900 to 700 Mbit/s."},
		{"stalls", model.Change{Kind: model.ChangeStall, Metric: "receive_pps", Flow: "up", StartS: 4, EndS: 295, Before: 2e5, After: 1.5e5, Size: -5e4, PeriodS: 10, Count: 30},
			"Every 10 s the rate that arrived (up) fell from 200 to 150 kpps for a moment, 30 times from 4 s to 295 s."},
		{"burst", model.Change{Kind: model.ChangeBurst, Metric: "lost_pps", Flow: "up", StartS: 300, EndS: 302, Packets: 1234, Count: 1, Size: 617, After: 617},
			"At 300 s 1 234 packets more than usual were lost (up) within 2 s."},
		{"bursts", model.Change{Kind: model.ChangeBurst, Metric: "lost_pps", Flow: "up", StartS: 300, EndS: 3000, Packets: 12340, Count: 12, Size: 617, After: 617},
			"12 bursts of loss came from 300 s to 50 min: 12 340 packets more than usual were lost (up) in them."},
		{"regular bursts", model.Change{Kind: model.ChangeBurst, Metric: "lost_pps", Flow: "up", StartS: 7, EndS: 578, Packets: 8800, Count: 20, PeriodS: 30},
			"Every 30 s there was a burst of loss, 20 from 7 s to 578 s: 8 800 packets more than usual were lost (up) in them."},
		{"its sender", model.Change{Kind: model.ChangeShift, Metric: "receive_pps", StartS: 9, EndS: 50, Before: 2000, After: 1000, Size: -1000,
			Causes: []model.Mover{{Metric: "send_pps", At: "sender", Before: 2000, After: 1000, Fit: 1}}},
			"After 9 s the rate that arrived fell from 2 to 1 kpps; what was sent fell from 2 to 1 kpps."},
		{"nonsense", model.Change{Kind: "x", Metric: "", StartS: math.NaN(), Size: math.Inf(1), Packets: math.Inf(1)}, "X of  at ."},
	} {
		doc := model.Document{Results: []model.Result{{State: model.Valid, Changes: []model.Change{c.change}}}}
		var got string
		for _, f := range Analyze(doc) {
			if f.Kind == KindChange {
				got += f.Text
			}
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}
