package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pelt/test/golden"
)

// TestExitCodes: docs/scripting.md says what the exit codes mean, in the words of the manual.
func TestExitCodes(t *testing.T) {
	var table strings.Builder
	table.WriteString("| exit code | meaning |\n| --- | --- |\n")
	for _, e := range exitTexts {
		fmt.Fprintf(&table, "| %s | %s |\n", e.code, e.text)
	}
	golden.Part(t, "../../docs/scripting.md", "exit codes", table.String()+"\n"+exitExceptions)
}

// exitTexts is what each exit code means.
var exitTexts = []struct{ code, text string }{
	{"0", "ran and passed"},
	{"1", "error"},
	{"2", "usage, or a broken file: nothing was done"},
	{"3", "ran, and a limit (--max-loss, --fail-if) failed, or nothing came through, in a mesh or star between some of " +
		"the hosts"},
	{"4", "ran, but a trial is invalid, nothing can be compared, or a limit (--fail-if) cannot be judged"},
	{"130", "interrupted; what was measured is kept and reported"},
}

const exitExceptions = "`pelt lab exec` ends with its program's own code, and `pelt serve` with 0 at Ctrl-C.\n"

func walk(c *cobra.Command, visit func(*cobra.Command)) {
	if c.Hidden || c.Name() == "help" || c.Name() == "completion" { // cobra's own
		return
	}
	visit(c)
	for _, sub := range c.Commands() {
		walk(sub, visit)
	}
}

// testPaths are the commands that test something with most of the flags.
var testPaths = []string{"pelt curve", "pelt sweep", "pelt router", "pelt cc", "pelt soak", "pelt ndr",
	"pelt latency"}

// sharedFlags are those that every test has, and the others that several commands have, with the same words.
func sharedFlags(root *cobra.Command) (every, several *pflag.FlagSet) {
	every, several = pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	inTests, inAll, flags := map[string]int{}, map[string]int{}, map[string]*pflag.Flag{}
	walk(root, func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			key := f.Name + "\n" + f.Usage
			if f.Hidden || f.Name == "help" {
				return
			}
			if flags[key] == nil || c.Name() == "curve" {
				flags[key] = f
			}
			if inAll[key]++; slices.Contains(testPaths, c.CommandPath()) {
				inTests[key]++
			}
		})
	})
	for _, key := range slices.Sorted(maps.Keys(flags)) {
		f := flags[key]
		switch {
		case inTests[key] >= len(testPaths)-1: // the one that has it not says so
			every.AddFlag(f)
		case inAll[key] > 1 && (several.Lookup(f.Name) == nil ||
			inAll[key] > inAll[f.Name+"\n"+several.Lookup(f.Name).Usage]):
			several = without(several, f.Name)
			several.AddFlag(f)
		}
	}
	return every, several
}

func without(flags *pflag.FlagSet, name string) *pflag.FlagSet {
	out := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != name {
			out.AddFlag(f)
		}
	})
	return out
}

// ownFlags returns the flags that only this command has, and lines that name the shared ones and their defaults.
func ownFlags(c *cobra.Command, every, several *pflag.FlagSet) (own *pflag.FlagSet, shared string) {
	own = pflag.NewFlagSet("", pflag.ContinueOnError)
	var lines, others, defaults, lacks []string
	test := slices.Contains(testPaths, c.CommandPath())
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		ofEvery, ofSeveral := every.Lookup(f.Name), several.Lookup(f.Name)
		switch {
		case f.Hidden || f.Name == "help":
			return
		case test && ofEvery != nil && ofEvery.Usage == f.Usage:
		case ofEvery != nil && ofEvery.Usage == f.Usage, ofSeveral != nil && ofSeveral.Usage == f.Usage:
			others = append(others, "--"+f.Name)
		default:
			own.AddFlag(f)
			return
		}
		usual := cmp.Or(ofEvery, ofSeveral) // whose defaults are those of pelt curve
		none := f.DefValue == "" || f.DefValue == "false" || f.DefValue == "0s"
		if !none && usual.DefValue != f.DefValue {
			defaults = append(defaults, "--"+f.Name+" "+f.DefValue)
		}
	})
	if test {
		every.VisitAll(func(f *pflag.Flag) {
			if own := c.LocalFlags().Lookup(f.Name); own == nil || own.Hidden {
				lacks = append(lacks, "`--"+f.Name+"`")
			}
		})
		line := "Also the flags of every test"
		if len(lacks) > 0 {
			line += " except " + strings.Join(lacks, " ")
		}
		lines = append(lines, line+".")
	}
	if len(others) > 0 {
		lines = append(lines, "Also `"+strings.Join(others, "` `")+"`.")
	}
	if len(defaults) > 0 {
		lines = append(lines, "Defaults: `"+strings.Join(defaults, " ")+"`.")
	}
	return own, strings.Join(lines, "\n")
}

// TestHelpEndsWithAnExample: every command shows a line that works.
func TestHelpEndsWithAnExample(t *testing.T) {
	walk(newRoot(io.Discard, io.Discard), func(c *cobra.Command) {
		if c.Parent() != nil && c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
	})
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
