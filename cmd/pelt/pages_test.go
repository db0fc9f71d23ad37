package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pelt/lab"
)

// Command lines of a page: in a block of code, and within a line.
var (
	codeBlock     = regexp.MustCompile("(?ms)^```.*?^```$")
	blockCommand  = regexp.MustCompile(`(?m)^(?:\$ )?pelt (?:[^\n]*\\\n)*[^\n]*$`)
	inlineCommand = regexp.MustCompile("`(pelt [^`\n]+)`")
)

// TestPageCommands: each command of README and docs exists and takes these flags. Those that send make a plan of them.
func TestPageCommands(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, path := range append(pages, "../../README.md") {
		if filepath.Base(path) == "commands.md" { // made of the commands
			continue
		}
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
		for _, line := range found {
			command, _, _ := strings.Cut(strings.TrimPrefix(line, "$ "), "  #")
			command, _, _ = strings.Cut(command, " > ")
			if err := checkCommand(command); err != nil {
				t.Errorf("%s: %s: %v", path, line, err)
			}
		}
	}
}

func checkCommand(line string) error {
	words, err := lab.SplitWords(line)
	if err != nil {
		return err
	}
	args := nodeLinkArgs(iperfArgs(words[1:]))
	if args[0] == "COMMAND" { // pelt COMMAND --help
		return nil
	}
	root := newRoot(io.Discard, io.Discard)
	c, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if c.Flags().Lookup("print-plan") != nil && c.Name() != "run" && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && !strings.Contains(line, " HOST") {
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
