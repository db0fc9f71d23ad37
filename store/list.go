package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"pelt/model"
)

// The states of a stored run.
const (
	Complete = "complete" // nothing is left to do
	Cut      = "cut"      // some trials are left: it can be resumed
	Running  = "running"  // a process is writing it
	Damaged  = "damaged"  // it cannot be read; Headline says why
)

// Summary is one line about a stored run.
type Summary struct {
	ID       string    `json:"id"`
	Started  time.Time `json:"started"`
	Command  string    `json:"command"`
	Target   string    `json:"target"`
	Trials   int       `json:"trials"` // finished ones
	State    string    `json:"state"`
	Headline string    `json:"headline"` // its verdict, if it has one
}

// List returns all stored runs, oldest first. It reads what the index does not
// know from the files; an index that cannot be used costs time only.
func (s *Store) List() ([]Summary, error) {
	files, err := s.entries()
	if err != nil {
		return nil, err
	}
	known := s.readIndex(files)
	list := make([]Summary, 0, len(files))
	fresh := map[entry]Summary{}
	for _, e := range files {
		sum, ok := known[e]
		if !ok {
			sum, err = s.summarize(e)
			if errors.Is(err, fs.ErrNotExist) { // removed since
				continue
			}
			if err == nil { // else it may be readable the next time
				fresh[e] = sum
			}
		}
		if sum.State != Complete && busy(s.file(e.id)) {
			sum.State, sum.Headline = Running, ""
		}
		list = append(list, sum)
	}
	s.writeIndex(files, fresh)
	return list, nil
}

// summarize reads one run's file without holding its results.
func (s *Store) summarize(e entry) (Summary, error) {
	sum := Summary{ID: e.id, State: Cut}
	f, err := os.Open(s.file(e.id))
	if err != nil {
		return Summary{ID: e.id, State: Damaged, Headline: err.Error()}, err
	}
	defer f.Close()
	var d model.Document
	t, err := scan(f, e.id+suffix, func(n int, line []byte) error {
		at := fmt.Sprintf("%s:%d", e.id+suffix, n)
		if n == 1 {
			return readHeader(line, at, &d)
		}
		var rec record[struct {
			State model.State `json:"state"`
		}]
		if err := decodeRecord(line, at, &rec); err != nil {
			return err
		}
		sum.State, sum.Headline = Cut, ""
		if rec.Checkpoint != nil {
			return nil
		}
		if rec.Result != nil {
			if rec.Result.State != model.Aborted {
				sum.Trials++
			}
			return nil
		}
		if rec.End.Complete {
			sum.State = Complete
		}
		sum.Headline = verdict(rec.End.Findings)
		return nil
	})
	if err == nil && t.good == 0 {
		err = errors.New("was cut before its first line was whole")
	}
	sum.Started, sum.Command, sum.Target = d.Started, d.Plan.Command, d.Plan.Target
	if err != nil {
		sum.State, sum.Headline = Damaged, err.Error()
	}
	return sum, nil
}

func verdict(findings []model.Finding) string {
	for _, f := range findings {
		if f.Kind == "verdict" {
			return f.Text
		}
	}
	return ""
}
