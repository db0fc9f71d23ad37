package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pelt/internal/testenv"
	"pelt/render/plain"
)

// TestListFits: a line of the list is no wider than the terminal, and keeps its run and a part of its result.
func TestListFits(t *testing.T) {
	heads := []string{"RUN", "STARTED", "COMMAND", "TARGET", "TRIALS", "STATE", "NAME", "RESULT"}
	rows := [][]string{
		{"20261127-0741-k3f", "2026-11-27 07:41", "curve", "lab:router", "14", "complete", "",
			strings.Repeat("412 kpps at 64 B, ", 9)},
		{"20261127-0742-abc", "2026-11-27 07:42", "soak", strings.Repeat("2001:db8::", 9), "1", "cut", "",
			"None lost."},
		{"20261127-0743-qrs", "2026-11-27 07:43", "ndr", "lab:router", "-", "running", "", ""},
	}
	for width, want := range map[int]string{
		200: "RUN STARTED COMMAND TARGET TRIALS STATE RESULT", 100: "RUN COMMAND TARGET STATE RESULT",
		80: "RUN COMMAND RESULT", 40: "RUN RESULT",
	} {
		got, fitted := fitRuns(heads, rows, width)
		var out strings.Builder
		testenv.Must(t, printColumns(&out, strings.Join(got, "\t"), fitted))
		if strings.Join(got, " ") != want {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
		for line := range strings.Lines(out.String()) {
			if n := plain.Width(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("%d columns: %d: %s", width, n, line)
			}
		}
	}
	if _, fitted := fitRuns(heads, rows, 80); fitted[2][len(fitted[2])-1] != "running" {
		t.Errorf("a run that has no result yet shows %q", fitted[2])
	}
	if _, fitted := fitRuns(heads, rows, 20); fitted[0][len(fitted[0])-1] == "" {
		t.Error("no result at all")
	}
}

// TestDamagedRunInChinese: that a stored run cannot be read, and why, is said in the user's language.
func TestDamagedRunInChinese(t *testing.T) {
	data := t.TempDir()
	t.Setenv("PELT_LANG", "zh")
	t.Setenv("PELT_DATA", data)
	testenv.Must(t, os.MkdirAll(filepath.Join(data, "runs"), 0o700))
	testenv.Must(t, os.WriteFile(filepath.Join(data, "runs", "20261127-0741-k3f.jsonl"), []byte("none\n"), 0o600))
	var out, said strings.Builder
	if code := execute([]string{"list"}, &out, &said); code != exitOK || !strings.Contains(out.String(), "已损坏") ||
		!strings.Contains(out.String(), "应为格式") {
		t.Errorf("exit code %d: %s%s", code, out.String(), said.String())
	}
}
