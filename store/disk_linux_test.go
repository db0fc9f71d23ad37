package store

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

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

// onTinyDisk runs f with a file system of 64 KiB at dir, which only this thread
// sees and which ends with it.
func onTinyDisk(t *testing.T, dir string, f func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread dies, its mounts with it
		done <- func() error {
			if err := syscall.Unshare(syscall.CLONE_NEWNS | syscall.CLONE_FS); err != nil {
				return err
			}
			if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
				return err
			}
			if err := syscall.Mount("tiny", dir, "tmpfs", 0, "size=64k"); err != nil {
				return err
			}
			return f()
		}()
	}()
	return <-done
}

func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	err := onTinyDisk(t, dir, func() error {
		s, err := Open(dir)
		if err != nil {
			return err
		}
		r, err := s.Create(document())
		if err != nil {
			return err
		}
		small, big := result(64, 0), result(128, 0)
		big.Why = strings.Repeat("x", 100<<10)
		if err := r.Append(small); err != nil {
			return err
		}
		if err := r.Append(big); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), r.ID()) {
			t.Errorf("Append to a full disk: %v, want ENOSPC and the run named", err)
		}
		if err := errors.Join(r.Append(result(64, 1)), r.Close()); err != nil {
			t.Errorf("a small trial after one that did not fit: %v", err)
		}
		doc, err := s.Load("last")
		if err != nil || len(doc.Results) != 2 || len(doc.Warnings) != 0 {
			t.Errorf("Load: %v, %d results, warnings %q; want 2 and none", err, len(doc.Results), doc.Warnings)
		}
		fill, err := os.Create(filepath.Join(dir, "fill"))
		if err != nil {
			return err
		}
		_, full := fill.Write(make([]byte, 1<<20))
		if !errors.Is(full, syscall.ENOSPC) {
			t.Errorf("filling the disk: %v", full)
		}
		if _, err := s.Create(document()); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Create on a full disk: %v, want ENOSPC", err)
		}
		// The index has no room either; the list does not care.
		if list, err := s.List(); err != nil || len(list) != 1 || list[0].Trials != 2 {
			t.Errorf("List on a full disk: %v %+v", err, list)
		}
		return fill.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the tiny disk left %v, %v", left, err)
	}
}

func TestUnwritable(t *testing.T) {
	dir := t.TempDir()
	err := onTinyDisk(t, dir, func() error {
		s, err := Open(filepath.Join(dir, "data"))
		if err != nil {
			return err
		}
		id := stored(t, s, "kept")
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
		if list, err := s.List(); err != nil || len(list) != 1 || list[0].State != Complete || list[0].Headline != "kept" {
			t.Errorf("List on a read-only disk: %v %+v", err, list)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPlaceThatIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path)
	if err == nil {
		_, err = s.Create(model.Document{})
	}
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a store in a file: %v, want an error that names it", err)
	}
}
