package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pelt/model"
)

// Command lines of a page: in a block of code, and within a line.
var (
	codeBlock     = regexp.MustCompile("(?ms)^```.*?^```$")
	blockCommand  = regexp.MustCompile(`(?m)^(?:\$ )?(?:PELT_CODE=\S+ )?pelt (?:[^\n]*\\\n)*[^\n]*$`)
	inlineCommand = regexp.MustCompile("`(pelt [^`\n]+)`")
	inlineFlag    = regexp.MustCompile("`--([a-z0-9-]+)[^`\n]*`")
)

// TestPageCommands: each command and flag of README and docs exists. Commands that send make a plan of their flags.
func TestPageCommands(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	flags := map[string]bool{"help": true, "help-all": true}
	walk(newRoot(io.Discard, io.Discard), func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
	})
	for _, path := range append(pages, "../../README.md", "../../README.zh-CN.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, block := range codeBlock.FindAllString(string(text), -1) {
			found = append(found, blockCommand.FindAllString(block, -1)...)
		}
		for _, m := range inlineCommand.FindAllStringSubmatch(string(text), -1) {
			found = append(found, m[1])
		}
		for _, m := range inlineFlag.FindAllStringSubmatch(string(text), -1) {
			if !flags[m[1]] && !strings.HasPrefix(m[1], "link-") {
				t.Errorf("%s: no command has --%s", path, m[1])
			}
		}
		for _, line := range found {
			command := line[strings.Index(line, "pelt "):]
			command, _, _ = strings.Cut(command, "  #")
			command, _, _ = strings.Cut(command, " > ")
			if err := checkCommand(command); err != nil {
				t.Errorf("%s: %s: %v", path, line, err)
			}
		}
	}
}

func checkCommand(line string) error {
	words, err := exec.Command("sh", "-fc", "printf '%s\\n' "+line).Output()
	if err != nil {
		return err
	}
	args := nodeLinkArgs(strings.Split(strings.TrimSpace(string(words)), "\n")[1:])
	if args[0] == "COMMAND" { // pelt COMMAND --help
		return nil
	}
	root := newRoot(io.Discard, io.Discard)
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	c, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	asksHub := strings.Contains(line, " fleet:") && !strings.Contains(line, model.PairSeparator)
	if !asksHub && c.Flags().Lookup("print-plan") != nil && c.Name() != "run" && len(rest) > 0 &&
		!strings.HasPrefix(rest[0], "-") && !strings.Contains(line, " HOST") {
		root.SetArgs(append(args, "--print-plan"))
		return root.Execute()
	}
	if err := c.ParseFlags(rest); err != nil && strings.Contains(err.Error(), "needs an argument") {
		return nil // the flag is named, not given
	} else if err != nil || len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		return err // a command without its target is one by name
	}
	return c.ValidateArgs(c.Flags().Args())
}
