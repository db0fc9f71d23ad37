package main

import (
	"testing"
	"time"

	"pelt/test/sample"
)

// TestTellOverPause: a change whose begin moves as more runs come is told no more often where the loop paused.
func TestTellOverPause(t *testing.T) {
	told := func(pause int) (changes int) {
		l := &loop{commonFlags: &commonFlags{noStore: true}, every: 5 * time.Minute}
		for n, d := range sample.Again(40, 20, 0.02, 40, func(int) bool { return false }) {
			if n >= pause {
				d.Started = d.Started.Add(48 * time.Hour)
				d.Results[0].Started = d.Started
			}
			changes += len(l.changes(*d))
		}
		return changes
	}
	without := told(40)
	for pause := 16; pause < 24; pause++ {
		if n := told(pause); n != without || n == 0 {
			t.Errorf("a pause before run %d: %d changes were told, without a pause %d", pause, n, without)
		}
	}
}
