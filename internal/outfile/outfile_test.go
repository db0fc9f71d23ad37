package outfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
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
