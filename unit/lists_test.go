package unit

import (
	"slices"
	"strings"
	"testing"
)

func TestParseList(t *testing.T) {
	for u, lists := range map[Unit]map[string][]float64{
		Ratio: {"0,1%,5%": {0, 0.01, 0.05}, "0..3%/1%": {0, 0.01, 0.02, 0.03}, // no 0.030000000000000002
			"0.5, 0..1/1": {0.5, 0, 1}, "0..30%/10%": {0, 0.1, 0.2, 0.3}},
		BPS:     {"0,1mbit,10mbit..20mbit/5mbit": {0, 1e6, 10e6, 15e6, 20e6}},
		Seconds: {"0..3ms/1ms": {0, 0.001, 0.002, 0.003}, "0,5ms": {0, 0.005}, "7ms": {0.007}, "1ms..2ms/400us,1s": {0.001, 0.0014, 0.0018, 1}},
		Nanos:   {"0,1500us": {0, 1.5e6}},
	} {
		for text, want := range lists {
			if got, err := ParseList(u, text); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s %q = %v, %v; want %v", u, text, got, err, want)
			}
		}
	}
	for u, lists := range map[Unit]map[string]string{
		Ratio: {"": "share", "1%,1%": `names a value of "1%" twice`, "0..2%/1%, 0.01": `names a value of "0.01" twice`, "5%..1%/1%": "range with a step", "0..5%": "range with a step",
			"0..5%/0": "range with a step", "120%": "between 0 and 100%", "0..1/0.00001": "more than 10000 values", "x": "share", "-1%": "share"},
		BPS: {"": "rate", "1mbit,1000kbit": "twice", "5": "rate", "10mbit..1mbit/1mbit": "range", "1mbit..2mbit": "range", "1mbit..2mbit/0": "range"},
		Seconds: {"9ms..1ms/1ms": "want durations", "0..9ms": "want durations", "0..9ms/0": "want durations", "5": "lacks a unit", "1ms,1ms": "twice",
			"0..1h/1ns": "more than 10000", "": "want a number"},
	} {
		for text, want := range lists {
			if got, err := ParseList(u, text); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %q = %d values, %v; want an error that says %q", u, text, len(got), err, want)
			}
		}
	}
	if got, err := ParseList(Ratio, "0.0001..1/0.0001"); err != nil || len(got) != MaxListLength {
		t.Errorf("%d values, %v; want %d", len(got), err, MaxListLength)
	}
}
