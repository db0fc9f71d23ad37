package outfile

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func say(text string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
}

// A link stays, and what it leads to is written.
func TestLink(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.Mkdir(at("runs"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"latest": "runs/7", "again": at("latest"), "ring": "ring"} {
		if err := os.Symlink(to, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"not there yet", "there"} {
		if err := Check(at("again")); err != nil {
			t.Fatal(err)
		}
		if err := Write(at("again"), say(text)); err != nil {
			t.Fatal(err)
		}
		if b, _ := os.ReadFile(at("runs/7")); string(b) != text {
			t.Errorf("the file holds %q, want %q", b, text)
		}
	}
	for _, name := range []string{"latest", "again"} {
		if info, err := os.Lstat(at(name)); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s is no link any more: %v", name, err)
		}
	}
	if Check(at("ring")) == nil || Write(at("ring"), say("x")) == nil {
		t.Error("a link to itself was written")
	}
}

// The device directory's own links stand for what this process has open.
func TestStandardOutput(t *testing.T) {
	if to := os.Getenv("OUTFILE_TEST_TO"); to != "" {
		os.Stdout.WriteString("before ")
		if err := Check(to); err != nil {
			t.Fatal(err)
		}
		if err := Write(to, say("the file ")); err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("after\n")
		return
	}
	for _, to := range []string{"/dev/stdout", "/proc/self/fd/1"} {
		before, err := os.Lstat(to)
		if err != nil {
			t.Skip(err)
		}
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		cmd := exec.Command(os.Args[0], "-test.run=^TestStandardOutput$")
		cmd.Env = append(os.Environ(), "OUTFILE_TEST_TO="+to)
		cmd.Stdout = out
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		if b, _ := os.ReadFile(out.Name()); !bytes.HasPrefix(b, []byte("before the file after\n")) {
			t.Errorf("%s: the output is %q", to, b)
		}
		if after, err := os.Lstat(to); err != nil || after.Mode().Type() != before.Mode().Type() {
			t.Errorf("%s was %v and is %v, %v", to, before.Mode(), after.Mode(), err)
		}
	}
}

// A file that is written again is as private as it was.
func TestModeStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	own := os.Getuid() != 0
	if !own {
		if err := os.Chown(path, 12345, 12346); err != nil {
			t.Fatal(err)
		}
	}
	if err := Write(path, say("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	if uid, gid := owner(info); !own && (uid != 12345 || gid != 12346) {
		t.Errorf("it is of %d:%d, want 12345:12346", uid, gid)
	}
}

// What may not be replaced is overwritten.
func TestOverwrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	if err := os.WriteFile(path, []byte("old, and longer than the new"), 0o644); err != nil {
		t.Fatal(err)
	}
	mounted(t, path)
	if err := Check(path); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, say("new")); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); string(b) != "new" {
		t.Errorf("it holds %q", b)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("the directory holds %q", got)
	}
}
