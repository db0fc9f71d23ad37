package run

import (
	"errors"
	"os"

	"pelt/finding"
	"pelt/model"
	"pelt/store"
	"pelt/words"
)

// keep puts a result into the document and the store.
func (r *runner) keep(result model.Result) (kept *model.Result) {
	r.doc.Results = append(r.doc.Results, result)
	_ = r.save() // save tells
	kept = &r.doc.Results[len(r.doc.Results)-1]
	r.event(Event{Done: kept})
	return kept
}

// save stores the results that the store lacks: those that a full disk did not take wait in
// the document. It returns why some still wait. An error that stays ends the storing.
func (r *runner) save() error {
	for r.log != nil && r.saved < len(r.doc.Results) {
		err := r.log.Append(r.doc.Results[r.saved])
		if !r.tellDisk(err) {
			r.warn(model.NewReason(model.NotStoredFrom, "text", bySystem(err).Text, "trials", float64(r.saved)))
			r.closeLog()
			r.doc.ID = "" // what is kept is not this document
			return nil
		}
		if err != nil {
			return err
		}
		r.saved++
	}
	return nil
}

// tellDisk tells once when the disk is full, and once when it takes all again. false: err is another error, which
// stays.
func (r *runner) tellDisk(err error) bool {
	full := errors.Is(err, store.ErrDisk)
	switch {
	case err != nil && !full:
		return false
	case full && !r.diskFull:
		r.event(Event{Note: words.Errorf("%w; finished trials wait in memory, and writing is tried again until the "+
			"run ends: make room there", err)})
	case !full && r.diskFull:
		r.event(Event{Note: words.Errorf("the run is stored again, and nothing is missing")})
	}
	r.diskFull = full
	return true
}

func (r *runner) closeLog() {
	if err := r.log.Close(); err != nil {
		r.warn(model.Reason{Code: model.NotClosed, Text: bySystem(err).Text})
	}
	r.log = nil
}

func (r *runner) finish() {
	r.endRouter()
	r.doc.Findings = finding.Kept(*r.doc)
	if r.log == nil {
		return
	}
	if len(r.doc.Results) == 0 {
		// Nothing was measured, so nothing is kept.
		if err := r.log.Discard(); err != nil {
			r.warn(model.Reason{Code: model.NotRemoved, Text: bySystem(err).Text})
		}
		r.log, r.doc.ID = nil, ""
		return
	}
	err := r.save()
	if r.log == nil {
		return
	}
	if err == nil {
		err = r.log.End(*r.doc)
	}
	if errors.Is(err, store.ErrDisk) {
		r.rescue(err)
	} else if !r.tellDisk(err) {
		r.warn(model.Reason{Code: model.EndNotStored, Text: bySystem(err).Text})
	}
	r.closeLog()
}

// rescue writes the document of a run that its disk does not take to a temporary file.
func (r *runner) rescue(why error) {
	text, err := model.EncodeDocument(*r.doc)
	name := ""
	if err == nil {
		name, err = temporary("pelt-"+r.doc.ID+"-*.json", text)
	}
	said := bySystem(why).Text
	if err != nil {
		name, said = "", said+"; "+bySystem(err).Text
	}
	r.warn(model.Reason{Code: model.NotStored, Text: said, Name: name})
	r.doc.ID = "" // what is kept is not this document
}

// temporary writes a new temporary file and returns its name.
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
