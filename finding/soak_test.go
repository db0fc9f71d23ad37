package finding

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pelt/change"
	"pelt/model"
	"pelt/table"
	"pelt/test/sample"
)

// soakOf is a soak at 40 kpps that lost so much in each second.
func soakOf(lost []float64, edit ...func(r *model.Result)) *model.Document {
	d, r := sample.Soaking(float64(len(lost)))
	d.ID = "abc"
	sample.Spill(r, model.Line{}, 0, len(lost), func(i int) float64 { return lost[i] })
	r.Series = append(r.Series[:3], model.Series{Metric: "lost_pps", Flow: "up", Layer: "x", StepSeconds: 1,
		Values: []float64{1e9}}) // a part, never the whole
	for _, e := range edit {
		e(r)
	}
	return &d
}

func lostIn(seconds int, lost map[int]float64) []float64 {
	all := make([]float64, seconds)
	for i, v := range lost {
		all[i] = v
	}
	return all
}

func unheard(r *model.Result) { r.Flows[0].Unheard = &model.Unheard{FromS: 100, Packets: 6470} }

// outage cuts a soak, which goes on with another trial 20 s later.
func outage(d *model.Document, next model.Result) *model.Document {
	r := &d.Results[0]
	r.Started = time.Date(2026, 11, 27, 3, 12, 20, 0, time.Local)
	r.State, r.Why = model.Aborted, model.Reasons{{Code: model.TrialCut}}
	next.Outages = []model.Outage{{From: r.Started.Add(100 * time.Second), StartS: 100, DurationS: 20, BeginS: 120}}
	d.Results = append(d.Results, next)
	return d
}

// losing loses so much from a second on, up to another.
func losing(seconds, from, to int, lost float64) []float64 {
	return stepped(seconds, 0, float64(from), lost, float64(to), 0)
}

func shiftAt(seconds ...float64) func(*model.Result) {
	return func(r *model.Result) {
		for _, s := range seconds {
			r.Changes = append(r.Changes, model.Change{Kind: model.ChangeShift, Metric: "lost_pps", Flow: "up",
				StartS: s, StartLowS: s,
				StartHighS: s, EndS: 1e4, After: 16e3})
		}
	}
}

func state(s model.State, why ...model.Reason) func(*model.Result) {
	return func(r *model.Result) { r.State, r.Why = s, why }
}

func asTCP(r *model.Result) {
	r.Flows[0].Protocol, r.Flows[0].GoodputBPS, r.Flows[0].Lost = model.TCP, 8e8, 0
	r.Flows[0].TCP = &model.TCPFacts{}
	goodput := slices.Clone(r.Series[1].Values)
	for i := range goodput {
		goodput[i] *= 25e3
	}
	r.Series = append(r.Series, model.Series{Metric: "goodput_bps", Flow: "up", StepSeconds: 1, Values: goodput})
}

// answersOf are the sentences of one level.
func sentencesOf(found []Finding, level Level) string {
	var out []string
	for _, f := range Of(found, level) {
		out = append(out, strings.TrimSpace(f.Text()+" "+f.Command()))
	}
	return strings.Join(out, " ")
}

