package seconds

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
	"pelt/report/internal/words"
)

func lostBy(at, layer, cause string, values ...float64) model.Series {
	return model.Series{Metric: "lost_pps", Flow: "up", At: at, Layer: layer, Cause: cause, StepSeconds: 1, Values: values}
}

func TestCausesMakeUpTheLoss(t *testing.T) {
	core := 1
	r := model.Result{
		Flows: []model.FlowResult{{Name: "up", Ledger: model.Ledger{Unattributed: 5, Lines: []model.Line{{Layer: "network", Host: "router", Cause: "QDISC_DROP", Confidence: "exact-seq"}, {Layer: "receiver-buffer", Host: "receiver", Cause: "SOCKET_RCVBUFF", Confidence: "exact-seq"}}}}},
		Series: []model.Series{
			lostBy("sender", "", "", 10, 20, 30, math.NaN()),
			lostBy("receiver", "receiver-buffer", "SOCKET_RCVBUFF", 10, 0, 0, 0),
			lostBy("sender", "network", "QDISC_DROP", 0, 20, 25, 0), // as some ledgers place it: at the second of sending
			{Metric: "lost_pps", Flow: "up", Core: &core, StepSeconds: 1, Values: []float64{9}},
			{Metric: "lost_pps", Flow: "down", StepSeconds: 1, Values: []float64{9}},
			{Metric: "send_pps", Flow: "up", StepSeconds: math.Inf(1), Values: []float64{9}},
		},
	}
	flows := Of(r).Flows
	if len(flows) != 1 || len(flows[0].Sent.Values) != 0 {
		t.Fatalf("flows %+v; want up, of which only the loss is known", flows)
	}
	want := []struct {
		words  string
		values []float64
	}{
		{"queue on the way at router full (QDISC_DROP)", []float64{0, 20, 25, 0}},
		{"receiver socket buffer full (SOCKET_RCVBUFF)", []float64{10, 0, 0, 0}},
		{words.Unattributed, []float64{0, 0, 5, math.NaN()}},
	}
	got := flows[0].Causes
	if len(got) != len(want) {
		t.Fatalf("%d causes; want %d: %+v", len(got), len(want), got)
	}
	for i, w := range want {
		if got[i].Words != w.words || !slices.EqualFunc(got[i].Series.Values, w.values, same) {
			t.Errorf("cause %d: %s %v; want %s %v", i, got[i].Words, got[i].Series.Values, w.words, w.values)
		}
	}
	if r.Series[1].Values[0] != 10 || !math.IsNaN(r.Series[0].Values[3]) {
		t.Error("the document's own series were changed")
	}
}

// What no series places is called unattributed only if the ledger says so.
func TestRestHasItsName(t *testing.T) {
	buffer := model.Line{Layer: "receiver-buffer", Host: "receiver", Cause: "SOCKET_RCVBUFF", Packets: 30}
	queue := model.Line{Layer: "network", Host: "router", Cause: "QDISC_DROP", Packets: 10}
	for _, c := range []struct {
		name   string
		ledger model.Ledger
		want   string
	}{
		{"no line", model.Ledger{Unattributed: 30}, words.Unattributed},
		{"a line without sequences", model.Ledger{Lines: []model.Line{buffer}}, "receiver socket buffer full (SOCKET_RCVBUFF)"},
		{"such a line, and more", model.Ledger{Lines: []model.Line{buffer}, Unattributed: 3}, Unplaced},
		{"two such lines", model.Ledger{Lines: []model.Line{buffer, queue}}, Unplaced},
		{"more than is unattributed", model.Ledger{Unattributed: 3}, Unplaced},
	} {
		trial := Of(model.Result{Flows: []model.FlowResult{{Name: "up", Ledger: c.ledger}}, Series: []model.Series{lostBy("sender", "", "", 10, 20)}})
		if got := trial.Flows[0].Causes; len(got) != 1 || got[0].Words != c.want {
			t.Errorf("%s: %+v; want %q", c.name, got, c.want)
		}
	}
}

func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

func TestMarks(t *testing.T) {
	r := model.Result{
		Flows:  []model.FlowResult{{Name: "up"}},
		Series: []model.Series{{Metric: "receive_pps", Flow: "up", StepSeconds: 1, Values: make([]float64, 300)}},
		Made:   []model.MadeChange{{AtS: 80.4, Words: "router=rules=1000"}, {AtS: 90, Words: "link=loss=1%", Failure: "no"}, {AtS: 999, Words: "never"}, {AtS: math.NaN()}},
		Changes: []model.Change{
			{Kind: model.ChangeShift, Metric: "cpu_softirq_ratio", At: "router", StartS: 81, Before: 0.4, After: 1}, // of what received shows
			{Kind: model.ChangeShift, Metric: "receive_pps", Flow: "up", StartS: 80, Before: 262e3, After: 148e3},
			{Kind: model.ChangeBurst, Metric: "lost_pps", Flow: "up", StartS: 81, Count: 3},
			{Kind: model.ChangeDrift, Metric: "goodput_bps", Flow: "up", StartS: 120, Before: 9e8, After: 0},
			{Kind: model.ChangeStall, Metric: "receive_pps", Flow: "up", StartS: 10, PeriodS: 5},
			{Kind: model.ChangeShift, Metric: "temperature_c", At: "router", StartS: 200, Before: 50, After: 71},
			{Kind: model.ChangeShift, Metric: "receive_pps", StartS: math.NaN()},
		},
	}
	var got []string
	for _, m := range Of(r).Marks {
		got = append(got, m.Words)
	}
	want := []string{"received stalls every 5 s", "router=rules=1000", "received 262 → 148 kpps", "3 bursts of loss", "goodput drifts 900 Mbit/s → 0 bit/s", "router temperature_c 50 → 71"}
	if !slices.Equal(got, want) {
		t.Errorf("marks\n got %q\nwant %q", got, want)
	}
}

