package main

import (
	"os"
	"strings"
	"testing"

	"pelt/render/plain"
	"pelt/run"
	"pelt/words"
)

// TestDoctorFits: each check that package observe makes, in English and Chinese, fits into 80 columns, but for a command
// that is longer.
func TestDoctorFits(t *testing.T) {
	golden, err := os.ReadFile("../../observe/testdata/doctor.txt")
	if err != nil {
		t.Fatal(err)
	}
	checks := map[words.Language][]run.Check{}
	lines := strings.Split(string(golden), "\n")
	for i, line := range lines {
		name, detail, _ := strings.Cut(strings.TrimPrefix(line, "\t"), ": ")
		if !strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "\t\t") {
			continue
		}
		l := words.English
		if strings.ContainsFunc(name+detail+lines[i+1], wide) {
			l = words.Chinese
		}
		checks[l] = append(checks[l], run.Check{Name: name, Detail: detail, Reason: strings.TrimSpace(lines[i+1]),
			Remedy: strings.TrimSpace(lines[i+2])})
	}
	for l, list := range checks {
		if len(list) < 20 {
			t.Errorf("%d checks in %q", len(list), l)
		}
		for _, line := range checkLines(l, list, 80) {
			if n := plain.Width(line); n > 80 && !strings.Contains(line, "echo performance | sudo tee /sys/") {
				t.Errorf("%q: %d columns: %s", l, n, line)
			}
		}
	}
}

func wide(r rune) bool { return plain.Width(string(r)) == 2 }
