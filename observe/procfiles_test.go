package observe

import (
	"strings"
	"testing"
)

func TestParseProcessor(t *testing.T) {
	for _, c := range []struct {
		name, text, model string
		virtual           bool
	}{
		{"x86 guest", "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu hypervisor sse\n", "AMD EPYC", true},
		{"x86 metal", "model name\t: Intel(R) Xeon(R) CPU @ 2.20GHz\nflags\t\t: fpu nohypervisor\n", "Intel(R) Xeon(R) CPU @ 2.20GHz", false},
		{"mips router", "system type\t\t: MediaTek MT7621 ver:1 eco:3\ncpu model\t\t: MIPS 1004Kc V2.15\n", "MIPS 1004Kc V2.15", false},
		{"arm board", "processor\t: 0\nHardware\t: BCM2835\nModel\t\t: Raspberry Pi 4\n", "Raspberry Pi 4", false},
		{"arm64 without a name", "processor\t: 0\nBogoMIPS\t: 50.00\nCPU part\t: 0xd0c\n", "", false},
		{"empty value", "model name\t:\n", "", false},
		{"empty", "", "", false},
	} {
		got := parseProcessor(strings.NewReader(c.text))
		if got.model != c.model || got.virtual != c.virtual {
			t.Errorf("%s: %q gives %+v, want %q %v", c.name, c.text, got, c.model, c.virtual)
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
		if got := parseMemory(strings.NewReader(c.text)); got != c.want {
			t.Errorf("%s: %q gives %d, want %d", c.name, c.text, got, c.want)
		}
	}
}

func TestParseKernel(t *testing.T) {
	for _, c := range []struct {
		text         string
		major, minor int
		ok           bool
	}{
		{"6.18.44-fc-v657", 6, 18, true},
		{"5.18", 5, 18, true},
		{"5.4-rc1", 5, 4, true},
		{"6", 0, 0, false},
		{"6.x", 6, 0, false},
		{"", 0, 0, false},
	} {
		major, minor, ok := parseKernel(c.text)
		if ok != c.ok || ok && (major != c.major || minor != c.minor) {
			t.Errorf("%q: got %d.%d %v, want %d.%d %v", c.text, major, minor, ok, c.major, c.minor, c.ok)
		}
	}
}

func FuzzParseProcFiles(f *testing.F) {
	f.Add("model name\t: x\nMemTotal: 12 kB\n")
	f.Add("6.18.44")
	f.Fuzz(func(t *testing.T, text string) {
		parseProcessor(strings.NewReader(text))
		parseMemory(strings.NewReader(text))
		parseKernel(text)
	})
}
