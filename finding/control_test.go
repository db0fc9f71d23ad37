package finding

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pelt/model"
	"pelt/table"
)

// transfer is what one control does under one loss.
type transfer struct {
	control string
	loss    float64
	mbps    float64
	queue   float64 // s
}

// race is a run that compares congestion controls.
type race struct {
	of      []transfer
	repeats int
	bytes   float64 // of each transfer; 0: as much as fits
	most    float64 // s, after which a transfer is cut; 0: never
	noise   func(i int) float64
	invalid int // trials, the first ones
	change  func(*model.Document)
}

const rttSeconds = 0.04

func (c race) doc() *model.Document {
	d := &model.Document{ID: "abc", Plan: model.Plan{Command: "cc", Target: "192.0.2.7",
		Flows:  []model.Flow{{Name: "up", Protocol: model.TCP, From: model.Sender, Streams: 1, Bytes: uint64(c.bytes)}},
		Design: model.Design{Repeats: c.repeats}, Timing: model.Timing{MeasureSeconds: 10, DrainSeconds: 1}}}
	controls, losses := model.Factor{Knob: "control"}, model.Factor{Knob: "link.loss_ratio"}
	for _, x := range c.of {
		if v := model.Word(x.control); !slices.Contains(controls.Levels, v) {
			controls.Levels = append(controls.Levels, v)
		}
		if v := model.Number(x.loss); !slices.Contains(losses.Levels, v) {
			losses.Levels = append(losses.Levels, v)
		}
	}
	d.Plan.Factors = []model.Factor{losses, controls}
	if c.noise == nil {
		c.noise = func(i int) float64 { return []float64{1, 1.02, 0.98, 1.01, 0.99}[i%5] }
	}
	for repeat := range c.repeats {
		for i, x := range c.of {
			bps := x.mbps * 1e6 * c.noise(repeat+i)
			f := model.FlowResult{Name: "up", Protocol: model.TCP, From: model.Sender, To: model.Receiver, Streams: 1,
				GoodputBPS: bps, DurationS: 10, TCP: &model.TCPFacts{Control: x.control, Writes: 1, SegmentsOut: 1000,
					Retransmits: 10, SegmentSizeBytes: 1448, BusyS: 10}}
			trip := rttSeconds * 1e9
			f.RoundTrip = &model.Percentiles{Count: 9, Min: trip, P50: trip, P90: trip, P95: trip + x.queue*1e9}
			if c.bytes > 0 {
				took := c.bytes * 8 / bps
				cut := c.most > 0 && took > c.most
				if cut {
					took = c.most
				}
				f.DurationS = took
				f.TCP.ReceivedBytes = uint64(bps * took / 8)
				f.TCP.Completion = &model.Completion{Bytes: uint64(c.bytes), Done: !cut, Seconds: took}
			}
			r := model.Result{Cell: model.Cell{"control": model.Word(x.control), "link.loss_ratio": model.Number(x.loss)},
				Repeat: repeat, State: model.Valid, Flows: []model.FlowResult{f},
				Links: []model.LinkResult{{From: model.Sender, To: model.Receiver, AskedRatio: x.loss}}}
			if len(d.Results) < c.invalid {
				r.State = model.Invalid
			}
			d.Results = append(d.Results, r)
		}
	}
	if c.change != nil {
		c.change(d)
	}
	return d
}

func controlRules() []Rule {
	return append([]Rule{Control, ControlStreams, ControlDoubts}, Common()...)
}

var (
	apart = []transfer{{"cubic", 0, 90, 0.06}, {"bbr", 0, 90, 0.02}, {"cubic", 0.01, 30, 0}, {"bbr", 0.01, 75, 0.01}}
	duel  = []transfer{{"cubic", 0, 3, 0.06}, {"bbr", 0, 90, 0.02}}
)

func wild(i int) float64 { return []float64{1, 2.5, 0.6, 1.7, 0.8}[i%5] }