func soakExamples(*testing.T) (out []example) {
	both := soakOf(lostIn(60, nil))
	down := both.Results[0].Flows[0]
	down.Name = "down"
	both.Results[0].Flows = append(both.Results[0].Flows, down)
	resumed := soakOf(lostIn(60, nil))
	cut := soakOf(lostIn(30, map[int]float64{3: 1}), state(model.Aborted)).Results[0]
	resumed.Results = []model.Result{cut, resumed.Results[0], cut}
	slow := state(model.Invalid, model.Reason{Code: model.SenderCoreFull, Flow: "up",
		Numbers: map[string]float64{"kept_pps": 40e3, "asked_pps": 80e3}})
	starved := state(model.Invalid, model.Reason{Code: model.SenderStarved, Flow: "up",
		Numbers: map[string]float64{"kept_pps": 40e3, "asked_pps": 80e3}})
	made := func(at float64, words string) func(*model.Result) {
		return func(r *model.Result) { r.Made = append(r.Made, model.MadeChange{AtS: at, Words: words}) }
	}
	core := 1
	degraded := soakOf(losing(600, 80, 600, 16e3), func(r *model.Result) {
		r.Flows[0].Ledger.Lines = []model.Line{{Layer: "network", Host: "router", Cause: "CPU_BACKLOG",
			Packets: r.Flows[0].Lost}}
		r.Changes = []model.Change{{Kind: model.ChangeShift, Metric: "lost_pps", Flow: "up", StartS: 81,
			StartLowS: 80, StartHighS: 82, After: 16e3},
			{Kind: model.ChangeShift, Metric: "receive_pps", Flow: "up", StartS: 80, StartLowS: 80,
				StartHighS: 80, Before: 40e3, After: 24e3,
				Causes: []model.Mover{{Metric: "cpu_softirq_ratio", At: "router", Core: &core, Before: 0.43,
					After: 1, Fit: 0.9},
					{Metric: "lost_pps", At: "sender", Layer: "network", Cause: "CPU_BACKLOG", After: 16e3, Fit: 1},
					{Metric: "temperature_c", At: "router", Before: 50, After: 51, Fit: 0.3}}}}
	})
	planned := soakOf(losing(600, 80, 600, 16e3), shiftAt(80), func(r *model.Result) {
		r.Made = []model.MadeChange{{AtS: 80.4, TookS: 0.1, Words: "link-receiver=loss=40%,delay=20ms"},
			{AtS: 300, Words: "router=rules=100+log"},
			{AtS: 400, Words: "router=fast", Failure: model.Reasons{{Text: "no nftables."}}}}
		r.Gaps = []model.ControlGap{{Nodes: []string{"receiver"}, StartS: 125, DurationS: 12}}
	})
	kinds := soakOf(lostIn(600, nil), func(r *model.Result) {
		r.Changes = []model.Change{
			{Kind: model.ChangeDrift, Metric: "goodput_bps", Flow: "up", StartS: 60, EndS: 4000, Before: 9e8,
				After: 7e8},
			{Kind: model.ChangeBurst, Metric: "lost_pps", StartS: 300, StartLowS: 300, StartHighS: 300,
				EndS: 302, Packets: 1234, Count: 1},
			{Kind: model.ChangeBurst, Metric: "lost_pps", StartS: 400, StartLowS: 399, StartHighS: 401,
				EndS: 595, Packets: 500, Count: 20},
			{Kind: "x", StartS: 1}, {Kind: model.ChangeShift, Metric: "x_ratio", StartS: math.NaN()}}
	})
	apart := func(r *model.Result) {
		r.Gaps = []model.ControlGap{{Nodes: []string{"receiver"}, StartS: 40, DurationS: 5},
			{Nodes: []string{"receiver"}, StartS: 95, DurationS: 12}}
	}
	for _, c := range []struct {
		name string
		doc  *model.Document
	}{
		{"a change that is found", soakOf(losing(600, 417, 600, 60),
			func(r *model.Result) { r.Changes = change.Of(*r) })},
		{"between changes", soakOf(losing(600, 200, 400, 17200), shiftAt(200, 400))},
		{"between changes, too little to tell", soakOf(losing(600, 200, 400, 3), shiftAt(200, 400))},
		{"several steps before", soakOf(stepped(600, 100, 200, 1600, 400, 10000),
			shiftAt(200, 400))},
		{"several steps after", soakOf(stepped(600, 10000, 200, 1600, 400, 100), asTCP,
			shiftAt(200, 400))},
		{"a planned change", soakOf(losing(12, 8, 12, 10000), made(8.02, "link-receiver=rate=50mbit"))},
		{"an outage", outage(soakOf(lostIn(100, nil)), soakOf(losing(100, 0, 50, 400)).Results[0])},
		{"an outage that hides nothing, and a control gap beside it", outage(soakOf(lostIn(100, nil), apart),
			soakOf(lostIn(100, nil)).Results[0])},
		{"an outage in which packets were sent",
			outage(soakOf(lostIn(100, nil), unheard), soakOf(lostIn(100, nil)).Results[0])},
		{"an outage without end", outage(soakOf(lostIn(100, nil), unheard), model.Result{State: model.Aborted,
			Why: model.Reasons{{Code: model.NoPath}}})},
		{"cut in silence", soakOf(lostIn(100, nil), unheard, state(model.Aborted))},
		{"a slow sender", soakOf(lostIn(60, map[int]float64{3: 700}), slow)},
		{"a starved sender", soakOf(lostIn(60, map[int]float64{3: 700}), starved)},
		{"both ways", both},
		{"resumed", resumed},
		{"nothing", &model.Document{Plan: model.Plan{Command: "soak"}}},
		{"an unplanned change", degraded},
		{"planned changes", planned},
		{"kinds of changes", kinds},
	} {
		out = append(out, example{c.name, applied(soakRows(c.doc), soakRule, unusableRule)})
	}
	return out
}

// The seconds of a trial that went on stand at their times, and between the two nothing is known.
func TestJoinedSeries(t *testing.T) {
	d := outage(soakOf(lostIn(100, nil)), soakOf(losing(50, 0, 50, 400), shiftAt(3)).Results[0])
	isLoss := func(s model.Series) bool { return s.Metric == "lost_pps" }
	d.Results[0].Series = slices.DeleteFunc(d.Results[0].Series, isLoss) // as a trial that lost nothing has it
	r := soakRows(d)[0]
	s := table.FlowSeries(r, "lost_pps")
	if len(s.Values) != 170 || s.Values[99] != 0 || !math.IsNaN(s.Values[100]) || !math.IsNaN(s.Values[119]) ||
		s.Values[120] != 400 {
		t.Errorf("%d values: %v", len(s.Values), s.Values)
	}
	if c := r.Trial.Changes; len(c) != 1 || c[0].StartS != 123 {
		t.Errorf("changes %+v", c)
	}
	if got := r.Flow.ReceivePPS * 170; math.Abs(got-float64(r.Flow.Received)) > 1 || r.Flow.SendPPS != 40e3 ||
		r.Flow.DurationS != 170 {
		t.Errorf("%v pps received, %v sent in %v s", r.Flow.ReceivePPS, r.Flow.SendPPS, r.Flow.DurationS)
	}
	var sum model.Result
	room := 150
	for _, c := range []struct {
		step float64
		flow string
		want int
	}{{1e-4, "", 1}, {1, "a", 101}, {1, "b", 1}, {2, "b", 51}} { // of a damaged file: all would take all memory
		for _, at := range []float64{0, 100} {
			addSeries(&sum, model.Series{Flow: c.flow, StepSeconds: c.step, Values: []float64{1}}, at, &room)
		}
		if n := len(sum.Series[len(sum.Series)-1].Values); n != c.want {
			t.Errorf("%d values in steps of %g s are joined with %d to go, want %d", n, c.step, room, c.want)
		}
	}
}

