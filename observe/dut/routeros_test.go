package dut

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// mikrotik is a console of RouterOS as its documents show it: prompts without line
// ends, carriage returns, and an error for what it does not know.
type mikrotik struct {
	mu   sync.Mutex
	born time.Time
	up   time.Duration // when it was born
	load func(since time.Duration) (cpu0, cpu1, irq1 int)
}

func (k *mikrotik) shell(serve func(in io.Reader, out io.Writer)) *Shell {
	inRead, in := io.Pipe()
	out, outWrite := io.Pipe()
	ended := make(chan struct{})
	var once sync.Once
	end := func() {
		once.Do(func() {
			_, _ = outWrite.Close(), inRead.Close()
			close(ended)
		})
	}
	go func() {
		serve(inRead, outWrite)
		end()
	}()
	return &Shell{
		In: in, Out: out, Ended: ended, Kill: end, Patience: time.Second,
		Complaint: func() string { return "" }, Status: func() string { return "exit status 1" },
	}
}

func (k *mikrotik) start(context.Context) (*Shell, error) {
	s := k.shell(func(in io.Reader, out io.Writer) {
		_, _ = io.WriteString(out, "bad command name exec (line 1 column 1)\r\n")
	})
	s.Console = func(context.Context) (*Shell, error) { return k.shell(k.console), nil }
	return s, nil
}

func (k *mikrotik) console(in io.Reader, out io.Writer) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		said := "[admin@MikroTik] > "
		for _, command := range strings.Split(lines.Text(), "; ") {
			var left, right int
			mark := ""
			text, put := strings.CutPrefix(command, `:put "`)
			switch {
			case put:
				said += strings.TrimSuffix(text, `"`) + "\n"
			case strings.HasPrefix(command, ":put ("):
				_, _ = fmt.Sscanf(command, `:put ("%s " . (%d + %d)`, &mark, &left, &right)
				said += fmt.Sprintf("%s %d RouterOS\n", mark, left+right)
			default:
				said += k.answer(command)
			}
		}
		if _, err := io.WriteString(out, strings.ReplaceAll(said, "\n", "\r\n")); err != nil {
			return
		}
	}
}

func (k *mikrotik) answer(command string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	since := time.Since(k.born)
	a, b, irq := k.load(since)
	switch command {
	case "/system resource print":
		up := (k.up + since).Truncate(time.Second)
		return fmt.Sprintf("                   uptime: 1d%dh%dm%ds\n                  version: 7.11.2 (stable)\n             total-memory: 256.0MiB\n                      cpu: MIPS 1004Kc V2.15\n                cpu-count: 2\n            cpu-frequency: 880MHz\n                 cpu-load: %d%%\n        architecture-name: mmips\n               board-name: hEX\n",
			up/time.Hour, up%time.Hour/time.Minute, up%time.Minute/time.Second, (a+b)/2)
	case "/system resource cpu print without-paging":
		return fmt.Sprintf("Columns: CPU, LOAD, IRQ, DISK\n#  CPU   LOAD  IRQ  DISK\n0  cpu0   %2d%%   0%%    0%%\n1  cpu1   %2d%%  %2d%%    0%%\n", a, b, irq)
	case "/ip firewall connection tracking print":
		return "                   enabled: auto\n               max-entries: 262144\n             total-entries: 31\n"
	case "/system health print without-paging":
		return "Columns: NAME, VALUE, TYPE\n#  NAME         VALUE  TYPE\n0  voltage       24.1  V\n1  temperature     41  C\n"
	case "/ip settings print":
		return "          allow-fast-path: yes\n  ipv4-fasttrack-active: no\n"
	case "/interface bridge port print without-paging":
		return "Flags: I - INACTIVE; H - HW-OFFLOAD\n #     INTERFACE  BRIDGE  HW\n 0   H ether2     bridge  yes\n 1 I   ether3     bridge  yes\n"
	}
	return "bad command name " + command + " (line 1 column 1)\n"
}