func TestControl(t *testing.T) {
	for _, c := range []struct {
		name string
		run  race
		want []string // texts in order, the first ones
	}{
		{"goodput under two losses", race{of: apart, repeats: 5}, []string{
			"BBR is 2.50 (2.44–2.56) times as fast as CUBIC with 1 % link loss.",
			"BBR and CUBIC look alike with no link loss; 7 more repeats would prove it.",
			"The congestion control was the limit: link, buffers and processors had room.",
			"Small packets waited up to 60.0 ms in queues beside CUBIC and 20.0 ms beside BBR with no link loss (95 % of them).",
			"See rates and queues over time: pelt report abc --html cc.html",
		}},
		{"completion", race{of: duel, repeats: 3, bytes: 9e6}, []string{
			"BBR is 30.3 (28.7–31.5) times as fast as CUBIC."}},
		{"two repeats", race{of: duel, repeats: 2}, []string{
			"BBR looks 29.7 times as fast as CUBIC; too few repeats to tell: at least 1 more is needed."}},
		{"noise", race{of: duel, repeats: 3, noise: func(i int) float64 { return []float64{1, 60, 0.2, 0.5}[i%4] }}, []string{
			"BBR looks 15 times as fast as CUBIC; 13 more repeats would prove it."}},
		{"one of them alone", race{of: []transfer{{"bbr", 0, 90, 0}, {"bbr", 0.01, 70, 0}}, repeats: 3}, []string{
			"BBR carries 90.0 Mbit/s (88.2–91.8 Mbit/s) with no link loss, and 70.7 Mbit/s with 1 % link loss."}},
		{"a slow one", race{of: []transfer{{"cubic", 0, 90, 0}, {"reno", 0, 45, 0}}, repeats: 4}, []string{
			"Reno is 50"}},
		{"tied, where both were measured", race{of: []transfer{{"cubic", 0, 90, 0}, {"bbr", 0, 90, 0}, {"cubic", 0.01, 90, 0}},
			repeats: 12}, []string{"BBR and CUBIC are statistically tied with no link loss."}},
		{"tied everywhere", race{of: []transfer{{"cubic", 0, 90, 0}, {"bbr", 0, 90, 0}, {"cubic", 0.01, 80, 0}, {"bbr", 0.01, 80, 0}},
			repeats: 15}, []string{"BBR and CUBIC are statistically tied."}},
		{"too few of the first one", race{of: duel, repeats: 3, change: func(d *model.Document) {
			d.Results[0].State = model.Invalid
		}}, []string{"BBR looks 30.3 times as fast as CUBIC; too few repeats to tell: at least 1 more is needed."}},
		{"nothing", race{of: []transfer{{"cubic", 0, 0, 0}, {"bbr", 0, 45, 0}}, repeats: 4}, []string{
			"CUBIC carried nothing, and BBR did."}},
		{"no valid trial", race{of: duel, repeats: 2, invalid: 4}, []string{
			"No usable result: none of 4 trials ran as ordered."}},
	} {
		got := texts(All(table.Rows(c.run.doc()), controlRules()...))
		if len(got) < len(c.want) {
			t.Fatalf("%s: %q", c.name, got)
		}
		for i, want := range c.want {
			if !strings.HasPrefix(got[i], want) {
				t.Errorf("%s:\n%s\nwant\n%s", c.name, got[i], want)
			}
		}
	}
}

