package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pelt/internal/testenv"
	"pelt/test/golden"
)

const manualPath = "../../docs/pelt.1"

// TestManual keeps docs/pelt.1 the same text as --help.
func TestManual(t *testing.T) {
	root := newRoot(io.Discard, io.Discard)
	every, several := sharedFlags(root)
	var page bytes.Buffer
	heading := func(name string) { fmt.Fprintf(&page, ".SH %s\n", name) }

	page.WriteString(".\\\" written by go test ./cmd/pelt -update\n.TH PELT 1 \"\" pelt \"pelt manual\"\n.nh\n.ad l\n")
	heading("NAME")
	fmt.Fprintf(&page, "%s \\- %s\n", roff(strings.Join(manualNames(root), ", ")), roff(root.Short))
	heading("SYNOPSIS")
	fmt.Fprintf(&page, "%s\n", roff(root.UseLine()+" COMMAND"))
	heading("DESCRIPTION")
	roffText(&page, root.Long)
	heading("COMMANDS")
	walk(root, func(c *cobra.Command) {
		if c == root {
			return
		}
		fmt.Fprintf(&page, ".SS %s\n", roff(c.CommandPath()))
		roffText(&page, cmp.Or(c.Long, c.Short+"."))
		roffBlock(&page, "  "+c.UseLine())
		roffBlock(&page, c.Example)
		own, shared := ownFlags(c, every, several)
		roffFlags(&page, own)
		roffText(&page, strings.ReplaceAll(shared, "`", ""))
	})
	heading("FLAGS OF EVERY TEST")
	roffText(&page, "Defaults are those of pelt curve.")
	roffFlags(&page, every)
	heading("FLAGS OF SEVERAL COMMANDS")
	roffFlags(&page, several)
	heading("FLAGS OF EVERY COMMAND")
	roffFlags(&page, root.PersistentFlags())
	heading("EXIT STATUS")
	for _, e := range exitTexts {
		roffItem(&page, e.code, e.text)
	}
	roffText(&page, strings.ReplaceAll(exitExceptions, "`", ""))
	golden.File(t, manualPath, page.String())
}

// manualNames are the pages of the manual: pelt, and a link to it for each command.
func manualNames(root *cobra.Command) []string {
	names := []string{root.Name()}
	walk(root, func(c *cobra.Command) {
		if c.Parent() == root {
			names = append(names, root.Name()+"-"+c.Name())
		}
	})
	return names
}

var roffEscapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

// roff escapes a text. A line that begins with a full stop would be a request.
func roff(text string) string {
	text = roffEscapes.Replace(text)
	return strings.ReplaceAll("\n"+text, "\n.", "\n\\&.")[1:]
}

func roffText(w io.Writer, text string) {
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if paragraph != "" {
			fmt.Fprintf(w, ".PP\n%s\n", roff(paragraph))
		}
	}
}

// roffBlock writes lines that are not filled.
func roffBlock(w io.Writer, lines string) {
	if lines != "" {
		fmt.Fprintf(w, ".PP\n.nf\n%s\n.fi\n", roff(lines))
	}
}

func roffItem(w io.Writer, head, text string) {
	fmt.Fprintf(w, ".TP\n%s\n%s\n", roff(head), roff(text))
}

func roffFlags(w io.Writer, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		one := pflag.NewFlagSet("", pflag.ContinueOnError)
		one.AddFlag(f)
		head, text, _ := strings.Cut(strings.TrimSpace(one.FlagUsages()), "   ") // as --help says it, on one line
		name, value, _ := strings.Cut(head, " ")
		fmt.Fprintf(w, ".TP\n\\fB%s\\fR %s\n%s\n", roff(name), roff(value), roff(strings.TrimSpace(text)))
	})
}

// TestManualPages: man and lexgrog read what packaging/manual makes: the page and a link to it for each command.
func TestManualPages(t *testing.T) {
	testenv.Tool(t, "man", "lexgrog")
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		t.Helper()
		c := exec.Command(name, args...)
		c.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "MANWIDTH=80", "MANROFFSEQ=")
		var warnings strings.Builder
		c.Stderr = &warnings
		out, err := c.Output()
		if err != nil || warnings.Len() > 0 {
			t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, warnings.String())
		}
		return string(out)
	}
	run("../../packaging/manual", dir)
	root := newRoot(io.Discard, io.Discard)
	names := run("lexgrog", filepath.Join(dir, "man1", "pelt.1"))
	for _, name := range manualNames(root) {
		if want := name + " - " + root.Short; !strings.Contains(names, want) {
			t.Errorf("lexgrog does not find %q:\n%s", want, names)
		}
		if path := run("man", "-M", dir, "-w", name); filepath.Dir(strings.TrimSpace(path)) != filepath.Join(dir, "man1") {
			t.Errorf("man finds %s at %q", name, path)
		}
	}
	text := run("man", "--warnings", "-M", dir, "pelt-compare")
	for _, want := range []string{"FLAGS OF EVERY TEST", "pelt compare last --by control --metric goodput,delay"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q", want)
		}
	}
}
