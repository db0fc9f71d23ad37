package dut

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pelt/finding"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/observe/counters"
	"pelt/test/golden"
)

// trial runs one trial of 10 s after a warm-up of 2.04 s; during is called when the
// measured part begins, in a goroutine of its own.
func trial(r *Router, during func()) (model.RouterWatch, map[string][]float64, model.Observation) {
	w := r.Begin()
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
		told = append(told, fmt.Sprintf("%s %.0f %.0f: %s", g.Why, g.FromS, g.ToS, finding.Why(g.Of)))
	}
	if !slices.Equal(told, want) {
		t.Errorf("gaps %q\nwant %q", told, want)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 0.005 }

// TestWatch: each line of the file is what happens to a router under watch: first how it is, then what changes so many
// seconds into the measured part. That begins 3.04 s after the fake was made, at an uptime of 1003.04 s. Below stands what
// the watch tells; - is a step that nobody saw.
func TestWatch(t *testing.T) {
	golden.Table(t, "testdata/watch.txt", func(line string) (told string) {
		synctest.Test(t, func(t *testing.T) {
			f, period := newFake(t), time.Second
			if setup, opens := strings.CutPrefix(line, "open "); opens {
				happens(t, f, setup)
				told = opened(t, f)
				return
			}
			var later []func() // in the measured part
			for step := range strings.SplitSeq(line, "; ") {
				words := strings.SplitN(step, " ", 3)
				switch words[0] {
				case "period":
					period = lasts(t, words[1])
				case "at":
					after := lasts(t, words[1])
					later = append(later, func() {
						time.Sleep(time.Until(f.born.Add(3040*time.Millisecond + after)))
						happens(t, f, words[2])
					})
				default:
					happens(t, f, step)
				}
			}
			r := f.open(period)
			w, series, o := trial(r, func() {
				for _, change := range later {
					change()
				}
			})
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if f.most != 1 {
				t.Errorf("%d requests at once", f.most)
			}
			told = watchTold(w, series, o)
			if f.starts > 1 {
				told += fmt.Sprintf("%d connections\n", f.starts)
			}
		})
		return told
	})
}

// opened is what a watch says of a router that cannot be watched.
func opened(t *testing.T, f *fake) string {
	begun := time.Now()
	r, err := Open(context.Background(), "router", "ssh://fake", f.start)
	if err == nil {
		_ = r.Close()
		return "it is watched"
	}
	if got := err.Error(); strings.ContainsAny(got, "\r\n\x00\x1b") || len(got) > 600 {
		t.Errorf("%q, want one line", got)
	}
	if past := time.Since(begun); past > 40*time.Second {
		t.Errorf("it took %v to say so", past)
	}
	return err.Error()
}

func lasts(t *testing.T, text string) time.Duration {
	d, err := time.ParseDuration(text)
	testenv.Must(t, err)
	return d
}

// happens changes a router: what it says of a file, when it booted, and how it answers.
func happens(t *testing.T, f *fake, step string) {
	words := strings.Fields(step)
	text := ""
	if at := strings.Index(step, `"`); at >= 0 {
		var err error
		if text, err = strconv.Unquote(step[at:]); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}
	if words[0] == "cut" {
		f.cut(text)
		return
	}
	f.set(func() {
		switch words[0] {
		case "steady":
		case "says":
			f.part[words[1]] = text
		case "forgets":
			delete(f.part, words[1])
		case "queues":
			f.moment = map[string]string{counters.RouterQueues: text}
		case "idle": // from an uptime on
			f.busy = func(up float64) (float64, float64) {
				return 90 * min(up, 1008.04), 100*up - 90*min(up, 1008.04)
			}
		case "slow": // since when, until when, how long, and how long else
			from, to := lasts(t, words[1]), lasts(t, words[2])
			wait, otherwise := lasts(t, words[3]), lasts(t, words[4])
			f.slow = func(since time.Duration) time.Duration {
				if since > from && since < to {
					return wait
				}
				return otherwise
			}
		case "twice":
			f.twice = true
		case "costs":
			f.cost = 0.05
		case "clock": // its time of day goes back
			f.born = f.born.Add(-lasts(t, words[1]))
		case "refuses":
			f.refuse = errRefused
		case "takes":
			f.refuse = nil
		case "hangs": // so that no shell answers
			f.hangs = true
		case "deaf": // so that no request is answered
			f.deaf = true
		case "runs":
			f.system = text
		case "greets": // so many times
			n, _ := strconv.Atoi(words[1])
			f.greets = strings.Repeat(text, n)
		case "booted": // as what, and how long ago
			f.boot, f.booted = strings.Trim(words[1], "-"), time.Now().Add(-lasts(t, words[2]))
		default:
			t.Fatalf("nothing known: %s", step)
		}
	})
}

