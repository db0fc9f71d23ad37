package impair

import (
	"fmt"
	"math"
	"testing"
	"time"
)

func TestChances(t *testing.T) {
	const n = 300_000
	for i, ratio := range []float64{0.001, 0.01, 0.1, 0.5, 0.9, 1} {
		seed := uint64(100 + i)
		for what, hits := range map[string][]bool{
			"loss": lost(offers(t, Settings{Loss: Loss{Ratio: ratio}, Seed: seed}, n)),
			"duplicate": flags(offers(t, Settings{Duplicate: ratio, Seed: seed}, n),
				func(f Fate) bool { return f.Copies == 2 }),
			"corrupt": flags(offers(t, Settings{Corrupt: ratio, Seed: seed}, n),
				func(f Fate) bool { return f.Copy[0].Flip >= 0 }),
			"reorder": reordered(offers(t, Settings{Delay: time.Millisecond, Reorder: ratio, Seed: seed}, n)),
		} {
			wantChain(t, fmt.Sprintf("%s of %v", what, ratio), hits, ratio, 0)
		}
	}
}

// A Gilbert chain that loses all in the bad state loses 10 %, with a correlation of 25 % between one frame and the
// next.
func TestGilbert(t *testing.T) {
	hits := lost(offers(t, Settings{Loss: Loss{P: 0.075, R: 0.675, Bad: 1}, Seed: 5}, 300_000))
	wantChain(t, "gilbert", hits, 0.1, 0.25)
}

// wantChain tests the share of hits, and how they follow each other, against a two-state chain of that share and
// that correlation between neighbours.
func wantChain(t *testing.T, what string, hits []bool, ratio, correlation float64) {
	t.Helper()
	// The mean of n correlated draws varies as that of n(1-c)/(1+c) free ones.
	n := float64(len(hits)) * (1 - correlation) / (1 + correlation)
	if got, within := mean(hits), 4.9*math.Sqrt(ratio*(1-ratio)/n); math.Abs(got-ratio) > within {
		t.Errorf("%s: ratio %.5f, want %.5f +-%.5f", what, got, ratio, within)
	}
	of, again := 0, 0 // hits that another frame follows, and of these the followers that are hits, too
	for i, hit := range hits[:len(hits)-1] {
		if hit {
			of++
			if hits[i+1] {
				again++
			}
		}
	}
	wantShare(t, what+", after a miss", count(hits[1:])-again, len(hits)-1-of, ratio*(1-correlation))
	wantShare(t, what+", after a hit", again, of, correlation+(1-correlation)*ratio)
}

// The first frame of many links is lost as often as any: no chain has to warm up.
func TestStartsAtRest(t *testing.T) {
	l := Loss{P: 0.01, R: 0.02, Bad: 0.8, Good: 0.01}
	const links = 100_000
	hits := 0
	for seed := range uint64(links) {
		if New(Settings{Loss: l, Seed: seed}).Offer(0, frameBytes).Cause == Lost {
			hits++
		}
	}
	wantShare(t, "first frame", hits, links, Settings{Loss: l}.LossRatio())
}

