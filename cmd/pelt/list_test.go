package main

import (
	"testing"
	"time"
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