// TestJoinedCounts: of trials that went on with one another, none has more packets than the whole, whatever the counts
// of a file are.
func TestJoinedCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.OneOf(rapid.Uint64Max(1000), rapid.Uint64Min(math.MaxUint64-1000), rapid.Uint64())
		var d model.Document
		for i := range rapid.IntRange(2, 4).Draw(t, "trials") {
			attempted := count.Draw(t, "attempted")
			received := min(count.Draw(t, "received"), attempted)
			r := model.Result{State: model.Valid, Flows: []model.FlowResult{{Name: "up", Protocol: model.UDP,
				DurationS: 1, Attempted: attempted, Received: received, Lost: attempted - received}}}
			f := &r.Flows[0]
			f.Ledger = model.Ledger{Lost: f.Lost, Lines: []model.Line{{Packets: f.Lost}}}
			if i > 0 {
				r.Outages = []model.Outage{{BeginS: float64(10 * i)}}
			}
			d.Results = append(d.Results, r)
		}
		whole := Joined(&d).Results[0].Flows[0]
		for _, r := range d.Results {
			if f := r.Flows[0]; f.Attempted > whole.Attempted || f.Received > whole.Received || f.Lost > whole.Lost ||
				whole.Received > whole.Attempted || f.Lost > whole.Ledger.Lost ||
				f.Lost > whole.Ledger.Lines[0].Packets {
				t.Fatalf("%+v is joined to %+v", f, whole)
			}
		}
	})
}

// TestLossCauses: the causes and the rest come to all that was lost in each second.
func TestLossCauses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 5), func(n int) float64 { return float64(n) }), 20, 20)
		a, b, rest, lost := counts.Draw(t, "a"), counts.Draw(t, "b"), counts.Draw(t, "rest"), make([]float64, 20)
		for i := range lost {
			lost[i] = a[i] + b[i] + rest[i]
		}
		d := soakOf(lost, func(r *model.Result) {
			r.Series[3].Values = a
			r.Series = append(r.Series, model.Series{Metric: "lost_pps", Flow: "up", Layer: "y", StepSeconds: 1,
				Values: b})
		})
		sums := make([]float64, 20)
		for _, c := range LossCauses(soakRows(d)[0]) {
			for i, v := range c.Values {
				sums[i] += v
			}
		}
		if !slices.Equal(sums, lost) {
			t.Fatalf("causes come to %v; want %v", sums, lost)
		}
	})
}

// What no series tells the place of is called by the lines that are left of the ledger.
func TestLossesWithoutASeries(t *testing.T) {
	line := func(cause string) model.Line {
		return model.Line{Layer: model.LayerNetwork, Host: "router", Cause: cause, Packets: 10}
	}
	for _, c := range []struct {
		want   string
		ledger model.Ledger
	}{
		{"forwarding is off at router", model.Ledger{Lines: []model.Line{line(model.CauseForwardingOff)}}},
		{"forwarding is off at router, or unexplained", model.Ledger{Lines: []model.Line{line(model.CauseForwardingOff)},
			Unattributed: 1}},
		{"forwarding is off at router, or netfilter rule at router", model.Ledger{Lines: []model.Line{line("NETFILTER_DROP"),
			{Layer: model.LayerNetwork, Host: "router", Cause: model.CauseForwardingOff, Packets: 190}}}},
		{"IP layer of router, or forwarding is off at router, or other causes", model.Ledger{Lines: []model.Line{
			line(model.CauseForwardingOff), line("ip-discard"), line("NETFILTER_DROP")}}},
		{"unexplained", model.Ledger{Unattributed: 10}},
	} {
		d := soakOf(losing(10, 2, 4, 5), func(r *model.Result) {
			r.Flows[0].Ledger, r.Series = c.ledger, slices.Delete(r.Series, 3, 4)
		})
		if causes := LossCauses(soakRows(d)[0]); len(causes) != 1 || causes[0].Name != c.want {
			t.Errorf("got %+v, want %s", causes, c.want)
		}
	}
}

// stepped are the values of a level that changes: the first level, then from when on which other one.
func stepped(seconds int, levels ...float64) []float64 {
	out := make([]float64, seconds)
	for i := range out {
		out[i] = levels[0]
		for k := 1; k+1 < len(levels) && float64(i) >= levels[k]; k += 2 {
			out[i] = levels[k+1]
		}
	}
	return out
}
