package impair

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pelt/unit"
)

// The frames that a Linux 6.12 guest lost, counted from 1: netem loss 10 %, with
// these seeds.
func TestNetemLosesWhatTheKernelLoses(t *testing.T) {
	for _, c := range []struct {
		seed uint64
		want []int
	}{
		{42424242, []int{5, 12, 24}},
		{7, []int{2, 4, 12, 16}},
	} {
		var got []int
		for i, l := range lost(offers(t, Settings{Mode: Netem, Loss: Loss{Chance: Chance{Ratio: 0.1}}, Seed: c.seed}, 25)) {
			if l {
				got = append(got, i+1)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("seed %d lost frames %v, want %v", c.seed, got, c.want)
		}
	}
}

// Vectors of taus113 of the GNU Scientific Library, seeded and warmed up as
// lib/random32.c, Linux 6.12, does it in its self test.
func TestTaus113(t *testing.T) {
	for _, c := range []struct {
		seed, iteration, want uint32
	}{
		{1, 1, 3484351685}, {4, 1, 984847254}, {931557656, 959, 2975593782}, {20221190, 879, 1564152970},
	} {
		next := func(x, least uint32) uint32 {
			if x *= 69069; x < least {
				x += least
			}
			return x
		}
		var s taus113
		s.s1 = next(c.seed, 2)
		s.s2 = next(s.s1, 8)
		s.s3 = next(s.s2, 16)
		s.s4 = next(s.s3, 128)
		var got uint32
		for range 10 + c.iteration {
			got = s.next()
		}
		if got != c.want {
			t.Errorf("seed %d: number %d is %d, want %d", c.seed, c.iteration, got, c.want)
		}
	}
}

// Measured on netem of Linux 6.1 and 6.12 and by an independent simulation.
func TestNetemCorrelationQuirk(t *testing.T) {
	for _, c := range []struct {
		name                     string
		ratio, correlation, want float64
		within                   float64
	}{
		{"10 % without", 0.1, 0, 0.1, 0.002},
		{"10 % with 25 %", 0.1, 0.25, 0.0175, 0.0006},
		{"10 % with 50 %", 0.1, 0.5, 0.00109, 0.00015},
		{"30 % with 25 %", 0.3, 0.25, 0.234, 0.003},
		{"30 % with 50 %", 0.3, 0.5, 0.128, 0.003},
		{"30 % with 75 %", 0.3, 0.75, 0.032, 0.002},
		{"5 % with 25 %", 0.05, 0.25, 0.0018, 0.0003},
		{"1 % with 25 %", 0.01, 0.25, 0, 0.00002},
	} {
		s := Settings{Mode: Netem, Loss: Loss{Chance: Chance{c.ratio, c.correlation}}, Seed: 19}
		const n = 1_000_000
		got := lost(offers(t, s, n))
		if math.Abs(mean(got)-c.want) > c.within {
			t.Errorf("%s: lost %.4g, want %.4g", c.name, mean(got), c.want)
		}
		expected := s.LossRatio()
		within := 5 * math.Sqrt(expected/n*(1+c.correlation)/(1-c.correlation)) // losses hardly follow each other
		if math.Abs(mean(got)-expected) > within {
			t.Errorf("%s: lost %.4g, but LossRatio is %.4g +-%.2g", c.name, mean(got), expected, within)
		}
	}
	// Not even bursty: a loss leaves the chance of the next where it was asked.
	after, both := 0, 0
	l := lost(offers(t, Settings{Mode: Netem, Loss: Loss{Chance: Chance{0.1, 0.25}}, Seed: 3}, 1_000_000))
	for i := range l[1:] {
		if l[i] {
			after++
			if l[i+1] {
				both++
			}
		}
	}
	if got := float64(both) / float64(after); math.Abs(got-0.1) > 0.02 {
		t.Errorf("P(loss|loss) is %.3f, want 0.1", got)
	}
}

func reordered(f Fate, i int) bool { return f.Copies > 0 && f.Copy[0].At == int64(i)*frameGap }

func TestNetemReorder(t *testing.T) {
	count := func(r Chance, gap, n int) (hits []int) {
		for i, f := range offers(t, Settings{Mode: Netem, Delay: time.Millisecond, Reorder: r, Gap: gap, Seed: 5}, n) {
			if reordered(f, i) {
				hits = append(hits, i)
			}
		}
		return hits
	}
	if got := float64(len(count(Chance{0.25, 0.5}, 0, 400_000))) / 400_000; math.Abs(got-0.07) > 0.002 { // 7.1 % of 20000 in a guest
		t.Errorf("25 %% with a correlation of 50 %%: %.4f reordered, want 0.07", got)
	}
	if got := float64(len(count(Chance{Ratio: 0.25}, 0, 400_000))) / 400_000; math.Abs(got-0.25) > 0.004 {
		t.Errorf("25 %%: %.4f reordered", got)
	}
	got := count(Chance{Ratio: 1}, 5, 1000)
	for i, at := range got {
		if at != 5*i+4 {
			t.Fatalf("100 %% with gap 5: frame %d is number %d of the reordered, want every fifth", at, i)
		}
	}
	if len(got) != 200 {
		t.Errorf("100 %% with gap 5: %d of 1000 reordered", len(got))
	}
}

func TestNetemDelays(t *testing.T) {
	for _, name := range DistributionNames() {
		shape, err := Distribution(name)
		if err != nil {
			t.Fatal(err)
		}
		s := Settings{Mode: Netem, Delay: 50 * time.Millisecond, Jitter: 10 * time.Millisecond, Shape: shape, Seed: 9}
		under := shapeUnder(s)
		if shape != nil { // picked, not interpolated: 8192 is one unit
			under = func(x float64) float64 {
				i, _ := slices.BinarySearchFunc(shape.Values, x, func(v int16, x float64) int {
					if float64(s.Delay)+float64(s.Jitter)*float64(v)/tableScale < x {
						return -1
					}
					return 1
				})
				return float64(i) / float64(len(shape.Values))
			}
		}
		wantDistribution(t, name, delays(offers(t, s, 20_000)), under)
		// The correlation is gone from the low bits, which the delay is made of.
		s.Correlation = 0.75
		if got := lag1(floats(delays(offers(t, s, 20_000)))); math.Abs(got) > 0.03 {
			t.Errorf("%s with a correlation of 75 %%: lag 1 is %.4f, want none", name, got)
		}
	}
}

// Which draw decides what, of a link that has everything: a frame's duplicate
// and loss, and corrupt; its clone's loss, corrupt, reorder and delay; its own
// reorder and delay.
func TestNetemOrderOfDraws(t *testing.T) {
	s := Settings{
		Mode: Netem, Delay: 10 * time.Millisecond, Jitter: time.Millisecond,
		Loss: Loss{Chance: Chance{Ratio: 1e-6}}, Duplicate: Chance{Ratio: 1}, Corrupt: Chance{Ratio: 0.5}, Reorder: Chance{Ratio: 1e-6}, Seed: 11,
	}
	random := newTaus113(s.Seed)
	for i, f := range offers(t, s, 1000) {
		var u [9]uint32
		for k := range u {
			u[k] = random.next()
		}
		for k, draws := range [][2]uint32{{u[4], u[6]}, {u[2], u[8]}} {
			corrupt := draws[0] <= 1<<31
			at := int64(i)*frameGap + 9e6 + int64(draws[1]%2e6)
			if got := f.Copy[k]; f.Copies != 2 || got.At != at || got.Flip >= 0 != corrupt {
				t.Fatalf("frame %d copy %d: got %+v, want one at %d, corrupt %v", i, k, f, at, corrupt)
			}
		}
	}
	for _, c := range []struct {
		name  string
		s     Settings
		draws int // of a frame
	}{
		{"nothing", Settings{}, 0},
		{"delay", Settings{Delay: 1}, 0},
		{"jitter", Settings{Delay: 1, Jitter: 1}, 1},
		{"loss", Settings{Loss: Loss{Chance: Chance{Ratio: 1e-9}}}, 1},
		{"gilbert-elliott", Settings{Loss: Loss{Model: GilbertElliott, R: 1}}, 2},
		{"four-state", Settings{Loss: Loss{Model: FourState, P31: 1}}, 1},
		{"inside the gap", Settings{Delay: 1, Reorder: Chance{Ratio: 1}, Gap: 1000}, 0},
		{"reordered", Settings{Delay: 2, Jitter: 1, Reorder: Chance{Ratio: 1}}, 1},
		{"correlated", Settings{Loss: Loss{Chance: Chance{1e-9, 0.5}}}, 1},
		{"duplicate", Settings{Duplicate: Chance{Ratio: 1e-9}}, 1},
		{"corrupt", Settings{Corrupt: Chance{Ratio: 1}}, 1},
		{"corrupt before the limit", Settings{Delay: 1, QueuePackets: 1, Corrupt: Chance{Ratio: 1}}, 1},
	} {
		c.s.Mode = Netem
		if wrong := c.s.Check(); wrong != "" {
			t.Fatalf("%s: %s", c.name, wrong)
		}
		l, want := New(c.s), newTaus113(0)
		for range 100 {
			l.Offer(0, frameBytes)
		}
		for range 100 * c.draws {
			want.next()
		}
		if l.netem.random != want {
			t.Errorf("%s: want %d draws of the seed a frame", c.name, c.draws)
		}
	}
}

func TestNetemDuplicates(t *testing.T) {
	for _, c := range []struct {
		name            string
		loss, duplicate float64
		limit           int
		copies          int
		cause           Cause
	}{
		{"all duplicated", 0, 1, 0, 2, Passes},
		{"both lost and duplicated passes once", 1, 1, 0, 1, Passes},
		{"lost", 1, 0, 0, 0, Lost},
		{"room for one of two lets both in", 0, 1, 1, 2, Passes},
	} {
		l := New(Settings{Mode: Netem, Delay: time.Second, QueuePackets: c.limit, Loss: Loss{Chance: Chance{Ratio: c.loss}}, Duplicate: Chance{Ratio: c.duplicate}})
		if f := l.Offer(0, frameBytes); f.Copies != c.copies || f.Cause != c.cause {
			t.Errorf("%s: got %+v", c.name, f)
		}
	}
}

// A 4-state draw that hits a bound exactly changes nothing (loss_4state of
// net/sched/sch_netem.c, Linux 6.12), and two halves wrap to no way to state 3.
func TestNetemFourStateBounds(t *testing.T) {
	for _, c := range []struct {
		name        string
		k           kernelLosses
		u           uint32
		state, want int
		lost        bool
	}{
		{"1 to 4", kernelLosses{p14: 10, p13: 20}, 9, 1, 4, true},
		{"1 at p14", kernelLosses{p14: 10, p13: 20}, 10, 1, 1, false},
		{"1 to 3", kernelLosses{p14: 10, p13: 20}, 11, 1, 3, true},
		{"1 at the sum", kernelLosses{p14: 10, p13: 20}, 30, 1, 1, false},
		{"1 wrapped", kernelLosses{p14: 1 << 31, p13: 1 << 31}, 1<<31 + 1, 1, 1, false},
		{"2 to 3", kernelLosses{p23: 10}, 9, 2, 3, true},
		{"2 stays", kernelLosses{p23: 10}, 10, 2, 2, false},
		{"3 to 2", kernelLosses{p32: 10, p31: 20}, 9, 3, 2, false},
		{"3 at p32", kernelLosses{p32: 10, p31: 20}, 10, 3, 3, false},
		{"3 to 1", kernelLosses{p32: 10, p31: 20}, 29, 3, 1, false},
		{"3 at the sum", kernelLosses{p32: 10, p31: 20}, 30, 3, 3, false},
		{"3 stays", kernelLosses{p32: 10, p31: 20}, 31, 3, 3, true},
		{"4 to 1", kernelLosses{}, 0, 4, 1, false},
	} {
		c.k.state = c.state
		if got := c.k.nextOfFour(c.u); got != c.lost || c.k.state != c.want {
			t.Errorf("%s: lost %v, state %d; want %v, %d", c.name, got, c.k.state, c.lost, c.want)
		}
	}
}

// The queue against a plain list: a limit on all that is pending, and with a rate
// max(now+delay, last)+L/rate, but for what is reordered.
func TestNetemQueue(t *testing.T) {
	const half = 1 << 31 // share(0.5)
	rapid.Check(t, func(t *rapid.T) {
		s := Settings{
			Mode: Netem, Delay: 5 * time.Microsecond,
			Jitter:       time.Duration(rapid.IntRange(0, 20_000).Draw(t, "jitter")),
			Rate:         rapid.SampledFrom([]unit.BitRate{0, 8, 1e9, 7_777_777_777}).Draw(t, "rate"),
			QueuePackets: rapid.IntRange(0, 5).Draw(t, "limit"),
			Duplicate:    Chance{Ratio: rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "duplicate")},
			Reorder:      Chance{Ratio: rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "reorder")},
			Seed:         rapid.Uint64().Draw(t, "seed"),
		}
		l, random, now := New(s), newTaus113(s.Seed), int64(-50_000)
		var queue []int64
		for range rapid.IntRange(1, 100).Draw(t, "frames") {
			now += rapid.Int64Range(0, 3000).Draw(t, "gap")
			bytes := rapid.IntRange(0, 2000).Draw(t, "bytes")
			queue = slices.DeleteFunc(queue, func(at int64) bool { return at <= now })
			if got, _ := l.Waiting(now); got != len(queue) {
				t.Fatalf("%d wait, want %d", got, len(queue))
			}
			var want Fate
			copies := 1
			if s.Duplicate.Ratio > 0 && random.next() <= half {
				copies = 2
			}
			if s.QueuePackets > 0 && len(queue) >= s.QueuePackets {
				copies = 0
			}
			for range copies { // a frame that was let in has room beside its clone
				at := now
				if s.Reorder.Ratio == 0 || random.next() > half {
					at += 5000
					if s.Jitter > 0 {
						at += int64(random.next()%uint32(2*s.Jitter)) - int64(s.Jitter)
					}
					if s.Rate > 0 {
						if len(queue) > 0 {
							at = max(at, slices.Max(queue))
						}
						at += int64(bytes) * 1e9 / int64(s.Rate/8)
					}
				}
				queue = append(queue, at)
				want.Copy[want.Copies] = Copy{At: max(at, now), Flip: -1}
				want.Copies++
			}
			if want.Copies == 0 {
				want.Cause = QueueFull
			}
			if got := l.Offer(now, bytes); got != want {
				t.Fatalf("at %d: got %+v, want %+v of %v", now, got, want, queue)
			}
		}
	})
}

