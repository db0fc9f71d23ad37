package analysis

import (
	"strings"
	"testing"
)

// Queues lost most only where they had more than half of it, and nothing is lost only
// where no split size loses.
func TestLossOfFragments(t *testing.T) {
	two, many := split{fragments: 2, attempted: 1000, lost: 300}, split{fragments: 45, attempted: 1000, lost: 200}
	for _, c := range []struct {
		splits      []split
		whole       wholeLoss
		random      bool
		queued      float64
		want, never string
	}{
		{[]split{two}, wholeLoss{1000, 200}, false, 0.9, "lost most of those", "many"},
		{[]split{two}, wholeLoss{1000, 200}, false, 0.3, "lost many of those", "most"},
		{[]split{{fragments: 2, attempted: 1000}, many}, wholeLoss{1000, 0}, true, 0, "45 lose 20", "Neither"},
		{[]split{{fragments: 2, attempted: 1000}}, wholeLoss{1000, 0}, true, 0, "Neither loses anything", "formula"},
	} {
		if got := lossOfFragments(c.splits, c.whole, c.random, c.queued); !strings.Contains(got, c.want) || strings.Contains(got, c.never) {
			t.Errorf("says %q; want %q and not %q", got, c.want, c.never)
		}
	}
}
