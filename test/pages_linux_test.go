package test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pelt/internal/peltproc"
	"pelt/internal/testenv"
)

// session is a block of a page with commands, or with one command and a golden report.
var session = regexp.MustCompile("(?ms)^```console(?: golden=([a-z-]+))?\n(.*?)^```$")

// TestPages: a session of README and docs that shows a report shows a golden one. Its command is checked in package
// main.
func TestPages(t *testing.T) {
	for path, page := range sessionPages(t) {
		for _, m := range session.FindAllStringSubmatch(string(page), -1) {
			if m[1] != "" {
				page = goldenSession(t, path, page, m[1], m[2])
			}
		}
	}
}

// TestNightlyPages runs the other sessions. Each command must end well, or with an invalid trial.
func TestNightlyPages(t *testing.T) {
	testenv.Nightly(t)
	testenv.Root(t)
	for path, page := range sessionPages(t) {
		for i, m := range session.FindAllStringSubmatch(string(page), -1) {
			if m[1] != "" {
				continue
			}
			name := fmt.Sprintf("%s-%d", strings.TrimSuffix(filepath.Base(path), ".md"), i)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				runSession(t, fmt.Sprintf("page-%d-%s", os.Getpid(), name), m[2])
			})
		}
	}
}

// sessionPages returns README and docs by path.
func sessionPages(t *testing.T) map[string][]byte {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	texts := map[string][]byte{}
	for _, path := range append(pages, "../README.md") {
		if texts[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return texts
}

// goldenSession returns the page with the golden report behind the session's command.
func goldenSession(t *testing.T, path string, page []byte, name, text string) []byte {
	golden, err := os.ReadFile(filepath.Join("../view/testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	want, _, _ := strings.Cut(string(golden), "=====")
	command, shown, _ := strings.Cut(text, "\n")
	if shown == want {
		return page
	}
	page = bytes.Replace(page, []byte(text), []byte(command+"\n"+want), 1)
	if !*update {
		t.Errorf("%s shows another report than view/testdata/%s.txt; run go test ./test -run Pages -update", path, name)
	} else if err := os.WriteFile(path, page, 0o644); err != nil {
		t.Fatal(err)
	}
	return page
}

// runSession runs the lines that begin with a $. The lab r1 is given another name.
func runSession(t *testing.T, lab, text string) {
	dir := t.TempDir()
	t.Cleanup(func() { _ = exec.Command(peltproc.Binary, "lab", "down", lab).Run() })
	for line := range strings.Lines(text) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		if !ok {
			t.Fatalf("a session has commands only: %q", line)
		}
		command = regexp.MustCompile(`\br1\b`).ReplaceAllString(command, lab)
		c := exec.Command("sh", "-c", command)
		c.Env = append(os.Environ(), "PATH="+filepath.Dir(peltproc.Binary)+":"+os.Getenv("PATH"))
		p := peltproc.Host{T: t, Dir: dir, Data: filepath.Join(dir, "data"),
			Env: []string{"PELT_STATE=" + filepath.Join(dir, "state")}}.Launch(c)
		if err := orInvalid(p.Wait()); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, p)
		}
	}
}
