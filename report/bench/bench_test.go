package bench

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pelt/model"
	"pelt/report/internal/sample"
	"pelt/report/rows"
)

// trial is one trial of a router of two cores: its flows carry so many packets a
// second, and the cores are so busy.
func trial(cell model.Cell, repeat int, core0, core1 float64, pps ...float64) model.Result {
	r := model.Result{Cell: cell, Repeat: repeat, State: model.Valid}
	names := []string{"up", "down"}
	if cell["direction"].Text == "down" {
		names = names[1:]
	}
	for i, p := range pps {
		r.Flows = append(r.Flows, model.FlowResult{Name: names[i], Protocol: model.UDP, From: model.Sender, To: model.Receiver, FrameBytes: 64, DurationS: 1,
			Attempted: 1000, Received: 900, Lost: 100, ReceivePPS: p, GoodputBPS: p * 8 * 18, Delay: &model.Percentiles{Count: 9, P50: 1000, P99: 3000}})
	}
	split := func(core int, busy float64) model.CPUSplit {
		return model.CPUSplit{Core: core, Softirq: busy, Idle: 1 - busy}
	}
	all := split(-1, (core0+core1)/2)
	r.Router = &model.RouterWatch{Node: "router", Samples: 2, PeriodS: 1, CPU: &all, Cores: []model.CPUSplit{split(0, core0), split(1, core1)}}
	return r
}

func cell(direction, variant string) model.Cell {
	return model.Cell{"protocol": model.Word("udp"), "frame_bytes": model.Number(64), "direction": model.Word(direction), "variant": model.Word(variant)}
}

// document has the variants in the order b, a, and its cells out of order.
func document() model.Document {
	d := model.Document{Plan: model.Plan{Command: Command, Variants: []model.Variant{{Name: "b"}, {Name: "a"}}, Design: model.Design{Kind: "list", Repeats: 2,
		Cells: []model.Cell{cell("up", "a"), cell("both", "b"), cell("up", "b")}}}}
	d.Results = []model.Result{
		trial(cell("up", "a"), 0, 0.2, 0.6, 1000), trial(cell("up", "b"), 0, 0, 1, 5000), trial(cell("both", "b"), 0, 0.5, 0.5, 2000, 3000),
		trial(cell("up", "a"), 1, 0.8, 0.2, 1200),
	}
	return d
}

func TestFoldOrdersByVariantThenPlan(t *testing.T) {
	table := Fold(document())
	var names []string
	for _, r := range table.Rows {
		names = append(names, r.Name())
	}
	want := []string{"both, 64 B, b", "LAN→WAN of both, 64 B, b", "WAN→LAN of both, 64 B, b", "LAN→WAN, 64 B, b", "LAN→WAN, 64 B, a"}
	if !slices.Equal(names, want) {
		t.Errorf("rows %q; want %q", names, want)
	}
	if !slices.Equal(table.Variants, []string{"b", "a"}) {
		t.Errorf("variants %q; want those of the plan in its order", table.Variants)
	}
	names = nil
	for _, r := range table.Pairs() {
		names = append(names, r.Name())
	}
	if want = []string{"both, 64 B, b", "LAN→WAN, 64 B, b", "LAN→WAN, 64 B, a"}; !slices.Equal(names, want) {
		t.Errorf("pairs %q; want %q", names, want)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

func TestFoldTakesMeans(t *testing.T) {
	table := Fold(document())
	both, share, mean := table.Rows[0], table.Rows[1], table.Rows[4]
	if both.PPS.Mean != 5000 || both.Attempted != 2000 || both.Delay50.N != 0 || both.Load == nil {
		t.Errorf("both: %v pps of %d attempted, %d delays, load %v; want the sum, no delay, and a load", both.PPS.Mean, both.Attempted, both.Delay50.N, both.Load)
	}
	if share.PPS.Mean != 2000 || share.Load != nil || share.Delay50.Mean != 1000 || share.Delay99.Mean != 3000 {
		t.Errorf("share: %v pps, load %v, delay %v; want its own rate and delay, and no load", share.PPS.Mean, share.Load, share.Delay50.Mean)
	}
	l := mean.Load
	if mean.PPS.Mean != 1100 || mean.PPS.Min != 1000 || mean.PPS.Max != 1200 || mean.LossRatio() != 0.1 || mean.Watched != 2 || l == nil {
		t.Fatalf("mean: %+v, loss %v, watched %d", mean.PPS, mean.LossRatio(), mean.Watched)
	}
	// Busy 0.4 and 0.5 of two cores for 1000 and 1200 packets of 144 bits.
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"softirq", l.CPU.Softirq, 0.45}, {"idle", l.CPU.Idle, 0.55}, {"busy", l.Busy.Mean, 0.45}, {"busiest core", l.Busiest.Mean, 0.7}, {"which core", float64(l.Core), -1},
		{"bit/s for each percent", l.PerPercent.Mean, (144000./40 + 172800./50) / 2}, {"ns for each packet", l.PacketNanos.Mean, (0.8/1000 + 1./1200) / 2 * 1e9},
	} {
		if !near(c.got, c.want) {
			t.Errorf("%s: %v; want %v", c.name, c.got, c.want)
		}
	}
	if core := table.Rows[3].Load.Core; core != 1 {
		t.Errorf("busiest core %d; want 1", core)
	}
}

