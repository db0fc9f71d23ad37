package impair

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pelt/unit"
)

// Back to back, frame n has left exactly n*L*8/rate after the start, rounded up:
// nothing adds up over a million frames.
func TestRateDoesNotDrift(t *testing.T) {
	const n = 1_000_000
	for _, c := range []struct {
		rate               unit.BitRate
		bytes, size        int
		minFrame, overhead int
	}{
		{1e6, 1014, 1014, 0, 0},
		{7_777_777, 1499, 1499, 0, 0},
		{999_999_937, 64, 64, 0, 0},
		{10e12, 1, 1, 0, 0},
		{95_500_000, 10, 84, 60, 24},
		{95_500_000, 1514, 1538, 60, 24},
	} {
		l := New(Settings{Rate: c.rate, MinFrame: c.minFrame, Overhead: c.overhead})
		for i := 1; i <= n; i++ {
			got := l.Offer(1000, c.bytes).Copy[0].At - 1000
			hi, lo := bits.Mul64(uint64(i)*uint64(c.size)*8, 1e9)
			want, rest := bits.Div64(hi, lo, uint64(c.rate))
			if rest > 0 {
				want++
			}
			if got != int64(want) {
				t.Fatalf("%v, %d B: frame %d leaves after %d ns, want %d", c.rate, c.bytes, i, got, want)
			}
		}
	}
}

// A duplicate takes its own place in the queue.
func TestQueueOfDuplicates(t *testing.T) {
	l := New(Settings{Rate: 8e6, QueuePackets: 3, Duplicate: Chance{Ratio: 1}})
	for i, want := range []Fate{
		{Copies: 2, Copy: [2]Copy{{1e6, -1}, {2e6, -1}}},
		{Copies: 1, Copy: [2]Copy{{3e6, -1}}},
		{Cause: QueueFull},
	} {
		if got := l.Offer(0, 1000); got != want {
			t.Errorf("frame %d: got %+v, want %+v", i, got, want)
		}
	}
}

// The bottleneck against a list of fractions.
func TestBottleneck(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Settings{
			Rate:         unit.BitRate(rapid.Uint64Range(1, 10e12).Draw(t, "rate")),
			QueuePackets: rapid.IntRange(0, 6).Draw(t, "packets"),
			QueueBytes:   rapid.IntRange(0, 9000).Draw(t, "queue"),
			Overhead:     rapid.IntRange(0, 24).Draw(t, "overhead"),
			MinFrame:     rapid.SampledFrom([]int{0, 60}).Draw(t, "least frame"),
		}
		if s.Check() != "" {
			t.Skip()
		}
		l, now, last := New(s), int64(0), new(big.Rat)
		type frame struct {
			at    *big.Rat
			bytes int
		}
		var queue []frame
		for range rapid.IntRange(1, 60).Draw(t, "frames") {
			now += rapid.Int64Range(0, 3_000_000).Draw(t, "gap")
			bytes := rapid.IntRange(0, 2000).Draw(t, "bytes")
			size := max(bytes, s.MinFrame)
			at := new(big.Rat).SetInt64(now)
			queue = slices.DeleteFunc(queue, func(f frame) bool { return f.at.Cmp(at) <= 0 })
			sum := 0
			for _, f := range queue {
				sum += f.bytes
			}
			if frames, held := l.Waiting(now); frames != len(queue) || held != sum {
				t.Fatalf("%d frames and %d B wait, want %d and %d", frames, held, len(queue), sum)
			}
			want := Fate{Cause: QueueFull}
			if (s.QueuePackets == 0 || len(queue) < s.QueuePackets) && (s.QueueBytes == 0 || sum+size <= s.QueueBytes) {
				if at.Cmp(last) > 0 {
					last.Set(at)
				}
				took := new(big.Rat).SetFrac(big.NewInt(int64(size+s.Overhead)*8*1e9), new(big.Int).SetUint64(uint64(s.Rate)))
				last.Add(last, took)
				queue = append(queue, frame{new(big.Rat).Set(last), size})
				up := new(big.Int).Add(last.Num(), last.Denom())
				up.Sub(up, big.NewInt(1)).Quo(up, last.Denom())
				want = Fate{Copies: 1, Copy: [2]Copy{{At: up.Int64(), Flip: -1}}}
			}
			if got := l.Offer(now, bytes); got != want {
				t.Fatalf("at %d, %d B: got %+v, want %+v", now, bytes, got, want)
			}
		}
	})
}

// What waits for a bottleneck is before what comes after a change of its rate.
func TestFollow(t *testing.T) {
	const frame = 1000 // 1 ms at 8 Mbit/s
	s := Settings{Rate: 8e6, QueuePackets: 10}
	old := New(s)
	for range 12 {
		old.Offer(0, frame)
	}
	s.Rate = 4e6
	link := New(s)
	link.Follow(old)
	if n, bytes := link.Waiting(0); n != 10 || bytes != 10*frame {
		t.Errorf("%d frames of %d B wait after the change, want 10", n, bytes)
	}
	if f := link.Offer(0, frame); f.Cause != QueueFull {
		t.Errorf("a full queue took one more: %+v", f)
	}
	if f := link.Offer(5e6, frame); f.Copies != 1 || f.Copy[0].At != 12e6 {
		t.Errorf("leaves at %+v, want 2 ms after the last one of before, at 12 ms", f)
	}
	old = New(Settings{Rate: 8e6})
	old.Offer(0, frame)
	old.Offer(0, frame)
	free := New(Settings{})
	free.Follow(old)
	for _, c := range [][2]int64{{1e6, 2e6}, {2e6, 2e6}, {3e6, 3e6}} {
		if f := free.Offer(c[0], frame); f.Copy[0].At != c[1] {
			t.Errorf("a rate taken away: what came at %d leaves at %d, want %d", c[0], f.Copy[0].At, c[1])
		}
	}
}

func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ring
		var want []waiter
		for i, push := range rapid.SliceOfN(rapid.IntRange(0, 3), 1, 300).Draw(t, "pushes") {
			if push > 0 {
				r.push(waiter{at: int64(i)})
				want = append(want, waiter{at: int64(i)})
			} else if len(want) > 0 {
				if got := *r.first(); got != want[0] {
					t.Fatalf("first is %v, want %v", got, want[0])
				}
				r.pop()
				want = want[1:]
			}
			if r.count != len(want) || len(r.slots) >= max(2*(i+1), 17) {
				t.Fatalf("%d of %d slots hold something, want %d", r.count, len(r.slots), len(want))
			}
		}
	})
}

// What the link remembers is what waits in it.
func TestMemoryIsBounded(t *testing.T) {
	x := New(Settings{Rate: 1e9, Seed: 1})
	for i := range int64(1_000_000) {
		x.Offer(i*13_000, 1500) // 12 us each
	}
	if n := len(x.bottleneck.queue.slots); n > 16 {
		t.Errorf("%d slots after a million frames that never waited", n)
	}
	x = New(Settings{Rate: 1e9, QueuePackets: 100, Seed: 1})
	for i := range int64(1_000_000) {
		x.Offer(i*6000, 1500)
	}
	if n := len(x.bottleneck.queue.slots); n > 128 {
		t.Errorf("%d slots for a queue of 100", n)
	}
}

// Absurd times end at the largest one instead of in the past.
func TestTimesSaturate(t *testing.T) {
	l := New(Settings{Rate: 1, Delay: 24 * time.Hour})
	for range 10 {
		now := int64(math.MaxInt64 - 1e14)
		if f := l.Offer(now, 1<<40); f.Copies != 1 || f.Copy[0].At < now {
			t.Errorf("got %+v", f)
		}
	}
}
