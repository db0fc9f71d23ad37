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
	"slices"
	"time"

	"pelt/internal/outfile"
)

// Step is one value that pelt changed, or is about to.
type Step struct {
	Knob   string `json:"knob"`
	Place  Place  `json:"place"`
	Old    string `json:"old"`    // before pelt's first change, as the kernel gave it
	Before string `json:"before"` // before the latest change
	New    string `json:"new"`
	Index  int    `json:"index,omitempty"` // of the interface
	// Queues are settings of queues that may change with this one and are restored after it, and after its undoing.
	Queues    []Saved   `json:"queues,omitempty"`
	Time      time.Time `json:"time"`
	Run       string    `json:"run,omitempty"` // that it follows from
	Boot      string    `json:"boot,omitempty"`
	Namespace uint64    `json:"namespace,omitempty"` // network namespace of a setting that is one's own
	Made      bool      `json:"made,omitempty"`
	Undone    bool      `json:"undone,omitempty"`
}

// Saved is a value as it was.
type Saved struct {
	Place Place  `json:"place"`
	Old   string `json:"old"`
}

// Bounds of a journal: a host's knobs many times over.
const (
	maxJournalLine  = 4 << 20
	maxJournalLines = 100_000
)

// readJournal reads all lines that are whole, and counts them. An error names the line and what would be right.
func readJournal(r io.Reader) (list []Step, n int, err error) {
	in := bufio.NewReaderSize(r, 1<<16)
	for ; ; n++ {
		line, err := outfile.ReadLine(in, maxJournalLine)
		if errors.Is(err, io.EOF) { // a line that was cut is none
			return list, n, nil
		}
		if err == nil && n == 0 {
			err = checkHeader(line)
		} else if err == nil {
			var s Step
			if err = parseJSON(line, &s); err == nil {
				err = s.check()
			}
			list = enter(list, s)
		}
		if err == nil && n >= maxJournalLines {
			err = errors.New("is one too many")
		}
		if err != nil {
			return nil, n, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
}

func checkHeader(line []byte) error {
	var header struct{ Format string }
	if err := parseJSON(line, &header); err != nil {
		return err
	}
	if header.Format != JournalFormat {
		return fmt.Errorf("want format %q, not %.40q: revert with the version of pelt that wrote it", JournalFormat,
			header.Format)
	}
	return nil
}

func parseJSON(line []byte, to any) error {
	if json.Unmarshal(line, to) != nil {
		return errors.New("is no line of a journal; a host's journal is mended by hand, or removed if its " +
			"settings shall stay")
	}
	return nil
}

// enter puts a step last, in place of an earlier one of its place.
func enter(list []Step, s Step) []Step {
	list = slices.DeleteFunc(list, func(o Step) bool { return o.Place == s.Place && o.Namespace == s.Namespace })
	if s.Undone {
		return list
	}
	return append(list, s)
}

// journal is the file, open for more lines.
type journal struct {
	path  string
	file  *outfile.Lines // nil until the first line
	steps []Step         // that stand, the oldest first
	lines int
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
	if j.steps, j.lines, err = readJournal(f); err != nil {
		return nil, fmt.Errorf("journal %s, %w", j.path, err)
	}
	return j, nil
}

// add makes steps last before it returns. It writes none that could not be read again.
func (j *journal) add(steps ...Step) error {
	if err := j.write(steps); err != nil {
		return fmt.Errorf("journal %s: %w", j.path, outfile.Cause(err))
	}
	for _, s := range steps {
		j.steps = enter(j.steps, s)
	}
	j.lines += len(steps)
	return nil
}

func (j *journal) write(steps []Step) error {
	var lines []byte
	for _, s := range steps {
		line, err := json.Marshal(s)
		if err == nil {
			err = s.check()
		}
		if err == nil && len(line) >= maxJournalLine {
			err = fmt.Errorf("a line of %d B is longer than %d B", len(line), maxJournalLine)
		}
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	if j.lines+len(steps) >= maxJournalLines {
		return fmt.Errorf("holds %d lines and takes no more; pelt tune revert takes the changes back", j.lines)
	}
	if j.file == nil {
		if err := j.begin(); err != nil {
			return err
		}
	}
	return j.file.Append(lines)
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
		j.lines = 1
		err = file.Append([]byte(`{"format":"` + JournalFormat + `"}` + "\n"))
	}
	if err = errors.Join(err, f.Sync(), outfile.SyncDir(filepath.Dir(j.path))); err != nil {
		return errors.Join(err, f.Close())
	}
	j.file = file
	return nil
}

// endIfEmpty removes a journal of which nothing is left to take back.
func (j *journal) endIfEmpty() error {
	if len(j.steps) > 0 {
		return nil
	}
	if err := os.Remove(j.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("journal %s: %w", j.path, outfile.Cause(err))
	}
	j.lines = 0
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
