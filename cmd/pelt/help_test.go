package main

import (
	"bytes"
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
