package measure

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
)

// stretchesOf reads a list to its end.
func stretchesOf(t rapid.TB, m model.Marks) (out []model.Stretch) {
	t.Helper()
	for s, err := range m.Stretches() {
		if err != nil {
			t.Fatalf("the list is broken: %v", err)
		}
		out = append(out, s)
	}
	return out
}

// The list of missing sequences is that of a plain set, for any order of
// arrival, and for runs far longer than the window.
func TestMissingAgainstSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.SampledFrom([]int64{0, 1, 1<<48 - 50, 1<<48 - 70000, 5<<48 - 3}).Draw(t, "from")
		meter := newAt(from, 1, 16, second, false, model.MaxMarksBytes)
		seen, highest := map[int64]bool{}, from-1
		at := from
		for range rapid.IntRange(0, 120).Draw(t, "n") {
			step := rapid.SampledFrom([]int64{1, 1, 1, 1, 2, 63, 64, 65, 0, -1, -3, 65536, -65536, 1 << 20, -1 << 20,
				1<<24 - 1<<16, 1 << 24, -1 << 24, 1 << 25, 1<<40 + 7}).Draw(t, "step")
			at = max(at+step, from-2)
			run := rapid.SampledFrom([]int64{1, 1, 1, 2, 70, 65536}).Draw(t, "run")
			if step >= MostStep {
				run = max(run, Agreeing)
			}
			if step == 1<<40+7 || run < 65536 || len(seen) > 1<<16 {
				run = min(run, 70)
			}
			for range run {
				meter.Observe(0, []model.Arrival{{Sequence: uint64(at) & (1<<48 - 1), Bytes: 16}})
				if at >= from && highest>>chunkBits-at>>chunkBits < allWindows>>chunkBits {
					seen[at-from] = true
					highest = max(highest, at)
				}
				at++
			}
			at--
		}
		received := uint64(highest + 1 - from)
		attempted := rapid.SampledFrom([]uint64{
			0, 1, received / 2, received, received + 1, received + 1<<17,
			received - min(received, allWindows), received - min(received,
				allWindows+5), 1 << 48, 1<<48 + 1, math.MaxUint64,
		}).Draw(t, "attempted")
		for range 2 { // asking changes nothing
			got := meter.Missing(0, attempted)
			want := attempted
			for s := range seen {
				if uint64(s) < attempted {
					want--
				}
			}
			if got.Packets+got.Unlisted != want {
				t.Fatalf("of %d attempted %d + %d are missing, want %d", attempted, got.Packets, got.Unlisted, want)
			}
			if beyond := attempted - min(attempted, endOfSequences); got.Unlisted != beyond {
				t.Fatalf("%d unlisted, want %d", got.Unlisted, beyond)
			}
			next := uint64(0)
			for i, s := range stretchesOf(t, got) {
				if s.Mark != 0 || i > 0 && s.From <= next {
					t.Fatalf("stretch %+v after %d", s, next)
				}
				next = s.From + s.Count
				for n := s.From; n < s.From+min(s.Count, 200); n++ {
					if seen[int64(n)] {
						t.Fatalf("%d is listed and was seen", n)
					}
				}
				for _, edge := range []uint64{s.From - 1, next} {
					if edge < attempted && edge < endOfSequences && !seen[int64(edge)] {
						t.Fatalf("%d is missing and not in %+v", edge, s)
					}
				}
			}
		}
	})
}

// A peer that leaps on and on makes no endless list and no panic.
func TestMissingOfALiar(t *testing.T) {
	m := New(1, 16, second, false, model.MaxMarksBytes)
	for i := range uint64(70_000) {
		m.Observe(0, arrivals(i*(1<<47-1)&(1<<48-1)))
	}
	for _, attempted := range []uint64{0, 5, 1 << 30, math.MaxUint64} {
		got := m.Missing(0, attempted)
		if sum := got.Packets + got.Unlisted; sum > attempted || attempted-sum > 70_000 {
			t.Errorf("%d of %d are missing", sum, attempted)
		}
		stretchesOf(t, got)
	}
}

// With no room left the list counts on.
func TestMissingIsBounded(t *testing.T) {
	const room, span, windows = 60, 4 << chunkBits, 3
	w := newWindow(4, 0, room)
	for at := int64(0); at < windows*span; at += 2 {
		w.see(at)
	}
	for _, attempted := range []uint64{windows * span, windows*span - 1<<17, 1 << chunkBits} {
		got := w.missing(attempted)
		// A broken account, the last, tells its unlisted ones no better than this.
		if sum := got.Packets + got.Unlisted; sum != attempted/2 && attempted > 1<<chunkBits || sum > attempted {
			t.Errorf("of %d: %d listed, %d more, want %d in all", attempted, got.Packets, got.Unlisted, attempted/2)
		}
		if n := len(stretchesOf(t, got)); n == 0 || n > room/3 {
			t.Errorf("of %d: %d stretches in %d B", attempted, n, room)
		}
	}
}
