package unit

import (
	"slices"
	"strings"
	"testing"
)

func TestRatioList(t *testing.T) {
	for text, want := range map[string][]float64{
		"0,1%,5%":     {0, 0.01, 0.05},
		"0..3%/1%":    {0, 0.01, 0.02, 0.03}, // no 0.030000000000000002
		"0.5, 0..1/1": {0.5, 0, 1},
		"0..30%/10%":  {0, 0.1, 0.2, 0.3},
	} {
		if got, err := ParseList(Ratio, text); err != nil || !slices.Equal(got, want) {
			t.Errorf("ratios %q = %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "share", "1%,1%": `names a value of "1%" twice`, "0..2%/1%, 0.01": `names a value of "0.01" twice`, "5%..1%/1%": "range with a step", "0..5%": "range with a step", "0..5%/0": "range with a step",
		"120%": "between 0 and 100%", "0..1/0.00001": "more than 10000 values", "x": "share", "-1%": "share",
	} {
		if got, err := ParseList(Ratio, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ratios %q = %d values, %v; want an error that says %q", text, len(got), err, want)
		}
	}
	if got, err := ParseList(Ratio, "0.0001..1/0.0001"); err != nil || len(got) != MaxListLength {
		t.Errorf("%d values, %v; want %d", len(got), err, MaxListLength)
	}
}

func TestBitRateList(t *testing.T) {
	got, err := ParseList(BPS, "0,1mbit,10mbit..20mbit/5mbit")
	if want := []float64{0, 1e6, 10e6, 15e6, 20e6}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for _, text := range []string{"", "1mbit,1000kbit", "5", "10mbit..1mbit/1mbit", "1mbit..2mbit", "1mbit..2mbit/0"} {
		if got, err := ParseList(BPS, text); err == nil {
			t.Errorf("bit rates %q = %v, want an error", text, got)
		}
	}
}
