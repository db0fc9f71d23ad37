package model

import "testing"

func TestParseVariant(t *testing.T) {
	for _, c := range []struct {
		text string
		lab  bool
		want Variant
	}{
		{"rules=10+log", true, Variant{Name: "rules=10+log"}},
		{"log+rules=10", true, Variant{Name: "log+rules=10"}},
		{"loud", true, Variant{Name: "loud"}},
		{"small = tc qdisc add dev x root pfifo limit=5", true,
			Variant{"small", "tc qdisc add dev x root pfifo limit=5"}},
		{"log=dmesg -n 8", false, Variant{"log", "dmesg -n 8"}},
		{"plain", false, Variant{Name: "plain"}},
	} {
		if got := ParseVariant(c.text, c.lab); got != c.want {
			t.Errorf("%q: %+v", c.text, got)
		}
	}
}
