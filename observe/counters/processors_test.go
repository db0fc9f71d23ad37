package counters

import "testing"

const statTwoCores = `cpu  3776 13565 4581 232218 324 0 65 32 0 0
cpu0 1583 6812 1921 116944 29 0 13 13 0 0
cpu1 2193 6753 2660 115273 295 0 51 19 0 0
intr 531103 0 0
ctxt 829566
softirq 192414 0 23576 5 17193 71142 0 294 39289 1 40914
`

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
