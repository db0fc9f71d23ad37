package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pelt/design"
	"pelt/engine"
	"pelt/fleet"
	"pelt/model"
	"pelt/run"
	"pelt/table"
	"pelt/test/sample"
	"pelt/unit"
	"pelt/words"
)

// feed gives events of a run to a feed, ends it, and returns what readers got.
func feed(doc *model.Document, err error, all ...run.Event) []Event {
	f := Feed{Stream: &Stream{}, Before: []string{"noted before"}}
	for _, e := range all {
		if e.Done != nil {
			doc.Results = append(doc.Results, *e.Done)
		}
		f.Take(e)
	}
	f.End(*doc, err)
	past, r := f.Stream.Read()
	r.Close()
	return past
}

// begun are the events of a trial's begin.
func begun(r model.Result, number int) run.Event {
	flow := model.Flow{Name: "up", Protocol: model.UDP, From: "sender", To: "receiver", PayloadBytes: 64, Streams: 1}
	return run.Event{Started: &run.TrialStarted{Number: number, Total: 6,
		Trial: model.Trial{Cell: r.Cell, Repeat: r.Repeat,
			Flows: []model.Flow{flow}, Timing: model.Timing{WarmupSeconds: 0.5,
				MeasureSeconds: 10}}, Flows: []model.Flow{flow}}}
}

func counted(number int, role engine.Role, atS float64, packets uint64) run.Event {
	return run.Event{Progress: &run.TrialProgress{Number: number,
		Sample: fleet.Progress{Flow: "up", Role: role, Packets: packets, AtS: atS}}}
}