// TestControlDoubts: what makes the figures of a comparison less sure.
func TestControlDoubts(t *testing.T) {
	flows := func(change func(*model.FlowResult)) func(*model.Document) {
		return func(d *model.Document) {
			for i := range d.Results {
				change(&d.Results[i].Flows[0])
			}
		}
	}
	for _, c := range []struct {
		name, want string
		run        race
	}{
		{"cut", "3 of 6 transfers were cut by --time, so controls are compared by goodput, not by time.",
			race{of: duel, repeats: 3, bytes: 9e6, most: 10}},
		{"cut programs", "3 of 6 transfers were cut by --time: the times of their controls are at least the times shown.",
			race{of: duel, repeats: 3, bytes: 9e6, most: 10, change: flows(func(f *model.FlowResult) {
				f.GoodputBPS, f.TCP.ReceivedBytes, f.TCP.Completion.Bytes = 0, 0, 0
			})}},
		{"buffers", "TCP waited for buffers up to 40 % of the time (CUBIC and BBR): the congestion control was not the only limit.",
			race{of: duel[:2], repeats: 3, change: flows(func(f *model.FlowResult) { f.TCP.RwndLimitedS = 4 })}},
		{"buffers, as the limit", "TCP buffers were the limit: TCP waited for them 40 % of the time.",
			race{of: duel, repeats: 3, change: flows(func(f *model.FlowResult) { f.TCP.SndbufLimitedS = 4 })}},
		{"link", "The link of 95.0 Mbit/s was the limit.",
			race{of: duel, repeats: 3, change: func(d *model.Document) { d.Plan.Links = []model.Link{{Rate: 95e6}} }}},
		{"another control", "The kernel used another congestion control than was asked for: vegas.",
			race{of: duel, repeats: 3, change: flows(func(f *model.FlowResult) { f.TCP.Control = "vegas" })}},
		{"whole buffers", "The emulated links lose whole buffers of segments, as no wire does.",
			race{of: duel, repeats: 3, change: func(d *model.Document) {
				d.Plan.Links = []model.Link{{Buffers: model.BuffersWhole}}
			}}},
		{"remembered", "The sender keeps what a connection learnt for the next one.",
			race{of: duel, repeats: 3, change: func(d *model.Document) {
				d.Host = []model.Host{{Node: model.Sender, TCPSettings: map[string]string{"no_metrics_save": "0"}}}
			}}},
		{"shares", "Side by side BBR takes 80 % of the goodput and CUBIC 20 %.",
			race{of: []transfer{{"cubic+bbr", 0, 90, 0}}, repeats: 3, change: flows(func(f *model.FlowResult) {
				f.Streams, f.TCP.PerStream = 2, []model.TCPStream{{Control: "cubic", GoodputBPS: 2}, {Control: "bbr", GoodputBPS: 8}}
			})}},
		{"unfair", "Streams of CUBIC share unevenly (Jain's index 0.74; 1 is even).",
			race{of: duel[:1], repeats: 3, change: flows(func(f *model.FlowResult) {
				f.Streams, f.TCP.PerStream = 2, []model.TCPStream{{Control: "cubic", GoodputBPS: 2}, {Control: "cubic", GoodputBPS: 8}}
			})}},
	} {
		got := texts(All(table.Rows(c.run.doc()), controlRules()...))
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, c.want) }) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), c.want)
		}
	}
}

// TestBothCut: two controls whose times were both cut are not tied, and no repeats help.
func TestBothCut(t *testing.T) {
	run := race{of: []transfer{{"cubic", 0, 1, 0}, {"bbr", 0, 2, 0}}, repeats: 4, bytes: 9e6, most: 10}
	run.change = func(d *model.Document) {
		for i := range d.Results {
			f := &d.Results[i].Flows[0]
			f.GoodputBPS, f.TCP.ReceivedBytes = 0, 0
		}
	}
	rows := table.Rows(run.doc())
	if e := CompareControls(rows).Speeds[1]; e.Verdict != table.TooFew || e.Needed != 0 {
		t.Errorf("%+v", e)
	}
	if !Separable(rows, 4) {
		t.Error("such a run need not go on")
	}
	run.change = nil // pelt's own transfers say how much they carried
	if e := CompareControls(table.Rows(run.doc())).Speeds[1]; e.Verdict != table.BetterThan {
		t.Errorf("%+v", e)
	}
}

