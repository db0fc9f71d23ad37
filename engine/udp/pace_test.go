package udp

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pelt/unit"
)

// draw is a number of any magnitude. Rapid's ranges keep near their lower ends,
// and its samples near the first: that is where the interesting ones stand.
func draw(t *rapid.T, label string, max int64) int64 {
	scale := rapid.SampledFrom([]int64{1_000_003, 50_021, 1_000_000_007, 997, 40_000_003, 17, 1}).Draw(t, label+" scale")
	times := rapid.SampledFrom([]int64{7, 3, 19, 1, 11, 2, 0}).Draw(t, label)
	return min(times*scale+rapid.Int64Range(0, 20).Draw(t, label+" more"), max)
}

func drawRate(t *rapid.T) unit.Rate {
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		return unit.PacketRate(uint64(max(draw(t, "pps", unit.MaxPacketsPerSecond), 1)))
	case 1:
		return unit.IntervalRate(time.Duration(max(draw(t, "interval", 10_000_000_000), 1)))
	default:
		r, err := unit.ParseRate(rapid.SampledFrom([]string{"95mbit", "33.3kpps", "1/3mbit", "9999999bit", "1.5Mpps"}).Draw(t, "text"))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

// However late and irregular a sender looks, no slot is used before it is due,
// none is used twice, no more than burst leave at once, all but the last fill
// whole buffers, and the account adds up.
func TestPacerKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schedule, _ := drawRate(t).Schedule(rapid.IntRange(16, 65507).Draw(t, "payload"))
		streams := rapid.SampledFrom([]int{3, 1, 8, 2}).Draw(t, "streams")
		group := rapid.SampledFrom([]int{1, 7, 64, 2}).Draw(t, "group")
		burst := rapid.Uint64Range(uint64(group), 100).Draw(t, "burst")
		phase := draw(t, "phase", 20_000_000_000)
		var planned uint64
		for i := range streams {
			p := newPacer(schedule, i, streams, burst, group, phase)
			planned += p.slots
			var sent uint64
			now := int64(0)
			for range 200 {
				at, ok := p.deadline()
				if !ok {
					break
				}
				if at >= phase {
					t.Fatalf("slot %d is due at %d, after the phase of %d", p.next, at, phase)
				}
				if at > now && p.take(at-1) != 0 {
					t.Fatalf("sent before %d", at)
				}
				now = max(now, at) + rapid.SampledFrom([]int64{0, 0, 10, 30_000, 5_000_000, 1_000_000_000}).Draw(t, "late")
				before := p
				n := p.take(now)
				sent += n
				if n == 0 || n > burst {
					t.Fatalf("%d packets at %d, burst %d", n, now, burst)
				}
				if last := schedule.Due(uint64(i) + (p.next-1)*uint64(streams)); last > now {
					t.Fatalf("at %d sent the slot due at %d", now, last)
				}
				if n < p.burst && p.forfeited != before.forfeited {
					t.Fatalf("forfeited %d though only %d of %d left", p.forfeited-before.forfeited, n, burst)
				}
				if n%uint64(group) != 0 && p.next != p.slots {
					t.Fatalf("%d packets do not fill buffers of %d", n, group)
				}
				if p.take(now) != 0 {
					t.Fatalf("the same time gave packets twice")
				}
			}
			sent += p.take(math.MaxInt64)
			if sent+p.forfeited != p.slots || p.next != p.slots {
				t.Fatalf("sent %d + forfeited %d != %d slots", sent, p.forfeited, p.slots)
			}
		}
		if want := schedule.Count(phase); planned != want {
			t.Fatalf("streams plan %d, the flow %d", planned, want)
		}
	})
}

func TestPunctualSenderForfeitsNothing(t *testing.T) {
	for _, c := range []struct {
		rate    unit.Rate
		payload int
		phase   int64
		want    uint64
	}{
		{unit.PacketRate(3), 64, 1_000_000_000, 3},
		{unit.PacketRate(150_000), 64, 2_000_000_000, 300_000},
		{unit.IntervalRate(5 * time.Millisecond), 64, 1_000_000_001, 201},
		{unit.PacketRate(333_333), 64, 3_000_000_000, 999_999},
	} {
		s, _ := c.rate.Schedule(c.payload)
		p := newPacer(s, 0, 1, 1, 1, c.phase)
		var sent uint64
		for {
			at, ok := p.deadline()
			if !ok {
				break
			}
			sent += p.take(at)
		}
		if sent != c.want || p.forfeited != 0 {
			t.Errorf("%v for %d ns: sent %d, forfeited %d; want %d", c.rate, c.phase, sent, p.forfeited, c.want)
		}
	}
}

func TestBurstOf(t *testing.T) {
	for _, c := range []struct {
		asked int
		pps   float64
		want  uint64
	}{{0, 1, 1}, {0, 100_000, 1}, {0, 100_001, 3}, {0, 200_000, 4}, {0, 1e6, 20}, {7, 1e6, 7}, {7, 10, 7}} {
		if got := burstOf(c.asked, c.pps); got != c.want {
			t.Errorf("burstOf(%d, %v) = %d, want %d", c.asked, c.pps, got, c.want)
		}
	}
}