func TestFeedRates(t *testing.T) {
	doc := sample.Single()
	var got []string
	for _, e := range feed(&doc, nil, run.Event{Document: &doc}, begun(doc.Results[0], 1),
		counted(1, engine.Send, -0.1, 0), counted(1, engine.Send, 0.5, 500), // the warm-up counts for nothing
		counted(1, engine.Send, 1, 1500), counted(1, engine.Receive, 1, 900), counted(1, engine.Receive, 1.25, 1000),
		counted(1, engine.Receive, 1.25, 1100), counted(1, engine.Receive, 1.5, 1000), // what cannot be
		counted(2, engine.Send, 2, 9000), // of another trial
		run.Event{Cores: &run.Cores{Number: 1, Node: run.Machine, AtS: 1, Busy: map[int]float64{1: 1, 0: 0.5}}},
		run.Event{Cores: &run.Cores{Number: 2, Node: run.Machine, AtS: 1, Busy: map[int]float64{0: 1}}}) {
		if s := e.Sample; s != nil {
			core := ""
			if s.Core != nil {
				core = fmt.Sprint(" core ", *s.Core)
			}
			got = append(got, fmt.Sprintf("%s %s %s%s %v %v", s.Metric, s.Flow, s.At, core, s.AtS, s.Value))
		}
	}
	want := []string{"send_pps up sender 0.5 1000", "send_pps up sender 1 2000", "receive_pps up receiver 1 900",
		"receive_pps up receiver 1.25 400",
		"cpu_busy_ratio  machine core 0 1 0.5", "cpu_busy_ratio  machine core 1 1 1"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestFeedEnds: each sample says where it was taken, in a star too, and TCP has bits, which both ends count alike.
func TestFeedEnds(t *testing.T) {
	doc := sample.Single()
	started := begun(doc.Results[0], 1)
	started.Started.Flows = []model.Flow{{Name: "up/1", Protocol: model.UDP, From: "sender", To: "receiver-1"},
		{Name: "up/2", Protocol: model.TCP, From: "sender", To: "receiver-2"}}
	all := []run.Event{{Document: &doc}, started}
	for atS := range 2 {
		for _, p := range []fleet.Progress{{Flow: "up/1", Role: engine.Receive, Packets: 10},
			{Flow: "up/2", Role: engine.Send, Packets: 990, Bytes: 1000},
			{Flow: "up/2", Role: engine.Receive, Packets: 24, Bytes: 1000}} {
			p.AtS, p.Packets, p.Bytes = float64(atS), p.Packets*uint64(atS), p.Bytes*uint64(atS)
			all = append(all, run.Event{Progress: &run.TrialProgress{Number: 1, Sample: p}})
		}
	}
	all = append(all, run.Event{SoFar: &run.SoFar{Number: 1, Checkpoint: model.Checkpoint{Flows: []model.FlowSoFar{
		{Name: "up/1", Protocol: model.UDP}, {Name: "up/2", Protocol: model.TCP}}}}})
	var got []string
	for _, e := range feed(&doc, nil, all...) {
		if s := e.Sample; s != nil {
			got = append(got, fmt.Sprintf("%s %s %s %v", s.Metric, s.Flow, s.At, s.Value))
		}
		if e.Account != nil {
			got = append(got, fmt.Sprintf("account of %d, the first %s", len(e.Account.Flows), e.Account.Flows[0].Name))
		}
	}
	want := []string{"receive_pps up/1 receiver-1 10", "send_bps up/2 sender 8000", "receive_bps up/2 receiver-2 8000",
		"account of 1, the first up/1"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestFeedTellsTime: a run says at first how long it takes, and each trial how long is left, by how long trials took.
func TestFeedTellsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		doc := sample.Single()
		all := []model.Result{doc.Results[0], doc.Results[0], doc.Results[0]}
		all[1].Repeat, all[2].Repeat, doc.Plan.Design.Repeats = 1, 2, 4
		doc.Plan.Timing = model.Timing{MeasureSeconds: 10}
		trials := len(doc.Plan.Cells()) * doc.Plan.Design.Repeats
		f := Feed{Stream: &Stream{}}
		doc.Results = nil
		f.Take(run.Event{Document: &doc})
		for i := range all {
			f.Take(begun(all[i], i+1))
			time.Sleep(14 * time.Second)
			doc.Results = append(doc.Results, all[i])
			f.Take(run.Event{Done: &all[i]})
		}
		past, r := f.Stream.Read()
		r.Close()
		var left []float64
		for _, e := range past {
			if e.Next != nil {
				left = append(left, e.Next.LeftSeconds)
			}
		}
		n := float64(trials)
		if want := []float64{11 * n, 14 * (n - 1), 14 * (n - 2)}; !slices.Equal(left, want) {
			t.Errorf("left %v, want %v", left, want)
		}
		want := fmt.Sprintf("about %s: %d trials", unit.FormatEstimate(11*n), trials)
		if got := past[0].Started.Text; !strings.HasSuffix(got, want) {
			t.Errorf("%q does not end with %q", got, want)
		}
	})
}

// TestLeftOfAnUnsteadySearch: where trials contradict each other, what is left takes longer, too.
func TestLeftOfAnUnsteadySearch(t *testing.T) {
	steadily := left{Rest: design.Rest{Trials: 10, Seconds: 10, Guess: true}, first: 20, begun: 10}
	unsteadily := steadily
	unsteadily.begun = 40
	if a, b := steadily.seconds(), unsteadily.seconds(); a != 10 || b != 20 {
		t.Errorf("%g s and %g s are left, want 10 and 20", a, b)
	}
	if got, want := steadily.text(words.English), "at least 10 s: a search of 10 trials or more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// kinds names the events, and numbers trials.
func kinds(t *testing.T, all []Event) (names []string) {
	t.Helper()
	for i, e := range all {
		if e.ID != uint64(i+1) {
			t.Errorf("event %d has number %d", i+1, e.ID)
		}
		switch {
		case e.Started != nil:
			names = append(names, "started "+e.Started.Run)
		case e.Next != nil:
			names = append(names, fmt.Sprint("next ", of(e.Next.Number, e.Next.Trials)))
		case e.Sample != nil:
			names = append(names, "sample")
		case e.Account != nil:
			names = append(names, fmt.Sprint("account ", e.Account.ElapsedS))
		case e.Trial != nil:
			names = append(names, fmt.Sprintf("trial %s %s", of(e.Trial.Number, e.Trial.Trials), e.Trial.State))
		case e.Findings != nil:
			names = append(names, "findings")
		case e.Done != nil:
			names = append(names, fmt.Sprintf("done %v %s", e.Done.Complete, e.Done.Error))
		default:
			names = append(names, "note "+e.Note)
		}
	}
	return names
}

func TestFeed(t *testing.T) {
	whole := sample.Single()
	first := whole.Results[0]
	again := first
	again.State = model.Invalid
	second := first
	second.Repeat++
	aborted := second
	aborted.State = model.Aborted
	never := aborted
	never.Flows, never.Why = nil, model.Reasons{{Code: model.NoPath}}
	id := whole.ID
	account := func(number int) run.Event {
		return run.Event{SoFar: &run.SoFar{Number: number, Checkpoint: model.Checkpoint{ElapsedS: 3}}}
	}
	for _, c := range []struct {
		name   string
		before []model.Result // of an earlier command
		events func(doc *model.Document) []run.Event
		err    error
		want   []string
	}{
		{"a trial that runs again counts once", nil, func(doc *model.Document) []run.Event {
			return []run.Event{{Document: doc}, begun(first, 1), account(1), account(2), {Done: &again},
				begun(first, 1), {Done: &first},
				{Note: errors.New("a note")}, begun(second, 2), {Done: &second}}
		}, nil, []string{"started " +
			id, "note noted before", "next 1/6", "account 3", "trial 1/6 invalid", "findings", "next 1/6",
			"trial 1/6 valid", "findings", "note a note", "next 2/6", "trial 2/6 valid", "findings", "done true "}},
		{"a run goes on", []model.Result{second}, func(doc *model.Document) []run.Event {
			return []run.Event{{Document: doc}, begun(first, 2), {Done: &first}}
		}, nil, []string{"started " +
			id, "note noted before", "findings", "next 2/6", "trial 2/6 valid", "findings", "done true "}},
		{"a cut run", nil, func(doc *model.Document) []run.Event {
			return []run.Event{{Note: errors.New("early")}, {Document: doc}, begun(first, 1), {Done: &aborted}}
		}, fmt.Errorf("trial cut: %w", context.Canceled), []string{"note early", "started " +
			id, "note noted before", "next 1/6",
			"trial 1/6 aborted", "findings", "done false stopped"}},
		{"a path that does not come back", nil, func(doc *model.Document) []run.Event {
			return []run.Event{{Document: doc}, begun(second, 1), {Done: &aborted}, {Done: &never}}
		}, errors.New("no path"), []string{"started " +
			id, "note noted before", "next 1/6", "trial 1/6 aborted", "findings", "findings", "done false no path"}},
		{"a run that did not begin", nil, func(*model.Document) []run.Event { return nil }, errors.New("no route"),
			[]string{"done false no route"}},
	} {
		doc := whole
		doc.Results = slices.Clone(c.before)
		events := c.events(&doc)
		doc.Complete = c.err == nil
		if got := kinds(t, feed(&doc, c.err, events...)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q\nwant %q", c.name, got, c.want)
		}
	}
}

// Figures of a trial are those of the table.
func TestFeedFigures(t *testing.T) {
	doc := sample.Both()
	all := feed(&doc, nil, run.Event{Document: &doc}, begun(doc.Results[0], 1), run.Event{Done: &doc.Results[0]})
	i := slices.IndexFunc(all, func(e Event) bool { return e.Trial != nil })
	trial := all[i].Trial
	if len(trial.Figures) != 2 || trial.Text == "" {
		t.Fatalf("%+v", trial)
	}
	for k, row := range table.Rows(&model.Document{Plan: doc.Plan, Results: doc.Results[:1]}) {
		for _, m := range table.Metrics() {
			want, ok := m.Value(row)
			if got, told := trial.Figures[k].Figures[m.Name]; ok != told || ok && got != want {
				t.Errorf("%s of %s: %v, %v; want %v, %v", m.Name, trial.Figures[k].Flow, got, told, want, ok)
			}
		}
	}
}

func TestRouterIsOnThePath(t *testing.T) {
	s := &Stream{}
	d := &model.Document{Router: &model.RouterFacts{}, Plan: model.Plan{Command: "router", Target: "192.0.2.7",
		Flows: []model.Flow{{Name: "up", From: "sender", To: "receiver"}}},
		Host: []model.Host{{Node: "sender", Name: "a"}, {Node: "receiver", Name: "b"}}}
	(&Feed{Stream: s}).Take(run.Event{Document: d})
	past, r := s.Read()
	r.Close()
	if got := strings.Join(past[0].Started.Nodes, " "); got != "sender router receiver" {
		t.Errorf("nodes %q, want the router between the hosts", got)
	}
}

// TestFindingsPutOff: what takes long to find is not found after each trial, but in any case at the end.
func TestFindingsPutOff(t *testing.T) {
	doc := sample.Single()
	doc.Results = doc.Results[:1]
	f := Feed{Stream: &Stream{}, doc: &doc, ended: map[string]bool{}, took: time.Hour, found: time.Now()}
	f.trial(&doc.Results[0])
	if past, _ := f.Stream.Read(); len(past) != 1 {
		t.Errorf("after the trial %q", kinds(t, past))
	}
	f.End(doc, nil)
	past, _ := f.Stream.Read()
	if got, want := kinds(t, past), []string{"trial 1 valid", "findings", "done true "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
