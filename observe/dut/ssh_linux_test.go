package dut

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pelt/internal/testenv"
	"pelt/model"
)

func target(t *testing.T, text string) Start {
	t.Helper()
	to, err := ParseTarget(text)
	if err != nil {
		t.Fatal(err)
	}
	return to.Start()
}

// The router is this host itself: ssh on the loopback, a shell of BusyBox.
func TestRealSSH(t *testing.T) {
	s := startServer(t)
	ctx := context.Background()
	r := &Router{node: "router", source: "ssh://ash", start: target(t, "ssh://ash"), asked: 250 * time.Millisecond, maxCost: 1}
	if err := r.open(ctx); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f := r.Facts()
	names := func(texts []model.Text) (out []string) {
		for _, text := range texts {
			out = append(out, text.Name)
		}
		return out
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err != nil || f.Kernel != strings.TrimSpace(string(release)) ||
		f.System != "linux" || f.Cores == 0 || f.MemoryBytes == 0 || f.Firmware == "" || f.Source != "ssh://ash" || f.Node != "router" ||
		!slices.Contains(names(f.Before), "top") || !slices.Contains(names(f.Before), "/proc/interrupts") {
		t.Errorf("%+v", f)
	}

	var stop atomic.Bool
	busy := load(t, &stop)
	defer stop.Store(true)
	metrics := []string{"cpu_busy_ratio", "cpu_softirq_ratio", "softnet_dropped_pps"}
	for trial := uint16(1); ; trial++ {
		w := r.Begin(trial)
		defer w.Close()
		w.Snapshot(model.MomentIdle)
		w.Snapshot(model.MomentStart)
		w.Snapshot(model.MomentMeasure)
		const measured = 2500 * time.Millisecond
		time.Sleep(measured)
		w.Settle(ctx, false)
		o := w.Report()
		got, series := w.Watched(measured)
		fault := ""
		for _, metric := range metrics {
			i := slices.IndexFunc(series, func(s model.Series) bool { return s.Metric == metric })
			if i < 0 || len(series[i].Values) != 10 {
				t.Fatalf("%s: %+v", metric, series)
			}
			if len(unseen(series[i].Values)) > 5 {
				fault = fmt.Sprintf("%s: %v", metric, series[i].Values)
			}
		}
		if got.CPU == nil || got.Samples < 5 || fault != "" {
			if trial == 3 {
				t.Fatalf("%+v %s", got, fault)
			}
			continue // a busy host answers late
		}
		t.Logf("%d samples, gaps %q", got.Samples, got.Gaps)
		if got.CPU.Softirq == 0 || got.CPU.System == 0 || len(got.Cores) == 0 { // under this load
			t.Errorf("%+v", got)
		}
		if c := counter(o, "dev.lo.rx_packets"); c.Measure == 0 || c.Whole < c.Measure || o.Boot == "" || o.Namespace == 0 {
			t.Errorf("%+v of %+v", c, o)
		}
		break
	}
	stop.Store(true)
	<-busy
	// So often sampled it costs something, in the shell, in cat and in sshd.
	if ratio := r.cost.ratio(); !(ratio > 0 && ratio < 1) {
		t.Errorf("the watch took %v of a core: %+v", ratio, r.cost)
	}

	if after := r.Finish(ctx); !slices.Contains(names(after.After), "/proc/interrupts") || len(after.Untold) != len(f.Untold) {
		t.Errorf("%+v", after)
	}

	// The server's end goes away in the middle.
	w2 := r.Begin(9)
	defer w2.Close()
	w2.Snapshot(model.MomentStart)
	w2.Snapshot(model.MomentMeasure)
	r.mu.Lock()
	gone := r.session.shell.Ended
	r.mu.Unlock()
	s.hangUp()
	<-gone
	w2.Snapshot(model.MomentEnd)
	again, _ := w2.Watched(time.Second)
	again.Gaps = slices.DeleteFunc(again.Gaps, func(line string) bool { // a busy host, before
		return strings.Contains(line, "the router did not answer in time")
	})
	gaps(t, again.Gaps, "the connection was closed: ") // ssh's words follow, by what it was doing
	if len(again.Gaps) > 0 && strings.HasSuffix(again.Gaps[0], "closed: ") || again.CPU != nil {
		t.Errorf("%+v", again)
	}
	begun := time.Now()
	if err := r.Close(); err != nil || time.Since(begun) > testenv.Patience {
		t.Errorf("closed after %v: %v", time.Since(begun), err)
	}
}

// Each way of no watch is one clear line, soon.
func TestSSHThatGivesNoWatch(t *testing.T) {
	startServer(t)
	for _, c := range []struct{ name, want string }{
		{"wrongkey", "it refuses to log in: root@127.0.0.1: Permission denied (publickey)"},
		{"unknown", "its host key is not known here"},
		{"changed", "its host key is not the one known here"},
		{"refused", "Connection refused"},
		{"false", "it gives no shell: it ended with exit status 1"},
		{"menu", `it gives no shell: it said "Main menu"; it ended with exit status 3`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
			defer cancel()
			r, err := Open(ctx, "router", "ssh://"+c.name, target(t, "ssh://"+c.name))
			if err == nil {
				_ = r.Close()
				t.Fatal("it is watched")
			}
			if got := err.Error(); !strings.HasPrefix(got, "watch the router ssh://"+c.name+": ") || !strings.Contains(got, c.want) || strings.ContainsAny(got, "\r\n") {
				t.Errorf("%q, want one line with %q", got, c.want)
			}
		})
	}
}
