package view_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pelt/finding"
	"pelt/model"
	"pelt/table"
	"pelt/test/golden"
	"pelt/view"
	"pelt/words"
)

var (
	// English are words in a row. Names, units and commands have capitals, digits or marks, or stand alone.
	english = regexp.MustCompile(`[a-z]{2,}( [a-z]{2,})+`)
	han     = regexp.MustCompile(`\p{Han}`)
	latin   = regexp.MustCompile(`[A-Za-z][a-z]{2,}`)
	command = regexp.MustCompile(`(pelt|ethtool|sysctl|ip|tc|nft|echo|cpupower) [ -~]*|--[a-z-]+( [a-z]+)?|lab:[a-z]+`)
	// elsewhere are sentences of other programs and of files, and settings of links by node.
	elsewhere = regexp.MustCompile(`Connection to .* remote host|the link keeps its settings|` +
		`the only engine asked of this kernel that needs no rights|[a-z0-9-]+ does not answer|` +
		`svg onload|the receiver's control connection went away|(no )?link-[a-z]+ [a-z]+`)
	// mixed are marks of two scripts in one sentence, marks that stand twice, and spaces beside full-width marks.
	mixed  = regexp.MustCompile(`\p{Han} ?[,;:()]|[,;:(]\p{Han}|[，。；：、]{2}|）（|（（|[，。；：、（）] \S|\S [，。；：、（）]`)
	number = regexp.MustCompile(`[0-9]+([  .][0-9]+)*`)
	// synonyms of unexplained, 原因不明 in Chinese; and what stands for a word or a number that is missing
	synonyms = regexp.MustCompile(`(?i)unattributed|known (cause|place)|位置未知|<no |NaN`)
	dates    = regexp.MustCompile(`\d+ (January|February|March|April|May|June|July|August|September|October|November|` +
		`December)( \d{4})?,|\d{4}-\d\d-\d\d|\d\d-\d\d`)
)

// inLanguage are the pages of all documents in a language, and the accounts of what each one lost.
func inLanguage(t *testing.T, l words.Language) map[string]view.Page {
	out := allPages(t, l)
	for i, d := range records() {
		out[fmt.Sprintf("record-%d", i+1)] = view.Record(l, d)
	}
	drops := view.NewDrops(l, "", true)
	for _, x := range liveDrops() {
		drops.Add(x)
	}
	out["drops"] = drops.Page()
	for name, d := range documents() {
		d.Language = l
		if len(d.Results) > 0 {
			out[name+", explained"] = explain(t, &d, finding.Ask{})
		}
	}
	return out
}

// TestStoredHeadlines: lists say what a run showed in the language of their reader, as its page does.
func TestStoredHeadlines(t *testing.T) {
	for name, d := range documents() {
		kept := finding.Kept(d)
		for _, l := range []words.Language{words.English, words.Chinese} {
			want := allPages(t, l)[name].Verdict
			if got := finding.FromStored(kept[0], l).Parts()[0]; got != want {
				t.Errorf("%s: kept as %+v, and read as\n%s\nwant\n%s", name, kept[0], got, want)
			}
		}
	}
}

// TestChinesePages: a page in Chinese has the figures of the one in English, and no English words but names.
func TestChinesePages(t *testing.T) {
	english, chinese := inLanguage(t, words.English), inLanguage(t, words.Chinese)
	var brief strings.Builder
	for _, name := range slices.Sorted(maps.Keys(chinese)) {
		page := chinese[name]
		fmt.Fprintf(&brief, "%s\n%s\n%s\n", strings.Repeat("=", 80), name, text(t, page, false))
		for _, found := range leftInEnglish(page) {
			t.Errorf("%s: %s", name, found)
		}
		if found := synonyms.FindString(text(t, english[name], true) + text(t, page, true)); found != "" {
			t.Errorf("%s: %q, want unexplained, or 原因不明", name, found)
		}
		was, is := figuresOf(english[name]), figuresOf(page)
		for n, times := range was {
			if is[n] < times {
				t.Errorf("%s: %q stands %d times in English and %d times in Chinese", name, n, times, is[n])
			}
		}
	}
	golden.File(t, "testdata/chinese.txt", brief.String())
}

// TestLabelsInChinese: each metric and each setting has a Chinese label, and words for its values.
func TestLabelsInChinese(t *testing.T) {
	check := func(label string) {
		if latin.MatchString(label) && words.Chinese.Say(label) == label && label != "DSCP" {
			t.Errorf("no Chinese label for %q", label)
		}
	}
	for _, m := range table.Metrics() {
		check(m.Label)
	}
	for _, k := range model.Knobs() {
		if k.Varies {
			check(k.Title())
			check(k.Phrase)
			check(k.Zero)
		}
	}
}

// leftInEnglish are the texts of a page that are English still, or have English marks.
func leftInEnglish(p view.Page) (left []string) {
	sentence := func(s string) {
		if found := mixed.FindString(s); found != "" {
			left = append(left, fmt.Sprintf("marks %q in %q", found, s))
		}
		s = elsewhere.ReplaceAllString(command.ReplaceAllString(s, ""), "")
		if found := english.FindString(s); found != "" {
			left = append(left, fmt.Sprintf("%q in %q", found, s))
		}
	}
	label := func(s string) {
		if sentence(s); latin.MatchString(s) && !han.MatchString(s) {
			left = append(left, fmt.Sprintf("label %q", s))
		}
	}
	for _, s := range slices.Concat([]string{p.Verdict, p.Why}, p.Facts, p.Doubts) {
		sentence(s)
	}
	for _, s := range p.Next {
		sentence(s.Text)
	}
	label(p.Title)
	for _, s := range slices.Concat(p.Sections, p.SetUp) {
		switch s := s.(type) {
		case view.Heading:
			sentence(s.Text)
		case view.Text:
			sentence(s.Text)
		case view.Tiles:
			for _, x := range s {
				label(x.Label)
				sentence(x.Value)
				sentence(x.Note)
			}
		case view.Table:
			label(s.Title)
			sentence(s.Note)
			for i, c := range s.Columns {
				if c.Label != c.Name { // the name of a side
					label(c.Label)
				}
				for _, row := range s.Rows {
					if !slices.Contains([]string{"text", "command"}, c.Name) { // words of routers
						sentence(row[i].Text)
						sentence(row[i].Note)
					}
				}
			}
		case view.Chart:
			label(s.Title)
			sentence(s.Note)
			label(s.X.Label)
			label(s.Y.Label)
			for _, x := range s.Series {
				sentence(x.Name)
			}
		case view.Times:
			label(s.Title)
			sentence(s.Note)
			for _, l := range s.Lanes {
				label(l.Label)
			}
			for _, c := range s.Changes {
				sentence(c.Text)
			}
		case view.Path:
			label(s.Title)
			for _, l := range s.Losses {
				sentence(l.Text)
			}
		}
	}
	return left
}

// figuresOf counts the numbers in the sentences of a page, but for dates.
func figuresOf(p view.Page) map[string]int {
	count := map[string]int{}
	for _, s := range slices.Concat([]string{p.Verdict, p.Why}, p.Facts, p.Doubts) {
		for _, n := range number.FindAllString(dates.ReplaceAllString(s, ""), -1) {
			count[n]++
		}
	}
	return count
}
