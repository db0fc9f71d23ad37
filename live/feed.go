package live

import (
	"context"
	"errors"
	"fmt"
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
)

// Feed makes the events of a stream from those of a run. Its methods are called by one goroutine at a time.
type Feed struct {
	Stream *Stream
	Before []string // notes to publish once the run begins

	doc    *model.Document
	nodes  map[string]string // agent's ends: flow and role to node
	before map[end]packets
	ended  map[string]bool // trials; one that runs again counts once
	number int             // of the trial that began last
	total  int
	took   time.Duration // to find what the trials show
	found  time.Time     // when that was done
	due    bool          // it was put off
}

type end struct {
	flow string
	role engine.Role
}

type packets struct {
	n   uint64
	atS float64
}

// Take adds what an event of the run tells.
func (f *Feed) Take(e run.Event) {
	switch {
	case e.Note != "":
		f.Stream.Publish(Event{Note: e.Note})
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
		c := e.SoFar.Checkpoint
		f.Stream.Publish(Event{Account: &Account{ElapsedS: c.ElapsedS, Flows: c.Flows}})
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
			ends = append(ends, h.Node+" "+h.Name)
		}
	}
	if len(d.Plan.Flows) > 0 {
		started.Nodes = view.Nodes(d, d.Plan.Flows[0].From, d.Plan.Flows[0].To)
	}
	if d.Lab != nil {
		started.Nodes, ends = d.Lab.Nodes, []string{view.Way(d.Lab.Nodes)}
	}
	started.Text = fmt.Sprintf("%s %s: %s", started.Command, strings.TrimSuffix(started.Target, ":"), strings.Join(ends, ", "))
	f.Stream.Publish(Event{Started: &started})
	for _, note := range f.Before {
		f.Stream.Publish(Event{Note: note})
	}
	f.findings()
}

func (f *Feed) next(t run.TrialStarted) {
	f.number, f.total, f.before, f.nodes = t.Number, t.Total, map[end]packets{}, map[string]string{}
	for _, flow := range t.Trial.Flows {
		f.nodes[flow.Name+" "+string(engine.Send)] = flow.From
		f.nodes[flow.Name+" "+string(engine.Receive)] = flow.To
	}
	f.Stream.Publish(Event{Next: &Next{Number: t.Number, Trials: t.Total, Setting: view.Setting(t.Trial),
		Cell: t.Trial.Cell, Repeat: t.Trial.Repeat, WarmupSeconds: t.Trial.Timing.WarmupSeconds,
		MeasuredSeconds: t.Trial.Timing.MeasureSeconds}})
}

var rateOf = map[engine.Role]string{engine.Send: "send_pps", engine.Receive: "receive_pps"}

// sample publishes what an end counted between its last two samples.
func (f *Feed) sample(p run.TrialProgress) {
	s, key := p.Sample, end{p.Sample.Flow, p.Sample.Role}
	before, known := f.before[key]
	f.before[key] = packets{s.Packets, s.AtS}
	metric := rateOf[s.Role]
	if metric == "" || !known || s.Packets < before.n || s.AtS <= before.atS || before.atS < 0 {
		return
	}
	f.Stream.Publish(Event{Sample: &Sample{Metric: metric, Flow: s.Flow, At: f.nodes[s.Flow+" "+string(s.Role)],
		AtS: s.AtS, Value: float64(s.Packets-before.n) / (s.AtS - before.atS)}})
}

func (f *Feed) trial(r *model.Result) {
	f.ended[r.Cell.TrialName(r.Repeat)] = true
	t := Trial{Number: len(f.ended), Trials: f.total, Cell: r.Cell, Repeat: r.Repeat, State: r.State,
		Why: r.Why.String(), Text: view.TrialLine(f.doc, r), Figures: []Figures{}}
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

const longToFind = 50 * time.Millisecond

// findings publishes what the trials so far show. It is called between trials, where no packet waits for it; in a mesh
// others run, so that what takes long is done less often.
func (f *Feed) findings() {
	if f.due = len(f.doc.Results) > 0; !f.due || f.took > longToFind && time.Since(f.found) < 20*f.took {
		return
	}
	began := time.Now()
	all := finding.Stored(view.Findings(f.doc), true)
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
		done.Error = err.Error()
	}
	f.Stream.Publish(Event{Done: &done})
}
