package xdp

import (
	"math"
	"math/bits"
	"testing"

	"pelt/unit"
)

func TestInterval(t *testing.T) {
	for _, text := range []string{"1pps", "3pps", "333333pps", "14880952pps", "1mpps", "every 7us", "95mbit"} {
		c, _ := mustRate(t, text).Schedule(100)
		for _, n := range []uint64{1, 2, 7, 64} {
			whole, rest, parts := interval(c, n)
			got := (float64(whole) + float64(rest)/float64(parts)) / float64(n)
			want := 1e9 / c.PPS()
			if math.Abs(got-want) > want*1e-9 || rest >= parts || bits.Len64(parts) > 32 {
				t.Errorf("%s by %d: %d + %d/%d is %v ns a packet, want %v", text, n, whole, rest, parts, got, want)
			}
		}
	}
}

func mustRate(t testing.TB, text string) unit.Rate {
	t.Helper()
	r, err := unit.ParseRate(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
