package controls

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
	"pelt/report/internal/sample"
)

func TestFoldPlacesCells(t *testing.T) {
	d := sample.Controls()
	slices.Reverse(d.Results)
	table := Fold(d)
	if len(table.Conditions) != 3 || len(table.Controls) != 3 || table.Baseline != "cubic" {
		t.Fatalf("%d conditions, %d controls, baseline %q", len(table.Conditions), len(table.Controls), table.Baseline)
	}
	c := table.Conditions[1]
	for i, want := range []struct{ middle, interval, speed, ratio string }{
		{"17.3 s", "16.5..18.9", "", ""}, {"7.18 s", "7.09..7.35", "2.41×", "2.24..2.67"}, {"22.5 s", "20.9..23.6", "0.77×", "0.70..0.90"},
	} {
		x := &c.Cells[i]
		if x.Middle() != want.middle || x.Interval() != want.interval || x.Speed() != want.speed || x.SpeedInterval() != want.ratio {
			t.Errorf("%s: %q (%q), %q (%q); want %+v", table.Controls[i].Name, x.Middle(), x.Interval(), x.Speed(), x.SpeedInterval(), want)
		}
		if len(x.Trials) != 10 || x.Baseline != (i == 0) || (x.Against == nil) != (i == 0) {
			t.Errorf("%s: %d trials, baseline %v", table.Controls[i].Name, len(x.Trials), x.Baseline)
		}
	}
}

// The trial whose seconds stand for a cell is the valid one nearest to the median.
func TestMedianTrial(t *testing.T) {
	d := sample.Controls()
	for _, c := range Fold(d).Conditions {
		for _, x := range c.Cells {
			r := d.Results[x.Median]
			least := math.Inf(1)
			for _, trial := range x.Trials {
				least = min(least, math.Abs(trial.Value-x.Of.Completion.Median))
			}
			got := math.Abs(Flow(r).TCP.Completion.Seconds - x.Of.Completion.Median)
			if r.State != model.Valid || got != least || x.Series != 9 {
				t.Errorf("%s: %s, %v off the median and %d others; want valid, %v off and 9", TrialName(d, r), r.State, got, x.Series, least)
			}
		}
	}
	for i := range d.Results {
		d.Results[i].Series = nil
	}
	if x := Fold(d).Conditions[0].Cells[0]; x.Median != -1 {
		t.Errorf("trial %d stands for a cell without series", x.Median)
	}
}

// Cut trials are marked, whether the results tell them or only their number does.
func TestCutTrials(t *testing.T) {
	for _, d := range []model.Document{sample.Controls(), without(sample.Controls())} {
		table := Fold(d)
		x := &table.Conditions[2].Cells[0]
		n := 0
		for _, trial := range x.Trials {
			if trial.Bound {
				n++
				if trial.Value != 60 {
					t.Errorf("a trial of %v s counts as cut", trial.Value)
				}
			}
		}
		if n != 4 || x.Interval() != "50.7..>60.0" || x.Middle() != "58.8 s" {
			t.Errorf("%d cut, %s (%s); want 4, an interval that is open above", n, x.Middle(), x.Interval())
		}
		if reno := &table.Conditions[2].Cells[2]; reno.Middle() != "> 60.0 s" || reno.Speed() != "=" {
			t.Errorf("reno %s, %s; want a lower bound, not separable", reno.Middle(), reno.Speed())
		}
		steps, upTo := x.Finished()
		if last := steps[len(steps)-1]; last.Share != 0.6 || upTo != 60 {
			t.Errorf("the curve ends at %+v, up to %v s; want 0.6 and 60", last, upTo)
		}
	}
}

func without(d model.Document) model.Document { d.Results = nil; return d }

