package outfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestWriteReplacesWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.json")
	for _, text := range []string{"first", "second, longer"} {
		if err := Check(path); err != nil {
			t.Fatalf("Check: %v", err)
		}
		if err := Write(path, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
			t.Fatalf("Write: %v", err)
		}
		if b, _ := os.ReadFile(path); string(b) != text {
			t.Errorf("file holds %q, want %q", b, text)
		}
	}
	broken := errors.New("half way")
	err := Write(path, func(w io.Writer) error { _, _ = io.WriteString(w, "torn"); return broken })
	if !errors.Is(err, broken) {
		t.Errorf("Write returned %v, want %v", err, broken)
	}
	if b, _ := os.ReadFile(path); string(b) != "second, longer" {
		t.Errorf("after a failed write the file holds %q, want the old text", b)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("the directory holds %q, want out.json alone", got)
	}
}

func TestCheckRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ name, path string }{
		{"no such directory", filepath.Join(dir, "no", "x")},
		{"a directory", dir},
		{"not writable", "/proc/version"},
	} {
		if err := Check(c.path); err == nil {
			t.Errorf("%s: Check(%q) = nil, want an error", c.name, c.path)
		}
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("Check left %q", got)
	}
	if err := Write("/dev/null", func(w io.Writer) error { _, err := w.Write([]byte("x")); return err }); err != nil {
		t.Errorf("writing to a device: %v", err)
	}
}

// Lines that do not get to the disk whole leave nothing of their own.
func TestLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	f, err := os.Create(path)
	must(t, err)
	l := &Lines{File: f}
	must(t, l.Append([]byte("one\n")))
	if _, err := f.WriteString("one\nhalf of"); err != nil { // as a write does that fails in the middle
		t.Fatal(err)
	}
	l.torn = true
	must(t, l.Append([]byte("two\n")))
	if b, err := os.ReadFile(path); err != nil || string(b) != "one\ntwo\n" || l.Length != 8 {
		t.Errorf("it holds %q, %d B; %v", b, l.Length, err)
	}
	must(t, f.Close())
	if err := l.Append([]byte("three\n")); err == nil || l.Length != 8 {
		t.Errorf("a closed file took a line: %v, %d B", err, l.Length)
	}
	in := bufio.NewReaderSize(strings.NewReader("short\n"+strings.Repeat("x", 40)+"\nend"), 16)
	for _, want := range []string{"short\n", strings.Repeat("x", 40) + "\n", "end"} {
		if got, err := ReadLine(in, 41); string(got) != want || errors.Is(err, io.EOF) != (want == "end") {
			t.Errorf("read %q, %v; want %q", got, err, want)
		}
	}
	in = bufio.NewReaderSize(strings.NewReader(strings.Repeat("x", 40)), 16)
	if _, err := ReadLine(in, 39); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a line that is too long: %v", err)
	}
}

// must ends a test that cannot go on after an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A killed process leaves nothing that the next write does not remove; what others have in use stays, and so does what
// only looks alike.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	dead := exec.Command(os.Args[0], "-test.run=^$")
	must(t, dead.Run())
	of := func(pid int, rest string) string { return fmt.Sprintf(".pelt-%d-%s", pid, rest) }
	left, held := of(dead.Process.Pid, "1f"), of(dead.Process.Pid, "2f")
	stay := []string{held, of(os.Getpid(), "1f"), of(os.Getppid(), "1f"), of(dead.Process.Pid, "x"), ".pelt-", "out"}
	for _, name := range append(stay, left) {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	must(t, os.Mkdir(filepath.Join(dir, of(dead.Process.Pid, "3f")), 0o755))
	other, err := os.Open(filepath.Join(dir, held)) // as a process of another container
	must(t, err)
	defer other.Close()
	if !hold(other) {
		t.Fatal("not held")
	}
	must(t, Write(filepath.Join(dir, "out"), func(io.Writer) error { return nil }))
	want := append(stay, of(dead.Process.Pid, "3f"))
	slices.Sort(want)
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("the directory holds %q, want %q", got, want)
	}
}
