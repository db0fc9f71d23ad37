package unit

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]struct {
		pps  float64 // at 1000 B; 0 is unpaced
		text string
	}{
		"max":                {0, "max"},
		" MAX ":              {0, "max"},
		"150kpps":            {150e3, "150kpps"},
		"150000pps":          {150e3, "150kpps"},
		"1.5Mpps":            {1.5e6, "1.5Mpps"},
		"1 gpps":             {1e9, "1Gpps"},
		"14880952pps":        {14880952, "14.880952Mpps"},
		"0.5pps":             {0.5, "0.5pps"},
		"1/3pps":             {1.0 / 3, "1/3pps"},
		"95mbit":             {11875, "95mbit"},
		"95Mbit/s":           {11875, "95mbit"},
		"95mbps":             {11875, "95mbit"},
		"8kbit":              {1, "8kbit"},
		"1gbit":              {125000, "1gbit"},
		"every 5ms":          {200, "every 5ms"},
		"every 1ns":          {1e9, "every 1ns"},
		"every 24h":          {1.0 / 86400, "every 24h0m0s"},
		"333333.333333pps":   {333333.333333, "333.333333333kpps"},
		"1000000.0000001pps": {1000000.0000001, "1000000.0000001pps"},
	} {
		r, err := ParseRate(text)
		if err != nil {
			t.Errorf("ParseRate(%q): %v", text, err)
			continue
		}
		pps, paced := r.PPS(1000)
		if paced != (want.pps != 0) || math.Abs(pps-want.pps) > 1e-12*want.pps {
			t.Errorf("ParseRate(%q) is %v pps at 1000 B, want %v", text, pps, want.pps)
		}
		if text != "333333.333333pps" && r.String() != want.text {
			t.Errorf("ParseRate(%q).String() = %q, want %q", text, r, want.text)
		}
	}
}

func TestParseRateRefuses(t *testing.T) {
	for _, text := range []string{
		"", "0", "100", "0pps", "0mbit", "-1pps", "1e3pps", "1e999999999pps", "1e12", "2gpps", "1000000000000pps", "99999gbit", "nanpps", "infpps",
		"1/0pps", "1..2pps", "pps", "5 packets", "every", "every 0s", "every 5", "every -1s", "every 0.1ns", "every 25h", "1/86401pps",
		strings.Repeat("1", 60) + "pps", "0." + strings.Repeat("1", 40) + "pps", "1kpps 2", "max1", "0x10pps", "1_000pps", "½pps",
	} {
		r, err := ParseRate(text)
		if err == nil {
			t.Errorf("ParseRate(%q) = %v, want an error", text, r)
		} else if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), `"`) {
			t.Errorf("ParseRate(%q): %q is not one line that names the text", text, err)
		}
	}
}

func drawRate(t *rapid.T) Rate {
	num, den := rapid.Uint64Range(1, 1e9).Draw(t, "num"), rapid.Uint64Range(1, 1e4).Draw(t, "den")
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return Rate{}
	case 1:
		return IntervalRate(time.Duration(rapid.Int64Range(1, int64(24*time.Hour)).Draw(t, "interval")))
	case 2:
		return reduced(num, den, ratePackets)
	}
	return reduced(num*10000, den, rateBits)
}

func reduced(num, den uint64, kind rateKind) Rate {
	r := new(big.Rat).SetFrac(new(big.Int).SetUint64(num), new(big.Int).SetUint64(den))
	return Rate{num: r.Num().Uint64(), den: r.Denom().Uint64(), kind: kind}
}

func TestRateRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRate(t)
		back, err := ParseRate(r.String())
		if err != nil || back != r {
			t.Fatalf("%+v prints as %q, reads as %+v, %v", r, r, back, err)
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &back); err != nil || back != r {
			t.Fatalf("%v as JSON is %s, reads as %v, %v", r, b, back, err)
		}
	})
}

// Count is the inverse of Due: it counts the packets due before a moment.
func TestScheduleInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRate(t)
		s, ok := r.Schedule(rapid.IntRange(16, 65507).Draw(t, "payload"))
		if ok == r.IsMax() {
			t.Fatalf("%v has a schedule: %v", r, ok)
		}
		if !ok {
			return
		}
		n := rapid.Uint64Max(1<<48).Draw(t, "n")
		due := s.Due(n)
		if due == math.MaxInt64 {
			return
		}
		if due < 0 || n > 0 && s.Due(n-1) > due {
			t.Fatalf("%v: Due(%d) = %d comes before the packet before", r, n, due)
		}
		// n is not due before its time, and due once it has passed.
		if before, after := s.Count(due), s.Count(due+1); before > n || after <= n {
			t.Fatalf("%v: packet %d is due at %d, but Count says %d before and %d after", r, n, due, before, after)
		}
	})
}

