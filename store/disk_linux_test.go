package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pelt/internal/testenv"
	"pelt/model"
)

func TestDir(t *testing.T) {
	t.Setenv("HOME", "/h")
	for name, c := range map[string]struct{ pelt, xdg, want string }{
		"own":          {"/x/y", "/z", "/x/y"},
		"xdg":          {"", "/z", "/z/pelt"},
		"relative xdg": {"", "z", "/h/.local/share/pelt"},
		"home":         {"", "", "/h/.local/share/pelt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PELT_DATA", c.pelt)
			t.Setenv("XDG_DATA_HOME", c.xdg)
			if got, err := Dir(); got != c.want || err != nil {
				t.Errorf("Dir() = %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

// fill takes all the room that a disk has left; release gives it back.
func fill(t *testing.T, dir string) (release func()) {
	t.Helper()
	path := filepath.Join(dir, "fill")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("filling the disk: %v", err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

// sized is a trial of about so many bytes.
func sized(repeat, bytes int) model.Result {
	r := result(64, repeat)
	r.Why = model.Reasons{{Code: model.TrialCut, Text: strings.Repeat("x", bytes)}}
	return r
}

// A disk that is full for a while leaves the run as it was, and takes it again.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	err := testenv.OnTinyDisk(t, dir, func() error {
		s, err := Open(dir)
		if err != nil {
			return err
		}
		r, err := s.Create(document())
		if err != nil {
			return err
		}
		load := func(what string, results int) model.Document {
			doc, err := s.Load("last")
			if err != nil || len(doc.Results) != results || len(doc.Warnings) != 0 {
				t.Errorf("%s: %v, %d results, warnings %v; want %d and no warning", what, err, len(doc.Results),
					doc.Warnings, results)
			}
			return doc
		}
		full := func(what string, err error) {
			if !errors.Is(err, ErrDisk) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), r.ID()) {
				t.Errorf("%s: %v, want ErrDisk, ENOSPC and the run named", what, err)
			}
		}
		check := func(what string, err error) {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		check("the first trial", r.Append(sized(0, 10)))
		release := fill(t, dir)
		full("a trial on a full disk", r.Append(sized(1, 20<<10))) // of which a part may fit
		full("a checkpoint", r.Checkpoint(model.Checkpoint{Cell: model.Cell{"payload_bytes": model.Number(64)},
			Repeat: 2,
			Flows:  []model.FlowSoFar{{Name: strings.Repeat("x", 20<<10)}}}))
		load("while the disk is full", 1)
		if _, err := s.Create(document()); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Create on a full disk: %v, want ENOSPC", err)
		}
		if sum := s.Summary(r.ID()); sum.State != Running { // List reads on other threads, which do not see this disk
			t.Errorf("its summary on a full disk: %+v", sum)
		}
		release()
		check("a try when there is room", r.Append(sized(1, 20<<10)))
		load("when there is room", 2)

		release = fill(t, dir)
		done := document()
		done.Complete, done.Results = true, make([]model.Result, 2)
		done.Router = &model.RouterFacts{Model: strings.Repeat("x", 20<<10)}
		full("the end", r.End(done))
		release()
		check("the end, tried again", r.End(done))
		check("Close", r.Close())
		if doc := load("after the end", 2); !doc.Complete {
			t.Error("the run that ended is not complete")
		}
		if sum := s.Summary(r.ID()); sum.State != Complete || *sum.Trials != 2 {
			t.Errorf("its summary after the end: %+v", sum)
		}
		return nil
	})
	testenv.Must(t, err)
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the tiny disk left %v, %v", left, err)
	}
}

func TestUnwritable(t *testing.T) {
	dir := t.TempDir()
	err := testenv.OnTinyDisk(t, dir, func() error {
		s, err := Open(filepath.Join(dir, "data"))
		if err != nil {
			return err
		}
		id := stored(t, s, "kept")
		if err := syscall.Mount(s.file(id), s.file(id), "", syscall.MS_BIND, ""); err != nil {
			return err
		}
		if removed, err := s.Remove(id); len(removed) > 0 || !errors.Is(err, syscall.EBUSY) {
			t.Errorf("Remove of a file that cannot go: %v, %v; want EBUSY", removed, err)
		}
		if err := syscall.Unmount(s.file(id), 0); err != nil {
			return err
		}
		if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
			return err
		}
		if _, err := s.Create(document()); !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), dir) {
			t.Errorf("Create on a read-only disk: %v, want EROFS and the place named", err)
		}
		if _, _, err := s.Resume(id); !errors.Is(err, syscall.EROFS) {
			t.Errorf("Resume on a read-only disk: %v, want EROFS", err)
		}
		if doc, err := s.Load(id); err != nil || len(doc.Results) != 2 {
			t.Errorf("Load on a read-only disk: %v", err)
		}
		if sum := s.Summary(id); sum.State != Complete || sum.Headline == nil || sum.Headline.Code != "kept" {
			t.Errorf("its summary on a read-only disk: %+v", sum)
		}
		return nil
	})
	testenv.Must(t, err)
}

func TestPlaceThatIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	testenv.Must(t, os.WriteFile(path, nil, 0o600))
	s, err := Open(path)
	if err == nil {
		_, err = s.Create(model.Document{})
	}
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a store in a file: %v, want an error that names it", err)
	}
}