// A ratio to a lower bound is one too.
func TestSpeedOfBounds(t *testing.T) {
	bound, whole := &model.Estimate{Median: 60, Bound: true}, &model.Estimate{Median: 6}
	for _, c := range []struct {
		own, base *model.Estimate
		want      string
	}{{whole, whole, "10.0×"}, {whole, bound, ">10.0×"}, {bound, whole, "<10.0×"}, {bound, bound, "~10.0×"}} {
		m := Metric{Completion: true, seconds: true}
		x := Cell{Metric: m, Of: model.ControlCell{Completion: c.own}, Against: &Cell{Metric: m, Of: model.ControlCell{Completion: c.base}}, Contrast: &model.ControlContrast{Ratio: 10, Separable: true}}
		x.Contrast.Low, x.Contrast.High = 9, 11
		if got := x.SpeedInterval(); (got == "") != strings.ContainsAny(c.want, "<>~") {
			t.Errorf("interval %q of %s", got, c.want)
		}
		if got := x.Speed(); got != c.want {
			t.Errorf("bound %v against %v: %q; want %q", c.own.Bound, c.base.Bound, got, c.want)
		}
	}
}

func TestMixes(t *testing.T) {
	mixes := Fold(sample.ControlMix()).Mixes()
	if len(mixes) != 1 || mixes[0].Jain != "0.72" || mixes[0].Steady != "4.25 s" || len(mixes[0].Shares) != 2 {
		t.Fatalf("mixes %+v", mixes)
	}
	if a, b := mixes[0].Shares[0].Text(), mixes[0].Shares[1].Text(); a != "cubic 22 %" || b != "bbr 78 %" {
		t.Errorf("shares %q, %q; want them in the order of the mix", a, b)
	}
	got := shares(model.ControlCell{Control: "cubic+bbr+cubic", Shares: map[string]*model.Estimate{"bbr": nil}})
	if len(got) != 2 || !math.IsNaN(got[0].Ratio) || got[1].Text() != "bbr –" {
		t.Errorf("shares that nobody knows: %+v", got)
	}
}

func TestColumnsLeaveOutWhatNobodyMeasured(t *testing.T) {
	heads := func(d model.Document) string {
		var all []string
		for _, c := range Fold(d).Columns() {
			if c.Head != IntervalHead {
				all = append(all, c.Head)
			}
		}
		return strings.Join(all, " ")
	}
	if got, want := heads(sample.Controls()), "goodput resent RTT p95 queueing limited Mathis trials cut"; got != want {
		t.Errorf("columns %q; want %q", got, want)
	}
	if got, want := heads(sample.ControlMix()), "goodput resent RTT p95 queueing limited trials"; got != want {
		t.Errorf("columns %q; want %q", got, want)
	}
}

func TestTitle(t *testing.T) {
	d := sample.Controls()
	for _, c := range []struct {
		change func(f *model.Flow)
		want   string
	}{
		{func(*model.Flow) {}, "Completion time of 80 MB"}, {func(f *model.Flow) { f.HTTP = true }, "Completion time of 80 MB over HTTP"},
		{func(f *model.Flow) { f.Bytes, f.Commands = 0, &model.Commands{} }, "Completion time of the client"}, {func(f *model.Flow) { f.Bytes = 64 << 20 }, "Completion time of 64 MiB"},
		{func(f *model.Flow) { f.Bytes = 12345 }, "Completion time of 12 345 B"},
	} {
		f := d.Plan.Flows[0]
		c.change(&f)
		changed := d
		changed.Plan.Flows = []model.Flow{f}
		if got := Title(changed, Fold(changed)); got != c.want {
			t.Errorf("title %q; want %q", got, c.want)
		}
	}
	if mix := sample.ControlMix(); Title(mix, Fold(mix)) != "Goodput" {
		t.Error("a run without an end has no completion time")
	}
}

func near(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) }

func TestTimeline(t *testing.T) {
	nan := math.NaN()
	r := model.Result{Flows: []model.FlowResult{{Name: "up", TCP: &model.TCPFacts{PerStream: []model.TCPStream{{Control: "cubic"}, {Control: "bbr"}}}}}}
	add := func(metric string, stream int, values ...float64) {
		s := model.Series{Metric: metric, Flow: "up", StepSeconds: 0.5, Values: values}
		if stream >= 0 {
			s.Stream = &stream
		}
		r.Series = append(r.Series, s)
	}
	add("goodput_bps", -1, 1, 2)
	add("tcp_delivery_bps", -1, 3, 4)
	if line := NewTimeline(r); line.Source != SourceDelivery || line.Goodput[0].Values[1] != 4 {
		t.Errorf("%+v; want the delivery rate before that of whole seconds", line)
	}
	add("tcp_acked_bytes", 0, 0, 100, nan, 300, 250)
	add("tcp_acked_bytes", 1, nan, 50, 60)
	line := NewTimeline(r)
	if line.Source != SourceAcked || len(line.Goodput) != 2 || line.Goodput[0].Stream != "1 cubic" || line.Goodput[1].Stream != "2 bbr" {
		t.Fatalf("%+v; want a line for each stream", line)
	}
	for n, want := range [][]float64{{1600, 1600, 1600, nan}, {nan, 160}} {
		got := line.Goodput[n].Values
		if !slices.EqualFunc(got, want, func(a, b float64) bool { return near(a, b) || math.IsNaN(a) && math.IsNaN(b) }) {
			t.Errorf("stream %d: %v; want %v", n, got, want)
		}
	}
}

