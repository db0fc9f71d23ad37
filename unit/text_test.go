package unit

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseSizes(t *testing.T) {
	for text, want := range map[string][]int{
		"64": {64}, "64,1460": {64, 1460}, " 64 , 32 ": {64, 32}, "256..1024/256": {256, 512, 768, 1024}, "256..1000/256": {256, 512, 768},
		"16,256..512/256,1472B": {16, 256, 512, 1472}, "1KiB": {1024}, "5..5/1": {5}, "0": {0}, "1.5kb": {1500},
	} {
		got, err := ParseSizes(text)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("ParseSizes(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", ",", "64,", "64,64", "1..3", "3..1/1", "1..3/0", "1..3/-1", "0..1000000000/1", "1..2..3/1", "-5", "0.5", "2GiB", "64;128", "1e3", "NaN",
		"9999999999999999999999"} {
		got, err := ParseSizes(text)
		if err == nil {
			t.Errorf("ParseSizes(%q) = %v, want an error", text, got)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("ParseSizes(%q): an error of two lines: %q", text, err)
		}
	}
}

func TestParseAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1":                         "[192.0.2.1]",
		"192.0.2.9, 2001:db8::1":            "[192.0.2.9 2001:db8::1]",
		"192.0.2.254..192.0.3.1,10.0.0.1":   "[192.0.2.254 192.0.2.255 192.0.3.0 192.0.3.1 10.0.0.1]",
		"2001:db8::ffff..2001:db8::1:0":     "[2001:db8::ffff 2001:db8::1:0]",
		"255.255.255.255..255.255.255.255":  "[255.255.255.255]",
		"192.0.2.5..192.0.2.4":              "want addresses",
		"192.0.2.1..2001:db8::1":            "want addresses",
		"192.0.2.1..":                       "want addresses",
		"192.0.2":                           "want addresses",
		"":                                  "want addresses",
		"0.0.0.0..255.255.255.255":          "too long",
		"2001:db8::..2001:db8::ffff:ffff:0": "too long",
	} {
		got, err := ParseAddresses(text)
		if err != nil && !strings.Contains(err.Error(), want) || err == nil && fmt.Sprint(got) != want {
			t.Errorf("ParseAddresses(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestParseRates(t *testing.T) {
	for text, want := range map[string]string{
		"10kpps,20kpps,max": "[10kpps 20kpps max]", "95mbit": "[95mbit]", "10kpps,10kpps": "twice", "10kpps,": "rate", "fast": "rate",
	} {
		got, err := ParseRates(text)
		if err != nil && !strings.Contains(err.Error(), want) || err == nil && fmt.Sprint(got) != want {
			t.Errorf("ParseRates(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{"64": 64, "1472B": 1472, "64KiB": 65536, "640MB": 640e6, "1.5 kib": 1536, "1GiB": 1 << 30, "0": 0} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "B", "-1", "1.5", "1e3", "2000000GiB", "64 KB B", "0x40"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", text, got)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{"10s": 10 * time.Second, "5ms": 5 * time.Millisecond, "1m30s": 90 * time.Second, "2H": 2 * time.Hour, "7d": 168 * time.Hour, "0.5D": 12 * time.Hour, "0": 0, " 1us ": time.Microsecond} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"10": "lacks a unit: 10s, 10ms?", "-5s": "must not be negative", "": "want a number and a unit, as 10s, 5ms, 1h30m or 7d",
		"inf": "want a number and a unit, as 10s, 5ms, 1h30m or 7d", "9999999999h": "want a number and a unit, as 10s, 5ms, 1h30m or 7d", "ten": "want a number and a unit, as 10s, 5ms, 1h30m or 7d",
	} {
		_, err := ParseDuration(text)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("ParseDuration(%q): %v, want %s", text, err, want)
		}
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration][2]string{
		0: {"0s", "0 s"}, 1: {"1ns", "1 ns"}, 10 * time.Millisecond: {"10ms", "10 ms"}, 1500 * time.Millisecond: {"1.5s", "1.5 s"},
		10 * time.Second: {"10s", "10 s"}, 400 * time.Second: {"6m40s", "6 min 40 s"}, time.Hour: {"1h", "1 h"}, 90 * time.Minute: {"1h30m", "1 h 30 min"},
		10 * time.Minute: {"10m", "10 min"}, 24 * time.Hour: {"24h", "24 h"}, 126 * time.Hour: {"126h", "126 h"}, 168 * time.Hour: {"7d", "7 d"},
	} {
		if got := [2]string{Duration(d), FormatDuration(d)}; got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
		if back, err := ParseDuration(Duration(d)); err != nil || back != d {
			t.Errorf("%v is read again as %v, %v", d, back, err)
		}
	}
}

func TestParseRatio(t *testing.T) {
	for text, want := range map[string]float64{"0.1%": 0.001, "0.001": 0.001, "100%": 1, "1": 1, "0": 0, " 5 % ": 0.05} {
		if got, err := ParseRatio(text); err != nil || math.Abs(got-want) > 1e-15 {
			t.Errorf("ParseRatio(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "%", "101%", "2", "-1%", "nan", "1e-3", "5%%"} {
		if got, err := ParseRatio(text); err == nil {
			t.Errorf("ParseRatio(%q) = %v, want an error", text, got)
		}
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{FormatPPS(0), "0 pps"}, {FormatPPS(1), "1 pps"}, {FormatPPS(12.34), "12.3 pps"}, {FormatPPS(999.4), "999 pps"}, {FormatPPS(999.5), "1.00 kpps"},
		{FormatPPS(262144), "262 kpps"}, {FormatPPS(1488095), "1.49 Mpps"}, {FormatPPS(14880952), "14.9 Mpps"}, {FormatPPS(999999), "1.00 Mpps"}, {FormatPPS(2e12), "2000 Gpps"},
		{FormatPPS(0.0002777), "0.00028 pps"}, {FormatPPS(-1500), "-1.50 kpps"}, {FormatPPS(math.NaN()), "–"}, {FormatPPS(math.Inf(1)), "–"},
		{FormatBits(935e6), "935 Mbit/s"}, {FormatBits(1.2e9), "1.20 Gbit/s"}, {FormatBits(99.95e3), "100 kbit/s"}, {FormatBits(8), "8 bit/s"}, {FormatBits(3e12), "3 Tbit/s"},
		{FormatMoment(0), "0 s"}, {FormatMoment(599), "599 s"}, {FormatMoment(600), "10 min"}, {FormatMoment(3600), "1 h"},
		{FormatMoment(51845.2), "14 h 24 min 5 s"}, {FormatMoment(math.Inf(-1)), "0 s"}, {FormatMoment(math.NaN()), "–"},
		{FormatNanos(12345), "12.3 µs"}, {FormatNanos(999), "999 ns"}, {FormatNanos(1e9), "1 s"}, {FormatNanos(999.7e6), "1.00 s"}, {FormatNanos(90e9), "90.0 s"}, {FormatNanos(-5e6), "-5 ms"},
		{FormatNanos(math.NaN()), "–"}, {FormatNanos(math.Inf(1)), "–"},
		{FormatRatio(0), "0 %"}, {FormatRatio(1), "100 %"}, {FormatRatio(0.031), "3.1 %"}, {FormatRatio(0.123456), "12.3 %"}, {FormatRatio(0.000031), "0.0031 %"},
		{FormatRatio(0.000001), "<0.001 %"}, {FormatRatio(0.9999999), ">99.999 %"}, {FormatRatio(0.99951), "99.95 %"}, {FormatRatio(0.999555), "99.95 %"}, {FormatRatio(0.99999), "99.999 %"}, {FormatRatio(1.5), "150 %"}, {FormatRatio(-0.05), "-5 %"},
		{FormatRatio(math.NaN()), "–"}, {FormatRatio(math.Inf(1)), "–"},
		{FormatSize(1472), "1472 B"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1 000", 287920000: "287 920 000", math.MaxUint64: "18 446 744 073 709 551 615"} {
		got := strings.Join(strings.FieldsFunc(FormatCount(n), func(r rune) bool { return r < '0' || r > '9' }), " ")
		if got != want {
			t.Errorf("FormatCount(%d) = %q, want %q", n, FormatCount(n), want)
		}
	}
}

func FuzzParseSizes(f *testing.F) {
	for _, text := range []string{"64,1460", "256..10240/256", "1KiB", "0..1073741824/1", ",,", "1../2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sizes, err := ParseSizes(text)
		if err != nil {
			return
		}
		seen := map[int]bool{}
		for _, n := range sizes {
			if n < 0 || n > 1<<30 || seen[n] {
				t.Fatalf("ParseSizes(%q) = %v", text, sizes)
			}
			seen[n] = true
		}
		if len(sizes) == 0 || len(sizes) > MaxListLength {
			t.Fatalf("ParseSizes(%q) has %d entries", text, len(sizes))
		}
	})
}

func TestFormatEstimate(t *testing.T) {
	for seconds, want := range map[float64]string{0: "1 s", 7.4: "7 s", 43: "45 s", 58: "1 min", 161: "2 min 40 s", 3500: "58 min",
		3590: "1 h", 12_000: "3 h 20 min", 90_000: "25 h", 200_000: "2 days 8 h"} {
		if got := FormatEstimate(seconds); got != want {
			t.Errorf("%v s: %q, want %q", seconds, got, want)
		}
	}
}
