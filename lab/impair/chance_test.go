package impair

import (
	"fmt"
	"math"
	"testing"
	"time"
)

var chances = []Chance{
	{0.001, 0}, {0.01, 0}, {0.1, 0}, {0.5, 0}, {0.9, 0}, {1, 0},
	{0.01, 0.25}, {0.1, 0.25}, {0.1, 0.5}, {0.3, 0.75}, {0.5, 0.9}, {0.9, 0.3}, {1, 0.5},
}

// losesAgain counts the hits that another frame follows, and of these the followers that are hits too.
func losesAgain(hits []bool) (of, again int) {
	for i, hit := range hits[:len(hits)-1] {
		if hit {
			of++
			if hits[i+1] {
				again++
			}
		}
	}
	return of, again
}

// checkChance tests the mean and the transitions of what came of a chance against the
// two-state chain, which they define.
func checkChance(t *testing.T, what string, hits []bool, c Chance) {
	t.Helper()
	what = fmt.Sprintf("%s %v", what, c)
	if c.Correlation == 0 {
		wantShare(t, what, count(hits), len(hits), c.Ratio)
	} else {
		// The mean of n correlated draws varies as that of n(1-c)/(1+c) free ones.
		n := float64(len(hits)) * (1 - c.Correlation) / (1 + c.Correlation)
		if got, within := mean(hits), 4.9*math.Sqrt(c.Ratio*(1-c.Ratio)/n); math.Abs(got-c.Ratio) > within {
			t.Errorf("%s: ratio %.5f, want %.5f +-%.5f", what, got, c.Ratio, within)
		}
	}
	of, again := losesAgain(hits)
	begins := count(hits[1:]) - again
	stay := c.Correlation + (1-c.Correlation)*c.Ratio
	wantShare(t, what+", after a miss", begins, len(hits)-1-of, c.Ratio*(1-c.Correlation))
	wantShare(t, what+", after a hit", again, of, stay)
}

func TestChances(t *testing.T) {
	const n = 300_000
	for i, c := range chances {
		seed := uint64(100 + i)
		checkChance(t, "loss", lost(offers(t, Settings{Loss: Loss{Chance: c}, Seed: seed}, n)), c)
		checkChance(t, "duplicate", flags(offers(t, Settings{Duplicate: c, Seed: seed}, n),
			func(f Fate) bool { return f.Copies == 2 }), c)
		checkChance(t, "corrupt", flags(offers(t, Settings{Corrupt: c, Seed: seed}, n),
			func(f Fate) bool { return f.Copy[0].Flip >= 0 }), c)
		moved := make([]bool, n)
		for k, f := range offers(t, Settings{Delay: time.Millisecond, Reorder: c, Seed: seed}, n) {
			moved[k] = reordered(f, k)
		}
		checkChance(t, "reorder", moved, c)
	}
}

// The first frame of many links is lost as often as any: no chain has to warm up.
func TestStartsAtRest(t *testing.T) {
	for _, l := range []Loss{
		{Chance: Chance{0.1, 0.9}},
		{Model: GilbertElliott, P: 0.01, R: 0.02, Bad: 0.8, Good: 0.01},
		{Model: FourState, P13: 0.01, P31: 0.1, P32: 0.1, P23: 0.3, P14: 0.05},
	} {
		const links = 100_000
		hits := 0
		for seed := range uint64(links) {
			if New(Settings{Loss: l, Seed: seed}).Offer(0, frameBytes).Cause == Lost {
				hits++
			}
		}
		wantShare(t, fmt.Sprintf("first frame of %+v", l), hits, links, Settings{Loss: l}.LossRatio())
	}
}

func TestGap(t *testing.T) {
	s := Settings{Delay: time.Millisecond, Reorder: Chance{Ratio: 0.25}, Gap: 5, Seed: 1}
	hits, of := 0, 0
	for i, f := range offers(t, s, 500_000) {
		if i%5 == 4 {
			of++
			if reordered(f, i) {
				hits++
			}
		} else if reordered(f, i) {
			t.Fatalf("frame %d was reordered, want none but every fifth", i)
		}
	}
	wantShare(t, "every fifth, 25 %", hits, of, 0.25)
}

