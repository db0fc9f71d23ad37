// Package store keeps runs on disk, one file of JSON lines a run, and finds
// them again.
//
// Documents and results come in and are on the disk when a call returns;
// documents and summaries go out. A power cut costs at most the trial that was
// being written. It never interprets a measurement, and its index is only a
// cache: the files are the truth.
package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"pelt/model"
)

// LogFormat is the format of a stored run. Its first line is the header
// {"format", "id", "started", "tool", "plan", "host", "lab"}, then comes a line
// {"result": ...} for each finished trial and a line {"end": ...} each time a
// session with the run ended of itself. Results after the last end are of a
// session that was cut.
const LogFormat = "pelt/runlog/1"

const suffix = ".jsonl"

// ErrNotFound is wrapped when a reference names no run, ErrBusy when another
// process is writing the run.
var (
	ErrNotFound = errors.New("no such run")
	ErrBusy     = errors.New("another pelt is writing this run")
)

// Store is a directory of runs. Its methods may be called concurrently, and
// several processes may use one directory.
type Store struct {
	dir       string
	indexTime time.Duration // that one look into the index may cost; a busy one is waited for a third of it
}

// indexTimeout bounds what a broken or busy index may cost.
const indexTimeout = 3 * time.Second

// Dir is the directory that Open("") opens: $PELT_DATA, else the place where
// the operating system keeps a user's data.
func Dir() (string, error) {
	if d := os.Getenv("PELT_DATA"); d != "" {
		return d, nil
	}
	if d := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "pelt"), nil
	}
	if d := os.Getenv("LocalAppData"); runtime.GOOS == "windows" && d != "" {
		return filepath.Join(d, "pelt"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find a place for runs: %w; set PELT_DATA to a directory", err)
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "pelt"), nil
	}
	return filepath.Join(home, ".local", "share", "pelt"), nil
}

// Open opens the store in dir, "" for the user's own. It writes nothing: a
// directory that does not exist yet is made by the first run.
func Open(dir string) (*Store, error) {
	if dir == "" {
		var err error
		if dir, err = Dir(); err != nil {
			return nil, err
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &Store{dir: dir, indexTime: indexTimeout}
	info, err := os.Stat(s.runs())
	switch {
	case errors.Is(err, os.ErrNotExist):
		return s, nil
	case err != nil:
		return nil, fmt.Errorf("open store: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("open store: %s is not a directory", s.runs())
	}
	return s, nil
}

func (s *Store) runs() string          { return filepath.Join(s.dir, "runs") }
func (s *Store) file(id string) string { return filepath.Join(s.runs(), id+suffix) }
func (s *Store) indexFile() string     { return filepath.Join(s.dir, "index.sqlite") }
func (s *Store) entries() ([]entry, error) {
	all, _, err := s.scanDir()
	return all, err
}

// Foreign counts the files among the runs that are not runs; they are left alone.
func (s *Store) Foreign() (int, error) {
	_, foreign, err := s.scanDir()
	return foreign, err
}

// entry is one run's file.
type entry struct {
	id       string
	size     int64
	modified int64 // ns since 1970
}

// scanDir lists the runs' files, oldest first.
func (s *Store) scanDir() (runs []entry, foreign int, err error) {
	files, err := os.ReadDir(s.runs())
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("list runs: %w", err)
	}
	for _, f := range files {
		id, ok := strings.CutSuffix(f.Name(), suffix)
		info, err := f.Info()
		if errors.Is(err, os.ErrNotExist) { // removed since
			continue
		}
		if err != nil || !ok || !validID(id) || !info.Mode().IsRegular() {
			foreign++
			continue
		}
		runs = append(runs, entry{id, info.Size(), info.ModTime().UnixNano()})
	}
	slices.SortFunc(runs, func(a, b entry) int { return strings.Compare(a.id, b.id) })
	return runs, foreign, nil
}

// alphabet is Crockford's base 32: no letter looks like a digit, and text order
// is number order.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

const (
	idTime     = "20060102-1504"
	idMoments  = 32 * 32 * 32 // moments of a minute, 1.8 ms each
	idLength   = len(idTime) + 1 + 3
	maxIDTries = 1000
)

// idAt names a moment: short, typeable, and in order of time.
func idAt(t time.Time, later int) string {
	t = t.UTC()
	n := int(t.Sub(t.Truncate(time.Minute))*idMoments/time.Minute) + later
	if n >= idMoments {
		t, n = t.Truncate(time.Minute).Add(time.Minute), n-idMoments
	}
	return t.Format(idTime) + "-" + string([]byte{alphabet[n>>10&31], alphabet[n>>5&31], alphabet[n&31]})
}

func validID(id string) bool {
	if len(id) != idLength || strings.Trim(id[len(idTime)+1:], alphabet) != "" {
		return false
	}
	_, err := time.Parse(idTime+"-", id[:len(idTime)+1])
	return err == nil
}

// find returns the id that a reference means: an id, a prefix of one, or last.
func (s *Store) find(ref string) (string, error) {
	all, err := s.entries()
	if err != nil {
		return "", err
	}
	if ref == "last" {
		for _, e := range slices.Backward(all) {
			if e.size > 0 { // else its writer was cut before the header
				return e.id, nil
			}
		}
		return "", fmt.Errorf("run last: no run is kept yet in %s: %w", s.dir, ErrNotFound)
	}
	var found []string
	for _, e := range all {
		if ref != "" && strings.HasPrefix(e.id, ref) {
			found = append(found, e.id)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("run %q: %w; pelt list shows what is kept, last is the newest", ref, ErrNotFound)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("run %q: could be %s or %s (%d in all); type more of it", ref, found[0], found[1], len(found))
}

// Load reads the run that ref means: an id, a prefix of one, last, or the path
// of a file that --json wrote or of a stored run.
func (s *Store) Load(ref string) (model.Document, error) {
	if isPath(ref) {
		return loadFile(ref)
	}
	id, err := s.find(ref)
	if errors.Is(err, ErrNotFound) {
		if _, statErr := os.Stat(ref); statErr == nil {
			return loadFile(ref)
		}
	}
	if err != nil {
		return model.Document{}, err
	}
	return loadFile(s.file(id))
}

func isPath(ref string) bool {
	return strings.ContainsRune(ref, '/') || strings.ContainsRune(ref, filepath.Separator) ||
		strings.HasSuffix(ref, ".json") || strings.HasSuffix(ref, suffix)
}
