package main

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pelt/docs"
	"pelt/internal/testenv"
	"pelt/render/plain"
)

// TestTopics: pelt help prints each page whole, in 80 columns and without marks of Markdown.
func TestTopics(t *testing.T) {
	marks := regexp.MustCompile("(?m)^```.*$|^[| -]+$|^#+|^=+$|^-+$")
	words := func(text string) []string {
		text = strings.ReplaceAll(marks.ReplaceAllString(text, ""), "|", " ")
		return slices.Sorted(slices.Values(strings.Fields(text)))
	}
	for _, topic := range topics {
		page, err := docs.Pages.ReadFile(topic + ".md")
		testenv.Must(t, err)
		var out bytes.Buffer
		if code := execute([]string{"help", topic}, &out, &out); code != exitOK {
			t.Fatalf("pelt help %s: exit code %d: %s", topic, code, out.String())
		}
		for line := range strings.Lines(out.String()) {
			if plain.Width(strings.TrimSpace(line)) > pageColumns {
				t.Errorf("pelt help %s: wider than %d columns: %s", topic, pageColumns, line)
			}
		}
		if strings.Contains(out.String(), "](") || strings.Contains(out.String(), "```") {
			t.Errorf("pelt help %s shows Markdown:\n%s", topic, out.String())
		}
		want, got := words(pageWords(string(page))), words(out.String())
		if !slices.Equal(got, want) {
			t.Errorf("pelt help %s: %d words, the page has %d; the first differences: %q", topic, len(got), len(want),
				differences(got, want))
		}
	}
	t.Setenv("PELT_LANG", "zh")
	for _, topic := range []string{"start", "story", "faq"} { // whose lines end anywhere, so only letters are compared
		page, err := docs.Pages.ReadFile(topic + ".zh-CN.md")
		testenv.Must(t, err)
		letters := func(text string) string {
			all := []rune(strings.Join(strings.Fields(strings.ReplaceAll(marks.ReplaceAllString(text, ""), "|", "")), ""))
			slices.Sort(all)
			return string(all)
		}
		var out bytes.Buffer
		if code := execute([]string{"help", topic}, &out, &out); code != exitOK ||
			letters(out.String()) != letters(pageWords(string(page))) {
			t.Errorf("pelt help %s: exit code %d, other letters than the Chinese page:\n%s", topic, code, out.String())
		}
		filled := pageText(codeBlock.ReplaceAllString(string(page), ""), pageColumns)
		if found := space.FindString(filled); found != "" {
			t.Errorf("pelt help %s has a space too many: %q", topic, found)
		}
	}
	t.Setenv("PELT_LANG", "en")
	for line, want := range map[string]string{"help explain": "pelt explain [RUN]", "help": "start, story, ledger, faq"} {
		var out bytes.Buffer
		if code := execute(strings.Fields(line), &out, &out); code != exitOK || !strings.Contains(out.String(), want) {
			t.Errorf("pelt %s: exit code %d, %s, want %q", line, code, out.String(), want)
		}
	}
}

// differences are the first words of two sorted lists that the other one lacks.
func differences(a, b []string) (out []string) {
	for len(a) > 0 && len(b) > 0 && len(out) < 10 {
		switch {
		case a[0] == b[0]:
			a, b = a[1:], b[1:]
		case a[0] < b[0]:
			out, a = append(out, "+"+a[0]), a[1:]
		default:
			out, b = append(out, "-"+b[0]), b[1:]
		}
	}
	return out
}
