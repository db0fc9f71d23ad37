package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"pelt/internal/outfile"
	"pelt/model"
	"pelt/words"
)

// The states of a stored run.
const (
	Complete = "complete" // nothing is left to do
	Cut      = "cut"      // some trials are left: it can be resumed
	Running  = "running"  // a process is writing it
	Damaged  = "damaged"  // it cannot be read; Trouble says why
)

// Summary is one line about a stored run.
type Summary struct {
	ID      string    `json:"id"`
	Started time.Time `json:"started"`
	Command string    `json:"command"`
	Target  string    `json:"target"`
	Trials  *int      `json:"trials,omitempty"` // finished ones; nil while the run's writer has not said so
	State   string    `json:"state"`
	Trouble string    `json:"trouble,omitempty"`
	Why     error     `json:"-"` // Trouble, to be said in another language
	// Headline is the first answer of the run: a code, figures and words, which are said in the language of the reader.
	Headline *model.Finding `json:"headline,omitempty"`
	Label
}

// maxHeadline keeps a summary short; tailBytes is what List reads of a file to find it.
const (
	maxHeadline = 2 << 10 // bytes
	tailBytes   = 4 << 10
)

func summaryOf(d model.Document, l Label) Summary {
	sum := Summary{Label: l, ID: d.ID, Started: d.Started, Command: d.Plan.Command, Target: d.Plan.Target, State: Cut,
		Trials: new(int)}
	if d.Complete {
		sum.State = Complete
	}
	for _, r := range d.Results {
		if r.State != model.Aborted {
			*sum.Trials++
		}
	}
	if len(d.Findings) > 0 {
		if text, err := json.Marshal(d.Findings[0]); err == nil && len(text) <= maxHeadline {
			sum.Headline = &d.Findings[0]
		}
	}
	return sum
}

// List returns all stored runs, oldest first. Of a run that ended it reads the summary at the
// end of its file, of one that was cut only the first line.
func (s *Store) List() ([]Summary, error) {
	ids, err := s.ids()
	if err != nil {
		return nil, err
	}
	list := []Summary{}
	for _, id := range ids {
		if sum := s.Summary(id); sum.ID != "" {
			list = append(list, sum)
		}
	}
	return list, nil
}

// Summary returns what is cheaply known of a run; nothing if it has just been removed.
func (s *Store) Summary(id string) Summary {
	if !validID(id) {
		return Summary{}
	}
	sum, err := readSummary(s.file(id))
	if errors.Is(err, fs.ErrNotExist) {
		return Summary{}
	}
	if err != nil {
		sum = Summary{Started: startOf(id), State: Damaged, Trouble: err.Error(), Why: err}
	}
	sum.ID = id // whatever a copied file says
	if sum.State != Complete && busy(s.file(id)) {
		sum.State, sum.Headline = Running, nil
	}
	return sum
}

func readSummary(path string) (Summary, error) {
	f, err := os.Open(path)
	if err != nil {
		return Summary{}, err
	}
	defer f.Close()
	if sum, ok := lastSummary(f); ok {
		return sum, nil
	}
	line, err := outfile.ReadLine(bufio.NewReader(f), maxLine)
	switch {
	case errors.Is(err, io.EOF) && !json.Valid(line):
		return Summary{}, errNoRun
	case len(line) == 0:
		return Summary{}, words.Errorf("its first line cannot be read: %w", err)
	}
	var head struct {
		Format  string
		Started time.Time
		Plan    struct{ Command, Target string }
	}
	_ = json.Unmarshal(line, &head) // without a format it is no header
	if err := checkHeader(line, head.Format); err != nil {
		return Summary{}, err
	}
	return Summary{Started: head.Started, Command: head.Plan.Command, Target: head.Plan.Target, State: Cut}, nil
}

// lastSummary returns the summary that a file ends with.
func lastSummary(f *os.File) (Summary, bool) {
	info, err := f.Stat()
	if err != nil {
		return Summary{}, false
	}
	b := make([]byte, min(info.Size(), tailBytes))
	if _, err := f.ReadAt(b, info.Size()-int64(len(b))); err != nil {
		return Summary{}, false
	}
	line := b[bytes.LastIndexByte(bytes.TrimSuffix(b, []byte{'\n'}), '\n')+1:]
	if !bytes.HasPrefix(line, []byte(`{"summary":`)) || whole(line) != nil {
		return Summary{}, false
	}
	var rec record
	if err := json.Unmarshal(line, &rec); err != nil || rec.Summary == nil {
		return Summary{}, false
	}
	if rec.Summary.Label.Check() != nil { // of a file from outside
		rec.Summary.Label = Label{}
	}
	return *rec.Summary, true
}