func TestGaps(t *testing.T) {
	values := make([]float64, 100)
	for _, i := range []int{0, 40, 41, 99} {
		values[i] = math.NaN()
	}
	r := model.Result{
		Flows:  []model.FlowResult{{Name: "up"}},
		Series: []model.Series{{Metric: "receive_pps", Flow: "up", StepSeconds: 1, Values: values}},
		Gaps: []model.ControlGap{{Nodes: []string{"near", "far"}, StartS: 30, DurationS: 10.5}, {Nodes: []string{"far"}, StartS: 70, DurationS: 2}, {StartS: 200, DurationS: 5},
			{StartS: math.NaN(), DurationS: 5}, {StartS: 5, DurationS: math.NaN()}},
	}
	want := []Span{{0, 1, "no samples"}, {30, 42, "near and far not heard"}, {70, 72, "far not heard"}, {99, 100, "no samples"}}
	if got := Of(r).Gaps; !slices.Equal(got, want) {
		t.Errorf("gaps %+v; want %+v", got, want)
	}
}

// Parts lie end to end, are few, and have every lost packet once.
func TestPartsHaveAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, most := rapid.IntRange(1, 5000).Draw(t, "seconds"), rapid.IntRange(1, 12).Draw(t, "most")
		seed := rapid.IntRange(0, 1<<30).Draw(t, "seed")
		lost, sum := make([]float64, n), 0.0
		for i := range lost {
			lost[i] = float64((seed + i%13*(i%13)*7919) % 13)
			sum += lost[i]
		}
		trial := Of(model.Result{Flows: []model.FlowResult{{Name: "up"}}, Series: []model.Series{lostBy("sender", "", "", lost...)}})
		parts := trial.Parts(trial.Flows[0], most)
		at, packets := 0.0, 0.0
		for _, p := range parts {
			if p.FromS != at || p.ToS <= p.FromS || p.AtLeast || !math.IsNaN(p.SentPPS) {
				t.Fatalf("part %+v after %v s", p, at)
			}
			at, packets = p.ToS, packets+p.Lost
		}
		if len(parts) > most || at != float64(n) || math.Abs(packets-sum) > 1e-6 {
			t.Fatalf("%d parts until %v s with %v packets; want at most %d, %d s and %v", len(parts), at, packets, most, n, sum)
		}
	})
}

func TestPartOfWhatWasNotHeard(t *testing.T) {
	nan := math.NaN()
	trial := Of(model.Result{Flows: []model.FlowResult{{Name: "up"}}, Series: []model.Series{
		lostBy("sender", "", "", 5, nan, nan, nan), {Metric: "receive_pps", Flow: "up", StepSeconds: 1, Values: []float64{10, nan, nan, nan}}}})
	parts := trial.Parts(trial.Flows[0], 2)
	if len(parts) != 2 || parts[0].GotPPS != 10 || parts[0].Lost != 5 || !parts[0].AtLeast || !math.IsNaN(parts[1].GotPPS) || !math.IsNaN(parts[1].Lost) {
		t.Errorf("parts %+v; want 10 pps and at least 5 lost in the first, and nothing known of the second", parts)
	}
}

// A thinned series has the least and the most of the whole, spans its time, and keeps
// the order of a fall and a rise.
func TestThinKeepsBursts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(0, 100), rapid.Just(math.NaN())), 1, 400).Draw(t, "values")
		most := rapid.IntRange(2, 50).Draw(t, "most")
		s := model.Series{StepSeconds: 1, Values: values}
		step, thinned := Thin(s, most)
		if len(thinned) > most && len(values) > most {
			t.Fatalf("%d values; want at most %d", len(thinned), most)
		}
		low, high := span(values)
		if l, h := span(thinned); l != low || h != high {
			t.Fatalf("from %v to %v; want %v to %v", l, h, low, high)
		}
		if end := step * float64(len(thinned)); end < float64(len(values))-1e-9 {
			t.Fatalf("ends at %v s; want %d", end, len(values))
		}
	})
	if _, got := Thin(model.Series{StepSeconds: 1, Values: []float64{5, 1, 5, 5, 5, 9, 5, 5}}, 4); !slices.Equal(got, []float64{5, 1, 5, 9}) {
		t.Errorf("a fall, then a rise: %v; want the order kept", got)
	}
}

func span(values []float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	return low, high
}
