package kernels

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// outcome is how one test of the guest, or a program with all its tests, ended.
type outcome struct {
	name    string // last part of the test's name
	action  string // pass, fail, skip; "" if it never ended
	seconds float64
	output  string
	tests   []*outcome // in the order they began
}

// readOutcome reads what a program printed that ran with -test.v=test2json.
func readOutcome(printed []byte) (*outcome, error) {
	cmd := exec.Command("go", "tool", "test2json", "-t")
	cmd.Stdin = bytes.NewReader(printed)
	events, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go tool test2json: %w", err)
	}
	all := &outcome{}
	for d := json.NewDecoder(bytes.NewReader(events)); ; {
		var e struct {
			Action, Test, Output string
			Elapsed              float64
		}
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		o := all.find(e.Test)
		switch e.Action {
		case "pass", "fail", "skip":
			o.action, o.seconds = e.Action, e.Elapsed
		case "output":
			o.output += e.Output
		}
	}
}

// find gives the outcome of the test with that full name, adding it where it is new.
func (o *outcome) find(name string) *outcome {
	if name == "" {
		return o
	}
	first, rest, _ := strings.Cut(name, "/")
	i := slices.IndexFunc(o.tests, func(t *outcome) bool { return t.name == first })
	if i < 0 {
		i = len(o.tests)
		o.tests = append(o.tests, &outcome{name: first})
	}
	return o.tests[i].find(rest)
}

// silent reports whether the test printed nothing of its own.
func (o *outcome) silent() bool {
	for line := range strings.Lines(o.output) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "=== ") &&
			!strings.HasPrefix(line, "--- ") {
			return false
		}
	}
	return true
}

// lacks matches how a guest test must say why it skips: "... needs Linux 6.4".
var lacks = regexp.MustCompile(`needs Linux ([0-9]+)\.([0-9]+)`)

// judge says what is wrong with this test on a kernel of that release, its
// subtests apart, and what it could not test there. Both are "" for most.
func (o *outcome) judge(release string) (wrong, untested string) {
	text := strings.TrimSpace(o.output)
	switch o.action {
	case "pass":
		return "", ""
	case "skip":
		need := lacks.FindStringSubmatch(text)
		if need == nil {
			return "skipped, and does not say which Linux it needs:\n" + text, ""
		}
		if !older(release, need[1], need[2]) {
			return fmt.Sprintf("skipped, though Linux %s is not older than %s.%s:\n%s", release, need[1], need[2],
				text), ""
		}
		return "", text
	case "fail":
		if o.silent() && slices.ContainsFunc(o.tests,
			func(t *outcome) bool { return t.action != "pass" && t.action != "skip" }) {
			return "", "" // only because of its subtests
		}
		return "failed:\n" + text, ""
	}
	if len(o.tests) > 0 && text == "" {
		return "", "" // only a part of other tests' names
	}
	return "never ended:\n" + text, ""
}

// older reports whether a release such as 6.1.0-56-cloud-amd64 is below major.minor.
func older(release, major, minor string) bool {
	var have [2]int
	if n, _ := fmt.Sscanf(release, "%d.%d", &have[0], &have[1]); n != 2 {
		return false
	}
	var want [2]int
	for i, digits := range []string{major, minor} {
		n, err := strconv.Atoi(digits)
		if err != nil {
			return false
		}
		want[i] = n
	}
	return slices.Compare(have[:], want[:]) < 0
}

// report makes a subtest of each test of the guest.
func (o *outcome) report(t *testing.T, release string) {
	for _, test := range o.tests {
		t.Run(test.name, func(t *testing.T) {
			test.report(t, release)
			wrong, untested := test.judge(release)
			if wrong != "" {
				t.Error(wrong)
			}
			if *guestRun != "" && wrong == "" {
				t.Log(test.output)
			}
			if untested != "" {
				t.Logf("not tested under Linux %s: %s", release, untested)
			}
		})
	}
}

// checkSelftest compares what was heard of testdata/selftest with what it does.
func checkSelftest(t *testing.T, d done, release string) {
	all, err := readOutcome(d.output)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct{ action, wrong, untested string }{
		"TestPasses":             {"pass", "", ""},
		"TestPasses/deep/er":     {"pass", "", ""},
		"TestFails":              {"fail", "", ""}, // said of its subtest
		"TestFails/here":         {"fail", "this was meant", ""},
		"TestFails/not_here":     {"pass", "", ""},
		"TestSkipsForNoReason":   {"skip", "does not say", ""},
		"TestSkipsForTheKernel":  {"skip", "", "99.1"},
		"TestSkipsForAnOldNeed":  {"skip", "not older", ""},
		"TestForges":             {"fail", "this was meant", ""},
		"TestLeavesThingsBehind": {"pass", "", ""},
		"TestPanics":             {"", "this was meant", ""},
	} {
		o := all.find(name)
		wrong, untested := o.judge(release)
		if o.action != want.action || (wrong == "") != (want.wrong == "") || !strings.Contains(wrong, want.wrong) ||
			(untested == "") != (want.untested == "") || !strings.Contains(untested, want.untested) {
			t.Errorf("%s: action %q, wrong %q, untested %q; want %+v", name, o.action, wrong, untested, want)
		}
	}
	if d.exit.Code != 2 {
		t.Errorf("exit code %d (%s), want 2, that of a panic", d.exit.Code, d.exit.Why)
	}
	for _, want := range []string{"process ", " left0: ", "mount tmpfs /tmp/left"} {
		if !slices.ContainsFunc(d.exit.Left, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("left behind: %q; want %q among it", d.exit.Left, want)
		}
	}
}
