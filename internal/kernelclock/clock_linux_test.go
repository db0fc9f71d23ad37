package kernelclock

import "testing"

func TestOffsetOfTimeNamespace(t *testing.T) {
	for text, want := range map[string]int64{
		"": 0,
		"monotonic           0         0\nboottime            0         0\n":   0,
		"monotonic       86400         5\nboottime            1         0\n":   86400e9 + 5,
		"monotonic         -10 500000000\nboottime            0         0\n":   -9.5e9,
		"boottime            7         0\nmonotonic           x         0\n\n": 0,
	} {
		if got := offsetOf(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