func TestSeparable(t *testing.T) {
	close := []transfer{{"cubic", 0, 30, 0}, {"bbr", 0, 40, 0}}
	for _, c := range []struct {
		name    string
		run     race
		repeats int
		done    bool
	}{
		{"far apart", race{of: duel, repeats: 3}, 3, true},
		{"two repeats", race{of: duel, repeats: 3}, 2, false},
		{"noise", race{of: close, repeats: 5, noise: wild}, 5, false},
		{"tied", race{of: []transfer{{"cubic", 0, 90, 0}, {"bbr", 0, 90, 0}}, repeats: 12}, 12, true},
		{"one control", race{of: duel[:1], repeats: 3}, 3, true},
		{"no baseline", race{of: duel, repeats: 3, change: func(d *model.Document) {
			for i := range d.Results {
				if d.Results[i].Cell["control"].Text == "cubic" {
					d.Results[i].State = model.Invalid
				}
			}
		}}, 3, false},
		{"many looks", race{of: []transfer{{"cubic", 0, 88, 0}, {"bbr", 0, 93, 0}}, repeats: 3, change: func(d *model.Document) {
			d.Plan.Design.MostRepeats = 30
		}}, 3, false},
	} {
		rows := table.Rows(c.run.doc())
		for range 2 {
			if done := Separable(rows, c.repeats); done != c.done {
				t.Errorf("%s: %v", c.name, done)
			}
		}
	}
}

func TestTooFewToTell(t *testing.T) {
	for _, c := range []struct {
		repeats, comparisons, need int
		yes                        bool
	}{{1, 1, 3, true}, {2, 1, 3, true}, {3, 1, 3, false}, {3, 6, 4, true}, {10, 6, 4, false}, {3, 1000, 8, true}} {
		if need, yes := TooFewToTell(c.repeats, c.comparisons); need != c.need || yes != c.yes {
			t.Errorf("%d repeats, %d comparisons: %d %v", c.repeats, c.comparisons, need, yes)
		}
	}
}

func TestBeforeControls(t *testing.T) {
	for repeats, want := range map[int]string{
		1: "1 repeat is too few to tell controls apart. --repeats 4 is enough to tell twice as fast, and takes up to 3 min.",
		5: "5 repeats usually tell controls apart that differ by 59 % or more.",
	} {
		d := race{of: apart, repeats: repeats}.doc()
		if got := BeforeControls(&d.Plan); len(got) != 1 || got[0].Text() != want {
			t.Errorf("%d: %q; want %q", repeats, texts(got), want)
		}
	}
	if d := (race{of: duel[:1], repeats: 1}).doc(); BeforeControls(&d.Plan) != nil {
		t.Error("one control is compared with nothing")
	}
}

// TestFalseAlarms: of runs whose controls do not differ, and that are judged after each
// repeat, few ever tell a difference; a difference of 50 % is found before the end.
func TestFalseAlarms(t *testing.T) {
	const runs = 300
	random := rand.New(rand.NewPCG(1, 2))
	told := func(reno float64) (often float64) {
		for range runs {
			run := race{of: []transfer{{"cubic", 0, 30, 0}, {"bbr", 0, 30, 0}, {"reno", 0, 30 * reno, 0}}, repeats: 12}
			run.noise = func(int) float64 { return math.Exp(0.15 * random.NormFloat64()) }
			run.change = func(d *model.Document) { d.Plan.Design.Repeats, d.Plan.Design.MostRepeats = 3, 12 }
			d := run.doc()
			for _, repeats := range d.Plan.Design.Looks() {
				rows := slices.DeleteFunc(table.Rows(d), func(r table.Row) bool { return r.Trial.Repeat >= repeats })
				if slices.ContainsFunc(CompareControls(rows).Speeds, func(e table.Effect) bool {
					return e.Verdict == table.BetterThan || e.Verdict == table.WorseThan
				}) {
					often++
					break
				}
			}
		}
		return often / runs
	}
	if got := told(1); got > 0.06 {
		t.Errorf("%.1f %% of runs told a difference that is none", 100*got)
	}
	if got := told(1.5); got < 0.95 {
		t.Errorf("only %.1f %% of runs told a difference of 50 %%", 100*got)
	}
}
