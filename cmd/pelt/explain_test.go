package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pelt/model"
)

// lossyRun is a run document's file with one lossy size of two.
func lossyRun(t *testing.T) string {
	t.Helper()
	doc := model.Document{Plan: model.Plan{Command: "curve", Target: "lab:direct"}, Complete: true}
	for i, payload := range []float64{64, 1472} {
		f := model.FlowResult{Name: "up", Protocol: model.UDP, From: model.Sender, To: model.Receiver, PayloadBytes: int(payload), Attempted: 1000, Accepted: 1000, Received: 1000}
		if i == 0 {
			f.Received, f.Lost = 969, 31
			f.Ledger = model.Ledger{Lost: 31, Lines: []model.Line{{Layer: model.LayerReceiverBuffer, Host: model.Receiver, Cause: "SOCKET_RCVBUFF", Packets: 31, Confidence: "exact-seq"}}}
		}
		doc.Results = append(doc.Results, model.Result{Cell: model.Cell{"payload_bytes": model.Number(payload), "direction": model.Word("up")}, State: model.Valid, Flows: []model.FlowResult{f}})
	}
	b, err := model.EncodeDocument(doc)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "run.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExplain(t *testing.T) {
	t.Setenv("PELT_DATA", t.TempDir())
	file := lossyRun(t)
	for _, c := range []struct {
		args       string
		code       int
		out, wrong string
	}{
		{"--all", exitOK, "Trial 1: up, 64 B\n", ""},
		{"--trial 2 --all", exitOK, "Trial 2: up, 1472 B", ""},
		{"--cell payload=1472 --all", exitOK, "Trial 2: up, 1472 B", ""},
		{"--cell payload_bytes=64,direction=up --all", exitOK, "Trial 1: up, 64 B", ""},
		{"--every-trial --all", exitOK, "Trial 2", ""},
		{"--trial 3", exitUsage, "", "the run has trials 1 to 2, not 3"},
		{"--trial 0", exitUsage, "", "--trial: want a number from 1 on, not 0"},
		{"--trial 1 --every-trial", exitUsage, "", "give --trial, or --cell and --every-trial, not both"},
		{"--cell payload=65", exitUsage, "", "has this setting; pelt explain without --cell lists the settings"},
		{"--cell payload", exitUsage, "", `--cell: want KNOB=VALUE as payload=64, not "payload"`},
		{"--cell rate=5kpps", exitUsage, "", `--cell: this run has no setting "rate"; it has direction, payload`},
		{"--json - --html -", exitUsage, "", "--json and --html both write to -"},
		{"--json /nowhere/at/all.json", exitError, "", "--json: "},
	} {
		var out, wrong bytes.Buffer
		code := execute(append([]string{"explain", file}, strings.Fields(c.args)...), &out, &wrong)
		if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(wrong.String(), c.wrong) || strings.Count(wrong.String(), "\n") > 1 {
			t.Errorf("explain %s: code %d, want %d\nstdout (want %q):\n%s\nstderr (want %q):\n%s", c.args, code, c.code, c.out, out.String(), c.wrong, wrong.String())
		}
	}
}

// A level may have commas of its own.
func TestParseCells(t *testing.T) {
	doc := model.Document{Results: []model.Result{{Cell: model.Cell{"payload_bytes": model.Number(64),
		"profile": model.Word("on=10ms,off=5ms,random")}}}}
	for _, texts := range [][]string{{"profile=on=10ms,off=5ms,random,payload=64"}, {"payload=64", "profile=on=10ms,off=5ms,random"}} {
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

func TestParseLevel(t *testing.T) {
	for _, c := range []struct {
		knob, text, want, wrong string
	}{
		{"payload_bytes", "64", "64", ""}, {"rate_pps", "150kpps", "150000", ""}, {"rate_pps", "150000", "150000", ""}, {"rate_pps", "max", "max", ""},
		{"rate_pps", "95mbit", "", "packets per second"}, {"rate_pps", "fast", "", "want"}, {"interval_ns", "5ms", "5000000", ""}, {"link.loss_ratio", "0.1%", "0.001", ""},
		{"direction", "both", "both", ""}, {"payload_bytes", "NaN", "", "want whole bytes"}, {"interval_ns", "soon", "", "soon"},
	} {
		got, err := parseLevel(c.knob, c.text)
		if err != nil {
			if c.wrong == "" || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("parseLevel(%s, %s): %v; want %q", c.knob, c.text, err, c.wrong)
			}
			continue
		}
		if c.wrong != "" || got.String() != c.want {
			t.Errorf("parseLevel(%s, %s) = %v; want %s %q", c.knob, c.text, got, c.want, c.wrong)
		}
	}
}

func TestDoctorUsage(t *testing.T) {
	var out, wrong bytes.Buffer
	if code := execute([]string{"doctor", "--time", "1s"}, &out, &wrong); code != exitUsage || !strings.Contains(wrong.String(), "--time: is of --speed") {
		t.Errorf("code %d: %s", code, wrong.String())
	}
}

func TestDropsUsage(t *testing.T) {
	for _, c := range []struct{ args, wrong string }{
		{"--port 0", `--port: want 1 to 65535, not "0"`}, {"--port 70000", "--port: want 1 to 65535"}, {"--port http", "--port: want 1 to 65535"},
		{"--port 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "--port: want at most 16, not 17"},
		{"--interval 10ms", `--interval: want 100ms to 1h, not "10ms"`}, {"--interval soon", "--interval: want 100ms to 1h"}, {"--time 0s", "--time: must be more than 0"}, {"x", "wrong number of arguments"},
	} {
		var out, wrong bytes.Buffer
		if code := execute(append([]string{"drops"}, strings.Fields(c.args)...), &out, &wrong); code != exitUsage || !strings.Contains(wrong.String(), c.wrong) {
			t.Errorf("drops %s: code %d, stderr %q; want %d, %q", c.args, code, wrong.String(), exitUsage, c.wrong)
		}
	}
}