func TestLossModels(t *testing.T) {
	// A Gilbert chain that loses all in the bad state is the correlated ratio: 10 %, 25 %.
	l := lost(offers(t, Settings{Loss: Loss{Model: GilbertElliott, P: 0.075, R: 0.675, Bad: 1}, Seed: 5}, 300_000))
	checkChance(t, "gilbert", l, Chance{0.1, 0.25})
	// After a loss in a gap the next frame passes.
	l = lost(offers(t, Settings{Loss: Loss{Model: FourState, P14: 0.3}, Seed: 5}, 100_000))
	if of, again := losesAgain(l); of == 0 || again > 0 {
		t.Errorf("after %d losses in gaps %d were followed by one", of, again)
	}
	// A burst lasts by p31 and p32 alone.
	l = lost(offers(t, Settings{Loss: Loss{Model: FourState, P13: 0.02, P31: 0.15, P32: 0.05, P23: 0.3}, Seed: 5}, 500_000))
	of, again := losesAgain(l)
	wantShare(t, "four-state bursts", again, of, 0.8)
}

// Turning one impairment on leaves the draws of the others.
func TestStreamsAreIndependent(t *testing.T) {
	const n = 50_000
	lossOnly := Settings{Loss: Loss{Chance: Chance{0.05, 0.3}}, Seed: 77}
	all := Settings{
		Rate: 1e9, QueuePackets: 100, Delay: 10 * time.Millisecond, Jitter: time.Millisecond, Correlation: 0.5,
		Loss: lossOnly.Loss, Duplicate: Chance{0.1, 0.2}, Corrupt: Chance{0.2, 0.1}, Reorder: Chance{0.1, 0.4}, Seed: 77,
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
		{"corrupt off: copies and times stay", func(s *Settings) { s.Corrupt = Chance{} }, func(a, b Fate) bool {
			return a.Copies == b.Copies && a.Copy[0].At == b.Copy[0].At && a.Copy[1].At == b.Copy[1].At
		}},
		{"reorder off: copies, bits and the delays of others stay", func(s *Settings) { s.Reorder = Chance{} }, func(a, b Fate) bool {
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
		{"jitter off: copies and bits stay", func(s *Settings) { s.Jitter, s.Correlation = 0, 0 }, func(a, b Fate) bool {
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
	quarter := Chance{Ratio: 0.25}
	draws := func(s Settings, is func(Fate, int) bool) []float64 {
		out := make([]float64, n)
		for i, f := range offers(t, s, n) {
			if is(f, i) {
				out[i] = 1
			}
		}
		return out
	}
	series := map[string][]float64{}
	for _, seed := range []uint64{0, 1, 2} {
		series[fmt.Sprint("loss ", seed)] = draws(Settings{Loss: Loss{Chance: quarter}, Seed: seed}, func(f Fate, _ int) bool { return f.Cause == Lost })
		series[fmt.Sprint("duplicate ", seed)] = draws(Settings{Duplicate: quarter, Seed: seed}, func(f Fate, _ int) bool { return f.Copies == 2 })
		series[fmt.Sprint("corrupt ", seed)] = draws(Settings{Corrupt: quarter, Seed: seed}, func(f Fate, _ int) bool { return f.Copy[0].Flip >= 0 })
		series[fmt.Sprint("reorder ", seed)] = draws(Settings{Delay: 1, Reorder: quarter, Seed: seed}, reordered)
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
		l := New(Settings{Corrupt: Chance{Ratio: 1}, Seed: 4})
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
	if f := New(Settings{Corrupt: Chance{Ratio: 1}}).Offer(0, 0); f.Copies != 1 || f.Copy[0].Flip != -1 {
		t.Errorf("an empty frame gave %+v", f)
	}
}

func reordered(f Fate, i int) bool { return f.Copies > 0 && f.Copy[0].At == int64(i)*frameGap }
