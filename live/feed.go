package live

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"pelt/engine"
	"pelt/finding"
	"pelt/model"
	"pelt/run"
	"pelt/table"
	"pelt/view"
	"pelt/words"
)

// Feed makes the events of a stream from those of a run. Its methods are called by one goroutine at a time.
type Feed struct {
	Stream   *Stream
	Language words.Language // of the texts in events
	Before   []string       // notes to publish once the run begins

	doc    *model.Document
	flows  map[string]Ends // of the trial that began last
	before map[end]total
	ended  map[string]bool // trials; one that runs again counts once
	number int             // of the trial that began last
	total  int
	left   left
	took   time.Duration // to find what the trials show
	found  time.Time     // when that was done
	due    bool          // it was put off
}

type end struct {
	flow string
	role engine.Role
}

type total struct {
	packets, bytes uint64
	atS            float64
}

// Take adds what an event of the run tells.
func (f *Feed) Take(e run.Event) {
	switch {
	case e.Note != nil:
		f.Stream.Publish(Event{Note: f.Language.Error(e.Note)})
	case e.Document != nil:
		f.begin(e.Document)
	case e.Started != nil:
		f.next(*e.Started)
	case e.Progress != nil && e.Progress.Number == f.number:
		f.sample(*e.Progress)
	case e.Cores != nil && e.Cores.Number == f.number:
		for _, core := range slices.Sorted(maps.Keys(e.Cores.Busy)) {
			f.Stream.Publish(Event{Sample: &Sample{Metric: "cpu_busy_ratio", At: e.Cores.Node, Core: &core,
				AtS: e.Cores.AtS, Value: e.Cores.Busy[core]}})
		}
	case e.SoFar != nil && e.SoFar.Number == f.number:
		c := e.SoFar.Checkpoint // segments of TCP count differently at both ends
		udp := slices.DeleteFunc(slices.Clone(c.Flows), func(f model.FlowSoFar) bool { return f.Protocol == model.TCP })
		f.Stream.Publish(Event{Account: &Account{ElapsedS: c.ElapsedS, Flows: udp}})
	case e.Done != nil:
		f.trial(e.Done)
	}
}

func (f *Feed) begin(d *model.Document) {
	f.doc, f.ended = d, map[string]bool{}
	for i := range d.Results { // of a run that goes on
		if d.Results[i].State != model.Aborted {
			f.ended[d.Results[i].Cell.TrialName(d.Results[i].Repeat)] = true
		}
	}
	started := Started{Run: d.ID, Command: d.Plan.Command, Target: d.Plan.Target, Arguments: d.Arguments}
	var ends []string
	for i, h := range d.Host {
		if h.Node == h.Name || i > 0 && h.Node == d.Host[i-1].Node {
			ends = append(ends, h.Name)
		} else {
			ends = append(ends, f.Language.Say(h.Node)+" "+h.Name)
		}
	}
	if len(d.Plan.Flows) > 0 {
		started.Nodes = view.Nodes(d, d.Plan.Flows[0].From, d.Plan.Flows[0].To)
	}
	if d.Lab != nil {
		started.Nodes, ends = d.Lab.Nodes, []string{view.Way(f.Language, d.Lab.Nodes)}
	}
	started.Text = f.Language.Sayf("%s: %s", started.Command+" "+strings.TrimSuffix(view.TargetOf(d), ":"),
		f.Language.Join(ends))
	f.left = leftOf(d)
	if text := f.left.text(f.Language); text != "" {
		started.Text += f.Language.Say("; ") + text
	}
	f.Stream.Publish(Event{Started: &started})
	for _, note := range f.Before {
		f.Stream.Publish(Event{Note: note})
	}
	f.findings()
}

