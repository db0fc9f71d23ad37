package changes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pelt/model"
)

// Where a count has outliers of its own, a burst that just exceeds them has about the
// chance that is allowed, and not that of a gamma distribution, which knows of none.
func TestBurstAmongOutliers(t *testing.T) {
	for _, n := range []int{600, 6000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 6))
			values := drawn(n, func(int) float64 { return math.Round(200 * math.Exp(0.7*r.NormFloat64())) })
			allowed := odds{series: 1, seconds: float64(n), surest: surest}.allowed()
			for lost := 2000.0; lost < 1e7; lost *= 1.1 {
				values[n/2] = math.Round(lost)
				found := Find(trial("lost_pps", values))
				if len(found) == 0 {
					continue
				}
				if c := found[0]; len(found) != 1 || c.Kind != model.ChangeBurst || c.PValue > allowed || c.PValue < allowed/10 {
					t.Errorf("found %+v; want one burst with a chance near %.2g", found, allowed)
				}
				return
			}
			t.Error("no burst found")
		})
	}
}
