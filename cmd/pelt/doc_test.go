package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/commands.md anew")

// TestCommandsPage keeps docs/commands.md the same text as --help.
func TestCommandsPage(t *testing.T) {
	const path = "../../docs/commands.md"
	var page bytes.Buffer
	fmt.Fprint(&page, "# Commands\n\nThe texts of `pelt COMMAND --help-all`, written by `go test ./cmd/pelt -update`.\n\n"+exitCodes)
	shared := sharedFlags(newRoot(io.Discard, io.Discard))
	fmt.Fprintf(&page, "\n## Flags of several commands\n\n```\n%s```\n", shared.FlagUsagesWrapped(pageWidth))
	walk(newRoot(io.Discard, io.Discard), func(c *cobra.Command) { writeHelp(&page, c, shared) })
	if *update {
		if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(old, page.Bytes()) {
		t.Errorf("%s differs from the help texts; run go test ./cmd/pelt -update", path)
	}
}

const exitCodes = `| exit code | meaning |
| --- | --- |
| 0 | ran and passed |
| 1 | error |
| 2 | usage: nothing was done |
| 3 | ran, and a limit (--max-loss, --fail-if) failed |
| 4 | ran, but a trial is invalid, or nothing valid is there to compare |
| 130 | interrupted; what was measured is kept and reported |

` + "`pelt lab exec` ends with its program's own code, and `pelt serve` with 0 at Ctrl-C.\n"

func walk(c *cobra.Command, visit func(*cobra.Command)) {
	if c.Hidden || c.Name() == "help" || c.Name() == "completion" { // cobra's own
		return
	}
	visit(c)
	for _, sub := range c.Commands() {
		walk(sub, visit)
	}
}

const pageWidth = 118

// sharedFlags are those that at least three commands have with the same words.
func sharedFlags(root *cobra.Command) *pflag.FlagSet {
	commands := map[string]int{} // by the flag's name and words
	shared := pflag.NewFlagSet("", pflag.ContinueOnError)
	walk(root, func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			key := f.Name + "\n" + f.Usage + "\n" + f.DefValue
			if commands[key]++; commands[key] == 3 && !f.Hidden && f.Name != "help" && shared.Lookup(f.Name) == nil {
				shared.AddFlag(f)
			}
		})
	})
	return shared
}

// writeHelp writes the section of a command: its words, examples and own flags, and the names of the shared ones.
func writeHelp(w io.Writer, c *cobra.Command, shared *pflag.FlagSet) {
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	fmt.Fprintf(w, "\n## %s\n\n%s\n\n```\n%s\n", c.CommandPath(), text, c.UseLine())
	if c.Example != "" {
		fmt.Fprintf(w, "\n%s\n", c.Example)
	}
	for _, sub := range c.Commands() {
		if !c.HasParent() && sub.IsAvailableCommand() {
			fmt.Fprintf(w, "  %-10s %s\n", sub.Name(), sub.Short)
		}
	}
	own, others := pflag.NewFlagSet("", pflag.ContinueOnError), []string{}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		common := shared.Lookup(f.Name)
		switch {
		case f.Hidden || f.Name == "help":
		case common != nil && common.Usage == f.Usage && common.DefValue == f.DefValue:
			others = append(others, "--"+f.Name)
		default:
			own.AddFlag(f)
		}
	})
	if own.HasFlags() {
		fmt.Fprintf(w, "\n%s", own.FlagUsagesWrapped(pageWidth))
	}
	fmt.Fprint(w, "```\n")
	if len(others) > 0 {
		fmt.Fprintf(w, "\nAlso `%s`.\n", strings.Join(others, "` `"))
	}
}

// TestHelpEndsWithAnExample: every command shows a line that works.
func TestHelpEndsWithAnExample(t *testing.T) {
	walk(newRoot(io.Discard, io.Discard), func(c *cobra.Command) {
		if c.Parent() != nil && c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
	})
}

func TestNodeLinkArgs(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"curve lab:nat --link-receiver rate=1mbit --time 1s", "curve lab:nat --node-link receiver:rate=1mbit --time 1s"},
		{"curve lab:nat --link-router=rate=1mbit", "curve lab:nat --node-link router:rate=1mbit"},
		{"curve lab:nat --link rate=1mbit", "curve lab:nat --link rate=1mbit"},
		{"lab exec r1 receiver -- x --link-y z", "lab exec r1 receiver -- x --link-y z"},
		{"curve lab:nat --link-sender", "curve lab:nat --node-link sender:"},
	} {
		if got := strings.Join(nodeLinkArgs(strings.Fields(c.in)), " "); got != c.want {
			t.Errorf("%q became %q, want %q", c.in, got, c.want)
		}
	}
}

// TestEnded: a child that could not be run is an error, never exit code 0.
func TestEnded(t *testing.T) {
	for _, c := range []struct {
		name string
		code int
		err  error
		want int
	}{
		{"ran", 0, nil, exitOK},
		{"ran, a limit failed", exitLimit, nil, exitLimit},
		{"not run", 0, io.ErrUnexpectedEOF, exitError},
	} {
		if got := exitFor(ended(c.code, c.err), io.Discard); got != c.want {
			t.Errorf("%s: exit code %d, want %d", c.name, got, c.want)
		}
	}
}
