package test

import (
	"encoding/json"
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

// session is a block of a page: commands, and in some what the last of them says. That is a golden report, or what pelt
// says of a real run, whose document is kept in testdata/pages.
var session = regexp.MustCompile("(?ms)^```console(?: (golden|run)=([a-z-]+))?\n(.*?)^```$")

// sessionCommand is a command of a session, which may go on in further lines.
var sessionCommand = regexp.MustCompile(`(?m)^\$ (?:[^\n]*\\\n)*[^\n]*\n`)

const keptRuns = "testdata/pages"

// TestPages: a session of README and docs that shows a report shows what pelt says today. Its command is checked in
// package main.
func TestPages(t *testing.T) {
	for path, page := range sessionPages(t) {
		text := session.ReplaceAllStringFunc(string(page), func(block string) string {
			m := session.FindStringSubmatch(block)
			if m[1] == "" {
				return block
			}
			commands := sessionCommand.FindAllString(m[3], -1)
			want := strings.Join(commands, "") +
				shown(t, m[1], m[2], commands[len(commands)-1], strings.Contains(path, ".zh-CN."))
			if want == m[3] {
				return block
			}
			if !*update {
				t.Errorf("%s shows another report than %s=%s; run go test ./test -run Pages -update; want\n%s", path,
					m[1], m[2], want)
			}
			return strings.Replace(block, m[3], want, 1)
		})
		if *update && text != string(page) {
			testenv.Must(t, os.WriteFile(path, []byte(text), 0o644))
		}
	}
}

// shown is what a session shows behind its last command, in English or Chinese.
func shown(t *testing.T, from, name, command string, chinese bool) string {
	if from == "golden" && chinese {
		golden, err := os.ReadFile("../view/testdata/chinese.txt")
		testenv.Must(t, err)
		_, text, found := strings.Cut(string(golden), "=====\n"+name+"\n")
		if !found {
			t.Fatalf("view/testdata/chinese.txt has no page %q", name)
		}
		text, _, _ = strings.Cut(text, "\n=====")
		return strings.TrimRight(text, "\n") + "\n"
	}
	if from == "golden" {
		golden, err := os.ReadFile(filepath.Join("../view/testdata", name+".txt"))
		testenv.Must(t, err)
		text, _, _ := strings.Cut(string(golden), "=====")
		return text
	}
	args := strings.Fields(command)[2:]
	switch args[0] {
	case "explain":
		args = []string{"explain", name + ".json"}
	case "compare": // names the files
	default:
		args = []string{"report", name + ".json"}
	}
	c := exec.Command(peltproc.Binary, args...)
	c.Dir, c.Env = keptRuns, append(os.Environ(), "COLUMNS=80", "PELT_LANG=en")
	if chinese {
		c.Env = append(c.Env, "PELT_LANG=zh")
	}
	text, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v", c, err)
	}
	return string(text)
}

// TestPageLinks: each link of a page leads to a file of the repository, and to a heading of it.
func TestPageLinks(t *testing.T) {
	pages := sessionPages(t)
	link := regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)
	for path, page := range pages {
		for _, m := range link.FindAllStringSubmatch(string(page), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			to := path
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(path), m[1])
			}
			text, err := os.ReadFile(to)
			if err != nil {
				t.Errorf("%s: %s: %v", path, m[0], err)
			} else if m[2] != "" && !hasHeading(string(text), m[2]) {
				t.Errorf("%s: %s: %s has no such heading", path, m[0], to)
			}
		}
	}
}

// hasHeading tells whether a page has a heading that forges link as #anchor.
func hasHeading(page, anchor string) bool {
	for line := range strings.Lines(page) {
		title := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
		title = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(title, "")
		if strings.HasPrefix(line, "#") && strings.ReplaceAll(title, " ", "-") == anchor {
			return true
		}
	}
	return false
}

// TestNightlyPages runs the other sessions. Each command must end well, or with an invalid trial. Sessions of kept runs
// are run again in the order of their page, and must come to the same answers.
func TestNightlyPages(t *testing.T) {
	testenv.Nightly(t)
	testenv.Root(t)
	for path, page := range sessionPages(t) {
		var kept [][2]string
		for i, m := range session.FindAllStringSubmatch(string(page), -1) {
			if m[1] == "run" {
				for _, command := range sessionCommand.FindAllString(m[3], -1) {
					kept = append(kept, [2]string{m[2], command})
				}
			}
			if m[1] != "" {
				continue
			}
			name := fmt.Sprintf("%s-%d", strings.TrimSuffix(filepath.Base(path), ".md"), i)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				runSession(t, fmt.Sprintf("page-%d-%s", os.Getpid(), name), t.TempDir(), m[3])
			})
		}
		if len(kept) == 0 {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".md"), func(t *testing.T) { // floods of other sessions would change the answers
			dir := t.TempDir()
			for _, k := range kept {
				runSession(t, "", dir, strings.ReplaceAll(k[1], "\\\n", " "))
				if verb := strings.Fields(k[1])[2]; verb == "explain" || verb == "compare" {
					continue
				}
				want := answers(t, keptRuns, k[0]+".json")
				if got := answers(t, dir, "last"); got != want {
					t.Errorf("%s answers %s, the page %s", k[1], got, want)
				}
			}
		})
	}
}

// sessionPages returns README and docs by path.
func sessionPages(t *testing.T) map[string][]byte {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	texts := map[string][]byte{}
	for _, path := range append(pages, "../README.md", "../README.zh-CN.md") {
		if texts[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return texts
}

// answers are the codes of a run's answers.
func answers(t *testing.T, dir, run string) string {
	c := exec.Command(peltproc.Binary, "report", run, "--json", "-")
	c.Dir, c.Env = dir, append(os.Environ(), "PELT_DATA="+filepath.Join(dir, "data"))
	text, err := c.Output()
	var doc struct {
		Findings []struct{ Code, Level string }
	}
	if err == nil {
		err = json.Unmarshal(text, &doc)
	}
	if err != nil {
		t.Fatalf("%s: %v", c, err)
	}
	var codes []string
	for _, f := range doc.Findings {
		if f.Level == "answer" {
			codes = append(codes, f.Code)
		}
	}
	return strings.Join(codes, " ")
}

// runSession runs the lines that begin with a $ in a directory. The lab r1 is given another name.
func runSession(t *testing.T, lab, dir, text string) {
	if strings.Contains(text, " lab up ") {
		t.Cleanup(func() { _ = exec.Command(peltproc.Binary, "lab", "down", lab).Run() })
	}
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