func TestRouterOS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &mikrotik{born: time.Now(), up: 3*time.Hour + 700*time.Millisecond, load: func(time.Duration) (int, int, int) { return 20, 80, 60 }}
		r, err := Open(context.Background(), "router", "ssh://fake", k.start)
		if err != nil {
			t.Fatal(err)
		}
		f := r.Facts()
		if f.System != "routeros" || f.Model != "hEX" || f.Firmware != "RouterOS 7.11.2 (stable)" || f.Cores != 2 || f.MemoryBytes != 256<<20 || f.CPU != "MIPS 1004Kc V2.15" ||
			!slices.Equal(f.Offload, []string{"configured: fast path is allowed: yes (allow-fast-path)", "real: fasttrack is active: no (ipv4-fasttrack-active)", "real: the switch chip bridges ether2 by itself"}) ||
			len(f.Untold) != 2 {
			t.Errorf("%+v", f)
		}
		w, series, o := trial(r, nil)
		gaps(t, w.Gaps)
		if w.Samples != 11 || w.CPU == nil || !near(w.CPU.Idle, 0.5) || !near(w.CPU.IRQ, 0.3) || !near(w.CPU.System, 0.2) || !near(w.Cores[1].IRQ, 0.6) || !near(w.Cores[0].Idle, 0.8) {
			t.Errorf("%+v %+v", w, w.CPU)
		}
		if *w.Connections != 31 || *w.ConnectionsMax != 262144 || *w.ClockHz != 880e6 || *w.TemperatureC != 41 || w.CostRatio != nil || len(series["cpu_irq_ratio"]) != 10 {
			t.Errorf("%+v", w)
		}
		if len(o.Counters) != 0 || !strings.Contains(strings.Join(o.Unread, "\n"), "no counters: the router tells none") {
			t.Errorf("%+v", o)
		}
		// A restart shows by its uptime.
		w, _, _ = trial(r, func() {
			time.Sleep(4500 * time.Millisecond)
			k.mu.Lock()
			defer k.mu.Unlock()
			k.born, k.up = time.Now(), 0
		})
		gaps(t, w.Gaps, "the router restarted between t=4.0 s and t=5.0 s")
		if w.CPU != nil {
			t.Errorf("%+v", w.CPU)
		}
		if got := r.Finish(context.Background()); len(got.After) == 0 {
			t.Errorf("%+v", got)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

// What is reckoned of percentages goes on when the connection was lost in between: ticks
// that began anew would make all of the idle time before it vanish.
func TestRouterOSConnectsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		load := 0
		var last *Shell
		k := &mikrotik{born: time.Now(), up: time.Hour, load: func(time.Duration) (int, int, int) {
			mu.Lock()
			defer mu.Unlock()
			return load, load, 0
		}}
		start := func(ctx context.Context) (*Shell, error) {
			s, err := k.start(ctx)
			console := s.Console
			s.Console = func(ctx context.Context) (*Shell, error) {
				c, err := console(ctx)
				mu.Lock()
				defer mu.Unlock()
				last = c
				return c, err
			}
			return s, err
		}
		r, err := Open(context.Background(), "router", "ssh://fake", start)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		trial(r, nil)
		mu.Lock()
		load = 80
		mu.Unlock()
		w, _, _ := trial(r, func() {
			time.Sleep(2500 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			last.Kill()
		})
		gaps(t, w.Gaps, "not observed from t=2.")
		if w.CPU == nil || !near(w.CPU.System, 0.8) || !near(w.CPU.Idle, 0.2) {
			t.Errorf("%+v", w.CPU)
		}
	})
}

func TestRouterOSTime(t *testing.T) {
	for _, c := range []struct {
		text string
		want float64
		ok   bool
	}{
		{"1w2d3h4m5s", 7*86400 + 2*86400 + 3*3600 + 4*60 + 5, true}, {"59s", 59, true}, {"2d03:04:05", 2*86400 + 3*3600 + 4*60 + 5, true},
		{"03:04:05", 3*3600 + 4*60 + 5, true}, {"", 0, false}, {"5", 0, false}, {"5x", 0, false}, {"s", 0, false}, {"1d-1h", 0, false}, {"aa:bb:cc", 0, false},
	} {
		if got, ok := routerOSTime(c.text); ok != c.ok || ok && got != c.want {
			t.Errorf("%q: %v, %v", c.text, got, ok)
		}
	}
}

func FuzzRouterOS(f *testing.F) {
	k := &mikrotik{born: time.Now(), load: func(time.Duration) (int, int, int) { return 1, 2, 1 }}
	f.Add("@@0a S resource\n" + k.answer("/system resource print") + "@@0a S cpu\n" + k.answer("/system resource cpu print without-paging") + "@@0a S health\ncpu-temperature: 45C\n")
	f.Fuzz(func(t *testing.T, body string) {
		at := time.Unix(1000, 0)
		o := &routerOS{}
		var last sample
		for i := range 3 {
			s, err := o.sample("@@0a", reply{body, at, at.Add(time.Millisecond)})
			if err != nil {
				return
			}
			if cpu, ok := s.all.Since(last.all, -1); i > 0 && ok && math.Abs(cpu.System+cpu.Idle+cpu.IRQ-1) > 1e-6 {
				t.Errorf("%+v", cpu)
			}
			last, at = s, at.Add(time.Second)
		}
		_ = o.learn(fields(body), last)
	})
}
