package run

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// Threads that take 3/4 and 1/8 of a core, in a trial of 2.5 s that is cut or ends late.
func TestThreadWatch(t *testing.T) {
	for name, after := range map[string]time.Duration{"late": 10 * time.Second, "cut": time.Second, "at once": 0} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			w := &threadWatch{long: 2500 * time.Millisecond, times: func() map[string]time.Duration {
				passed := time.Since(start)
				return map[string]time.Duration{"lan": time.Hour + passed*3/4, "wan": passed / 8, "idle": time.Minute}
			}}
			w.begin()
			w.begin() // moments may come twice
			time.Sleep(after)
			w.end()
			w.end()
			busiest, series := w.result("router")
			if after == 0 {
				if busiest != nil || series != nil {
					t.Errorf("%s: told %v, %+v of no time", name, busiest, series)
				}
				return
			}
			if busiest == nil || math.Abs(*busiest-.75) > 1e-9 {
				t.Errorf("%s: busiest is %v, want 0.75", name, busiest)
			}
			took := min(after, w.long).Seconds()
			if len(series) != 1 || series[0].StepSeconds != took || math.Abs(series[0].Values[0]-.875) > 1e-9 {
				t.Errorf("%s: series %+v, want 0.875 cores over %v s", name, series, took)
			}
		})
	}
}
