package run

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"pelt/finding"
	"pelt/fleet"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/plan"
	"pelt/store"
)

func smallPlan(t *testing.T) model.Plan {
	t.Helper()
	p, err := plan.Curve.Of("lab:"+Loopback, "payload=64,512", "repeats=2", "seed=7")
	testenv.Must(t, err)
	p.Timing = model.Timing{WarmupSeconds: 0.01, MeasureSeconds: 0.05, DrainSeconds: 0.5}
	return p
}

// twoEnds is a site of a sender and a receiver.
func twoEnds() *site {
	s := &site{}
	for _, name := range []string{model.Sender, model.Receiver} {
		s.nodes = append(s.nodes, node{name: name, end: true, agent: fleet.AgentInfo{ID: name[:1], Node: name}})
	}
	return s
}

func openStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.TempDir())
	testenv.Must(t, err)
	return s
}

// A run whose host cannot be reached is the last one, and says why. Going on with it begins it.
func TestUnbegunRunIsKept(t *testing.T) {
	t.Parallel()
	s, p := openStore(t), smallPlan(t)
	p.Target = "127.0.0.1:1" // where nothing listens
	for n, execute := range []func() (model.Document, error){
		func() (model.Document, error) {
			return Execute(t.Context(), p, Options{Store: s, Code: "tiger-42-amber"})
		},
		func() (model.Document, error) {
			return Resume(t.Context(), "last", Options{Store: s, Code: "tiger-42-amber"})
		},
	} {
		got, err := execute()
		if err == nil {
			t.Fatal("it reached a host")
		}
		doc, loadErr := Load(s, "last")
		if loadErr != nil {
			t.Fatal(loadErr)
		}
		if got.ID != doc.ID {
			t.Errorf("the run returned is %q, the kept one %q", got.ID, doc.ID)
		}
		said := finding.Explain(&doc, finding.Ask{})[0].Text()
		if want := "No trial was measured. " + err.Error(); said != want && said != want+"." {
			t.Errorf("it is said %q, want %q", said, want)
		}
		if list, err := s.List(); err != nil || len(list) != n+1 {
			t.Errorf("%d runs, %v; want %d", len(list), err, n+1)
		}
	}
}

// TestDocumentHasWords: what --json writes says each finding in words, which no stored run does.
func TestDocumentHasWords(t *testing.T) {
	t.Parallel()
	doc, err := Execute(t.Context(), smallPlan(t), Options{})
	testenv.Must(t, err)
	var written bytes.Buffer
	testenv.Must(t, WriteDocument(&written, doc))
	got, err := model.DecodeDocument(written.Bytes(), "written")
	if err != nil || len(got.Findings) == 0 {
		t.Fatalf("%d findings, %v", len(got.Findings), err)
	}
	for i, f := range got.Findings {
		if f.Text == "" || doc.Findings[i].Text != "" {
			t.Errorf("%s is %q in words, and kept as %q", f.Code, f.Text, doc.Findings[i].Text)
		}
	}
}

// whole counts the trials that were not cut.
func whole(results []model.Result) (n int) {
	for _, r := range results {
		if r.State != model.Aborted {
			n++
		}
	}
	return n
}

// TestInterruptedRunKeepsAndGoesOn: ctx ends the run in the middle of its third
// trial; two whole ones and the cut one are kept, and Resume makes the rest.
func TestInterruptedRunKeepsAndGoesOn(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := smallPlan(t)
	p.Timing.MeasureSeconds = 0.3
	doc, err := Execute(ctx, p, Options{Version: "test", Store: s, Events: func(e Event) {
		if e.Started != nil && e.Started.Number == 3 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("Execute returned %v, want context.Canceled", err)
	}
	if n := whole(doc.Results); n != 2 || doc.Complete {
		t.Fatalf("%d trials finished, complete %v; want 2, false", n, doc.Complete)
	}
	kept, err := Load(s, "last")
	if err != nil || len(finding.OfRun(&kept)) == 0 {
		t.Fatalf("the cut run shows nothing, %v; want a verdict", err)
	}
	all, err := Resume(t.Context(), "last", Options{Version: "test", Store: s})
	testenv.Must(t, err)
	if n := whole(all.Results); n != 4 || !all.Complete || all.ID != doc.ID {
		t.Errorf("after Resume %d trials of run %s, complete %v; want 4 of %s, true", n, all.ID, all.Complete, doc.ID)
	}
	again, err := Resume(t.Context(), "last", Options{Version: "test", Store: s})
	if err != nil || len(again.Results) != len(all.Results) {
		t.Errorf("resuming a complete run gave %d results, %v; want %d and nil", len(again.Results), err,
			len(all.Results))
	}
}
