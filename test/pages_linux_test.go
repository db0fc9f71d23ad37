package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pelt/internal/testenv"
)

// session is a block of a page with commands, or with one command and a golden report.
var session = regexp.MustCompile("(?ms)^```console(?: golden=([a-z-]+))?\n(.*?)^```$")

// TestPages runs the sessions of README and docs. Each command must end well, or with an invalid trial. A session with a golden
// report shows that report; its command is checked in package main.
func TestPages(t *testing.T) {
	testenv.Root(t)
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, path := range append(pages, "../README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range session.FindAllStringSubmatch(string(text), -1) {
			t.Run(fmt.Sprintf("%s-%d", strings.TrimSuffix(filepath.Base(path), ".md"), i), func(t *testing.T) {
				t.Parallel()
				if m[1] != "" {
					goldenSession(t, m[1], m[2])
				} else {
					runSession(t, m[2])
				}
			})
		}
	}
}

func goldenSession(t *testing.T, name, text string) {
	golden, err := os.ReadFile(filepath.Join("../view/testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	want, _, _ := strings.Cut(string(golden), "=====")
	if _, shown, _ := strings.Cut(text, "\n"); shown != want {
		t.Errorf("the page shows\n%swant\n%s", shown, want)
	}
}

// runSession runs the lines that begin with a $. Labs get a name of their own.
func runSession(t *testing.T, text string) {
	dir, lab := t.TempDir(), fmt.Sprintf("page-%d", os.Getpid())
	t.Cleanup(func() { _ = exec.Command(binary, "lab", "down", lab).Run() })
	for line := range strings.Lines(text) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		if !ok {
			t.Fatalf("a session has commands only: %q", line)
		}
		command = regexp.MustCompile(`\br1\b`).ReplaceAllString(command, lab)
		c := exec.Command("sh", "-c", command)
		c.Dir = dir
		c.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "PELT_DATA="+filepath.Join(dir, "data"),
			"PELT_STATE="+filepath.Join(dir, "state"))
		if out, err := measured(c); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
}
