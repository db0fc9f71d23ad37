package lab

import (
	"math"
	"testing"
	"time"

	"pelt/unit"
)

func TestRate(t *testing.T) {
	for _, c := range []struct {
		topology, link string
		rate           unit.BitRate
		payload        int
		time           time.Duration
	}{
		{"direct", "rate=1mbit", 1e6, 1472, 3 * time.Second},
		{"router", "rate=1mbit", 1e6, 64, time.Second},
		{"direct", "rate=100mbit", 1e8, 1472, time.Second},
		{"switch", "rate=1gbit", 1e9, 1472, time.Second},
		{"direct", "rate=1gbit", 1e9, 1472, time.Second},
		{"router", "rate=1gbit", 1e9, 1472, time.Second},
	} {
		t.Run(c.topology+"/"+c.link, func(t *testing.T) {
			l := openLab(t, c.topology, c.link)
			f := floodFor(t, node(t, l, "sender"), node(t, l, "receiver"), 4, c.payload, c.time)
			got := f.pps * float64(c.payload+42) * 8
			t.Logf("sent %d received %d rate %.4f of asked", f.sent, f.received, got/float64(c.rate))
			if math.Abs(got/float64(c.rate)-1) > 0.01 {
				t.Errorf("%s %s payload %d: %.0f bit/s, want %d within 1 %%", c.topology, c.link, c.payload, got, c.rate)
			}
		})
	}
}
