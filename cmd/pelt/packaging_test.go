package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pelt/internal/testenv"
)

// TestPackagedServices: the service of the packages is as closed as the one that pelt join prints, and is off without a
// code. Shells and systemd read both services.
func TestPackagedServices(t *testing.T) {
	var printed strings.Builder
	if err := printUnit(&printed, []string{"pelt", "join"}); err != nil {
		t.Fatal(err)
	}
	unit, err := os.ReadFile("../../packaging/pelt.service")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := settingsOf(string(unit)), settingsOf(printed.String()); got != want {
		t.Errorf("settings of the service:\n%swant as pelt join --print-unit:\n%s", got, want)
	}
	if !strings.Contains(string(unit), "\nConditionPathExists=/etc/pelt/code\n") {
		t.Error("the service starts without a code")
	}
	testenv.Tool(t, "systemd-analyze")
	program, err := os.Executable() // for pelt, which need not be installed here
	copied := filepath.Join(t.TempDir(), "pelt.service")
	if err == nil {
		err = os.WriteFile(copied, []byte(strings.Replace(string(unit), "/usr/bin/pelt", program, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	// Of this service: others of the machine may have faults.
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", copied).CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("pelt.service")) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// TestPackagedInits: a service of a router starts a command that pelt has, with the flags that it has, and none without
// the files that it needs.
func TestPackagedInits(t *testing.T) {
	for script, want := range map[string]string{"pelt.init": "serve --observe-only --code-file %s/code",
		"pelt-join.init": "join hub.example --code-file %s/code"} {
		text, err := os.ReadFile("../../packaging/" + script)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		start := strings.ReplaceAll(string(text), "/etc/pelt", dir) + `
procd_open_instance() { :; }
procd_close_instance() { :; }
procd_set_param() { [ "$1" != command ] || { shift 2; echo "$*"; }; }
start_service
`
		if out, err := exec.Command("sh", "-c", start).CombinedOutput(); err == nil || strings.Contains(string(out), "--") {
			t.Errorf("%s: starts without its files: %s", script, out)
		}
		for name, content := range map[string]string{"hub": "hub.example", "code": "a code"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, err := exec.Command("sh", "-c", start).CombinedOutput()
		if err != nil || string(out) != strings.ReplaceAll(want, "%s", dir)+"\n" {
			t.Errorf("%s: %v, runs %q", script, err, out)
			continue
		}
		c, args, err := newRoot(io.Discard, io.Discard).Find(strings.Fields(string(out)))
		if err == nil {
			err = c.ParseFlags(args)
		}
		if err != nil {
			t.Errorf("%s: %q: %v", script, out, err)
		}
	}
}

// settingsOf returns the lines of a unit's [Service] without the program.
func settingsOf(unit string) string {
	_, service, _ := strings.Cut(unit, "[Service]\n")
	service, _, _ = strings.Cut(service, "\n\n")
	_, rest, _ := strings.Cut(service, "\n")
	return rest + "\n"
}