// A draw that hits its bound counts as a hit, but not in the models with states.
func TestNetemBounds(t *testing.T) {
	random := newTaus113(1)
	u := random.next()
	for _, c := range []struct {
		name string
		n    netem
		want func(n *netem) bool
	}{
		{"duplicate", netem{duplicate: u}, func(n *netem) bool { return n.offer(0, 1).Copies == 2 }},
		{"duplicate below", netem{duplicate: u - 1}, func(n *netem) bool { return n.offer(0, 1).Copies == 1 }},
		{"loss", netem{losses: kernelLosses{ratio: u}}, func(n *netem) bool { return n.offer(0, 1).Copies == 0 }},
		{"loss below", netem{losses: kernelLosses{ratio: u - 1}}, func(n *netem) bool { return n.offer(0, 1).Copies == 1 }},
		{"corrupt", netem{corrupt: u}, func(n *netem) bool { return n.offer(0, 1).Copy[0].Flip >= 0 }},
		{"corrupt below", netem{corrupt: u - 1}, func(n *netem) bool { return n.offer(0, 1).Copy[0].Flip < 0 }},
		{"reorder", netem{reorder: u, gap: 1, delay: 9}, func(n *netem) bool { return n.offer(0, 1).Copy[0].At == 0 }},
		{"reorder below", netem{reorder: u - 1, gap: 1, delay: 9}, func(n *netem) bool { return n.offer(0, 1).Copy[0].At == 9 }},
		{"to the bad state", netem{losses: kernelLosses{model: GilbertElliott, toBad: u}}, func(n *netem) bool { n.offer(0, 1); return !n.losses.bad }},
		{"to the bad state above", netem{losses: kernelLosses{model: GilbertElliott, toBad: u + 1}}, func(n *netem) bool { n.offer(0, 1); return n.losses.bad }},
	} {
		c.n.random = newTaus113(1)
		if !c.want(&c.n) {
			t.Errorf("%s: the bound %d of a draw of %d is on the wrong side", c.name, c.n.losses.ratio, u)
		}
	}
}

