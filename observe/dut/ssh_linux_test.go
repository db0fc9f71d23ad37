package dut

import (
	"context"
	"math"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

// ownLoad reads /proc/stat by other means than the watch: whole host, in ticks.
func ownLoad(t *testing.T) (softirq, idle, total float64) {
	t.Helper()
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(strings.SplitN(string(b), "\n", 2)[0])
	for i, f := range fields[1:9] {
		v := 0.0
		for _, c := range f {
			v = v*10 + float64(c-'0')
		}
		total += v
		switch i {
		case 3:
			idle = v
		case 6:
			softirq = v
		}
	}
	return softirq, idle, total
}

// The router is this host itself: ssh on the loopback, a shell of BusyBox.
func TestRealSSH(t *testing.T) {
	s := startServer(t)
	ctx := context.Background()
	r, err := Open(ctx, "router", "ssh://ash", target(t, "ssh://ash"), Options{Period: 250 * time.Millisecond, MaxCost: 1})
	if err != nil {
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
	w := r.Begin(1)
	defer w.Close()
	w.Snapshot(model.MomentIdle)
	w.Snapshot(model.MomentStart)
	w.Snapshot(model.MomentMeasure)
	softirq1, idle1, total1 := ownLoad(t)
	const measured = 2500 * time.Millisecond
	time.Sleep(measured)
	softirq2, idle2, total2 := ownLoad(t)
	w.Settle(ctx, false)
	stop.Store(true)
	<-busy
	o := w.Report()
	got, series := w.Watched(measured)
	if got.CPU == nil || got.Samples < 5 {
		t.Fatalf("%+v", got)
	}
	softirq, idle := (softirq2-softirq1)/(total2-total1), (idle2-idle1)/(total2-total1)
	t.Logf("softirq %.3f, by itself %.3f; idle %.3f, by itself %.3f; %d samples, gaps %q", got.CPU.Softirq, softirq, got.CPU.Idle, idle, got.Samples, got.Gaps)
	if math.Abs(got.CPU.Softirq-softirq) > 0.03 || math.Abs(got.CPU.Idle-idle) > 0.03 {
		t.Error("more than 3 points apart")
	}
	for _, metric := range []string{"cpu_busy_ratio", "cpu_softirq_ratio", "softirq_net_rx_hz", "softnet_dropped_pps"} {
		i := slices.IndexFunc(series, func(s model.Series) bool { return s.Metric == metric })
		if i < 0 || len(series[i].Values) != 10 || len(unseen(series[i].Values)) > 5 { // a busy host answers late
			t.Errorf("%s: %+v", metric, series)
		}
	}
	if c := counter(o, "dev.lo.rx_packets"); c.Measure == 0 || c.Whole < c.Measure || o.Boot == "" || o.Namespace == 0 {
		t.Errorf("%+v of %+v", c, o)
	}
	// So often sampled it costs something, in the shell, in cat and in sshd.
	if cost := r.account.ticks / tickHz / r.account.seconds; !(cost > 0 && cost < 1) {
		t.Errorf("the watch took %v of a core: %+v", cost, r.account)
	}

	if after := r.Finish(ctx); !slices.Contains(names(after.After), "/proc/interrupts") || len(after.Untold) != len(f.Untold) {
		t.Errorf("%+v", after)
	}

	// The server's end goes away in the middle.
	w2 := r.Begin(2)
	defer w2.Close()
	w2.Snapshot(model.MomentStart)
	w2.Snapshot(model.MomentMeasure)
	r.mu.Lock()
	gone := r.session.done
	r.mu.Unlock()
	s.hangUp()
	<-gone
	w2.Snapshot(model.MomentEnd)
	again, _ := w2.Watched(time.Second)
	gaps(t, again.Gaps, "the connection was closed: ") // ssh's words follow, by what it was doing
	if strings.HasSuffix(again.Gaps[0], "closed: ") || again.CPU != nil {
		t.Errorf("%+v", again)
	}
	begun := time.Now()
	if err := r.Close(); err != nil || time.Since(begun) > 5*time.Second {
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
		{"echo", "it only repeats what it is told"},
		{"menu", `it gives no shell: it said "Main menu"; it ended with exit status 3`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			r, err := Open(ctx, "router", "ssh://"+c.name, target(t, "ssh://"+c.name), Options{})
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
