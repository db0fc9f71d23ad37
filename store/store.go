// Package store keeps runs on disk, one file of JSON lines a run, and finds them again.
//
// Documents and results come in and are on the disk when a call returns; documents and summaries go out. A power
// cut costs at most the trial that was being written, a damaged line at most what that line holds. It never
// interprets a measurement.
package store

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"pelt/model"
	"pelt/words"
)

const suffix = ".jsonl"

// ErrNotFound is wrapped when a reference names no run, ErrAmbiguous when it names
// several, and ErrBusy when another process is writing the run.
var (
	ErrNotFound  = errors.New("no such run")
	ErrAmbiguous = errors.New("is the beginning of several ids")
	ErrBusy      = errors.New("another pelt is writing this run")
)

// Store is a directory of runs. Its methods may be called concurrently, and
// several processes may use one directory.
type Store struct{ dir string }

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
		return "", words.Errorf("find a place for runs: %w; set PELT_DATA to a directory", err)
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
		return nil, words.Errorf("open store: %w", err)
	}
	s := &Store{dir}
	info, err := os.Stat(s.runs())
	switch {
	case errors.Is(err, os.ErrNotExist):
		return s, nil
	case err != nil:
		return nil, words.Errorf("open store: %w", err)
	case !info.IsDir():
		return nil, words.Errorf("open store: %s is not a directory", s.runs())
	}
	return s, nil
}

func (s *Store) runs() string          { return filepath.Join(s.dir, "runs") }
func (s *Store) file(id string) string { return filepath.Join(s.runs(), id+suffix) }

// ids lists the runs, oldest first. Other files in their directory are left alone.
func (s *Store) ids() ([]string, error) {
	files, err := os.ReadDir(s.runs()) // in order of name, and so of time
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, words.Errorf("list runs: %w", err)
	}
	var list []string
	for _, f := range files {
		if id, ok := strings.CutSuffix(f.Name(), suffix); ok && validID(id) && f.Type().IsRegular() {
			list = append(list, id)
		}
	}
	return list, nil
}

// alphabet is Crockford's base 32: no letter looks like a digit, and text order is number order.
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
	return len(id) == idLength && strings.Trim(id[len(idTime)+1:], alphabet) == "" && !startOf(id).IsZero()
}

// startOf returns the minute that an id names, the zero time if it names none.
func startOf(id string) time.Time {
	t, err := time.Parse(idTime+"-", id[:len(idTime)+1])
	if err != nil {
		return time.Time{}
	}
	return t
}

// Find returns the id that a reference means: an id, a prefix of one, or last.
func (s *Store) Find(ref string) (string, error) {
	if isPath(ref) {
		return "", words.Errorf("run %s: %w in %s: give an id that pelt list shows, not a file", ref, ErrNotFound,
			s.dir)
	}
	all, err := s.ids()
	if err != nil {
		return "", err
	}
	if ref == "last" {
		for _, id := range slices.Backward(all) {
			// else its writer was cut before the header
			if info, err := os.Stat(s.file(id)); err == nil && info.Size() > 0 {
				return id, nil
			}
		}
		return "", words.Errorf("run last: %w: none is kept yet in %s", ErrNotFound, s.dir)
	}
	var found []string
	for _, id := range all {
		if ref != "" && strings.HasPrefix(id, ref) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return "", words.Errorf("run %q: %w; pelt list shows what is kept, last is the newest", ref, ErrNotFound)
	case 1:
		return found[0], nil
	}
	return "", words.Errorf("run %q: %w (%s, %s, %d in all); type more of it", ref, ErrAmbiguous, found[0], found[1],
		len(found))
}

// Load reads the run that ref means: an id, a prefix of one, last, or the path
// of a file that --json wrote or of a stored run.
func (s *Store) Load(ref string) (model.Document, error) {
	if isPath(ref) {
		return loadFile(ref)
	}
	id, err := s.Find(ref)
	if errors.Is(err, ErrNotFound) {
		if _, statErr := os.Stat(ref); statErr == nil {
			return loadFile(ref)
		}
	}
	if err != nil {
		return model.Document{}, err
	}
	doc, err := loadFile(s.file(id))
	doc.ID = id // whatever a copied file says
	return doc, err
}

// Size is the length of a run's file in bytes. It grows with the run.
func (s *Store) Size(id string) (int64, error) {
	if !validID(id) {
		return 0, words.Errorf("run %q: %w", id, ErrNotFound)
	}
	info, err := os.Stat(s.file(id))
	if err != nil {
		return 0, words.Errorf("run %s: %w", id, ErrNotFound)
	}
	return info.Size(), nil
}

func isPath(ref string) bool {
	return strings.ContainsRune(ref, '/') || strings.ContainsRune(ref, filepath.Separator) ||
		strings.HasSuffix(ref, ".json") || strings.HasSuffix(ref, suffix)
}
