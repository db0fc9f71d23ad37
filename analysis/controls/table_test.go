package controls

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pelt/model"
)

func published() duel {
	return duel{controls: []string{"cubic", "bbr", "reno"}, losses: []float64{0, 0.01, 0.1}, repeats: 10, bytes: 640e6, limit: 120, took: known, seed: 4}
}

func TestTable(t *testing.T) {
	got := table(t, published().document())
	if got.Metric != "completion_s" || got.Baseline != "cubic" || !slices.Equal(got.Controls, []string{"cubic", "bbr", "reno"}) {
		t.Errorf("metric %s, baseline %s, controls %v", got.Metric, got.Baseline, got.Controls)
	}
	if got.Looks != 1 || got.Alpha != falseAlarms || got.Tests != 6 || len(got.Contrasts) != 6 || len(got.Cells) != 9 || len(got.Conditions) != 3 {
		t.Fatalf("looks %d, alpha %v, tests %d, %d contrasts, %d cells, %d conditions", got.Looks, got.Alpha, got.Tests, len(got.Contrasts), len(got.Cells), len(got.Conditions))
	}
	for i, c := range got.Cells {
		if c.Condition != i/3 || c.Control != got.Controls[i%3] || c.Valid != 10 || c.Invalid != 0 || len(c.Completion.Values) != 10 {
			t.Errorf("cell %d: %+v", i, c)
		}
	}
	one := got.Cell(1, "bbr")
	if !near1(one.Completion.Median, 0.71, 0.06) || !near1(one.Goodput.Median, 8*640e6/one.Completion.Median, 0.01) {
		t.Errorf("bbr at 1 %%: %+v, %+v", one.Completion, one.Goodput)
	}
	for _, c := range got.Contrasts {
		if want := c.Control == "bbr" && c.Condition > 0; c.Separable != want || c.Trials != 10 || c.FamilyP < c.P {
			t.Errorf("contrast %+v; want separable %v", c, want)
		}
	}
	if c := got.Contrast(1, "bbr"); !near1(c.Ratio, 5.4/0.71, 0.08) || !(c.Low < c.Ratio && c.Ratio < c.High) || !near1(c.P, 2.0/184756, 1e-6) || !near1(c.FamilyP, 12.0/184756, 1e-6) {
		t.Errorf("bbr at 1 %%: %+v", c)
	}
}

// Whatever order the results came in, the same comes out, and in the order of the plan.
func TestTableOrder(t *testing.T) {
	doc := published().document()
	want := table(t, doc)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(doc.Results), func(i, j int) { doc.Results[i], doc.Results[j] = doc.Results[j], doc.Results[i] })
	if got := table(t, doc); !reflect.DeepEqual(got, want) {
		t.Errorf("shuffled results change the table")
	}
	list := published().document()
	list.Plan.Factors, list.Plan.Design.Kind = nil, "list"
	for _, loss := range []float64{0.1, 0, 0.01} {
		for _, c := range []string{"reno", "cubic", "bbr"} {
			list.Plan.Design.Cells = append(list.Plan.Design.Cells, model.Cell{"control": model.Word(c), "link.loss_ratio": model.Number(loss)})
		}
	}
	if got := table(t, list); got.Baseline != "reno" || got.Conditions[0].Text != "10 % loss" || got.Conditions[2].Text != "1 % loss" {
		t.Errorf("a list: baseline %s, conditions %v", got.Baseline, got.Conditions)
	}
}

