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
	testenv.Must(t, printUnit(&printed, []string{"pelt", "join"}))
	unit, err := os.ReadFile("../../packaging/pelt.service")
	testenv.Must(t, err)
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
	testenv.Must(t, err)
	// Of this service: others of the machine may have faults.
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", copied).CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("pelt.service")) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// TestPackagedInits: a service of a router starts a command that pelt has, with the flags that it has, and none without
// what it needs.
func TestPackagedInits(t *testing.T) {
	for _, c := range []struct{ script, settings, want string }{
		{"pelt.init", "", "serve --observe-only --code-file %s/code"},
		{"pelt-join.init", "hub=hub.example", "join hub.example --code-file %s/code"},
		{"pelt-join.init", "hub=hub.example name=attic-2", "join hub.example --code-file %s/code --name attic-2"},
		{"pelt-join.init", "", ""},
		{"pelt-join.init", "name=attic-2", ""},
	} {
		text, err := os.ReadFile("../../packaging/" + c.script)
		testenv.Must(t, err)
		dir := t.TempDir()
		start := strings.ReplaceAll(string(text), "/etc/pelt", dir) + `
procd_open_instance() { :; }
procd_close_instance() { :; }
procd_set_param() { [ "$1" != command ] || { shift 2; printf '%s\n' "$*"; }; }
config_load() { [ "$1" = pelt ]; }
config_get() { # VARIABLE SECTION OPTION
  for setting in $SETTINGS; do
    [ "$2.$3" != "join.${setting%%=*}" ] || eval "$1=\${setting#*=}"
  done
}
start_service
`
		run := func() (string, error) {
			shell := exec.Command("sh", "-c", start)
			shell.Env = append(os.Environ(), "SETTINGS="+c.settings)
			out, err := shell.CombinedOutput()
			return string(out), err
		}
		if out, err := run(); err == nil || strings.Contains(out, "--") {
			t.Errorf("%s with %q: starts without a code: %s", c.script, c.settings, out)
		}
		testenv.Must(t, os.WriteFile(filepath.Join(dir, "code"), []byte("a code"), 0o600))
		out, err := run()
		if c.want == "" {
			if err == nil || !strings.Contains(out, "pelt.join.hub") || strings.Contains(out, "--") {
				t.Errorf("%s with %q: %v, %s; want no start, and how to name the hub", c.script, c.settings, err, out)
			}
			continue
		}
		if err != nil || out != strings.ReplaceAll(c.want, "%s", dir)+"\n" {
			t.Errorf("%s with %q: %v, runs %q", c.script, c.settings, err, out)
			continue
		}
		command, args, err := newRoot(io.Discard, io.Discard).Find(strings.Fields(out))
		if err == nil {
			err = command.ParseFlags(args)
		}
		if err != nil {
			t.Errorf("%s: %q: %v", c.script, out, err)
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
