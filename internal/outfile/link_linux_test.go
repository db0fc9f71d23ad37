package outfile

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"pelt/internal/testenv"
)

func say(text string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
}

// A link of anybody's is replaced, wherever it leads: who writes as root must not be led to another file or device.
func TestLink(t *testing.T) {
	dir := t.TempDir()
	other, link := filepath.Join(dir, "other"), filepath.Join(dir, "link")
	for _, to := range []string{"other", os.DevNull, "nowhere"} {
		must(t, os.WriteFile(other, []byte("kept"), 0o600))
		must(t, os.Symlink(to, link))
		must(t, Check(link))
		must(t, Write(link, say("new")))
		for at, want := range map[string]string{other: "kept", link: "new"} {
			if b, _ := os.ReadFile(at); string(b) != want {
				t.Errorf("after a link to %s %s holds %q, want %q", to, at, b, want)
			}
		}
		must(t, os.Remove(link))
	}
}

// What grows in place follows no link, but the system's own.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	other, link := filepath.Join(dir, "other"), filepath.Join(dir, "link")
	must(t, os.WriteFile(other, []byte("kept"), 0o600))
	must(t, os.Symlink("other", link))
	if f, err := Create(link); err == nil || err.Error() != "is a symbolic link; want a file" {
		t.Errorf("%v, %v", f, err)
	}
	if b, _ := os.ReadFile(other); string(b) != "kept" {
		t.Errorf("the file behind the link holds %q", b)
	}
	f, err := Create(other)
	must(t, err)
	defer f.Close()
	own, err := Create(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	must(t, err)
	must(t, own.Close())
}

// The device directory's own links stand for what this process has open.
func TestStandardOutput(t *testing.T) {
	if to := os.Getenv("OUTFILE_TEST_TO"); to != "" {
		os.Stdout.WriteString("before ")
		must(t, Check(to))
		must(t, Write(to, say("the file ")))
		os.Stdout.WriteString("after\n")
		return
	}
	for _, to := range []string{"/dev/stdout", "/proc/self/fd/1"} {
		before, err := os.Lstat(to)
		must(t, err)
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		must(t, err)
		defer out.Close()
		cmd := exec.Command(os.Args[0], "-test.run=^TestStandardOutput$")
		cmd.Env = append(os.Environ(), "OUTFILE_TEST_TO="+to)
		cmd.Stdout = out
		must(t, cmd.Run())
		if b, _ := os.ReadFile(out.Name()); !bytes.HasPrefix(b, []byte("before the file after\n")) {
			t.Errorf("%s: the output is %q", to, b)
		}
		if after, err := os.Lstat(to); err != nil || after.Mode().Type() != before.Mode().Type() {
			t.Errorf("%s was %v and is %v, %v", to, before.Mode(), after.Mode(), err)
		}
	}
}

// A file of one's own that is written again is as private as it was; what was another's
// does not tell how.
func TestModeStays(t *testing.T) {
	dir := t.TempDir()
	fresh := filepath.Join(dir, "fresh")
	must(t, Write(fresh, say("new")))
	info, err := os.Stat(fresh)
	if err != nil || info.Mode().Perm() == 0o600 {
		t.Fatalf("a new file has %v, %v: no other than the one that is kept", info.Mode(), err)
	}
	for name, c := range map[string]struct {
		uid  int
		want os.FileMode
	}{"own": {os.Getuid(), 0o600}, "another": {12345, info.Mode().Perm()}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			must(t, os.WriteFile(path, []byte("old"), 0o600))
			if c.uid != os.Getuid() {
				testenv.Root(t)
				must(t, os.Chown(path, c.uid, c.uid))
			}
			must(t, Write(path, say("new")))
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != c.want {
				t.Errorf("mode %v, %v; want %v", info.Mode(), err, c.want)
			}
		})
	}
}

// What may not be replaced is overwritten.
func TestOverwrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	must(t, os.WriteFile(path, []byte("old, and longer than the new"), 0o644))
	mounted(t, path)
	must(t, Check(path))
	must(t, Write(path, say("new")))
	if b, _ := os.ReadFile(path); string(b) != "new" {
		t.Errorf("it holds %q", b)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("the directory holds %q", got)
	}
}