func TestNoTable(t *testing.T) {
	curve := published().document()
	curve.Plan.Command = "curve"
	unsaid := published().document()
	unsaid.Plan.Factors = nil
	for i := range unsaid.Results {
		delete(unsaid.Results[i].Cell, "control")
		unsaid.Results[i].Flows[0].TCP.Control = ""
	}
	for name, doc := range map[string]model.Document{"no cc": curve, "no control": unsaid, "nothing ran": {Plan: model.Plan{Command: "cc"}}, "empty": {}} {
		if got := Table(doc); got != nil || !Apart(doc, 10) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// The host's default is a control too, once the kernel has said which.
	unsaid.Results[0].Flows[0].TCP.Control = "cubic"
	if got := Table(unsaid); got == nil || len(got.Cells) != 1 || got.Baseline != "cubic" || len(got.Contrasts) != 0 || got.Contrasts == nil {
		t.Errorf("read back: %+v", got)
	}
}

func TestRedo(t *testing.T) {
	d := published()
	doc := d.document()
	spoilt := doc.Results[0] // cubic without loss, repeat 0
	spoilt.State = model.Invalid
	// Made good at the second try; a repeat of bbr's never was, nor was an aborted one.
	doc.Results = append([]model.Result{spoilt}, doc.Results...)
	gone := 0
	for i, r := range doc.Results {
		if r.Cell["control"].Text == "bbr" && r.Cell["link.loss_ratio"].Number == 0 && r.Repeat >= 8 {
			doc.Results[i].State = []model.State{model.Invalid, model.Aborted}[r.Repeat-8]
			gone++
		}
	}
	doc.Results = append(doc.Results, doc.Results[slices.IndexFunc(doc.Results, func(r model.Result) bool { return r.Repeat == 8 && r.State == model.Invalid })])
	got := table(t, doc)
	if c := got.Cell(0, "cubic"); c.Valid != 10 || c.Invalid != 0 || len(c.Completion.Values) != 10 {
		t.Errorf("made good: %+v", c)
	}
	if c := got.Cell(0, "bbr"); gone != 2 || c.Valid != 8 || c.Invalid != 2 || len(c.Completion.Values) != 8 {
		t.Errorf("never made good: %+v", c)
	}
	if c := got.Contrast(0, "bbr"); c.Trials != 8 || !strings.Contains(c.Text, "; 8 trials against 10)") {
		t.Errorf("contrast: %+v", c)
	}
}

func TestCutTransfers(t *testing.T) {
	// cubic ends in 3 of 10 trials, bbr in all: ranks tell, medians are bounds.
	d := duel{controls: []string{"cubic", "bbr"}, losses: []float64{0.1}, repeats: 10, bytes: 640e6, limit: 120, took: exactly(map[string]map[float64][]float64{
		"cubic": {0.1: {100, 110, 119, 130, 140, 150, 160, 170, 180, 190}}, "bbr": {0.1: around(100)}})}
	got := table(t, d.document())
	c := got.Cell(0, "cubic")
	if c.Unfinished != 7 || !c.Completion.Bound || c.Completion.Median != 120 {
		t.Errorf("cubic: %d unfinished, %+v", c.Unfinished, c.Completion)
	}
	if b := got.Cell(0, "bbr"); b.Unfinished != 0 || b.Completion.Bound {
		t.Errorf("bbr: %+v", b)
	}
	if c := got.Contrasts[0]; !c.Separable || !strings.Contains(c.Text, "cubic more than 120 s (3 of 10 trials ended): bbr is at least 1.1") {
		t.Errorf("%+v", c)
	}
	if !slices.ContainsFunc(got.Notes, func(s string) bool { return strings.HasPrefix(s, "A transfer that was cut") }) {
		t.Errorf("notes %q do not speak of the cut ones", got.Notes)
	}
	// When a trial was cut says nothing of how fast it was: it ties with all that were.
	early := d
	early.change = func(r *model.Result) {
		c := r.Flows[0].TCP.Completion
		c.Done, c.Seconds = false, map[string]float64{"cubic": 50, "bbr": 60}[r.Cell["control"].Text]
		if r.Repeat == 0 {
			c.Done, c.Seconds = true, 70
		}
	}
	if c := table(t, early.document()).Contrasts[0]; c.P != 1 || c.Separable {
		t.Errorf("cut at other times: %+v", c)
	}
	// A time that was cut short of others leaves the middle unknown.
	if e := estimate([]figure{{100, true}, {119, false}, {120, false}, {121, false}}); !e.Bound {
		t.Errorf("%+v; want a bound", e)
	}
	if e := estimate([]figure{{100, false}, {101, false}, {102, false}, {120, true}, {120, true}}); e.Bound {
		t.Errorf("%+v; want no bound", e)
	}
}

func TestApart(t *testing.T) {
	faster := map[string]map[float64][]float64{"cubic": {0: around(2), 0.01: around(5)}, "bbr": {0: around(1), 0.01: around(1)}}
	d := duel{controls: []string{"cubic", "bbr"}, losses: []float64{0, 0.01}, repeats: 5, most: 10, bytes: 1e6, limit: 1000, took: exactly(faster)}
	doc := d.document()
	// Looks at 5, 7, 9 and 10: a look has 1.25 %, so that 5 trials (0.8 %, twice) are too few and 7 are not.
	for repeats, want := range map[int]bool{0: true, 5: false, 7: true, 10: true} {
		if got := Apart(doc, repeats); got != want {
			t.Errorf("apart after %d repeats: %v; want %v", repeats, got, want)
		}
	}
	if got := table(t, doc); got.Looks != 4 || !near1(got.Alpha, 0.0125, 1e-9) {
		t.Errorf("%d looks at %v", got.Looks, got.Alpha)
	}
	same := d
	same.took = exactly(map[string]map[float64][]float64{"cubic": {0: around(2), 0.01: around(5)}, "bbr": {0: around(2), 0.01: around(1)}})
	if Apart(same.document(), 10) {
		t.Error("apart, though one condition has no difference")
	}
	cut := d
	cut.limit, cut.took = 100, exactly(map[string]map[float64][]float64{"cubic": {0: around(2), 0.01: around(500)}, "bbr": {0: around(1), 0.01: around(700)}})
	if !Apart(cut.document(), 7) {
		t.Error("waits for transfers that never end on either side")
	}
	gone := d.document()
	for i, r := range gone.Results {
		if r.Cell["control"].Text == "bbr" && r.Cell["link.loss_ratio"].Number == 0 {
			gone.Results[i].State = model.Invalid
		}
	}
	if Apart(gone, 10) {
		t.Error("apart, though a cell has no valid trial")
	}
	alone := d
	alone.controls = []string{"cubic"}
	if !Apart(alone.document(), 1) {
		t.Error("a run of one control waits for nothing")
	}
}

func TestMathis(t *testing.T) {
	// 1.22*1448*8/(0.04*sqrt(0.01)) = 3.53 Mbit/s.
	d := duel{controls: []string{"reno", "bbr"}, losses: []float64{0, 0.01}, repeats: 5, seed: 1,
		took: func(control string, loss float64, _ int, r *rand.Rand) float64 { return spread(3.2e6, 0.01, r) },
		change: func(r *model.Result) {
			r.Flows[0].RoundTrip = &model.Percentiles{Count: 100, Min: 39e6, P50: 40e6, P90: 41e6, P95: 42e6, P99: 44e6}
		}}
	got := table(t, d.document())
	m := got.Cell(1, "reno").Mathis
	if m == nil || !near1(m.PredictedBPS, 3.533e6, 0.001) || !near1(m.Ratio, 0.906, 0.02) || m.SegmentBytes != 1448 || m.Above != "" || !near1(m.LossRatio, 0.01, 1e-9) || !near1(m.RTTSeconds, 0.04, 1e-9) {
		t.Errorf("reno at 1 %%: %+v", m)
	}
	if got.Cell(0, "reno").Mathis != nil || got.Cell(1, "bbr").Mathis != nil {
		t.Error("a prediction without loss, or for bbr")
	}
	if c := got.Cell(1, "reno"); !near1(c.RTT95.Median, 0.042, 1e-9) || !near1(c.Standing.Median, 0.003, 1e-6) {
		t.Errorf("round trips %+v, queueing %+v", c.RTT95, c.Standing)
	}
	slow := d
	slow.plan = linkRate(2e6)
	if m := table(t, slow.document()).Cell(1, "reno").Mathis; m == nil || m.Above != "the links carry 2 Mbit/s, less than the model's 3.53 Mbit/s" {
		t.Errorf("a slow link: %+v", m)
	}
	// Two hops lose together, one the other way does not count; TCP's own round trip
	// stands in for that of a thin flow.
	hops := d
	hops.change = func(r *model.Result) {
		lost := uint64(100)
		r.Links = []model.LinkResult{{From: "router", To: model.Receiver, AskedRatio: 0.02}, {From: "router", To: model.Sender, AskedRatio: 0.5}, {From: model.Sender, To: "router", Frames: 1000, Lost: &lost, AskedRatio: 0.7}}
	}
	if m := table(t, hops.document()).Cell(1, "reno").Mathis; m == nil || !near1(m.LossRatio, 1-0.9*0.98, 1e-9) || !near1(m.RTTSeconds, 0.025, 1e-9) {
		t.Errorf("two hops: %+v", m)
	}
}

// Whatever a document holds, nothing panics, and what comes out can be written.
func TestHostileDocuments(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	bad := []float64{nan, inf, -inf, -1, 0, 1e300, 5e-324}
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 9))
		pick := func() float64 { return bad[random.IntN(len(bad))] }
		d := published()
		d.seed, d.repeats = seed, 1+random.IntN(7)
		if seed%2 == 0 {
			d.bytes = 0
		}
		stream := 0
		d.change = func(r *model.Result) {
			f := &r.Flows[0]
			switch random.IntN(9) {
			case 0:
				f.GoodputBPS = pick()
				if f.TCP.Completion != nil {
					f.TCP.Completion.Seconds = pick()
				}
			case 1:
				f.RoundTrip = &model.Percentiles{Min: pick(), P50: pick(), P95: pick()}
			case 2:
				f.TCP.BusyS, f.TCP.RwndLimitedS, f.TCP.RTTNanos, f.TCP.SegmentSizeBytes = pick(), pick(), pick(), -5
			case 3:
				r.Flows = nil
			case 4:
				f.TCP = nil
			case 5:
				f.TCP.PerStream = []model.TCPStream{{Control: "\x1b[31m", GoodputBPS: pick()}, {GoodputBPS: pick()}}
				r.Series = []model.Series{{Metric: ackedSeries, Flow: "up", Stream: &stream, StepSeconds: pick(), StartSeconds: pick(), Values: bad}, {Metric: ackedSeries, Flow: "up", Stream: &stream, StepSeconds: 0.05, StartSeconds: pick()}}
			case 6:
				r.Links = []model.LinkResult{{From: model.Sender, To: model.Sender, AskedRatio: pick()}, {From: model.Sender, To: model.Receiver, AskedRatio: pick()}}
			case 7:
				r.Cell = map[bool]model.Cell{true: nil, false: {"control": model.Word(strings.Repeat("\xff", 99)), "link.x": model.Number(pick()), "": {}}}[random.IntN(2) == 0]
				r.Repeat = []int{-1, math.MaxInt, 3}[random.IntN(3)]
			case 8:
				r.State = model.State("odd")
			}
		}
		doc := d.document()
		doc.Plan.Design.MostRepeats = []int{0, -3, math.MaxInt}[seed%3]
		if seed%5 == 0 {
			doc.Plan.Design.Repeats, doc.Lab = -7, nil
		}
		got := Table(doc)
		Apart(doc, int(seed%5))
		if got == nil {
			continue
		}
		// A setting that is no number was read from no file, for JSON has none.
		for i := range got.Conditions {
			got.Conditions[i].Cell = nil
		}
		if _, err := json.Marshal(got); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if Verdict(got) == "" {
			t.Errorf("seed %d: no verdict", seed)
		}
	}
	// A table of a file, not of Table.
	for _, odd := range []*model.ControlTable{{}, {Contrasts: []model.ControlContrast{{Condition: 7, Control: "a", Separable: true}}}, {Controls: []string{"a", "b"}, Conditions: make([]model.ControlSetting, 2)},
		{Metric: "completion_s", Baseline: "b", Controls: []string{"b", "a"}, Conditions: make([]model.ControlSetting, 2), Cells: []model.ControlCell{{Condition: -1}, {Condition: 0, Control: "a"}},
			Contrasts: []model.ControlContrast{{Condition: 0, Control: "a", Baseline: "b", Separable: true, Ratio: nan}, {Condition: -1, Control: "a", Ratio: -1}}}} {
		Verdict(odd)
		for i := range 3 {
			conditionVerdict(odd, i)
		}
	}
}
