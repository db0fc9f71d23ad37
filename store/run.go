package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"pelt/model"
)

// Run is a stored run that is being written. Only one process at a time holds
// it. Its methods may be called concurrently.
type Run struct {
	id string

	mu     sync.Mutex
	file   *os.File // nil once closed
	length int64    // of all whole lines
	broken error    // why nothing more can be appended
}

// ID is the run's name, by which Load and Resume find it.
func (r *Run) ID() string { return r.id }

// Create starts a stored run with the document's header; the document's ID is
// ignored and a new one made. It returns when the header is on the disk.
func (s *Store) Create(doc model.Document) (*Run, error) {
	if err := os.MkdirAll(s.runs(), 0o700); err != nil {
		return nil, fmt.Errorf("store run: %w", err)
	}
	f, id, err := s.newFile(doc)
	if err != nil {
		return nil, fmt.Errorf("store run: %w", err)
	}
	r := &Run{id: id, file: f}
	line, err := encodeLine(model.Finite(header{LogFormat, id, doc.Started, doc.Tool, doc.Plan, doc.Host, doc.Lab, doc.PathMTU, doc.Router}))
	if err == nil {
		err = r.write(line)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store run: %w", err), r.Close(), os.Remove(f.Name()))
	}
	syncDir(s.runs())
	return r, nil
}

// newFile makes an empty file under an id that nobody else has, and locks it.
func (s *Store) newFile(doc model.Document) (*os.File, string, error) {
	for later := range maxIDTries {
		id := idAt(doc.Started, later)
		f, err := openLocked(s.file(id), os.O_RDWR|os.O_CREATE|os.O_EXCL)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		return f, id, err
	}
	return nil, "", fmt.Errorf("%d runs of %s are there already", maxIDTries, doc.Started.Format("15:04:05"))
}

// Resume opens a stored run to append to it, and returns what it holds. What a
// dead writer left half written is cut off. ref is an id, a prefix or last.
func (s *Store) Resume(ref string) (*Run, model.Document, error) {
	if isPath(ref) {
		return nil, model.Document{}, fmt.Errorf("resume %s: only a run that is kept can be resumed: give its id", ref)
	}
	id, err := s.find(ref)
	if err != nil {
		return nil, model.Document{}, err
	}
	f, err := openLocked(s.file(id), os.O_RDWR)
	if err != nil {
		return nil, model.Document{}, fmt.Errorf("resume run %s: %w", id, err)
	}
	r := &Run{id: id, file: f}
	doc, err := r.load()
	if err != nil {
		return nil, model.Document{}, errors.Join(fmt.Errorf("resume run %s: %w", id, err), r.Close())
	}
	return r, doc, nil
}

// load reads the run and leaves the file ready for the next line.
func (r *Run) load() (model.Document, error) {
	doc, t, err := readLog(r.file, r.file.Name())
	if err != nil {
		return doc, err
	}
	if err := doc.Plan.Check(); err != nil {
		return doc, fmt.Errorf("%s:1: plan.%w", r.file.Name(), err)
	}
	r.length = t.good
	if t.cut > 0 {
		if err := r.file.Truncate(t.good); err != nil {
			return doc, err
		}
	}
	if _, err := r.file.Seek(t.good, io.SeekStart); err != nil {
		return doc, err
	}
	if t.open {
		return doc, r.write([]byte{'\n'})
	}
	return doc, nil
}

// Append stores a finished trial. It returns when the trial is on the disk;
// after an error the run holds all trials before it and may be tried again.
func (r *Run) Append(result model.Result) error {
	return r.add(record[model.Result]{Result: &result}, maxFile)
}

// Checkpoint stores what is known of a trial that still runs, until its result takes
// its place. It returns when that is on the disk. Checkpoints leave room for the result.
func (r *Run) Checkpoint(c model.Checkpoint) error {
	return r.add(record[model.Result]{Checkpoint: &c}, maxFile/2)
}

// Discard removes a run that holds nothing, and closes it.
func (r *Run) Discard() error {
	r.mu.Lock()
	name := ""
	if r.file != nil {
		name = r.file.Name()
	}
	r.mu.Unlock()
	err := r.Close()
	if name != "" {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// End stores how this session with the run ended: what doc says of the whole.
func (r *Run) End(doc model.Document) error {
	return r.add(record[model.Result]{End: &end{doc.Complete, doc.Findings, doc.Warnings, doc.Router}}, maxFile)
}

// add appends a line unless the file would then be longer than most.
func (r *Run) add(rec record[model.Result], most int64) error {
	line, err := encodeLine(model.Finite(rec))
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if err = readable(r.length, len(line), most); err == nil {
			err = r.write(line)
		}
	}
	if err != nil {
		return fmt.Errorf("store run %s: %w", r.id, err)
	}
	return nil
}

// readable refuses a line with which a run could not be read again.
func readable(length int64, line int, most int64) error {
	switch {
	case line > maxLine:
		return fmt.Errorf("a line of %d bytes is longer than the %d that are read again", line, maxLine)
	case length+int64(line) > most:
		return fmt.Errorf("its file is as long as may be: %d bytes", length)
	}
	return nil
}

// write puts one line at the end with one call. A line that did not get there
// whole (a full disk) is taken back, so that the next one does not follow it.
func (r *Run) write(line []byte) error {
	switch {
	case r.file == nil:
		return os.ErrClosed
	case r.broken != nil:
		return r.broken
	}
	_, err := r.file.Write(line)
	if err == nil {
		err = r.file.Sync()
	}
	if err == nil {
		r.length += int64(len(line))
		return nil
	}
	undo := r.file.Truncate(r.length)
	if _, e := r.file.Seek(r.length, io.SeekStart); undo == nil {
		undo = e
	}
	if undo != nil {
		r.broken = fmt.Errorf("an earlier line could not be taken back: %w", undo)
	}
	return err
}

// Close releases the run; it may be called more than once.
func (r *Run) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}

func filenameIsLog(name string) bool { return strings.HasSuffix(filepath.Base(name), suffix) }

// syncDir makes a new file's name durable. Some systems cannot; the file's
// content is safe all the same.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}
