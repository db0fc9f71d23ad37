package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"pelt/finding"
	"pelt/plan"
	"pelt/test/golden"
)

// TestWords: each line of the file begins with the name of a function, and is the words that it reads. Below stands
// what it makes of them.
func TestWords(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.FixedZone("CET", 3600))
	golden.Table(t, "testdata/words.txt", func(question string) string {
		what, text, _ := strings.Cut(question, " ")
		words := strings.Fields(text)
		said := func(got any, err error) string {
			if err != nil {
				return fmt.Sprintf("error (usage: %v): %v", isUsage(err), err)
			}
			return fmt.Sprint(got)
		}
		switch what {
		case "parseSince":
			at, err := parseSince(text, now)
			return said(at.Format(time.RFC3339), err)
		case "parseLevel":
			return said(parseLevel(words[0], words[1]))
		case "nodeLinkArgs":
			return strings.Join(nodeLinkArgs(words), " ")
		case "keptArguments":
			kept := strings.Join(keptArguments(words), " ")
			if strings.Join(words, " ") != text {
				t.Errorf("the arguments themselves became %q", words)
			}
			return kept
		case "listenAddress":
			c := newServe()
			if err := c.ParseFlags(words); err != nil {
				return said("", err)
			}
			port, _ := c.Flags().GetInt("port")
			listen, _ := c.Flags().GetString("listen")
			at, err := listenAddress(c, listen, &port)
			return said(fmt.Sprint(at, port), err)
		case "whole":
			c, rest, err := newRoot(io.Discard, io.Discard).Find(words)
			if err == nil {
				err = c.ParseFlags(rest)
			}
			return said(whole(c, c.Flags().Args()...), err)
		case "given", "long":
			c, rest, err := newRoot(io.Discard, io.Discard).Find(words)
			if err == nil {
				err = c.ParseFlags(rest)
			}
			flags := given(c.Flags())
			if what == "given" || err != nil {
				var list []string
				for _, name := range slices.Sorted(maps.Keys(flags)) {
					list = append(list, name+"="+strings.Join(flags[name], ","))
				}
				return said(strings.Join(list, " "), err)
			}
			kinds := finding.Kinds()
			i := slices.IndexFunc(kinds, func(k finding.Kind) bool { return k.Command == c.Name() })
			p, err := planOf(kinds[i].Preset, plan.Settings{Target: c.Flags().Arg(0), Flags: flags})
			return said(long(p), err)
		}
		t.Fatalf("unknown: %s", question)
		return ""
	})
}

// TestErrorsInChinese: what a user reads who typed something wrong, and whose language is Chinese.
func TestErrorsInChinese(t *testing.T) {
	t.Setenv("PELT_LANG", "zh")
	t.Setenv("PELT_DATA", t.TempDir())
	golden.Table(t, "testdata/chinese.txt", func(question string) string {
		var out, said strings.Builder
		if code := execute(strings.Fields(question), &out, &said); code != exitUsage {
			t.Errorf("pelt %s: exit code %d, want %d", question, code, exitUsage)
		}
		if found := space.FindString(out.String() + said.String()); found != "" {
			t.Errorf("pelt %s has a space too many: %q", question, found)
		}
		return out.String() + said.String()
	})
}

// space is a space too many in Chinese: between two Han characters, or beside a full-width mark. Columns of a table have
// two between them.
var space = regexp.MustCompile(`\p{Han} \p{Han}|[，。；：、！？（）] \S|\S [，。；：、！？（）]`)

// TestHelpInChinese: what --help says of each command is Chinese, but for names and examples, with --lang anywhere.
func TestHelpInChinese(t *testing.T) {
	english := regexp.MustCompile(`\b(the|and|of|is|with|in place)\b|\(default`)
	walk(newRoot(io.Discard, io.Discard), func(c *cobra.Command) {
		var out, said strings.Builder
		args := append(strings.Fields(c.CommandPath())[1:], "--help-all", "--lang", "zh")
		if code := execute(args, &out, &said); code != exitOK {
			t.Errorf("pelt %s: exit code %d: %s", strings.Join(args, " "), code, said.String())
		}
		text := strings.ReplaceAll(out.String(), c.Example, "")
		if at := english.FindStringIndex(text); at != nil {
			t.Errorf("pelt %s has English words: %q", strings.Join(args, " "), text[max(at[0]-60, 0):at[1]+40])
		}
		if found := space.FindString(text); found != "" {
			t.Errorf("pelt %s has a space too many: %q", strings.Join(args, " "), found)
		}
		if !regexp.MustCompile(`\p{Han}{4}`).MatchString(text) {
			t.Errorf("pelt %s is not Chinese:\n%s", strings.Join(args, " "), text)
		}
	})
}
