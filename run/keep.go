package run

import (
	"errors"
	"fmt"
	"os"
	"time"

	"pelt/model"
	"pelt/store"
	"pelt/view"
)

// keep puts a result into the document and the store.
func (r *runner) keep(result model.Result) {
	r.doc.Results = append(r.doc.Results, result)
	if r.log != nil {
		if err := r.log.Append(result); !r.stored(err) {
			r.warn(fmt.Sprintf("the run is no longer stored, after %d trials: %v", len(r.doc.Results)-1, err))
			r.closeLog()
			r.doc.ID = "" // what is kept is not this document
		}
	}
	r.event(Event{Done: &r.doc.Results[len(r.doc.Results)-1]})
}

// stored tells once when the disk takes no more of the run, and once when it takes all again.
// It returns false for an error that no other try can mend.
func (r *runner) stored(err error) bool {
	waits := errors.Is(err, store.ErrWaiting)
	switch {
	case err != nil && !waits:
		return false
	case waits && !r.waiting:
		r.event(Event{Note: fmt.Sprintf("%v; finished trials wait in memory, and writing is tried again until the run ends: make room there", err)})
	case !waits && r.waiting:
		r.event(Event{Note: "the run is stored again, and nothing is missing"})
	}
	r.waiting, r.tried = waits, r.now()
	return true
}

// storeAgain tries to store what waits, from time to time.
func (r *runner) storeAgain() {
	const pause = 5 * time.Second
	if r.log != nil && r.waiting && r.now().Sub(r.tried) >= pause {
		r.stored(r.log.Flush())
	}
}

func (r *runner) closeLog() {
	if err := r.log.Close(); err != nil {
		r.warn(fmt.Sprintf("closing the stored run: %v", err))
	}
	r.log = nil
}

func (r *runner) finish() {
	r.endRouter()
	r.doc.Findings = view.Stored(r.doc, false)
	r.doc.Warnings = append(r.doc.Warnings, trialWarnings(r.doc.Results)...)
	if r.log == nil {
		return
	}
	if len(r.doc.Results) == 0 {
		// Nothing was measured, so nothing is kept.
		if err := r.log.Discard(); err != nil {
			r.warn(fmt.Sprintf("the empty run is not removed: %v", err))
		}
		r.log, r.doc.ID = nil, ""
		return
	}
	err := r.log.End(*r.doc)
	if errors.Is(err, store.ErrWaiting) {
		r.rescue(err)
	} else if !r.stored(err) {
		r.warn(fmt.Sprintf("the end of the run is not stored: %v", err))
	}
	r.closeLog()
}

// rescue puts the document of a run that the disk does not take where temporary files go.
func (r *runner) rescue(why error) {
	text, err := model.EncodeDocument(*r.doc)
	name := ""
	if err == nil {
		name, err = temporary("pelt-"+r.doc.ID+"-*.json", text)
	}
	if err != nil {
		r.warn(fmt.Sprintf("the run is not stored: %v; its trials are in this command's output only (%v)", why, err))
	} else {
		r.warn(fmt.Sprintf("the run is not stored: %v; all of it is in %s, which pelt report reads",
			why, name))
	}
	r.doc.ID = "" // what is kept is not this document
}

// temporary writes a new file where temporary files go, and returns its name.
func temporary(pattern string, text []byte) (name string, err error) {
	f, err := os.CreateTemp("", pattern)
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}
