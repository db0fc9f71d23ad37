package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pelt/internal/testenv"
	"pelt/model"
	"pelt/test/golden"
)

// lossyRun is a run document's file with one lossy size of two.
func lossyRun(t *testing.T) string {
	t.Helper()
	doc := model.Document{Plan: model.Plan{Command: "curve", Target: "lab:direct"}, Complete: true}
	for i, payload := range []float64{64, 1472} {
		f := model.FlowResult{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver,
			PayloadBytes: int(payload), Attempted: 1000, Accepted: 1000, Received: 1000}
		if i == 0 {
			f.Received, f.Lost = 969, 31
			f.Ledger = model.Ledger{Lost: 31,
				Lines: []model.Line{{Layer: model.LayerReceiverBuffer, Host: model.Receiver, Cause: "SOCKET_RCVBUFF",
					Packets: 31, Confidence: "exact-seq"}}}
		}
		doc.Results = append(doc.Results, model.Result{Cell: model.Cell{"payload_bytes": model.Number(payload),
			"direction": model.Word("up")}, State: model.Valid, Flows: []model.FlowResult{f}})
	}
	b, err := model.EncodeDocument(doc)
	testenv.Must(t, err)
	path := filepath.Join(t.TempDir(), "run.json")
	testenv.Must(t, os.WriteFile(path, b, 0o600))
	return path
}

// commandWords are the words of a command line, of which some are in quotes.
var commandWords = regexp.MustCompile(`'[^']*'|\S+`)

// TestCommandLines: each line of the file is a command; RUN is a run with one lossy size of two. Below stand its exit
// code, what it tells on standard error, and the titles of trials that it shows. None of them leaves a run.
func TestCommandLines(t *testing.T) {
	data := t.TempDir()
	t.Setenv("PELT_DATA", data)
	file := lossyRun(t)
	host, err := os.Hostname()
	testenv.Must(t, err)
	told := strings.NewReplacer(file, "RUN", data, "DATA", "sender "+host, "sender HOST")
	lines, err := filepath.Abs("testdata/lines.txt")
	testenv.Must(t, err)
	work := t.TempDir()
	testenv.Must(t, os.CopyFS(work, os.DirFS("testdata/lines")))
	t.Chdir(work)
	testenv.Must(t, os.Symlink("aim", "link"))
	testenv.Must(t, os.Mkdir("pelt-demo.html", 0o700))
	golden.Table(t, lines, func(question string) string {
		var out, wrong bytes.Buffer
		words := commandWords.FindAllString(strings.ReplaceAll(question, "RUN", file), -1)
		for i := range words {
			words[i] = strings.Trim(words[i], "'")
		}
		code := execute(words, &out, &wrong)
		if code == exitUsage && strings.Count(wrong.String(), "\n") != 1 {
			t.Errorf("%s: more than a line: %s", question, wrong.String())
		}
		text := fmt.Sprintf("exit code %d\n", code) + told.Replace(wrong.String())
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "Trial ") {
				text += line
			}
		}
		return text
	})
	if kept, err := os.ReadDir(filepath.Join(data, "runs")); len(kept) > 0 {
		t.Errorf("%d runs are kept: %v", len(kept), err)
	}
}

// A level may have commas of its own.
func TestParseCells(t *testing.T) {
	doc := model.Document{Results: []model.Result{{Cell: model.Cell{"payload_bytes": model.Number(64),
		"profile": model.Word("on=10ms,off=5ms,random")}}}}
	for _, texts := range [][]string{{"profile=on=10ms,off=5ms,random,payload=64"},
		{"payload=64", "profile=on=10ms,off=5ms,random"}} {
		if got, err := parseCells(doc, texts); err != nil || !maps.Equal(got, doc.Results[0].Cell) {
			t.Errorf("--cell %q: %v, %v", texts, got, err)
		}
	}
}

func TestExplainOutputs(t *testing.T) {
	t.Setenv("PELT_DATA", t.TempDir())
	file := lossyRun(t)
	page := filepath.Join(t.TempDir(), "x.html")
	var out, wrong bytes.Buffer
	if code := execute([]string{"explain", file, "--json", "-", "--html", page}, &out, &wrong); code != exitOK {
		t.Fatalf("code %d: %s", code, wrong.String())
	}
	x, err := model.DecodeDocument(out.Bytes(), "run")
	if err != nil || len(x.Results) != 2 || x.Results[0].Flows[0].Ledger.Lost != 31 || len(x.Findings) == 0 {
		t.Errorf("standard output is not the JSON document alone: %v\n%s", err, out.String())
	}
	if b, err := os.ReadFile(page); err != nil || !bytes.Contains(b, []byte("<svg")) {
		t.Errorf("no picture in %s: %v", page, err)
	}
}