// What nobody saw is no zero: not in the means, not in the cells.
func TestNotObserved(t *testing.T) {
	d := document()
	d.Results[0].Router, d.Results[1].Router.CPU = nil, nil
	d.Results[1].Router.Gaps = []string{"not observed from t=0.0 s: the connection was closed"}
	table := Fold(d)
	if r := table.Rows[4]; r.Watched != 1 || r.Unwatched != 1 || r.Load.Busy.Mean != 0.5 {
		t.Errorf("one of two: watched %d, unwatched %d, busy %v", r.Watched, r.Unwatched, r.Load.Busy.Mean)
	}
	r := table.Rows[3]
	if r.Load != nil {
		t.Fatalf("load %+v of a router that nobody saw", r.Load)
	}
	for _, c := range table.Columns() {
		if slices.Contains([]string{"usr", "sys", "nic", "idle", "io", "irq", "sirq", "core"}, c.Key) && c.Cell(r) != "–" {
			t.Errorf("%s says %q; want –", c.Key, c.Cell(r))
		}
	}
	want := []string{"LAN→WAN, 64 B, a, trial 1: router not observed", "LAN→WAN, 64 B, b, trial 1: router not observed from t=0.0 s: the connection was closed"}
	if got := Gaps(d); !slices.Equal(got, want) {
		t.Errorf("gaps %q; want %q", got, want)
	}
}

func TestOnlyValidTrialsCount(t *testing.T) {
	d := document()
	d.Results[3].State, d.Results[3].Why = model.Invalid, "too slow"
	if r := Fold(d).Rows[4]; r.PPS.Mean != 1000 || r.State != model.Valid {
		t.Errorf("mean %v, %s; want that of the valid trial", r.PPS.Mean, r.State)
	}
	d.Results[0].State = model.Invalid
	if r := Fold(d).Rows[4]; r.PPS.Mean != 1100 || r.State != model.Invalid {
		t.Errorf("mean %v, %s; want that of both, not valid", r.PPS.Mean, r.State)
	}
}

// In a lab the processor is everybody's: only the router's own threads are its cost.
func TestLabCost(t *testing.T) {
	d := document()
	d.Lab = &model.LabFacts{Topology: "nat"}
	if l := Fold(d).Rows[3].Load; l.PacketNanos.N != 0 {
		t.Errorf("%v ns a packet from a processor that the sender shares", l.PacketNanos.Mean)
	}
	d.Results[1].Series = []model.Series{{Metric: MetricOwnThreads, At: "router", StepSeconds: 1, Values: []float64{0.5, math.NaN(), 0.7}}}
	if l := Fold(d).Rows[3].Load; !near(l.PacketNanos.Mean, 0.6/5000*1e9) {
		t.Errorf("%v ns a packet; want 120 µs", l.PacketNanos.Mean)
	}
	if !strings.Contains(Watch(d), "this machine's") {
		t.Errorf("%q does not say whose processor it is", Watch(d))
	}
	d.Lab.Topology = "switch"
	if r := Fold(d).Rows[3]; r.Way != "up" {
		t.Errorf("a switch's way is %q; it has no LAN and WAN", r.Way)
	}
}

