package run

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pelt/internal/testenv"
	"pelt/model"
	"pelt/store"
)

// A run whose disk is full for a while says so once, and once that it is over. If it stays
// full, all that was measured is in another file.
func TestDiskFull(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", elsewhere)
	testenv.Must(t, testenv.OnTinyDisk(t, dir, func() error { return fillAndFree(t, dir, elsewhere) }))
}

func fillAndFree(t *testing.T, dir, elsewhere string) error {
	s, err := store.Open(dir)
	if err != nil {
		return err
	}
	doc := model.Document{Started: time.Now().UTC().Truncate(time.Millisecond), Plan: smallPlan(t),
		Results: []model.Result{}, Findings: []model.Finding{}, Warnings: model.Doubts{}}
	log, err := s.Create(doc)
	if err != nil {
		return err
	}
	doc.ID = log.ID()
	var notes []string
	r := &runner{Options: Options{Events: func(e Event) {
		if e.Note != nil {
			notes = append(notes, e.Note.Error())
		}
	}}, site: &site{}, doc: &doc, log: log}
	trial := func() { // as long as a real one
		r.keep(model.Result{State: model.Aborted,
			Why: model.Reasons{{Code: model.TrialCut, Text: strings.Repeat("x", 10<<10)}}})
	}
	said := func(what string, want ...string) {
		matches := func(note, part string) bool { return strings.Contains(note, part) }
		if !slices.EqualFunc(notes, want, matches) {
			t.Errorf("%s: it was said %q, want %q", what, notes, want)
		}
		notes = nil
	}
	fill := filepath.Join(dir, "fill")
	trial()
	said("room")
	_ = os.WriteFile(fill, make([]byte, 1<<20), 0o600) // as much as there is room for
	trial()
	trial()
	said("full", "no space left on device; finished trials wait in memory")
	if err := os.Remove(fill); err != nil {
		return err
	}
	trial()
	said("room again", "the run is stored again, and nothing is missing")
	if kept, err := s.Load(doc.ID); err != nil || len(kept.Results) != 4 {
		t.Errorf("%v, %d trials are stored, want 4", err, len(kept.Results))
	}
	_ = os.WriteFile(fill, make([]byte, 1<<20), 0o600)
	trial()
	r.finish()
	files, err := filepath.Glob(filepath.Join(elsewhere, "pelt-"+log.ID()+"-*.json"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("%w: files elsewhere: %q, want one", err, files)
	}
	said("full at the end", "finished trials wait", "no space left on device; all of it is in "+files[0])
	whole, err := s.Load(files[0])
	if err != nil || len(whole.Results) != 5 || doc.ID != "" {
		t.Errorf("%v: %d trials are in %s, want 5; the run is called %q, want no name", err, len(whole.Results),
			files[0], doc.ID)
	}
	return nil
}
