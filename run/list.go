package run

import (
	"strconv"
	"strings"
	"time"

	"pelt/finding"
	"pelt/store"
	"pelt/words"
)

// Headline is what a stored run showed, or what is wrong with it.
func Headline(l words.Language, r store.Summary) string {
	switch {
	case r.Why != nil:
		return l.Error(r.Why)
	case r.Headline == nil:
		return ""
	}
	return finding.FromStored(*r.Headline, l).Parts()[0]
}

// Columns are a stored run's columns in lists: id, start, command, target, trials, state, name and tags, headline.
func Columns(l words.Language, r store.Summary) []string {
	trials := "-"
	if r.Trials != nil {
		trials = strconv.Itoa(*r.Trials)
	}
	return []string{r.ID, r.Started.Local().Format("2006-01-02 15:04"), r.Command, r.Target, trials, r.State,
		r.Label.Text(), Headline(l, r)}
}

// Filter says which stored runs are asked for; what is zero does not matter.
type Filter struct {
	words.Language // of the lists
	Since          time.Time
	Words          []string // each is anywhere in the line of a list, in any case
}

// Matches reports whether a stored run is asked for.
func (f Filter) Matches(r store.Summary) bool {
	if r.Started.Before(f.Since) {
		return false
	}
	line := strings.ToLower(strings.Join(Columns(f.Language, r), " "))
	for _, word := range f.Words {
		if !strings.Contains(line, strings.ToLower(word)) {
			return false
		}
	}
	return true
}
