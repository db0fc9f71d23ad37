package dut

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pelt/model"
	"pelt/observe/counters"
)

// trial runs one trial of 10 s after a warm-up of 2.04 s; during is called when the
// measured part begins, in a goroutine of its own.
func trial(r *Router, during func()) (model.RouterWatch, map[string][]float64, model.Observation) {
	w := r.Begin(1)
	w.Snapshot(model.MomentIdle)
	time.Sleep(980 * time.Millisecond) // no moment is together with a periodic sample, which may be first or second
	w.Snapshot(model.MomentStart)
	time.Sleep(2*time.Second + 60*time.Millisecond)
	w.Snapshot(model.MomentMeasure)
	if during != nil {
		go during()
	}
	time.Sleep(10*time.Second + 300*time.Millisecond)
	w.Settle(context.Background(), false)
	o := w.Report()
	out, series := w.Watched(10 * time.Second)
	_ = w.Close()
	named := map[string][]float64{}
	for _, s := range series {
		if s.At != "router" || s.StepSeconds != r.period.Seconds() {
			panic(fmt.Sprintf("%+v", s))
		}
		named[s.Metric] = s.Values
	}
	return out, named, o
}

// gaps are as "closed 3 8: what was said".
func gaps(t *testing.T, got []model.RouterGap, want ...string) {
	t.Helper()
	var told []string
	for _, g := range got {
		told = append(told, fmt.Sprintf("%s %.0f %.0f: %s", g.Why, g.FromS, g.ToS, g.Said))
	}
	if !slices.Equal(told, want) {
		t.Errorf("gaps %q\nwant %q", told, want)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 0.005 }

// unseen are the steps of a series that are NaN.
func unseen(values []float64) (steps []int) {
	for i, v := range values {
		if math.IsNaN(v) {
			steps = append(steps, i)
		}
	}
	return steps
}

// The measured part begins 3.04 s after the fake was made, at an uptime of 1003.04 s.
func TestWatch(t *testing.T) {
	whole := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	for _, c := range []struct {
		name    string
		period  time.Duration // 0: a second
		setup   func(f *fake)
		during  func(f *fake) // runs beside the measured part
		gaps    []string
		unseen  []int   // steps of cpu_softirq_ratio
		softirq float64 // mean of the measured part; NaN: not told
		check   func(t *testing.T, f *fake, w model.RouterWatch, series map[string][]float64, o model.Observation)
	}{
		{
			name: "steady", softirq: 0.75,
			setup: func(f *fake) {
				f.moment = map[string]string{counters.RouterQueues: "qdisc tbf 1: dev eth0 root refcnt 2\n" +
					" Sent 1 bytes 1 pkt (dropped 3, overlimits 0 requeues 0)\n"}
			},
			check: func(t *testing.T, f *fake, w model.RouterWatch, series map[string][]float64, o model.Observation) {
				if w.Samples != 11 || len(w.Cores) != 1 || !near(w.Cores[0].Idle, 0.25) || w.PeriodS != 1 ||
					w.CostRatio == nil || *w.CostRatio != 0 {
					t.Errorf("%+v", w)
				}
				if w.Connections != nil || w.ClockHz != nil || w.TemperatureC != nil || w.SoftnetDropped != nil ||
					series["clock_hz"] != nil || series["softnet_dropped_pps"] != nil {
					t.Error("what the router does not tell is told")
				}
				if q := counter(o, "qdisc.eth0.tbf.1:.drops"); q.After != 3 || len(o.Queues) != 1 {
					t.Errorf("queues %+v, %+v", q, o.Queues)
				}
				c := counter(o, "dev.eth0.rx_packets")
				if math.Abs(float64(c.Whole)-12320) > 11 || math.Abs(float64(c.Measure)-10260) > 2 || o.Unsettled ||
					!near(o.IdleS, 0.98) || o.Mode != model.DropsOff || o.Boot != "boot-1" || len(o.Unread) > 0 {
					t.Errorf("%+v\n%+v", c, o)
				}
			},
		},
		{
			name: "a load that goes in the middle", softirq: 0.45,
			setup: func(f *fake) {
				f.busy = func(up float64) (float64, float64) {
					return 90 * min(up, 1008.04), 100*up - 90*min(up, 1008.04)
				}
			},
			check: func(t *testing.T, _ *fake, _ model.RouterWatch, series map[string][]float64, _ model.Observation) {
				for i, want := range []float64{.9, .9, .9, .9, .9, 0, 0, 0, 0, 0} {
					if got := series["cpu_softirq_ratio"][i]; math.Abs(got-want) > 0.02 {
						t.Errorf("step %d is %.3f, want %.1f", i, got, want)
					}
					if got := series["cpu_busy_ratio"][i]; math.Abs(got-want) > 0.02 {
						t.Errorf("step %d is %.3f busy, want %.1f", i, got, want)
					}
				}
			},
		},
		{
			name: "levels, a hot and slow one", softirq: 0.75,
			setup: func(f *fake) {
				f.part["/proc/sys/net/netfilter/nf_conntrack_count"], f.part["/proc/sys/net/netfilter/nf_conntrack_max"] = "500\n", "1024\n"
				f.part["$clocks"], f.part["$zones"] = "1800000\n600000\n", "45000\n60500\n"
				f.part["/proc/net/softnet_stat"] = "00000001 ffffffff 00000001\n"
			},
			during: func(f *fake) {
				time.Sleep(4500 * time.Millisecond)
				f.set(func() {
					f.part["/proc/sys/net/netfilter/nf_conntrack_count"], f.part["$zones"] = "900\n", "91000\n"
					f.part["/proc/net/softnet_stat"] = "00000001 00000004 00000003\n"
				})
			},
			check: func(t *testing.T, f *fake, w model.RouterWatch, series map[string][]float64, o model.Observation) {
				if *w.Connections != 900 || *w.ConnectionsMax != 1024 || *w.ClockHz != 600e6 ||
					*w.TemperatureC != 91 || *w.SoftnetDropped != 5 || *w.SoftnetSqueezed != 2 {
					t.Errorf("%+v", w)
				}
				if s := series["softnet_dropped_pps"]; s[4] < 4.9 || s[4] > 5.1 || s[3] != 0 ||
					series["conntrack_entries"][9] != 900 {
					t.Errorf("%v", series)
				}
				if c := counter(o, "softnet.dropped"); c.Whole != 5 || c.Measure != 5 || c.Reset {
					t.Errorf("%+v", c)
				}
			},
		},
		{
			name: "the router's time of day jumps", softirq: 0.75,
			during: func(f *fake) {
				time.Sleep(3 * time.Second)
				f.set(func() { f.born = f.born.Add(-time.Hour * 24 * 365 * 50) })
			},
		},
		{
			name: "an answer comes late, once", softirq: 0.75,
			setup: func(f *fake) {
				f.slow = func(since time.Duration) time.Duration {
					if since > 4900*time.Millisecond && since < 5300*time.Millisecond {
						return 3500 * time.Millisecond
					}
					return 20 * time.Millisecond
				}
			},
			gaps: []string{"late 2 6: "},
			// By its own clock the late one is that of t=2 s. The next one is that of t=6 s.
			unseen: []int{2, 3, 4, 5},
		},
		{
			name: "no answer any more", softirq: math.NaN(), unseen: whole,
			setup: func(f *fake) {
				f.slow = func(since time.Duration) time.Duration {
					if since > 3100*time.Millisecond {
						return time.Hour
					}
					return 0
				}
			},
			gaps: []string{"late 0 0: "},
			check: func(t *testing.T, f *fake, w model.RouterWatch, _ map[string][]float64, o model.Observation) {
				if w.Samples != 1 || w.CPU != nil || len(w.Cores) > 0 || len(o.Counters) > 0 {
					t.Errorf("%+v\n%+v", w, o)
				}
				if got := fmt.Sprint(o.Unread); !strings.Contains(got,
					"end the router did not answer within 2s") || !o.Unread.Has(model.NotObserved) {
					t.Error(got)
				}
			},
		},
		{
			name: "no answer from the warm-up on", softirq: math.NaN(), unseen: whole,
			setup: func(f *fake) {
				f.slow = func(since time.Duration) time.Duration {
					if since > 2900*time.Millisecond {
						return time.Hour
					}
					return 0
				}
			},
			gaps: []string{"late 0 0: "},
		},
		{
			name: "the router repeats itself", softirq: 0.75,
			setup: func(f *fake) { f.twice = true },
		},
		{
			name: "the connection is cut, refused once, and comes back", softirq: 0.75, unseen: []int{3, 4, 5, 6, 7,
				8, 9},
			during: func(f *fake) {
				time.Sleep(3200 * time.Millisecond)
				f.set(func() { f.refuse = errRefused })
				f.cut("Connection to fake closed by remote host.")
				time.Sleep(5500 * time.Millisecond)
				f.set(func() { f.refuse = nil })
			},
			gaps: []string{"closed 3 0: Connection to fake closed by remote host"},
			check: func(t *testing.T, f *fake, w model.RouterWatch, _ map[string][]float64, o model.Observation) {
				if f.starts != 2 || w.Samples != 4 ||
					!strings.Contains(fmt.Sprint(o.Unread), "end the connection was closed") {
					t.Errorf("%d starts, %+v, %+v", f.starts, w, o)
				}
			},
		},
		{
			name: "the connection is cut and comes back in time", softirq: 0.75, unseen: []int{2, 3, 4, 5, 6, 7},
			during: func(f *fake) {
				time.Sleep(2100 * time.Millisecond)
				f.cut("client_loop: send disconnect: Broken pipe\r\n")
			},
			gaps: []string{"closed 2 8: client_loop: send disconnect: Broken pipe"},
			check: func(t *testing.T, _ *fake, _ model.RouterWatch, _ map[string][]float64, o model.Observation) {
				if c := counter(o, "dev.eth0.rx_packets"); math.Abs(float64(c.Measure)-10260) > 2 {
					t.Errorf("%+v: the counters went on, whoever read them", c)
				}
			},
		},
		{
			name: "the router restarts", softirq: math.NaN(), unseen: []int{2, 3, 4, 5, 6, 7},
			during: func(f *fake) {
				time.Sleep(2100 * time.Millisecond)
				f.set(func() { f.booted, f.boot = time.Now(), "boot-2" })
				f.cut("")
			},
			gaps: []string{"closed 2 8: the shell ended with exit status 255", "restarted 2 8: "},
			check: func(t *testing.T, _ *fake, w model.RouterWatch, _ map[string][]float64, o model.Observation) {
				if len(o.Counters) > 0 || !strings.Contains(fmt.Sprint(o.Unread), "the router restarted") ||
					len(w.Cores) > 0 || w.SoftnetDropped != nil {
					t.Errorf("%+v\n%+v", w, o)
				}
			},
		},
		{
			name: "uptime goes back within one connection", softirq: math.NaN(), unseen: []int{5},
			during: func(f *fake) {
				time.Sleep(5500 * time.Millisecond)
				f.set(func() { f.booted, f.boot = time.Now().Add(-300*time.Second), "" })
			},
			gaps: []string{"restarted 5 6: "},
		},
		{
			name: "a router that began anew and has been up for longer", softirq: math.NaN(), unseen: []int{5},
			setup: func(f *fake) { f.booted = f.born },
			during: func(f *fake) {
				time.Sleep(5500 * time.Millisecond)
				f.set(func() { f.booted, f.boot = f.born.Add(-time.Hour), "boot-2" })
			},
			gaps: []string{"restarted 5 6: "},
		},
		{
			name: "costly", softirq: 0.75,
			setup: func(f *fake) { f.cost = 0.05 },
			check: func(t *testing.T, f *fake, w model.RouterWatch, series map[string][]float64, _ model.Observation) {
				if math.Abs(*w.CostRatio-0.05) > 1e-3 || w.PeriodS != 1 || len(series["cpu_busy_ratio"]) != 10 {
					t.Errorf("%+v", w)
				}
			},
		},
		{
			name: "garbage for a while", softirq: 0.75, unseen: []int{3, 4, 5},
			during: func(f *fake) {
				time.Sleep(3500 * time.Millisecond)
				f.set(func() { f.part["/proc/stat"] = "\x00\xff cat: can't fork\n" })
				time.Sleep(2 * time.Second)
				f.set(func() { delete(f.part, "/proc/stat") })
			},
			gaps: []string{"garbled 3 6: its /proc/stat does not tell of the processors"},
		},
		{
			name: "a finer period", period: 100 * time.Millisecond, softirq: 0.75,
			check: func(t *testing.T, f *fake, w model.RouterWatch, series map[string][]float64, _ model.Observation) {
				if w.Samples != 101 || len(series["cpu_busy_ratio"]) != 100 {
					t.Errorf("%+v, %d steps", w, len(series["cpu_busy_ratio"]))
				}
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t)
				if c.setup != nil {
					c.setup(f)
				}
				r := f.open(cmp.Or(c.period, time.Second))
				var during func()
				if c.during != nil {
					during = func() { c.during(f) }
				}
				w, series, o := trial(r, during)
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				gaps(t, w.Gaps, c.gaps...)
				if math.IsNaN(c.softirq) != (w.CPU == nil) || w.CPU != nil && math.Abs(w.CPU.Softirq-c.softirq) > 0.01 {
					t.Errorf("processors %+v, want %v in softirqs", w.CPU, c.softirq)
				}
				softirqs := series["cpu_softirq_ratio"]
				if got := unseen(softirqs); !slices.Equal(got, c.unseen) && (len(c.unseen) < 10 || softirqs != nil) {
					t.Errorf("steps %v are not observed, want %v: %.3f", got, c.unseen, softirqs)
				}
				if f.most != 1 {
					t.Errorf("%d requests at once", f.most)
				}
				if c.check != nil {
					c.check(t, f, w, series, o)
				}
			})
		})
	}
}

