package counters

import (
	"fmt"
	"math"
	"testing"

	"pelt/model"
)

const statTwoCores = `cpu  3776 13565 4581 232218 324 0 65 32 0 0
cpu0 1583 6812 1921 116944 29 0 13 13 0 0
cpu1 2193 6753 2660 115273 295 0 51 19 0 0
intr 531103 0 0
ctxt 829566
softirq 192414 0 23576 5 17193 71142 0 294 39289 1 40914
`

func manyCores(n int) (lines string) {
	for core := range n {
		lines += fmt.Sprintf("cpu%d 1 2 3 4\n", core)
	}
	return lines
}

func TestParseProcessors(t *testing.T) {
	for _, c := range []struct {
		name, text string
		all        Ticks
		cores      int
		wrong      string // part of the error
	}{
		{"two cores", statTwoCores, Ticks{3776, 13565, 4581, 232218, 324, 0, 65, 32}, 2, ""},
		{"old kernel, four columns", "cpu 1 2 3 4\n", Ticks{1, 2, 3, 4}, 0, ""},
		{"columns to come", "cpu 1 1 1 1 1 1 1 1 9 9 9 9\n", Ticks{1, 1, 1, 1, 1, 1, 1, 1}, 0, ""},
		{"a core went away", "cpu 1 2 3 4\ncpu7 1 2 3 4\n", Ticks{1, 2, 3, 4}, 1, ""},
		{"many cores", "cpu 1 2 3 4\n" + manyCores(2000), Ticks{1, 2, 3, 4}, 2000, ""},
		{"carriage returns", "cpu 1 2 3 4\r\ncpu0 1 2 3 4\r\n", Ticks{1, 2, 3, 4}, 1, ""},
		{"empty", "", Ticks{}, 0, "does not tell of the processors"},
		{"only cores", "cpu0 1 2 3 4\n", Ticks{}, 0, "does not tell of the processors"},
		{"short", "cpu 1 2 3\n", Ticks{}, 0, "3 columns"},
		{"nothing after cpu", "cpu\n", Ticks{}, 0, "0 columns"},
		{"no number", "cpu 1 2 x 4\n", Ticks{}, 0, `"x" for a time`},
		{"negative", "cpu 1 2 -3 4\n", Ticks{}, 0, `"-3" for a time`},
		{"beyond all", "cpu 1 2 3 99999999999999999999\n", Ticks{}, 0, "for a time"},
		{"odd core", "cpu 1 2 3 4\ncpuX 1 2 3 4\n", Ticks{}, 0, `core "X"`},
		{"huge core", "cpu 1 2 3 4\ncpu99999 1 2 3 4\n", Ticks{}, 0, "a core"},
		{"a core twice", "cpu 1 2 3 4\ncpu0 1 2 3 4\ncpu0 1 2 3 4\n", Ticks{}, 0, `core "0"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseProcessors(c.text)
			if c.wrong != "" {
				check(t, c.text, nil, nil, err, c.wrong)
			} else if err != nil || got.All != c.all || len(got.Cores) != c.cores {
				t.Errorf("%q: got %+v, %v; want %+v, %d cores", c.text, got, err, c.all, c.cores)
			}
		})
	}
}

func TestTicksSince(t *testing.T) {
	from := Ticks{100, 10, 50, 1000, 500, 5, 20, 1}
	for _, c := range []struct {
		name string
		to   Ticks
		want model.CPUSplit
		ok   bool
	}{
		{"all kinds", Ticks{110, 20, 60, 1050, 505, 10, 28, 3}, model.CPUSplit{Core: 2, User: .1, Nice: .1, System: .1, Idle: .5, IOWait: .05, IRQ: .05, Softirq: .08, Steal: .02}, true},
		{"iowait went back", Ticks{100, 10, 50, 1075, 400, 5, 45, 1}, model.CPUSplit{Core: 2, Idle: .75, Softirq: .25}, true},
		{"idle went back a little", Ticks{100, 10, 50, 999, 500, 5, 45, 1}, model.CPUSplit{Core: 2, Softirq: 1}, true},
		{"idle began anew", Ticks{100, 10, 50, 70, 500, 5, 45, 1}, model.CPUSplit{}, false},
		{"nothing passed", from, model.CPUSplit{}, false},
		{"all went back", Ticks{}, model.CPUSplit{}, false},
	} {
		got, ok := c.to.Since(from, 2)
		if ok != c.ok || got.Core != c.want.Core || rounded(got) != rounded(c.want) {
			t.Errorf("%s: %+v, %v; want %+v, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

// rounded are the ratios in parts of ten thousand.
func rounded(s model.CPUSplit) (n [8]int) {
	for i, v := range []float64{s.User, s.System, s.Nice, s.Idle, s.IOWait, s.IRQ, s.Softirq, s.Steal} {
		n[i] = int(math.Round(v * 1e4))
	}
	return n
}

func TestParseCPUInfo(t *testing.T) {
	for _, c := range []struct {
		name, text, model, part string
		virtual                 bool
	}{
		{"x86 guest", "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu hypervisor sse\n", "AMD EPYC", "", true},
		{"x86 metal", "model name\t: Intel(R) Xeon(R) CPU @ 2.20GHz\nflags\t\t: fpu nohypervisor\n", "Intel(R) Xeon(R) CPU @ 2.20GHz", "", false},
		{"mips router", "system type\t\t: MediaTek MT7621 ver:1 eco:3\ncpu model\t\t: MIPS 1004Kc V2.15\n", "MIPS 1004Kc V2.15", "", false},
		{"arm board", "processor\t: 0\nHardware\t: BCM2835\nModel\t\t: Raspberry Pi 4\n", "Raspberry Pi 4", "", false},
		{"arm64 without a name", "processor\t: 0\nBogoMIPS\t: 50.00\nCPU part\t: 0xd0c\n", "", "0xd0c", false},
		{"empty value", "model name\t:\n", "", "", false},
		{"empty", "", "", "", false},
	} {
		model, part, virtual := ParseCPUInfo(c.text)
		if model != c.model || part != c.part || virtual != c.virtual {
			t.Errorf("%s: %q gives %q, %q, %v", c.name, c.text, model, part, virtual)
		}
	}
}

func TestParseMemory(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       uint64
	}{
		{"usual", "MemTotal:        8123456 kB\nMemFree: 1 kB\n", 8123456 << 10},
		{"absent", "MemFree: 1 kB\n", 0},
		{"no number", "MemTotal: many kB\n", 0},
		{"beyond 64 bits", "MemTotal: 18446744073709551615 kB\n", 0},
	} {
		if got := ParseMemory(c.text); got != c.want {
			t.Errorf("%s: %q gives %d, want %d", c.name, c.text, got, c.want)
		}
	}
}

func FuzzParseProcessors(f *testing.F) {
	f.Add(statTwoCores, statTwoCores)
	f.Add("cpu", "cpu ")
	f.Add("cpu 1 2 3 4\ncpu0", "cpu\t18446744073709551615 0 0 0")
	f.Fuzz(func(t *testing.T, a, b string) {
		before, err1 := ParseProcessors(a)
		after, err2 := ParseProcessors(b)
		if err1 != nil || err2 != nil {
			return
		}
		if s, ok := after.All.Since(before.All, -1); ok {
			for _, r := range []float64{s.Busy(), s.Idle, s.Softirq} {
				if !(r >= 0 && r <= 1) {
					t.Errorf("%q then %q: %+v is not within 0..1", a, b, s)
				}
			}
		}
	})
}
