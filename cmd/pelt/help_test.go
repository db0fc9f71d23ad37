package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"pelt/render/plain"
)

// TestHelpFits: --help of each command is read in one look, --help-all has every flag, and no line is too wide.
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
	walk(newRoot(io.Discard, io.Discard), func(c *cobra.Command) {
		for _, lang := range []string{"en", "zh"} {
			var out bytes.Buffer
			execute(append(strings.Fields(c.CommandPath())[1:], "--help-all", "--lang", lang), &out, &out)
			for line := range strings.Lines(out.String()) {
				if n := plain.Width(strings.TrimRight(line, "\n")); n > helpWidth() {
					t.Errorf("%s in %s: %d columns: %s", c.CommandPath(), lang, n, line)
				}
			}
		}
	})
}
