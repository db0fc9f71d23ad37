package store

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"pelt/internal/outfile"
	"pelt/model"
	"pelt/words"
)

// Run is a stored run that is being written. Only one process at a time holds
// it. Its methods may be called concurrently.
type Run struct {
	id     string
	header model.Document // of which only the header counts
	label  Label

	mu   sync.Mutex
	file *outfile.Lines // nil once closed
}

// ErrDisk is wrapped when the disk did not take a line: the file is as before, and a later try may succeed.
var ErrDisk = errors.New("the disk does not take it")

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
	r := &Run{id: id, header: doc, file: &outfile.Lines{File: f}}
	line, err := encodeLine(model.Finite(header{logFormat, id, doc.Started, doc.Tool, doc.Arguments, doc.Plan,
		doc.Host, doc.Lab,
		doc.PathMTU, doc.Router}))
	if err == nil {
		err = r.file.Append(line)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store run: %w", err), r.Discard())
	}
	_ = outfile.SyncDir(s.runs()) // without it only the name may be lost
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
	r, err := s.lock(ref)
	if err != nil {
		return nil, model.Document{}, fmt.Errorf("resume %w", err)
	}
	doc, err := r.load()
	if err != nil {
		return nil, model.Document{}, errors.Join(fmt.Errorf("resume run %s: %w", r.id, err), r.Close())
	}
	return r, doc, nil
}

// lock opens the file of a stored run for this process alone. ref is an id, a prefix or last.
func (s *Store) lock(ref string) (*Run, error) {
	id, err := s.Find(ref)
	if err != nil {
		return nil, err
	}
	f, err := openLocked(s.file(id), os.O_RDWR)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	return &Run{id: id, file: &outfile.Lines{File: f}}, nil
}

// Remove deletes the runs that refs mean (ids, prefixes, last), all or none: none if one of
// them is not there or is being written. It returns the ids of those it deleted.
func (s *Store) Remove(refs ...string) (removed []string, err error) {
	locked := map[string]*Run{}
	defer func() {
		for _, r := range locked {
			err = errors.Join(err, r.Close())
		}
	}()
	var ids []string
	for _, ref := range refs {
		if id, err := s.Find(ref); err == nil && locked[id] != nil {
			continue
		}
		r, err := s.lock(ref)
		if err != nil {
			return nil, fmt.Errorf("remove %w", err)
		}
		locked[r.id], ids = r, append(ids, r.id)
	}
	for _, id := range ids {
		if err := locked[id].Discard(); err != nil {
			return removed, err
		}
		removed = append(removed, id)
	}
	return removed, nil
}

// load reads the run and leaves the file ready for the next line.
func (r *Run) load() (model.Document, error) {
	doc, t, err := readLog(r.file, r.file.Name())
	if err != nil {
		return doc, err
	}
	if err := doc.Plan.Check(); err != nil {
		return doc, &model.FileError{Name: r.file.Name(), Line: 1, Err: words.Errorf("%s.%w", "plan", err)}
	}
	doc.ID = r.id // whatever a copied file says
	r.header, r.label, r.file.Length = doc, t.label, t.good
	if t.cut > 0 {
		err = r.file.Truncate(t.good)
	}
	if err == nil && t.open {
		err = r.file.Append([]byte{'\n'})
	}
	return doc, err
}

// Append stores a finished trial. It returns when the trial is on the disk.
func (r *Run) Append(result model.Result) error { return r.add(maxFile, record{Result: &result}) }

// Checkpoint stores what is known of a trial that still runs, until its result takes
// its place. Checkpoints leave room for the result.
func (r *Run) Checkpoint(c model.Checkpoint) error {
	return r.add(maxFile/2, record{Checkpoint: &c})
}

// End stores how this session with the run ended: what doc says of the whole. The first of
// its findings is the headline of the run in lists; no other is stored.
func (r *Run) End(doc model.Document) error {
	doc.ID, doc.Started, doc.Plan = r.id, r.header.Started, r.header.Plan
	sum := summaryOf(doc, r.label)
	return r.add(maxFile, record{End: &end{doc.Complete, doc.Warnings, doc.Router}}, record{Summary: &sum})
}

// add appends lines in one write. Of a run with a name or tags the last one is a summary: lists look for them there.
func (r *Run) add(most int64, records ...record) error {
	if r.label.Text() != "" && records[len(records)-1].Summary == nil {
		records = append(records, record{Summary: &Summary{ID: r.id, Started: r.header.Started,
			Command: r.header.Plan.Command, Target: r.header.Plan.Target, State: Cut, Label: r.label}})
	}
	var lines []byte
	for _, rec := range records {
		line, err := encodeLine(model.Finite(rec))
		if err != nil {
			return fmt.Errorf("store run %s: %w", r.id, err)
		}
		lines = append(lines, line...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return fmt.Errorf("store run %s: %w", r.id, os.ErrClosed)
	}
	if err := readable(r.file.Length, len(lines), most); err != nil {
		return fmt.Errorf("store run %s: %w", r.id, err)
	}
	if err := r.file.Append(lines); err != nil {
		return fmt.Errorf("store run %s: %w: %w", r.id, ErrDisk, err)
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

// Discard removes the run, and closes it.
func (r *Run) Discard() error { return r.close(os.Remove) }

// Close releases the run; it may be called more than once.
func (r *Run) Close() error { return r.close(func(string) error { return nil }) }

// close closes the run after a last act on its file, which is locked until then.
func (r *Run) close(last func(path string) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return nil
	}
	err := errors.Join(last(r.file.Name()), closeLocked(r.file.File))
	r.file = nil
	return err
}