func TestAxisTicks(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   []float64
	}{
		{[]float64{7, 60}, []float64{8, 10, 15, 20, 30, 40, 50, 60}}, {[]float64{0.5, 50}, []float64{0.5, 1, 2, 5, 10, 20, 50}}, {[]float64{6.8, 7.1}, []float64{6.8, 7, 7.2}},
	} {
		a, ok := LogAxis(c.values)
		if got := a.Ticks(); !ok || !slices.EqualFunc(got, c.want, near) {
			t.Errorf("%v: ticks %v; want %v", c.values, got, c.want)
		}
	}
	if _, ok := LogAxis([]float64{0, -1, math.NaN(), math.Inf(1)}); ok {
		t.Error("an axis of nothing")
	}
}

// Round labels stay where others would touch them.
func TestLabelled(t *testing.T) {
	ticks := []float64{8, 10, 15, 20, 30, 40, 50, 60}
	for _, c := range []struct {
		wide float64
		want []float64
	}{{0.4, ticks}, {1, []float64{10, 20, 50}}, {1.9, []float64{10, 50}}} {
		var got []float64
		for i, kept := range Labelled(ticks, func(i int) (from, to float64) { return float64(i) - c.wide, float64(i) + c.wide }) {
			if kept {
				got = append(got, ticks[i])
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("labels %v wide: %v; want %v", 2*c.wide, got, c.want)
		}
	}
}

// Whatever the values, each has a place, larger ones none before, and ticks are few.
func TestAxisHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(rapid.Float64(), rapid.Float64Range(1e-3, 1e3)), 1, 20).Draw(t, "values")
		for _, axis := range []func([]float64) (Axis, bool){LogAxis, ZeroAxis} {
			a, ok := axis(values)
			if !ok {
				continue
			}
			sorted := slices.Sorted(slices.Values(values))
			last := 0.0
			for _, v := range sorted {
				p := a.Place(v)
				if !(p >= last && p <= 1) {
					t.Fatalf("%+v: place %v of %v; want %v to 1", a, p, v, last)
				}
				last = p
			}
			if n := len(a.Ticks()); n > 12 {
				t.Fatalf("%+v: %d ticks", a, n)
			}
		}
	})
}

// Whatever a document holds, words and figures are made of it.
func TestEveryDocument(t *testing.T) {
	for _, d := range sample.All() {
		if d.Doc.Control == nil {
			continue
		}
		table := Fold(d.Doc)
		said := Title(d.Doc, table) + table.Key()
		for _, c := range table.Conditions {
			said += c.Name + c.Verdict
			for i := range c.Cells {
				x := &c.Cells[i]
				said += x.Middle() + x.Interval() + x.Speed() + x.SpeedInterval() + x.Mathis(c.Name)
				for _, col := range table.Columns() {
					said += col.Cell(x)
				}
				x.Finished()
				x.Scatter()
				x.Span()
			}
		}
		for _, m := range table.Mixes() {
			said += m.Jain + m.Interval + m.Steady
			for _, s := range m.Shares {
				said += s.Text() + s.Interval
			}
		}
		if strings.ContainsAny(said, "\x1b\x00\u202e") || strings.Contains(said, "NaN") || strings.Contains(said, "Inf") {
			t.Errorf("%s: %q", d.Name, said)
		}
		for _, r := range d.Doc.Results {
			NewTimeline(r)
		}
	}
}
