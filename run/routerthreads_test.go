package run

import (
	"math"
	"testing"
	"time"
)

// Threads that take 3/4 and 1/8 of a core.
func TestThreadLoad(t *testing.T) {
	before := map[string]time.Duration{"lan": time.Hour, "wan": 0, "idle": time.Minute, "new": time.Minute}
	after := map[string]time.Duration{"lan": time.Hour + 1875*time.Millisecond, "wan": 312500 * time.Microsecond,
		"idle": time.Minute, "new": 0, "late": time.Hour}
	if busiest, sum := threadLoad(before, after, 2.5); math.Abs(busiest-.75) > 1e-9 || math.Abs(sum-.875) > 1e-9 {
		t.Errorf("busiest %v, together %v; want 0.75 and 0.875", busiest, sum)
	}
	if busiest, sum := threadLoad(nil, after, 2.5); busiest != 0 || sum != 0 {
		t.Errorf("told %v, %v without a first reading", busiest, sum)
	}
}
