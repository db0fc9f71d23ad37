package main

import (
	"bytes"
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
	if out, err := exec.Command("sh", "-n", "../../packaging/pelt.init").CombinedOutput(); err != nil {
		t.Errorf("pelt.init: %v\n%s", err, out)
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

// settingsOf returns the lines of a unit's [Service] without the program.
func settingsOf(unit string) string {
	_, service, _ := strings.Cut(unit, "[Service]\n")
	service, _, _ = strings.Cut(service, "\n\n")
	_, rest, _ := strings.Cut(service, "\n")
	return rest + "\n"
}
