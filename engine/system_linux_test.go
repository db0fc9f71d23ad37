package engine

import "testing"

// A machine may have more cores than a mask of fixed size has bits.
func TestOneOfManyCores(t *testing.T) {
	for _, core := range []int{0, 63, 64, 1023, 1024, 5000} {
		if set := oneCore(core); set.Count() != 1 || !set.IsSet(core) {
			t.Errorf("core %d: %d cores, itself %v", core, set.Count(), set.IsSet(core))
		}
	}
}
