package main

import (
	"testing"
	"time"

	"pelt/model"
	"pelt/store"
)

func TestParseSince(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.FixedZone("CET", 3600))
	for text, want := range map[string]string{
		"":                     "0001-01-01T00:00:00Z",
		"90m":                  "2026-11-21T10:30:00+01:00",
		"24h":                  "2026-11-20T12:00:00+01:00",
		"7d":                   "2026-11-14T12:00:00+01:00",
		"2026-11-01":           "2026-11-01T00:00:00+01:00",
		"2026-11-01 08:30":     "2026-11-01T08:30:00+01:00",
		"2026-11-01T08:30:00Z": "2026-11-01T08:30:00Z",
		"yesterday":            "error",
		"-3h":                  "error",
		"-3d":                  "error",
		"1.5d":                 "error",
		"7":                    "error",
		"2026-13-01":           "error",
		"9999999999999d":       "error",
	} {
		got, err := parseSince(text, now)
		if said := got.Format(time.RFC3339); err == nil && said != want || (err != nil) != (want == "error") || err != nil && !isUsage(err) {
			t.Errorf("parseSince(%q) = %s, %v; want %s", text, said, err, want)
		}
	}
}

func TestRunFilter(t *testing.T) {
	at := time.Date(2026, 11, 21, 7, 41, 0, 0, time.UTC)
	run := store.Summary{ID: "20261121-0741-k3f", Started: at, Command: "curve", Target: "192.168.1.5:7359", State: store.Complete, Headline: &model.Finding{Code: "packets limit"}}
	for _, c := range []struct {
		name   string
		filter runFilter
		want   bool
	}{
		{"none", runFilter{}, true},
		{"since then", runFilter{since: at}, true},
		{"since later", runFilter{since: at.Add(1)}, false},
		{"its command", runFilter{command: "curve"}, true},
		{"another command", runFilter{command: "cur"}, false},
		{"its target", runFilter{target: "192.168.1.5:7359"}, true},
		{"its host", runFilter{target: "192.168.1.5"}, true},
		{"another host", runFilter{target: "192.168.1.50"}, false},
		{"a part of its host", runFilter{target: "192.168.1"}, false},
		{"words of two columns", runFilter{words: []string{"LIMIT", "192.168"}}, true},
		{"a word that is not there", runFilter{words: []string{"limit", "router"}}, false},
	} {
		if got := c.filter.matches(run); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
