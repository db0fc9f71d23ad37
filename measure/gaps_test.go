package measure

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
)

func bars(values ...int64) []model.Bucket {
	h := NewHistogram(1)
	for _, v := range values {
		h.Record(0, v, 1)
	}
	return h.Buckets()
}

func TestGapDistance(t *testing.T) {
	const µs, ms = 1000, 1_000_000
	for _, c := range []struct {
		name        string
		asked, sent []model.Bucket
		want        float64
	}{
		{"the same", bars(25*µs, 90*ms), bars(25*µs, 90*ms), 0},
		{"just beyond a bar's bound", bars(25*µs, 25*µs), bars(25*µs+20, 25*µs-20), 0},
		{"twice as long", bars(25*µs, 25*µs), bars(50*µs, 50*µs), 1},
		{"one of four short", bars(25*µs, 25*µs, 25*µs, 25*µs), bars(25*µs, 2*µs, 25*µs, 25*µs), 0.25},
		{"bursts that leave as they can", bars(0, 0, 0, 4*ms), bars(3*µs, 4*µs, 9*µs, 4*ms), 0},
		{"bursts torn apart", bars(0, 0, 0, 4*ms), bars(3*µs, 400*µs, 9*µs, 4*ms), 0.25},
		{"pauses lost", bars(25*µs, 25*µs, 25*µs, 90*ms), bars(25*µs, 25*µs, 25*µs, 25*µs), 0.25},
		{"apart", bars(1 * µs), bars(90 * ms), 1},
	} {
		if got, ok := GapDistance(c.asked, c.sent); !ok || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v %v, want %v", c.name, got, ok, c.want)
		}
	}
	if _, ok := GapDistance(nil, bars(1)); ok {
		t.Error("nothing asked has a distance")
	}
	if _, ok := GapDistance(bars(1), nil); ok {
		t.Error("nothing sent has a distance")
	}
}

// Gaps that are each off by less than a quarter are as asked; and the distance is
// never more than the share that was changed.
func TestGapDistanceIsALowerBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		share := rapid.Float64Range(0, 0.5).Draw(t, "share")
		asked, sent := NewHistogram(1), NewHistogram(1)
		changed := 0.0
		const n = 2000
		for range n {
			gap := random.ExpFloat64()*100_000 + 2000
			asked.Record(0, int64(gap), 1)
			gap *= 0.85 + 0.3*random.Float64()
			if random.Float64() < share {
				gap, changed = gap*20, changed+1
			}
			sent.Record(0, int64(gap), 1)
		}
		if d, ok := GapDistance(asked.Buckets(), sent.Buckets()); !ok || d > changed/n+1e-9 {
			t.Fatalf("distance %v, changed %v", d, changed/n)
		}
	})
}

func FuzzGapDistance(f *testing.F) {
	f.Add(int64(1), uint64(3), int64(-7), uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, a int64, n uint64, b int64, m uint64) {
		d, _ := GapDistance([]model.Bucket{{UpToNanos: a, Count: n}, {UpToNanos: b, Count: m}},
			[]model.Bucket{{UpToNanos: b, Count: n}})
		if !(d >= 0 && d <= 1+1e-9) {
			t.Errorf("distance %v", d)
		}
	})
}
