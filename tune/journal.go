package tune

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"pelt/internal/outfile"
)

// Step is the change of one value.
type Step struct {
	Knob  string `json:"knob"`
	Place Place  `json:"place"`
	Old   string `json:"old"` // as the kernel gave it
	New   string `json:"new"`
	Index int    `json:"index,omitempty"` // of the interface
	// Queues are settings of queues that may change with this one and are restored after it, and after its undoing.
	Queues []Saved `json:"beside,omitempty"`
}

// Saved is a value as it was.
type Saved struct {
	Place Place  `json:"place"`
	Old   string `json:"old"`
}

// Apply is one change of settings, with every old value.
type Apply struct {
	ID        int       `json:"id"`
	Time      time.Time `json:"time"`
	Run       string    `json:"run,omitempty"`  // that it follows from
	Root      string    `json:"root,omitempty"` // of a tree that stands for a host
	Boot      string    `json:"boot,omitempty"`
	Namespace uint64    `json:"namespace,omitempty"` // network namespace
	Tried     bool      `json:"tried,omitempty"`     // by a trial, which takes it back
	Steps     []Step    `json:"steps"`

	touched, undone []bool
	made            bool
}

// record is one line; exactly one field is set.
type record struct {
	Format string  `json:"format,omitempty"`
	Apply  *Apply  `json:"apply,omitempty"`
	Touch  *stepID `json:"touch,omitempty"`
	Made   int     `json:"made,omitempty"`
	Undone *stepID `json:"undone,omitempty"`
}

type stepID struct {
	Apply int `json:"apply"`
	Step  int `json:"step"`
}

// Bounds of a journal: a host's knobs many times over.
const (
	maxJournalLine = 4 << 20
	maxApplies     = 10000
	maxSteps       = 4096
)

// readJournal reads all lines that are whole. An error names the line and what would be right.
func readJournal(r io.Reader) (list []*Apply, err error) {
	in := bufio.NewReaderSize(r, 1<<16)
	for n := 1; ; n++ {
		line, err := outfile.ReadLine(in, maxJournalLine)
		if errors.Is(err, io.EOF) { // a line that was cut is none
			return list, nil
		}
		var rec record
		if err == nil {
			if err = strictJSON(line, &rec); err == nil {
				list, err = rec.enter(list, n)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
}

func strictJSON(line []byte, rec *record) error {
	d := json.NewDecoder(bytes.NewReader(line))
	if err := d.Decode(rec); err != nil {
		return errors.New("is no line of a journal; a host's journal is mended by hand, or removed if its settings shall stay")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("holds more than one value")
	}
	return nil
}

// enter adds what a line says.
func (rec record) enter(list []*Apply, n int) ([]*Apply, error) {
	if n == 1 {
		if rec.Format != JournalFormat {
			return nil, fmt.Errorf("want format %q, not %.40q: another pelt wrote it", JournalFormat, rec.Format)
		}
		return list, nil
	}
	step := func(id *stepID) (*Apply, error) {
		if id.Apply < 1 || id.Apply > len(list) || id.Step < 0 || id.Step >= len(list[id.Apply-1].Steps) {
			return nil, fmt.Errorf("speaks of step %d of change %d, which is not there", id.Step, id.Apply)
		}
		return list[id.Apply-1], nil
	}
	switch {
	case rec.Apply != nil:
		a := rec.Apply
		if err := a.check(len(list)); err != nil {
			return nil, err
		}
		a.touched, a.undone = make([]bool, len(a.Steps)), make([]bool, len(a.Steps))
		return append(list, a), nil
	case rec.Touch != nil:
		a, err := step(rec.Touch)
		if err == nil {
			a.touched[rec.Touch.Step], a.undone[rec.Touch.Step] = true, false
		}
		return list, err
	case rec.Undone != nil:
		a, err := step(rec.Undone)
		if err == nil {
			a.undone[rec.Undone.Step] = true
		}
		return list, err
	case rec.Made > 0 && rec.Made <= len(list):
		list[rec.Made-1].made = true
		return list, nil
	}
	return nil, errors.New("says nothing that a journal says")
}

// check refuses a change that cannot follow so many others.
func (a *Apply) check(before int) error {
	switch {
	case before >= maxApplies:
		return fmt.Errorf("holds %d changes and takes no more; pelt tune revert takes them back", before)
	case a.ID != before+1 || len(a.Steps) > maxSteps:
		return fmt.Errorf("is change %d with %d steps; want change %d with at most %d", a.ID, len(a.Steps), before+1, maxSteps)
	}
	for _, s := range a.Steps {
		if err := s.check(); err != nil {
			return err
		}
	}
	return nil
}

// journal is the file, open for more lines.
type journal struct {
	path string
	file *outfile.Lines // nil until the first line
	list []*Apply
}

const journalName = "journal.jsonl"

func openJournal(dir string) (*journal, error) {
	j := &journal{path: filepath.Join(dir, journalName)}
	f, err := os.Open(j.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return j, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("journal %s: only root may read it", j.path)
	}
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", j.path, outfile.Cause(err))
	}
	defer f.Close()
	if j.list, err = readJournal(f); err != nil {
		return nil, fmt.Errorf("journal %s, %w", j.path, err)
	}
	return j, nil
}

// add makes a record last before it returns. It writes none that could not be read again.
func (j *journal) add(rec record) error {
	line, err := json.Marshal(rec)
	if err == nil && rec.Apply != nil {
		err = rec.Apply.check(len(j.list))
	}
	if err == nil && len(line) >= maxJournalLine {
		err = fmt.Errorf("a change of %d B is longer than %d B; make fewer settings at a time", len(line), maxJournalLine)
	}
	if err != nil {
		return fmt.Errorf("journal %s: %w", j.path, err)
	}
	if j.file == nil {
		if err := j.begin(); err != nil {
			return fmt.Errorf("journal %s: %w", j.path, outfile.Cause(err))
		}
	}
	if err := j.file.Append(append(line, '\n')); err != nil {
		return fmt.Errorf("journal %s: %w", j.path, outfile.Cause(err))
	}
	j.list, err = rec.enter(j.list, 2)
	return err
}

// begin opens the file, cuts off a line that was not finished, and writes the header.
func (j *journal) begin() error {
	f, err := os.OpenFile(j.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	b, err := io.ReadAll(f)
	file := &outfile.Lines{File: f, Length: int64(bytes.LastIndexByte(b, '\n') + 1)}
	if err == nil {
		err = f.Truncate(file.Length)
	}
	if err == nil && file.Length == 0 {
		err = file.Append([]byte(`{"format":"` + JournalFormat + `"}` + "\n"))
	}
	if err = errors.Join(err, f.Sync(), outfile.SyncDir(filepath.Dir(j.path))); err != nil {
		return errors.Join(err, f.Close())
	}
	j.file = file
	return nil
}

// end removes a journal of which nothing is left to do.
func (j *journal) end() error {
	if err := os.Remove(j.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("journal %s: %w", j.path, outfile.Cause(err))
	}
	j.list = nil
	return errors.Join(j.close(), outfile.SyncDir(filepath.Dir(j.path)))
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}
