package outfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"pelt/internal/testenv"
)

// The reader of a named pipe gets what is written, not the end that a mere check would make.
func TestNamedPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(path, 0o600))
	got := make(chan string, 1)
	go func() {
		b, _ := os.ReadFile(path)
		got <- string(b)
	}()
	must(t, Check(path))
	time.Sleep(50 * time.Millisecond) // a reader that was told the end is gone by then
	written := make(chan error, 1)
	go func() {
		written <- Write(path, func(w io.Writer) error { _, err := io.WriteString(w, "all of it"); return err })
	}()
	select {
	case text := <-got:
		if text != "all of it" {
			t.Fatalf("the pipe's reader got %q", text)
		}
	case <-time.After(testenv.Patience):
		t.Fatal("the pipe's reader waits")
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}

// Where a file cannot be without a name, it still becomes one that others may read.
func TestModeOfHidden(t *testing.T) {
	old := syscall.Umask(0o022)
	defer syscall.Umask(old)
	f, err := createHidden(t.TempDir())
	must(t, err)
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v; want 0644", info.Mode().Perm(), err)
	}
}

// A file with the longest name there is can be written anew.
func TestLongName(t *testing.T) {
	name := make([]byte, 255)
	for i := range name {
		name[i] = 'x'
	}
	path := filepath.Join(t.TempDir(), string(name))
	for _, text := range []string{"first", "second"} {
		must(t, Write(path, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }))
		if b, _ := os.ReadFile(path); string(b) != text {
			t.Errorf("it holds %q, want %q", b, text)
		}
	}
}

// A line is on the disk once Append returns: a device that takes all and has no disk refuses it.
func TestAppendSyncs(t *testing.T) {
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := (&Lines{File: f}).Append([]byte("line\n")); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("got %v, want %v of fsync", err, syscall.EINVAL)
	}
}
