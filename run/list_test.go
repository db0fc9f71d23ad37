package run

import (
	"testing"
	"time"

	"pelt/model"
	"pelt/store"
)

func TestRunFilter(t *testing.T) {
	at := time.Date(2026, 11, 21, 7, 41, 0, 0, time.UTC)
	stored := store.Summary{ID: "20261121-0741-k3f", Started: at, Command: "curve", Target: "192.168.1.5:7359",
		State: store.Complete, Headline: &model.Finding{Code: "packets limit"},
		Label: store.Label{Name: "the Old switch", Tags: []string{"lan"}}}
	for _, c := range []struct {
		name   string
		filter Filter
		want   bool
	}{
		{"none", Filter{}, true},
		{"since then", Filter{Since: at}, true},
		{"since later", Filter{Since: at.Add(1)}, false},
		{"its command", Filter{Words: []string{"curve"}}, true},
		{"its host", Filter{Words: []string{"192.168.1.5"}}, true},
		{"another host", Filter{Words: []string{"192.168.1.6"}}, false},
		{"words of two columns", Filter{Words: []string{"LIMIT", "192.168"}}, true},
		{"its name and tag", Filter{Words: []string{"old", "#lan"}}, true},
		{"a word that is not there", Filter{Words: []string{"limit", "router"}}, false},
	} {
		if got := c.filter.Matches(stored); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
