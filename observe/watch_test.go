package observe

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"pelt/model"
	"pelt/observe/counters"
)

// machine is a host of two cores whose clock runs with the test's: core 0 is
// all busy, a quarter of it in softirq; core 1 is idle.
func machine() func() (counters.Processors, error) {
	start := time.Now()
	return func() (counters.Processors, error) {
		n := uint64(1000 + time.Since(start)/time.Millisecond)
		return counters.Processors{
			All:   counters.Ticks{n - n/4, 0, 0, n, 0, 0, n / 4},
			Cores: map[int]counters.Ticks{0: {n - n/4, 0, 0, 0, 0, 0, n / 4}, 1: {3: n}},
		}, nil
	}
}

func TestWatchSteps(t *testing.T) {
	for _, c := range []struct {
		name   string
		span   time.Duration
		values int
	}{
		{"three seconds", 3*time.Second + time.Millisecond, 3},
		{"a small rest is left out", 3400 * time.Millisecond, 3},
		{"a large rest is a step", 3600 * time.Millisecond, 4},
		{"a short trial has one", 300 * time.Millisecond, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := startWatch(machine())
				time.Sleep(c.span)
				if busy := w.Cores(); len(busy) != 2 || busy[0] != 1 || busy[1] != 0 {
					t.Errorf("cores %v", busy)
				}
				cpu, series := w.Stop()
				want := model.CPU{HostRatio: .5, SoftirqRatio: .125, BusiestRatio: 1}
				if !near(cpu.HostRatio, want.HostRatio) || !near(cpu.SoftirqRatio, want.SoftirqRatio) ||
					cpu.BusiestRatio != 1 {
					t.Errorf("after %v got %+v, want %+v", c.span, cpu, want)
				}
				checkSeries(t, series, c.values)
			})
		})
	}
}

func checkSeries(t *testing.T, series []model.Series, values int) {
	t.Helper()
	for i, want := range []struct {
		metric string
		core   int // -1 none
		value  float64
	}{
		{"cpu_busy_ratio", -1, .5},
		{"cpu_softirq_ratio", 0, .25}, {"cpu_idle_ratio", 0, 0},
		{"cpu_softirq_ratio", 1, 0}, {"cpu_idle_ratio", 1, 1},
	} {
		if i >= len(series) {
			t.Fatalf("only %d series, want 5", len(series))
		}
		s := series[i]
		core := -1
		if s.Core != nil {
			core = *s.Core
		}
		if s.Metric != want.metric || core != want.core || s.StepSeconds != 1 || len(s.Values) != values {
			t.Errorf("series %d is %s of core %d, %d values; want %s of core %d, %d values", i, s.Metric, core,
				len(s.Values), want.metric, want.core, values)
		}
		for _, v := range s.Values {
			if !near(v, want.value) {
				t.Errorf("%s of core %d has %v, want %v", s.Metric, core, v, want.value)
			}
		}
	}
}

// near allows for whole ticks.
func near(got, want float64) bool { return math.Abs(got-want) <= .011 }

func TestWatchWithoutSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWatch(func() (counters.Processors, error) { return counters.Processors{}, errors.ErrUnsupported })
		time.Sleep(2 * time.Second)
		cpu, series := w.Stop()
		if cpu != (model.CPU{}) || series != nil {
			t.Errorf("got %+v and %d series, want nothing", cpu, len(series))
		}
	})
}

func TestWatchLateSampler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read, reads := machine(), 0
		w := startWatch(func() (counters.Processors, error) {
			if reads++; reads == 2 {
				time.Sleep(3 * time.Second) // the sampler does not get its turn
			}
			return read()
		})
		time.Sleep(5*time.Second + time.Millisecond)
		if _, series := w.Stop(); len(series) == 0 || len(series[0].Values) != 5 {
			t.Errorf("a late sampler gave %+v, want 5 values", series)
		}
	})
}

// A core that comes and goes counts as idle while it is away, and each step has a value.
func TestWatchCoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read, start := machine(), time.Now()
		w := startWatch(func() (counters.Processors, error) {
			l, err := read()
			if s := time.Since(start).Seconds(); s > 1.5 && s < 3.5 {
				delete(l.Cores, 0)
			}
			return l, err
		})
		time.Sleep(6*time.Second + time.Millisecond)
		_, series := w.Stop()
		for _, s := range series {
			if s.Metric != "cpu_idle_ratio" || *s.Core != 0 {
				continue
			}
			for i, want := range []float64{0, 1, 1, 1, 0, 0} { // of the step in which it comes back nothing is known
				if len(s.Values) != 6 || !near(s.Values[i], want) {
					t.Fatalf("idle %v", s.Values)
				}
			}
			return
		}
		t.Error("no such core")
	})
}