func TestNetemCorrelatedDraw(t *testing.T) {
	random := newTaus113(1)
	u := random.next()
	for _, c := range []struct {
		name            string
		rho, last, want uint32
	}{
		{"none", 0, 1000, u},
		{"half", 1<<31 - 1, 1000, uint32((uint64(u) + 1000) / 2)},
		{"all", math.MaxUint32, math.MaxUint32, math.MaxUint32},
	} {
		random, r := newTaus113(1), correlated{rho: c.rho, last: c.last}
		if got := r.next(&random); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

// A table's value is rounded half away from 0, the 8192ths of the jitter first.
func TestNetemTableRounds(t *testing.T) {
	for _, c := range []struct {
		jitter int32
		value  int16
		want   int64
	}{
		{1, 4096, 1}, {1, 4095, 0}, {1, -4096, -1}, {1, -4095, 0}, {1, 32767, 4}, {1, -32768, -4},
		{8192, -5, -5}, {8193, 4096, 4097}, {8193, -4096, -4097}, {math.MaxInt32, 32767, 8_589_672_444},
	} {
		n := netem{random: newTaus113(1), jitter: c.jitter, table: []int16{c.value}, delay: 7}
		if got := n.wait() - 7; got != c.want {
			t.Errorf("jitter %d, value %d: got %d, want %d", c.jitter, c.value, got, c.want)
		}
	}
}
