package lab

import (
	"math"
	"slices"
	"testing"

	"pelt/internal/testenv"
)

// Probes find what a link was asked to do, leave no trace in its account of a
// test, and its seed begins anew after them.
func TestClockCalibrate(t *testing.T) {
	testenv.Clock(t)
	calibrates(t, "direct", "sender:rate=20mbit,loss=10%,delay=20ms,jitter=4ms,distribution=normal,seed=9,toward=receiver", 20e6, 0.02, 0.1, true)
	calibrates(t, "switch", "receiver:delay=10ms,loss=2%,seed=8", 0, 0, 0.02, true)
}

// calibrates wants the probes to find a rate within a share of it, 0 for none, and a loss.
func calibrates(t *testing.T, topology, link string, rate, within, loss float64, seeds bool) {
	t.Helper()
	t.Run(link, func(t *testing.T) {
		l := openLab(t, topology, "mtu=1200", link) // no IPv6, whose own packets would take draws
		list, err := l.Calibrate(t.Context())
		must(t, err)
		if len(list) != 1 {
			t.Fatalf("%+v; want the directions together", list)
		}
		got := list[0]
		if len(got.Off)+len(got.Unmeasured) > 0 || got.Probes < 100 || got.DelayP50 == nil {
			t.Fatalf("%+v", got)
		}
		t.Logf("%d probes: loss %+v, delay %+v, rate %+v", got.Probes, *got.Loss, *got.DelayP50, got.Rate)
		if got.Loss.Expected < loss*0.8 || got.Loss.Expected > loss*1.2 || got.Loss.High-got.Loss.Low > 0.1 {
			t.Errorf("loss %+v", *got.Loss)
		}
		if rate > 0 && (got.Rate == nil || math.Abs(got.Rate.Value-rate) > within*rate) {
			t.Errorf("rate %+v, want %g", got.Rate, rate)
		}
		const bursts, burst = 3, 200 // of 600 at 2 % some are lost
		came := func() (numbers []int) {
			t.Run("through", func(t *testing.T) {
				for i := range bursts {
					for _, a := range through(t, l, probe{count: burst, bytes: 64, wait: 500e6}) {
						numbers = append(numbers, i*burst+a.sequence)
					}
				}
			})
			slices.Sort(numbers)
			return numbers
		}
		first := came()
		again, err := l.Calibrate(t.Context())
		if err != nil || len(again) != 1 {
			t.Fatalf("%v, %v", again, err)
		}
		if second := came(); len(first) == 0 || len(first) == bursts*burst || seeds && !slices.Equal(first, second) {
			t.Errorf("after a calibration %v passed, after another %v", first, second)
		}
	})
}