// watchTold is what a watch tells as text. Figures are rounded, because a goroutine may come before another one.
func watchTold(w model.RouterWatch, series map[string][]float64, o model.Observation) string {
	var out strings.Builder
	round := func(v, unit float64) float64 { return math.Round(v/unit) * unit }
	if w.CPU != nil {
		fmt.Fprintf(&out, "softirqs %.2f, ", round(w.CPU.Softirq, 0.05))
	}
	fmt.Fprintf(&out, "%d samples, one each %v s", w.Samples, w.PeriodS)
	if w.CostRatio != nil {
		fmt.Fprintf(&out, ", costs %.2f", *w.CostRatio)
	}
	for _, core := range w.Cores {
		fmt.Fprintf(&out, ", a core idle %.2f", round(core.Idle, 0.05))
	}
	for i, level := range []*float64{w.ClockHz, w.TemperatureC} {
		if level != nil {
			fmt.Fprintf(&out, ", %s %g", []string{"clock", "degrees"}[i], *level)
		}
	}
	for i, level := range []*uint64{w.Connections, w.ConnectionsMax, w.SoftnetDropped, w.SoftnetSqueezed} {
		if level != nil {
			fmt.Fprintf(&out, ", %s %d", []string{"connections", "at most", "dropped", "squeezed"}[i], *level)
		}
	}
	out.WriteString("\n")
	for _, g := range w.Gaps {
		fmt.Fprintf(&out, "gap %s %.0f %.0f: %s\n", g.Why, g.FromS, g.ToS, finding.Why(g.Of))
	}
	for _, name := range slices.Sorted(maps.Keys(series)) {
		values := series[name]
		if !slices.ContainsFunc(values, func(v float64) bool { return v > 0 }) {
			continue
		}
		out.WriteString(name)
		for i := 0; i < len(values); {
			unit := 0.05
			if !strings.HasSuffix(name, "ratio") {
				unit = 0.5
			} else if w.PeriodS < 1 { // in which a processor counts few ticks
				unit = 0.25
			}
			text := func(v float64) string {
				if math.IsNaN(v) {
					return "-"
				}
				return fmt.Sprintf("%.4g", round(v, unit))
			}
			from := i
			for i < len(values) && text(values[i]) == text(values[from]) {
				i++
			}
			fmt.Fprintf(&out, " %dx%s", i-from, text(values[from]))
		}
		out.WriteString("\n")
	}
	for _, c := range o.Counters {
		if c.After == 0 {
			continue
		}
		if strings.HasPrefix(c.Name, "dev.") { // which go on between two readings
			fmt.Fprintf(&out, "%s %.0f, measured %.0f, anew %v\n", c.Name, round(float64(c.Whole), 200),
				round(float64(c.Measure), 200), c.Reset)
			continue
		}
		fmt.Fprintf(&out, "%s %d to %d, measured %d, anew %v\n", c.Name, c.Before, c.After, c.Measure, c.Reset)
	}
	for _, q := range o.Queues {
		fmt.Fprintf(&out, "%s %s dropped %d\n", q.Interface, q.Kind, q.Dropped)
	}
	for _, r := range o.Unread {
		fmt.Fprintf(&out, "unread: %s %s %s\n", r.Code, r.Name, r.Text+finding.Why(r.Of))
	}
	fmt.Fprintf(&out, "idle for %.1f s, %s, %s, unsettled %v\n", o.IdleS, o.Mode, o.Boot, o.Unsettled)
	return out.String()
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
				w := r.Begin()
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
		testenv.Must(t, err)
		w := r.Begin()
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