// Turning one impairment on leaves the draws of the others.
func TestStreamsAreIndependent(t *testing.T) {
	const n = 50_000
	lossOnly := Settings{Loss: Loss{Ratio: 0.05}, Seed: 77}
	all := Settings{
		Rate: 1e9, QueuePackets: 100, Delay: 10 * time.Millisecond, Jitter: time.Millisecond, Correlation: 0.5,
		Loss: lossOnly.Loss, Duplicate: 0.1, Corrupt: 0.2, Reorder: 0.1, Seed: 77,
	}
	base, full := offers(t, lossOnly, n), offers(t, all, n)
	for i := range base {
		if base[i].Cause != full[i].Cause {
			t.Fatalf("frame %d: %v with loss only, %v with all", i, base[i].Cause, full[i].Cause)
		}
	}
	for _, c := range []struct {
		name string
		off  func(*Settings)
		same func(a, b Fate) bool
	}{
		{"corrupt off: copies and times stay", func(s *Settings) { s.Corrupt = 0 }, func(a, b Fate) bool {
			return a.Copies == b.Copies && a.Copy[0].At == b.Copy[0].At && a.Copy[1].At == b.Copy[1].At
		}},
		{"reorder off: copies, bits and the delays of others stay", func(s *Settings) { s.Reorder = 0 },
			func(a, b Fate) bool {
				if a.Copies != b.Copies {
					return false
				}
				for k := range a.Copies {
					if a.Copy[k].Flip != b.Copy[k].Flip || a.Copy[k].At != b.Copy[k].At && a.Copy[k].At > b.Copy[k].At {
						return false
					}
				}
				return true
			}},
		{"jitter off: copies and bits stay", func(s *Settings) { s.Jitter, s.Correlation = 0, 0 },
			func(a, b Fate) bool {
				return a.Copies == b.Copies && a.Copy[0].Flip == b.Copy[0].Flip && a.Copy[1].Flip == b.Copy[1].Flip
			}},
	} {
		s := all
		c.off(&s)
		for i, f := range offers(t, s, n) {
			if !c.same(full[i], f) {
				t.Fatalf("%s: frame %d is %+v, with all %+v", c.name, i, f, full[i])
			}
		}
	}
	// And streams of one seed, or of neighbouring seeds, know nothing of each other.
	numbers := func(hits []bool) (out []float64) {
		for _, hit := range hits {
			out = append(out, map[bool]float64{true: 1}[hit])
		}
		return out
	}
	series := map[string][]float64{}
	for _, seed := range []uint64{0, 1, 2} {
		series[fmt.Sprint("loss ", seed)] = numbers(lost(offers(t, Settings{Loss: Loss{Ratio: 0.25}, Seed: seed}, n)))
		series[fmt.Sprint("duplicate ", seed)] = numbers(flags(offers(t, Settings{Duplicate: 0.25, Seed: seed}, n),
			func(f Fate) bool { return f.Copies == 2 }))
		series[fmt.Sprint("corrupt ", seed)] = numbers(flags(offers(t, Settings{Corrupt: 0.25, Seed: seed}, n),
			func(f Fate) bool { return f.Copy[0].Flip >= 0 }))
		series[fmt.Sprint("reorder ", seed)] = numbers(reordered(offers(t,
			Settings{Delay: 1, Reorder: 0.25, Seed: seed}, n)))
		series[fmt.Sprint("delay ", seed)] = floats(delays(offers(t, Settings{Delay: 1e6, Jitter: 1e6, Seed: seed}, n)))
	}
	for a, x := range series {
		for b, y := range series {
			if a < b {
				if got := correlation(x, y); math.Abs(got) > 4.5/math.Sqrt(n) {
					t.Errorf("%s and %s: correlation %.4f", a, b, got)
				}
			}
		}
	}
}

func TestCorruptBit(t *testing.T) {
	for _, bytes := range []int{1, 60, 1514} {
		l := New(Settings{Corrupt: 1, Seed: 4})
		var seen [8]int
		least, most := math.MaxInt, -1
		const n = 40_000
		for range n {
			flip := l.Offer(0, bytes).Copy[0].Flip
			least, most = min(least, flip), max(most, flip)
			seen[flip*8/(bytes*8)]++
		}
		if least < 0 || most >= bytes*8 {
			t.Errorf("bits %d to %d of a frame of %d B", least, most, bytes)
		}
		for part, hits := range seen {
			wantShare(t, fmt.Sprintf("%d B, eighth %d", bytes, part), hits, n, 0.125)
		}
	}
	if f := New(Settings{Corrupt: 1}).Offer(0, 0); f.Copies != 1 || f.Copy[0].Flip != -1 {
		t.Errorf("an empty frame gave %+v", f)
	}
}

// reordered says of each frame whether it did not wait for the delay.
func reordered(fates []Fate) []bool {
	out := make([]bool, len(fates))
	for i, f := range fates {
		out[i] = f.Copies > 0 && f.Copy[0].At == int64(i)*frameGap
	}
	return out
}
