package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// TestHelpFits: --help of each command is read in one look, --help-all has every flag.
func TestHelpFits(t *testing.T) {
	for _, command := range []string{"curve", "sweep", "router", "cc", "soak"} {
		var few, all bytes.Buffer
		if execute([]string{command, "--help"}, &few, &few) != exitOK ||
			execute([]string{command, "--help-all"}, &all, &all) != exitOK {
			t.Fatalf("%s: %s", command, few.String())
		}
		if n := strings.Count(few.String(), "\n      --"); n < 8 || n > mostFlags {
			t.Errorf("%s --help has %d flags, want 8 to %d", command, n, mostFlags)
		}
		if strings.Count(all.String(), "\n      --") <= strings.Count(few.String(), "\n      --") {
			t.Errorf("%s --help-all shows no more than --help", command)
		}
	}
}

// A wrong language is told wherever it stands; it is no error while a shell completes it.
func TestWrongLanguage(t *testing.T) {
	for _, c := range []struct {
		line string
		code int
		said string
	}{
		{"--lang fr", exitUsage, "pelt: --lang: want en or zh, not \"fr\"\n"},
		{"--help --lang=fr", exitUsage, "pelt: --lang: want en or zh, not \"fr\"\n"},
		{"version --lang fr", exitUsage, "pelt: --lang: want en or zh, not \"fr\"\n"},
		{"help start --lang fr", exitUsage, "pelt: --lang: want en or zh, not \"fr\"\n"},
		{"no-such --lang fr", exitUsage, "pelt: --lang: want en or zh, not \"fr\"\n"},
		{"version --lang zh", exitOK, ""},
	} {
		var said strings.Builder
		if code := execute(strings.Fields(c.line), io.Discard, &said); code != c.code || said.String() != c.said {
			t.Errorf("pelt %s: exit code %d, %q", c.line, code, said.String())
		}
	}
	if code := execute([]string{"__complete", "version", "--lang", "f"}, io.Discard, io.Discard); code != exitOK {
		t.Errorf("completing it: exit code %d", code)
	}
}
