package impair

import (
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pelt/unit"
)

// A duplicate takes its own place in the queue.
func TestQueueOfDuplicates(t *testing.T) {
	l := New(Settings{Rate: 8e6, QueuePackets: 3, Duplicate: 1})
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
		if s.Check() != nil {
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
				took := new(big.Rat).SetFrac(big.NewInt(int64(size+s.Overhead)*8*1e9),
					new(big.Int).SetUint64(uint64(s.Rate)))
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

// What the link remembers is what waits in it.
func TestMemoryIsBounded(t *testing.T) {
	x := New(Settings{Rate: 1e9, Seed: 1})
	for i := range int64(1_000_000) {
		x.Offer(i*13_000, 1500) // 12 us each
	}
	if n := cap(x.bottleneck.queue); n > 16 {
		t.Errorf("%d places after a million frames that never waited", n)
	}
	x = New(Settings{Rate: 1e9, QueuePackets: 100, Seed: 1})
	for i := range int64(1_000_000) {
		x.Offer(i*6000, 1500)
	}
	if n := cap(x.bottleneck.queue); n > 512 {
		t.Errorf("%d places for a queue of 100", n)
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
