package store

import (
	"testing"

	"golang.org/x/sys/unix"

	"pelt/model"
)

// TestClosedIsNotRunning: a run that was closed does not run, also while a process that was forked before has its file.
func TestClosedIsNotRunning(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Create(model.Document{})
	if err != nil {
		t.Fatal(err)
	}
	forked, err := unix.Dup(int(r.file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(forked)
	path := r.file.Name()
	if !busy(path) {
		t.Error("it is written, and not busy")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if busy(path) {
		t.Error("it was closed, and is busy")
	}
}
