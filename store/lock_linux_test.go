package store

import (
	"testing"

	"golang.org/x/sys/unix"

	"pelt/internal/testenv"
	"pelt/model"
)

// TestClosedIsNotRunning: a run that was closed does not run, also while a process that was forked before has its file.
func TestClosedIsNotRunning(t *testing.T) {
	s, err := Open(t.TempDir())
	testenv.Must(t, err)
	r, err := s.Create(model.Document{})
	testenv.Must(t, err)
	forked, err := unix.Dup(int(r.file.Fd()))
	testenv.Must(t, err)
	defer unix.Close(forked)
	path := r.file.Name()
	if !busy(path) {
		t.Error("it is written, and not busy")
	}
	testenv.Must(t, r.Close())
	if busy(path) {
		t.Error("it was closed, and is busy")
	}
}
