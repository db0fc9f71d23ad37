package userlink

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A queue gives back what a stable sort would, whenever it is asked.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type one struct {
			at   int64
			name int
		}
		var q queue[int]
		var want []one
		for i, step := range rapid.SliceOfN(rapid.Int64Range(-10, 20), 0, 300).Draw(t, "steps") {
			if step >= 0 {
				q.push(step, i)
				want = append(want, one{step, i})
				slices.SortStableFunc(want, func(a, b one) int { return cmp.Compare(a.at, b.at) })
			} else if len(want) > 0 {
				if next := q.next(); next != want[0].at {
					t.Fatalf("the next leaves at %d, not %d", next, want[0].at)
				}
				if at, name := q.pop(); (one{at, name}) != want[0] {
					t.Fatalf("out came %d of %d, not %+v", name, at, want[0])
				}
				want = want[1:]
			}
			if q.len() != len(want) {
				t.Fatalf("%d in the queue, not %d", q.len(), len(want))
			}
		}
	})
}
