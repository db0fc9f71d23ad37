package run

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// A thread that takes 3/4 of a core beside an idle one, in a trial of 2.5 s that is
// read for 10 s.
func TestThreadWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		w := newThreadWatch(2500*time.Millisecond, func() map[string]time.Duration {
			return map[string]time.Duration{"lan": time.Hour + time.Since(start)*3/4, "wan": time.Minute}
		})
		w.begin()
		w.begin() // moments may come twice
		time.Sleep(10 * time.Second)
		busiest, series := w.result("router")
		if busiest == nil || math.Abs(*busiest-.75) > 1e-9 {
			t.Errorf("busiest is %v, want 0.75", busiest)
		}
		if len(series) != 1 || len(series[0].Values) != 3 && len(series[0].Values) != 2 {
			t.Fatalf("series %+v, want one of whole seconds", series)
		}
		for _, v := range series[0].Values {
			if math.Abs(v-.75) > 1e-9 {
				t.Errorf("a second has %v, want 0.75", v)
			}
		}
	})
}

// A reading that comes late shortens the second after it and ends nothing.
func TestThreadWatchReadsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		readings := 0
		w := newThreadWatch(10*time.Second, func() map[string]time.Duration {
			if readings++; readings == 4 {
				time.Sleep(1700 * time.Millisecond)
			}
			return map[string]time.Duration{"lan": time.Since(start) / 2}
		})
		w.begin()
		time.Sleep(20 * time.Second)
		if _, series := w.result("router"); len(series) != 1 || len(series[0].Values) != 10 {
			t.Errorf("series %+v, want one of 10 seconds", series)
		}
	})
}

func TestThreadWatchEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none := map[string]time.Duration{}
		w := newThreadWatch(time.Hour, func() map[string]time.Duration { return none })
		w.begin()
		time.Sleep(1500 * time.Millisecond)
		w.end()
		w.end()
		w.begin() // too late
		if busiest, series := w.result("router"); busiest != nil || series != nil {
			t.Errorf("no thread took %v: %+v", busiest, series)
		}
	})
}
