package lab

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pelt/model"
)

// Probes find what a link was asked to do, leave no trace in its account of a
// test, and its seed begins anew after them.
func TestCalibrate(t *testing.T) {
	calibrates(t, "direct", "sender:rate=20mbit,loss=10%,delay=20ms,jitter=4ms,distribution=normal,seed=9,toward=receiver", 20e6, 0.02, 0.1, true)
	calibrates(t, "switch", "receiver:delay=10ms,loss=2%", 0, 0, 0.02, true)
	calibrates(t, "direct", "sender:rate=50mbit,loss=10%,seed=9,backend=bpf", 50e6, 0.02, 0.1, true)
}

// The kernel's netem is measured as well. See kernellink_linux_test.go.
func TestKernelLinkCalibrates(t *testing.T) {
	ok, seeds := withNetem(t)
	if !ok {
		return
	}
	// tbf's timers are late where a guest runs behind everything else on its host; a
	// slow link's bucket outlasts more of that.
	const late = 0.05
	seed := ""
	if seeds {
		seed = "seed=9,"
	}
	calibrates(t, "direct", "sender:rate=5mbit,loss=10%,delay=20ms,jitter=4ms,distribution=normal,"+seed+"backend=kernel", 5e6, late, 0.1, seeds)
	calibrates(t, "direct", "sender:delay=20ms,jitter=4ms,distribution=normal,loss=5%,mode=netem,"+seed+"backend=kernel", 0, 0, 0.05, seeds)
}

// calibrates wants the probes to find a rate within a share of it, 0 for none, and a loss.
func calibrates(t *testing.T, topology, link string, rate, within, loss float64, seeds bool) {
	t.Helper()
	if testing.Short() {
		t.Skip("its figures are of times, which the race detector spoils")
	}
	t.Run(link, func(t *testing.T) {
		l := openLab(t, topology, "mtu=1200", link) // no IPv6, whose own packets would take draws
		var list []model.LinkCalibration
		for range 3 { // a busy machine makes any link late
			var err error
			if list, err = l.Calibrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(list, func(x model.LinkCalibration) bool {
				return len(x.Off) > 0 || x.DelayKS != nil && *x.DelayKS > 0.1 || rate > 0 && (x.Rate == nil || math.Abs(x.Rate.Value-rate) > within*rate)
			}) {
				break
			}
		}
		if len(list) != 1 {
			t.Fatalf("%+v; want the directions together", list)
		}
		got := list[0]
		if len(got.Off)+len(got.Unmeasured) > 0 || got.Probes < 100 || got.DelayP50 == nil {
			t.Fatalf("%+v", got)
		}
		t.Logf("%d probes: loss %+v, delay %+v, KS %v, rate %+v", got.Probes, *got.Loss, *got.DelayP50, got.DelayKS, got.Rate)
		jitters := strings.Contains(link, "jitter")
		if got.Loss.Expected < loss*0.8 || got.Loss.Expected > loss*1.2 || got.Loss.High-got.Loss.Low > 0.1 || (got.DelayKS != nil) != jitters || jitters && *got.DelayKS > 0.1 {
			t.Errorf("loss %+v, KS distance %v", *got.Loss, got.DelayKS)
		}
		if rate > 0 && (got.Rate == nil || math.Abs(got.Rate.Value-rate) > within*rate) {
			t.Errorf("rate %+v, want %g", got.Rate, rate)
		}
		const bursts, burst = 3, 200 // of 600 at 2 % some are lost
		came := func() (numbers []int) {
			t.Run("through", func(t *testing.T) {
				for i := range bursts {
					for _, a := range through(t, l, probe{count: burst, bytes: 64, wait: 100e6}) {
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
