package unit

import (
	"encoding/json"
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pelt/internal/testenv"
)

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
		testenv.Must(t, err)
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
			testenv.Must(t, err)
			s, _ := r.Schedule(c.payload)
			if got := s.Count(elapsed); got != c.want {
				t.Errorf("%s at %d B: %d packets due in %d h, want %d", c.rate, c.payload, got, hours, c.want)
			}
			if due := s.Due(c.want); due < elapsed || due > elapsed+int64(s.Nanos/s.Packets)+1 {
				t.Errorf("%s at %d B: packet %d is due at %d ns, want just after %d", c.rate, c.payload, c.want, due,
					elapsed)
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
		t.Errorf("Count(-1, 0, 1) = %d, %d, %d; want 0, 0, 1: packet 0 is due at once", s.Count(-1), s.Count(0),
			s.Count(1))
	}
	if got := (Schedule{Packets: 1 << 62, Nanos: 1}).Count(math.MaxInt64); got != math.MaxUint64 {
		t.Errorf("Count past 64 bits = %d, want the largest", got)
	}
	if !IntervalRate(0).IsMax() || !IntervalRate(-1).IsMax() {
		t.Error("an interval of nothing is not unpaced")
	}
}

func FuzzParseRate(f *testing.F) {
	for _, text := range []string{"max", "150kpps", "1.5Mpps", "95mbit", "every 5ms", "1/3pps",
		"12345678901234567/12345678901234567890kpps", "1e9pps"} {
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
