package counters

import (
	"math"
	"testing"

	"pelt/model"
)

const statTwoCores = `cpu  3776 13565 4581 232218 324 0 65 32 0 0
cpu0 1583 6812 1921 116944 29 0 13 13 0 0
cpu1 2193 6753 2660 115273 295 0 51 19 0 0
intr 531103 0 0
ctxt 829566
softirq 192414 0 23576 5 17193 71142 0 294 39289 1 40914
`

func TestTicksSince(t *testing.T) {
	from := Ticks{100, 10, 50, 1000, 500, 5, 20, 1}
	for _, c := range []struct {
		name string
		to   Ticks
		want model.CPUSplit
		ok   bool
	}{
		{"all kinds", Ticks{110, 20, 60, 1050, 505, 10, 28, 3},
			model.CPUSplit{Core: 2, User: .1, Nice: .1, System: .1, Idle: .5, IOWait: .05, IRQ: .05, Softirq: .08,
				Steal: .02}, true},
		{"iowait went back", Ticks{100, 10, 50, 1075, 400, 5, 45, 1},
			model.CPUSplit{Core: 2, Idle: .75, Softirq: .25}, true},
		{"idle went back a little", Ticks{100, 10, 50, 999, 500, 5, 45, 1}, model.CPUSplit{Core: 2, Softirq: 1}, true},
		{"idle began anew", Ticks{100, 10, 50, 70, 500, 5, 45, 1}, model.CPUSplit{}, false},
		{"nothing passed", from, model.CPUSplit{}, false},
		{"all went back", Ticks{}, model.CPUSplit{}, false},
	} {
		got, ok := c.to.Since(from, 2)
		if ok != c.ok || got.Core != c.want.Core || rounded(got) != rounded(c.want) {
			t.Errorf("%s: %+v, %v; want %+v, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

// rounded are the ratios in parts of ten thousand.
func rounded(s model.CPUSplit) (n [8]int) {
	for i, v := range []float64{s.User, s.System, s.Nice, s.Idle, s.IOWait, s.IRQ, s.Softirq, s.Steal} {
		n[i] = int(math.Round(v * 1e4))
	}
	return n
}

func FuzzParseProcessors(f *testing.F) {
	f.Add(statTwoCores, statTwoCores)
	f.Add("cpu", "cpu ")
	f.Add("cpu 1 2 3 4\ncpu0", "cpu\t18446744073709551615 0 0 0")
	f.Fuzz(func(t *testing.T, a, b string) {
		before, err1 := ParseProcessors(a)
		after, err2 := ParseProcessors(b)
		if err1 != nil || err2 != nil {
			return
		}
		if s, ok := after.All.Since(before.All, -1); ok {
			for _, r := range []float64{s.Busy(), s.Idle, s.Softirq} {
				if !(r >= 0 && r <= 1) {
					t.Errorf("%q then %q: %+v is not within 0..1", a, b, s)
				}
			}
		}
	})
}
