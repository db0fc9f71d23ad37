package main

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pelt/docs"
	"pelt/render/plain"
	"pelt/words"
)

// topics are the pages that pelt help prints.
var topics = []string{"start", "story", "ledger", "faq"}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:       "help [COMMAND | TOPIC]",
		Short:     "Show the help of a command, or a page: " + strings.Join(topics, ", "),
		Example:   "  pelt help start",
		Args:      cobra.ArbitraryArgs,
		ValidArgs: topics,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && slices.Contains(topics, args[0]) {
				page, err := docs.Pages.ReadFile(args[0] + "." + spoken().Tag() + ".md")
				if errors.Is(err, fs.ErrNotExist) {
					page, err = docs.Pages.ReadFile(args[0] + ".md")
				}
				if err != nil {
					return err
				}
				_, err = fmt.Fprint(c.OutOrStdout(), pageText(string(page), pageColumns))
				return err
			}
			command, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("no command and no topic is named %q; topics are %s", strings.Join(args, " "),
					strings.Join(topics, ", "))
			}
			command.InitDefaultHelpFlag()
			return command.Help()
		},
	}
}

// pageColumns is how wide a page is printed: its examples are as wide.
const pageColumns = 80

var (
	pageLink = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	pageItem = regexp.MustCompile(`^(- |[0-9]+\. )(.*)`)
	pageRule = regexp.MustCompile(`^[| -]+$`)
)

// pageText returns Markdown as a terminal shows it: filled paragraphs, tables in columns, and the words of links.
func pageText(page string, columns int) string {
	var out, paragraph []string
	var rows [][]string
	head := ""
	flush := func() {
		if len(paragraph) > 0 {
			indent := strings.Repeat(" ", len(head))
			lines := strings.Split(pageWords(strings.Join(paragraph, "\n")), "\n")
			out = append(out, plain.Wrap(joinedLines(lines), head, indent, columns)...)
		}
		out = append(out, plain.Table(rows, columns)...)
		paragraph, rows, head = nil, nil, ""
	}
	example := false
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		item := pageItem.FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, "```"):
			flush()
			example = !example
		case example:
			out = append(out, line)
		case strings.HasPrefix(line, "#"):
			title := pageWords(strings.TrimLeft(line, "# "))
			rule := [2]string{"=", "-"}[min(strings.Count(strings.Fields(line)[0], "#"), 2)-1]
			out = append(out, title, strings.Repeat(rule, plain.Width(title)))
		case line == "":
			flush()
			out = append(out, "")
		case pageRule.MatchString(line):
		case strings.HasPrefix(line, "|"):
			cells := strings.Split(strings.Trim(pageWords(line), "| "), " | ")
			rows = append(rows, cells)
		case item != nil:
			flush()
			head, paragraph = item[1], []string{item[2]}
		default:
			paragraph = append(paragraph, strings.TrimSpace(line))
		}
	}
	flush()
	return strings.Join(out, "\n") + "\n"
}

// joinedLines is a paragraph in one line. Where a line ends, Chinese has a space only beside a Latin word.
func joinedLines(lines []string) string {
	text := lines[0]
	for _, line := range lines[1:] {
		text = words.Chinese.Append(text+" ", line)
	}
	return text
}

// pageWords returns a text without the marks of links and bold words.
func pageWords(text string) string {
	return strings.ReplaceAll(pageLink.ReplaceAllString(text, "$1"), "**", "")
}