func (f *Feed) next(t run.TrialStarted) {
	f.left.begin(f.doc)
	f.number, f.total, f.before, f.flows = t.Number, t.Total, map[end]total{}, map[string]Ends{}
	var flows []Ends
	for _, flow := range t.Flows {
		one := Ends{flow.Name, flow.Protocol, flow.From, flow.To, model.IperfNode(f.doc.Plan.Target)}
		flows, f.flows[flow.Name] = append(flows, one), one
	}
	f.Stream.Publish(Event{Next: &Next{Number: t.Number, Trials: t.Total, Setting: view.Setting(f.Language, t.Trial),
		Cell: t.Trial.Cell, Repeat: t.Trial.Repeat, WarmupSeconds: t.Trial.Timing.WarmupSeconds,
		MeasuredSeconds: t.Trial.Timing.MeasureSeconds, UntilSent: t.Trial.UntilSent(),
		LeftSeconds: f.left.seconds(), Flows: flows}})
}

// sample publishes what an end counted between its last two samples.
func (f *Feed) sample(p run.TrialProgress) {
	s, key := p.Sample, end{p.Sample.Flow, p.Sample.Role}
	before := f.before[key] // zero at the start of the measured part
	f.before[key] = total{s.Packets, s.Bytes, s.AtS}
	flow, more := f.flows[s.Flow], float64(s.Packets)-float64(before.packets)
	out := Sample{Metric: "send_pps", Flow: s.Flow, At: flow.From, AtS: s.AtS}
	if s.Role == engine.Receive {
		out.Metric, out.At = "receive_pps", flow.To
	}
	if flow.Protocol == model.TCP {
		out.Metric, more = strings.TrimSuffix(out.Metric, "pps")+"bps", 8*(float64(s.Bytes)-float64(before.bytes))
	}
	from := max(before.atS, 0)
	if more < 0 || s.AtS <= from {
		return
	}
	out.Value = more / (s.AtS - from)
	f.Stream.Publish(Event{Sample: &out})
}

func (f *Feed) trial(r *model.Result) {
	name := r.Cell.TrialName(r.Repeat)
	f.left.end(f.doc.Plan, r, f.ended[name])
	f.ended[name] = true
	if r.Why.Has(model.NoPath) { // none began; how the run ended says why
		f.findings()
		return
	}
	t := Trial{Number: len(f.ended), Trials: f.total, Cell: r.Cell, Repeat: r.Repeat, State: r.State,
		Why: finding.WhyIn(f.Language, r.Why), Text: view.TrialLine(f.said(), r), Figures: []Figures{}}
	one := *f.doc
	one.Results = []model.Result{*r}
	for _, g := range table.By(table.Rows(&one), table.KeyOf("flow")) {
		figures := Figures{Flow: g.Name(), Figures: map[string]float64{}}
		for _, m := range table.Metrics() {
			if v, ok := m.Value(g.Rows[0]); ok {
				figures.Figures[m.Name] = v
			}
		}
		t.Figures = append(t.Figures, figures)
	}
	f.Stream.Publish(Event{Trial: &t})
	f.findings()
}

// said is the document as texts are made of it: the run itself has no language.
func (f *Feed) said() *model.Document {
	d := *f.doc
	d.Language = f.Language
	return &d
}

const longToFind = 50 * time.Millisecond

// findings publishes what the trials so far show. It is called between trials, where no packet waits for it; in a mesh
// others run, so that what takes long is done less often.
func (f *Feed) findings() {
	if f.due = len(f.doc.Results) > 0; !f.due || f.took > longToFind && time.Since(f.found) < 20*f.took {
		return
	}
	began := time.Now()
	all := finding.Stored(finding.OfRun(f.said()), true)
	f.found, f.took, f.due = time.Now(), time.Since(began), false
	f.Stream.Publish(Event{Findings: &all})
}

// End publishes how the run ended: with the document it left and its error.
func (f *Feed) End(d model.Document, err error) {
	if f.took = 0; f.due {
		f.findings()
	}
	done := Done{Run: d.ID, Complete: d.Complete}
	switch {
	case errors.Is(err, context.Canceled):
		done.Error = "stopped"
	case err != nil:
		done.Error = f.Language.Error(err)
	}
	f.Stream.Publish(Event{Done: &done})
}