func counter(o model.Observation, name string) model.Counter {
	for _, c := range o.Counters {
		if c.Name == name {
			return c
		}
	}
	return model.Counter{}
}

// Each answer costs the router something, also at the end of a trial.
func TestSettleAsksSeldom(t *testing.T) {
	for _, c := range []struct {
		name      string
		setup     func(f *fake)
		lost      bool
		asks      int
		unsettled bool
		least     time.Duration
	}{
		{"still", func(*fake) {}, false, 2, false, stillFor},
		{"still, and figures of a card may be late",
			func(f *fake) { f.facts = "@@ S devices\n/sys/class/net/eth0/device\n" }, true, 2, false, 2 * time.Second},
		{"a card's late figures of no interest",
			func(f *fake) { f.facts = "@@ S devices\n/sys/class/net/eth0/device\n" }, false, 2, false, stillFor},
		{"never still", func(f *fake) { f.rest = math.Inf(1) }, false, 8, true, time.Second},
		{"no answer", func(f *fake) {
			f.slow = func(since time.Duration) time.Duration { return time.Duration(since/time.Millisecond) * time.Hour }
		}, false, 1, false, patience},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t)
				f.rest = 1 // it carried packets once
				c.setup(f)
				r := f.open(time.Hour)
				w := r.Begin(1)
				time.Sleep(10 * time.Millisecond)
				begun, before := time.Now(), len(f.asked)
				w.Settle(context.Background(), c.lost)
				took := time.Since(begun)
				f.mu.Lock()
				asks := len(f.asked) - before
				f.mu.Unlock()
				if asks < 1 || asks > c.asks || w.Report().Unsettled != c.unsettled || took < c.least ||
					took > c.least+time.Second {
					t.Errorf("%d requests in %v, unsettled %v", asks, took, w.Report().Unsettled)
				}
				if err := errors.Join(w.Close(), r.Close()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestCores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		r, err := Open(context.Background(), "router", "ssh://fake", f.start)
		if err != nil {
			t.Fatal(err)
		}
		w := r.Begin(1)
		if busy := w.Cores(); busy != nil {
			t.Errorf("before two samples: %v", busy)
		}
		time.Sleep(3500 * time.Millisecond)
		if busy := w.Cores(); len(busy) != 1 || !near(busy[0], 0.75) {
			t.Errorf("cores %v, want 0.75 of one", busy)
		}
		f.set(func() { f.deaf = true })
		time.Sleep(3 * time.Second)
		if busy := w.Cores(); busy != nil {
			t.Errorf("of long ago: %v", busy)
		}
		if err := errors.Join(w.Close(), r.Close()); err != nil {
			t.Error(err)
		}
	})
}