// After hours a schedule has sent exactly what the rate says: no rounding adds up.
func TestScheduleIsExact(t *testing.T) {
	const hours = 6
	elapsed := int64(hours * time.Hour)
	for name, c := range map[string]struct {
		rate    string
		payload int
		want    uint64 // packets due in 6 hours, by arithmetic
	}{
		"10G line rate of small frames": {"14880952pps", 18, 14880952 * 3600 * hours},
		"1 Gpps":                        {"1gpps", 18, 1e9 * 3600 * hours},
		"3 Mpps":                        {"3mpps", 18, 3e6 * 3600 * hours},
		"a third":                       {"1/3pps", 18, 1200 * hours},
		"95 Mbit/s of 64 B":             {"95mbit", 64, 95e6 / 8 * 3600 * hours / 64},
		"95 Mbit/s of 1472 B":           {"95mbit", 1472, 174252718}, // ceil(256500000000/1472)
		"95 Mbit/s of 1471 B":           {"95mbit", 1471, 174371177}, // ceil(256500000000/1471)
		"every 7 ns":                    {"every 7ns", 64, 3085714285715},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := ParseRate(c.rate)
			if err != nil {
				t.Fatal(err)
			}
			s, _ := r.Schedule(c.payload)
			if got := s.Count(elapsed); got != c.want {
				t.Errorf("%s at %d B: %d packets due in %d h, want %d", c.rate, c.payload, got, hours, c.want)
			}
			if due := s.Due(c.want); due < elapsed || due > elapsed+int64(s.Nanos/s.Packets)+1 {
				t.Errorf("%s at %d B: packet %d is due at %d ns, want just after %d", c.rate, c.payload, c.want, due, elapsed)
			}
		})
	}
}

func TestScheduleEdges(t *testing.T) {
	s := Schedule{Packets: 1, Nanos: 1 << 62}
	if s.Due(4) != math.MaxInt64 || s.Due(math.MaxUint64) != math.MaxInt64 {
		t.Errorf("Due past the clock: %d, want the largest int64", s.Due(4))
	}
	if s.Count(-1) != 0 || s.Count(0) != 0 || s.Count(1) != 1 {
		t.Errorf("Count(-1, 0, 1) = %d, %d, %d; want 0, 0, 1: packet 0 is due at once", s.Count(-1), s.Count(0), s.Count(1))
	}
	if got := (Schedule{Packets: 1 << 62, Nanos: 1}).Count(math.MaxInt64); got != math.MaxUint64 {
		t.Errorf("Count past 64 bits = %d, want the largest", got)
	}
	if !IntervalRate(0).IsMax() || !IntervalRate(-1).IsMax() {
		t.Error("an interval of nothing is not unpaced")
	}
}

func TestBitRate(t *testing.T) {
	for text, want := range map[string]BitRate{"1gbit": 1e9, "95.5mbit": 95500000, "1000kbit/s": 1e6, "1bit": 1, "2.5Gbps": 2500000000, "10000gbit": 10e12} {
		got, err := ParseBitRate(text)
		if err != nil || got != want {
			t.Errorf("ParseBitRate(%q) = %d, %v; want %d", text, got, err, want)
		}
		if back, err := ParseBitRate(got.String()); err != nil || back != got {
			t.Errorf("%d prints as %q, reads as %d, %v", got, got, back, err)
		}
	}
	for _, text := range []string{"", "0", "1", "0bit", "0.1bit", "-1gbit", "20000gbit", "1gpps", "max", "1e9bit"} {
		if got, err := ParseBitRate(text); err == nil {
			t.Errorf("ParseBitRate(%q) = %d, want an error", text, got)
		}
	}
	if got := BitRate(0).String(); got != "unlimited" {
		t.Errorf("BitRate(0) = %q", got)
	}
}

func FuzzParseRate(f *testing.F) {
	for _, text := range []string{"max", "150kpps", "1.5Mpps", "95mbit", "every 5ms", "1/3pps", "12345678901234567/12345678901234567890kpps", "1e9pps"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRate(text)
		if err != nil {
			return
		}
		if back, err := ParseRate(r.String()); err != nil || back != r {
			t.Fatalf("ParseRate(%q) prints as %q, reads as %+v, %v", text, r, back, err)
		}
		if s, ok := r.Schedule(64); ok && (s.Packets == 0 || s.Nanos == 0 || s.Due(0) != 0 || s.Count(1) < 1) {
			t.Fatalf("ParseRate(%q) has the schedule %+v", text, s)
		}
	})
}
