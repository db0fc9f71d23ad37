package measure

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
)

func TestHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(-5, 2*histogramMax), 0, 200).Draw(t, "values")
		h := NewHistogram(3)
		var kept []int64
		for i, v := range values {
			h.Record(i%3, v, 1)
			if v >= 0 && v <= histogramMax {
				kept = append(kept, v)
			}
		}
		h.Record(0, 5, 0) // counts for nothing
		p := h.Percentiles()
		if len(values) == 0 {
			if b := h.Buckets(); p != nil || b != nil {
				t.Fatalf("an empty histogram gave %+v, %+v", p, b)
			}
			return
		}
		if p.Count != uint64(len(kept)) || p.Out != uint64(len(values)-len(kept)) {
			t.Fatalf("%v: counted %d and %d out of range", values, p.Count, p.Out)
		}
		var sum uint64
		for _, b := range h.Buckets() {
			sum += b.Count
		}
		if sum != p.Count {
			t.Fatalf("%v: buckets hold %d of %d", values, sum, p.Count)
		}
		if len(kept) == 0 {
			return
		}
		slices.Sort(kept)
		median := float64(kept[(len(kept)+1)/2-1])
		if p.Mean < p.Min || p.Mean > p.Max {
			t.Fatalf("%v gave a mean of %v", kept, p.Mean)
		}
		if p.Min != float64(kept[0]) || p.Max != float64(kept[len(kept)-1]) || math.Abs(p.P50-median) > median/1000+1 {
			t.Fatalf("%v gave %+v, want median %v", kept, p, median)
		}
	})
}

func TestBuckets(t *testing.T) {
	h := NewHistogram(1)
	h.Record(0, 0, 1)
	h.Record(0, 4, 2)
	h.Record(0, 11, 3)
	want := []model.Bucket{{UpToNanos: 0, Count: 0}, {UpToNanos: 1, Count: 1}, {UpToNanos: 2}, {UpToNanos: 3},
		{UpToNanos: 4, Count: 2},
		{UpToNanos: 5}, {UpToNanos: 6}, {UpToNanos: 8}, {UpToNanos: 10}, {UpToNanos: 13, Count: 3}}
	if got := h.Buckets(); !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}
