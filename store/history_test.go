package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pelt/model"
	"pelt/test/golden"
)

// history is a store, with runs by the letter that a line of testdata/histories.txt has for them.
type history struct {
	s    *Store
	runs map[string]string // ids
	open map[string]*Run
	adds map[string]int // results by run
	out  strings.Builder
}

// ref is a reference to a run: A is its id, A:10 the first ten characters of that, A.file its file.
func (h *history) ref(word string) string {
	name, cut, _ := strings.Cut(word, ":")
	name, isFile := strings.CutSuffix(name, ".file")
	id, known := h.runs[name]
	switch n, _ := strconv.Atoi(cut); {
	case !known:
		return strings.Trim(word, `"`)
	case isFile:
		return h.s.file(id)
	case n > 0:
		return id[:n]
	}
	return id
}

// change writes a run's file anew.
func (h *history) change(name string, to func([]byte) []byte) error {
	path := h.s.file(h.runs[name])
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, to(b), 0o600)
}

// step carries out one step of a history.
func (h *history) step(t *testing.T, words []string) (err error) {
	t.Helper()
	run := h.open[words[min(1, len(words)-1)]]
	switch words[0] {
	case "create":
		var r *Run
		if r, err = h.s.Create(document()); err == nil {
			h.runs[words[1]], h.open[words[1]] = r.ID(), r
		}
	case "resume":
		var r *Run
		var d model.Document
		if r, d, err = h.s.Resume(h.ref(words[1])); err == nil {
			h.open[words[1]] = r
			fmt.Fprintf(&h.out, "resumed with %d results\n", len(d.Results))
		}
	case "add":
		if err = run.Append(result(64, h.adds[words[1]])); err == nil {
			h.adds[words[1]]++
		}
	case "end":
		code := strings.Replace(words[2], "LONG", strings.Repeat("<", 2*maxHeadline), 1)
		err = run.End(model.Document{Complete: true, Results: make([]model.Result, h.adds[words[1]]),
			Findings: []model.Finding{{Code: code}}})
	case "close":
		err = run.Close()
	case "load":
		var d model.Document
		if d, err = h.s.Load(h.ref(words[1])); err == nil {
			fmt.Fprintf(&h.out, "loaded %s with %d results, %d findings, complete %v, %v\n", d.ID, len(d.Results),
				len(d.Findings), d.Complete, d.Warnings)
		}
	case "remove":
		var refs, removed []string
		for _, w := range words[1:] {
			refs = append(refs, h.ref(w))
		}
		removed, err = h.s.Remove(refs...)
		fmt.Fprintf(&h.out, "removed %v\n", removed)
	case "label":
		l := Label{Name: strings.ReplaceAll(words[2], "~", " ")}
		for _, w := range words[3:] {
			l.Tags = append(l.Tags, strings.ReplaceAll(w, "~", " "))
		}
		l.Name = strings.NewReplacer("LONG", strings.Repeat("𝄞", mostName), "NEWLINE", "\n", "ESCAPE", "\x1b", "BYTE",
			"\xff", "NONE", "").Replace(l.Name)
		err = h.s.SetLabel(h.ref(words[1]), l)
	case "write":
		err = os.WriteFile(h.s.file(h.runs[words[1]]),
			[]byte(strings.ReplaceAll(strings.Join(words[2:], " "), `\n`, "\n")), 0o600)
	case "cut":
		n, _ := strconv.Atoi(words[2])
		err = os.Truncate(h.s.file(h.runs[words[1]]), int64(n))
	case "damage": // one letter of the header
		err = h.change(words[1], func(b []byte) []byte { return bytes.Replace(b, []byte("curve"), []byte("curse"), 1) })
	case "zeros": // what a power cut leaves on file systems that grow a file before its data
		err = h.change(words[1], func(b []byte) []byte { return append(b, make([]byte, 4096)...) })
	case "line": // behind the header
		var line []byte
		if line, err = encodeLine(json.RawMessage(words[2])); err == nil {
			err = h.change(words[1], func(b []byte) []byte {
				header, rest, _ := bytes.Cut(b, []byte{'\n'})
				return slices.Concat(header, []byte{'\n'}, line, rest)
			})
		}
	case "copy":
		h.runs[words[2]] = idAt(document().Started.Add(time.Hour), 0)
		var b []byte
		if b, err = os.ReadFile(h.s.file(h.runs[words[1]])); err == nil {
			err = os.WriteFile(h.s.file(h.runs[words[2]]), b, 0o600)
		}
	case "file":
		err = os.WriteFile(filepath.Join(h.s.runs(), h.ref(words[1])), []byte("x"), 0o600)
	default:
		t.Fatalf("unknown step %q", words)
	}
	return err
}

// TestHistories: each line of the file is a history of a store, step by step. Below stand errors, and the list of runs
// at the end.
func TestHistories(t *testing.T) {
	golden.Table(t, "testdata/histories.txt", func(question string) string {
		h := &history{s: open(t), runs: map[string]string{}, open: map[string]*Run{}, adds: map[string]int{}}
		for _, step := range strings.Split(question, "; ") {
			if err := h.step(t, strings.Fields(step)); err != nil {
				if text := err.Error(); strings.Contains(text, "\n") || len(text) > 600 {
					t.Errorf("%s: an error of another form: %s", step, text)
				}
				for name, kind := range map[string]error{"not found": ErrNotFound, "busy": ErrBusy,
					"ambiguous": ErrAmbiguous, "closed": os.ErrClosed} {
					if errors.Is(err, kind) {
						fmt.Fprintf(&h.out, "(%s) ", name)
					}
				}
				fmt.Fprintf(&h.out, "%s: %v\n", step, err)
			}
		}
		list, err := h.s.List()
		if err != nil {
			fmt.Fprintf(&h.out, "list: %v\n", err)
		}
		for _, x := range list {
			fmt.Fprintf(&h.out, "%s %s %s: %s", x.ID, x.Command, x.Target, x.State)
			if x.Trials != nil {
				fmt.Fprintf(&h.out, ", %d trials", *x.Trials)
			}
			if x.Headline != nil {
				h.out.WriteString(", " + x.Headline.Code)
			}
			fmt.Fprintf(&h.out, " %.60s %s\n", x.Label.Text(), x.Trouble)
		}
		for _, r := range h.open {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		text := strings.ReplaceAll(h.out.String(), h.s.dir, "DIR")
		for name, id := range h.runs {
			text = strings.ReplaceAll(text, id, name)
		}
		return text
	})
}
