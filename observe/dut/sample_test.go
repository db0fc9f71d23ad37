package dut

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"pelt/internal/testenv"
	"pelt/observe/counters"
	"pelt/test/golden"
)

// written joins parts as the router prints them.
func written(part map[string]string) string {
	var b strings.Builder
	for i, path := range samplePaths {
		if i > 0 {
			b.WriteString(divider + "\n")
		}
		b.WriteString(part[path])
	}
	return b.String()
}

func capture(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	testenv.Must(t, err)
	return string(b)
}

// TestParseCaptures: what is read of two machines stands in the golden file: of this kernel as a lab's router shows it,
// and of an OpenWrt router of four MIPS cores, one of them off, with fewer columns in its files. Spent are the ticks of
// the shell and its children, and of an ssh server that is its parent.
func TestParseCaptures(t *testing.T) {
	var out strings.Builder
	for _, name := range []string{"linux-6.18.txt", "openwrt-mips.txt"} {
		s, err := parseSample(capture(t, name))
		testenv.Must(t, err)
		connections := "unknown"
		if s.connections != nil && s.connectionsMax != nil {
			connections = fmt.Sprint(*s.connections, " of ", *s.connectionsMax)
		}
		fmt.Fprintf(&out, "%s: up %v, boot %q, all %v, cores %v\n\tbacklog %+v, connections %s, clock %v, "+
			"temperature %v, spent %d, known %v\n", name, s.up, s.boot, s.All, s.Cores, s.backlog, connections,
			s.clockHz, s.temperatureC, s.spent, s.spentKnown)
	}
	golden.File(t, "testdata/samples.txt", out.String())
}

const oneCore = "cpu  1 2 3 4\ncpu0 1 2 3 4\n"

func TestParseSample(t *testing.T) {
	for _, c := range []struct {
		name  string
		body  string
		fault string
	}{
		{"only what is needed", written(map[string]string{"/proc/uptime": "1.00 2.00\n", "/proc/stat": oneCore}), ""},
		{"nothing", "", "not the parts"},
		{"a moment's texts behind", written(nil) + strings.Repeat("Linux\nqdisc\n", len(momentTexts)), "uptime"},
		{"one of them is missing", written(nil) + strings.Repeat("Linux\n", len(momentTexts)-1), "not the parts"},
		{"one part too many", written(nil) + strings.Repeat("Linux\n", len(momentTexts)+1), "not the parts"},
		{"empty parts", written(nil), "uptime"},
		{"uptime not a time", written(map[string]string{"/proc/uptime": "NaN\n", "/proc/stat": oneCore}), "uptime"},
		{"uptime negative", written(map[string]string{"/proc/uptime": "-1\n", "/proc/stat": oneCore}), "uptime"},
		{"uptime hexadecimal", written(map[string]string{"/proc/uptime": "0x1p999\n", "/proc/stat": oneCore}),
			"uptime"},
		{"no processors", written(map[string]string{"/proc/uptime": "1\n", "/proc/stat": "intr 1\n"}),
			"does not tell of the processors"},
		{"carriage returns", strings.ReplaceAll(written(map[string]string{"/proc/uptime": "1 2\n",
			"/proc/stat": oneCore}), "\n", "\r\n"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := parseSample(c.body)
			check(t, c.body, len(s.Cores) > 0 && err == nil, c.fault == "", err, c.fault)
		})
	}
}

// FuzzSample also holds what a sample is used for.
func FuzzSample(f *testing.F) {
	f.Add(capture(f, "linux-6.18.txt"), capture(f, "openwrt-mips.txt"))
	f.Add(written(map[string]string{"/proc/uptime": "1 2\n", "/proc/stat": oneCore,
		"/proc/$$/stat": "1 (a (b) c) R 1 2"}), "\x00\xff Linux\n")
	f.Fuzz(func(t *testing.T, one, two string) {
		a, err1 := parseSample(one)
		b, err2 := parseSample(two)
		for _, err := range []error{err1, err2} {
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("error of several lines: %v", err)
			}
		}
		if err1 != nil || err2 != nil {
			return
		}
		if s, ok := b.All.Since(a.All, -1); ok {
			if sum := s.User + s.System + s.Nice + s.Idle + s.IOWait + s.IRQ + s.Softirq +
				s.Steal; math.Abs(sum-1) > 1e-6 || s.Busy() < 0 {
				t.Errorf("%+v adds up to %v", s, sum)
			}
		}
		from, to := &reading{sample: a}, &reading{sample: b}
		for _, m := range routerMetrics {
			_ = m.value(from, to)
		}
		for number := range a.Cores {
			for _, m := range coreMetrics(number) {
				_ = m.value(from, to)
			}
		}
	})
}

// A wrap is undone; a count that went back, and cores that came or went, give no figure.
func TestBacklog(t *testing.T) {
	rows := func(figures ...[3]uint32) (out []counters.Backlog) {
		for _, f := range figures {
			out = append(out, counters.Backlog{Core: int(f[0]), Dropped: f[1], Squeezed: f[2]})
		}
		return out
	}
	for name, c := range map[string]struct {
		a, b              []counters.Backlog
		dropped, squeezed uint64
		ok                bool
	}{
		"it moved": {rows([3]uint32{0, 1, 2}, [3]uint32{1, 3, 4}), rows([3]uint32{0, 2, 2}, [3]uint32{1, 6, 5}),
			4, 1, true},
		"it wrapped":   {rows([3]uint32{0, 0xfffffffe, 2}), rows([3]uint32{0, 3, 2}), 5, 0, true},
		"it went back": {rows([3]uint32{0, 1000, 2}), rows([3]uint32{0, 3, 2}), 0, 0, false},
		"a core went": {rows([3]uint32{0, 1, 2}, [3]uint32{1, 9, 4}, [3]uint32{2, 5, 4}),
			rows([3]uint32{0, 1, 2}, [3]uint32{1, 5, 4}), 0, 0, false},
		"another core": {rows([3]uint32{0, 1, 2}, [3]uint32{2, 3, 4}), rows([3]uint32{0, 1, 2}, [3]uint32{1, 3, 4}),
			0, 0, false},
		"it is not told": {nil, nil, 0, 0, false},
	} {
		d, s, ok := backlog(&reading{sample: sample{backlog: c.a}}, &reading{sample: sample{backlog: c.b}})
		if d != c.dropped || s != c.squeezed || ok != c.ok {
			t.Errorf("%s: %d dropped, %d squeezed, %v; want %d, %d, %v", name, d, s, ok, c.dropped, c.squeezed, c.ok)
		}
	}
}