func TestWatchSays(t *testing.T) {
	cost := func(v float64) *float64 { return &v }
	d := document()
	d.Router = &model.RouterFacts{Source: "ssh://root@192.168.1.1"}
	if got, want := Watch(d), "Router watched through ssh://root@192.168.1.1: 8 samples, one every 1 s, in 4 of 4 trials; what the watch took of the router is not known."; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
	for i, c := range []float64{0.004, 0.004, 0.004, 0.02} {
		d.Results[i].Router.CostRatio = cost(c)
	}
	d.Results[3].Router.PeriodS = 2
	if got, want := Watch(d), "Router watched through ssh://root@192.168.1.1: 8 samples, one every 1 s, at times every 2 s, in 4 of 4 trials; the watch took 0.8 % of one core, at most 2 %."; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
	for i := range d.Results {
		d.Results[i].Router = nil
	}
	d.Router = nil
	if got := Watch(d); got != "The router was not observed." || len(Gaps(d)) > 0 {
		t.Errorf("got %q, and gaps %q; want it said once", got, Gaps(d))
	}
}

func TestApart(t *testing.T) {
	d := document()
	if got, want := Fold(d).Apart(), "Repeats are more than 10 % apart: LAN→WAN, 64 B, a (0.14..0.17 Mbit/s)"; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
	d.Results = d.Results[:3]
	if got := Fold(d).Apart(); got != "" {
		t.Errorf("%q of trials that were made once", got)
	}
}

func TestTimeline(t *testing.T) {
	r := trial(cell("up", "a"), 0, 0.2, 0.6, 1000)
	r.Flows[0].To = "receiver"
	nan, cores := math.NaN(), []int{0, 1}
	add := func(metric string, core int, values ...float64) {
		r.Series = append(r.Series, model.Series{Metric: metric, At: "router", Core: &cores[core], StepSeconds: 1, Values: values})
	}
	add("cpu_softirq_ratio", 1, 0.6, nan, 0.8)
	add("cpu_softirq_ratio", 0, 0.2, 0.4, 0.2)
	add("cpu_user_ratio", 0, 0.1, 0.1, 0.1)
	add("cpu_nice_ratio", 0, 0.1, 0.1, 0.1)
	add("cpu_idle_ratio", 0, 0.6, 0.4, 0.6)
	r.Series = append(r.Series, model.Series{Metric: "receive_pps", Flow: "up", At: "receiver", StepSeconds: 1, Values: []float64{1, 2, 3}},
		model.Series{Metric: "cpu_softirq_ratio", At: "receiver", Core: &cores[0], StepSeconds: 1, Values: []float64{9}})
	line := NewTimeline(r)
	if len(line.Rates) != 1 || !slices.Equal(line.Rates[0].PPS, []float64{1, 2, 3}) {
		t.Errorf("rates %+v", line.Rates)
	}
	if len(line.Stacks) != 3 || line.Stacks[0].Core != -1 || line.Stacks[1].Core != 0 || line.Stacks[2].Core != 1 {
		t.Fatalf("stacks %+v; want the whole router, then each core", line.Stacks)
	}
	sirq := line.Stacks[0].Layers[0]
	if len(sirq) != 3 || !near(sirq[0], 0.4) || !math.IsNaN(sirq[1]) || !near(sirq[2], 0.5) {
		t.Errorf("softirq of the router %v; want 0.4, a gap, 0.5", sirq)
	}
	if usr := line.Stacks[1].Layers[3]; len(usr) != 3 || !near(usr[0], 0.2) {
		t.Errorf("user time of core 0 %v; want nice with it", usr)
	}
	if slices.ContainsFunc(NewTimeline(trial(cell("up", "a"), 0, 0, 0, 1)).Stacks, func(Stack) bool { return true }) {
		t.Error("stacks of a trial without series")
	}
}

// Whatever a document holds, words and figures are made of it.
func TestEveryDocument(t *testing.T) {
	for _, d := range sample.All() {
		table := Fold(d.Doc)
		columns := table.Columns()
		said := strings.Join(slices.Concat(Gaps(d.Doc), State(d.Doc), Untold(d.Doc), []string{Facts(d.Doc), Watch(d.Doc), Losses(rows.Fold(d.Doc)), table.Apart()}), "\n")
		for _, r := range table.Rows {
			said += r.Name()
			for _, c := range columns {
				said += c.Cell(r)
			}
		}
		if strings.ContainsAny(said, "\x1b\x00\u202e") || strings.Contains(said, "NaN") || strings.Contains(said, "Inf") {
			t.Errorf("%s: %q", d.Name, said)
		}
		for _, r := range d.Doc.Results {
			NewTimeline(r)
		}
		if n := len(InOrder(d.Doc, rows.Fold(d.Doc).Rows)); n != len(rows.Fold(d.Doc).Rows) {
			t.Errorf("%s: %d rows in order", d.Name, n)
		}
	}
}
