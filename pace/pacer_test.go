package pace

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pelt/unit"
)

// anyNumber is a number of any magnitude. Rapid's ranges keep near their lower ends,
// and its samples near the first: that is where the interesting ones stand.
func anyNumber(t *rapid.T, label string, max int64) int64 {
	scale := rapid.SampledFrom([]int64{1_000_003, 50_021, 1_000_000_007, 997, 40_000_003, 17, 1}).Draw(t,
		label+" scale")
	times := rapid.SampledFrom([]int64{7, 3, 19, 1, 11, 2, 0}).Draw(t, label)
	return min(times*scale+rapid.Int64Range(0, 20).Draw(t, label+" more"), max)
}

func drawRate(t *rapid.T) unit.Schedule {
	rate := unit.Rate{}
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		rate = unit.PacketRate(uint64(max(anyNumber(t, "pps", unit.MaxPacketsPerSecond), 1)))
	case 1:
		rate = unit.IntervalRate(time.Duration(max(anyNumber(t, "interval", 10_000_000_000), 1)))
	default:
		r, err := unit.ParseRate(rapid.SampledFrom([]string{"95mbit", "33.3kpps", "1/3mbit", "9999999bit",
			"1.5Mpps"}).Draw(t, "text"))
		if err != nil {
			t.Fatal(err)
		}
		rate = r
	}
	s, _ := rate.Schedule(rapid.IntRange(16, 65507).Draw(t, "payload"))
	return s
}

var lateness = []int64{0, 0, 10, 30_000, 5_000_000, 1_000_000_000}

// However late and irregular a sender looks, no slot is used before it is due, none
// is used twice, all but the last groups are whole, only what is too late is given
// up, catching up takes at least half the planned time, and the account adds up.
func TestPacerKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchedule(t)
		if rapid.Bool().Draw(t, "even") {
			s = Even(drawRate(t))
		}
		streams := rapid.SampledFrom([]int{3, 1, 8, 2}).Draw(t, "streams")
		group := rapid.SampledFrom([]int{1, 7, 64, 2}).Draw(t, "group")
		burst := rapid.SampledFrom([]int{0, 0, 64, 100}).Draw(t, "burst")
		phase := min(anyNumber(t, "phase", 20_000_000_000), s.due(20_000))
		pps := 1000e9 / float64(s.due(1000)+1)
		most := uint64(rapid.SampledFrom([]int{100_000, 500}).Draw(t, "most"))
		slots := make([][]int64, streams)
		for next, n := s(0, 1), 0; n < int(most); n++ {
			at := next()
			if at >= phase {
				break
			}
			slots[n%streams] = append(slots[n%streams], at)
		}
		for i := range streams {
			gaps := 0
			p := New(s, Stream{i, streams, phase, most, pps / float64(streams), group, burst, func(nanos int64) {
				if gaps++; nanos != slots[i][gaps]-slots[i][gaps-1] {
					t.Fatalf("gap %d is told to be %d ns", gaps, nanos)
				}
			}})
			walk(t, &p, slots[i], phase)
			if gaps != max(len(slots[i])-1, 0) {
				t.Fatalf("%d gaps are told of %d slots", gaps, len(slots[i]))
			}
		}
	})
}

func walk(t *rapid.T, p *Pacer, due []int64, phase int64) {
	slots := uint64(len(due))
	groupDue := func(slot uint64) int64 { return due[min(slot+p.group, slots)-1] }
	var sent uint64
	var now, planned int64
	var times, plans []int64 // of groups: when they left, and the planned time before them
	for range 60 {
		at, ok := p.Next()
		if !ok {
			break
		}
		if n, _ := p.Take(at - 1); at > now && n != 0 {
			t.Fatalf("sent before %d", at)
		}
		now = max(now, at) + min(rapid.SampledFrom(lateness).Draw(t, "late"), phase)
		from, late, held := p.next, p.late, p.held
		n, first := p.Take(now)
		sent += n
		gone := p.late + p.held - late - held
		if first != from+gone || p.next != first+n {
			t.Fatalf("from slot %d on, %d given up and %d sent from %d: the next is %d", from, gone, n, first, p.next)
		}
		if gone > 0 && now-due[first-1] < p.patience {
			t.Fatalf("gave up a slot that was %d ns late of %d", now-due[first-1], p.patience)
		}
		if n == 0 {
			continue
		}
		if last := due[p.next-1]; last > now || p.Due(first) != due[first] || p.Due(p.next-1) != last {
			t.Fatalf("at %d sent slots due at %d to %d, which says %d to %d", now, due[first], last, p.Due(first),
				p.Due(p.next-1))
		}
		if p.burst > 0 && n > p.burst {
			t.Fatalf("%d packets, burst %d", n, p.burst)
		}
		if n%p.group != 0 && p.next != slots {
			t.Fatalf("%d packets do not fill groups of %d", n, p.group)
		}
		for i, at := range times {
			if least := (planned-plans[i])/2 - CatchUpSlack - int64(len(times)-i); p.burst == 0 && now-at < least {
				t.Fatalf("%d packets left in %d ns, planned for %d ns", len(times)-i, now-at, planned-plans[i])
			}
		}
		times, plans = append(times, now), append(plans, planned)
		if p.next < slots {
			planned += groupDue(p.next) - groupDue(first)
		}
		if p.burst > 0 {
			if again, _ := p.Take(now); again != 0 {
				t.Fatalf("the same time gave packets twice")
			}
		}
	}
	p.Take(max(now, phase) + p.patience)
	if sent+p.late+p.held != slots || p.Planned(phase) != slots {
		t.Fatalf("sent %d + late %d + held %d != %d slots", sent, p.late, p.held, slots)
	}
}

// A sender that stalls catches up at twice the rate, and gives up what is later than
// the limit; above 100 kpps it sends the slots of 20 us a call.
func TestStall(t *testing.T) {
	for _, c := range []struct {
		name        string
		rate        string
		burst       int
		stall       int64
		missed      uint64
		caughtUp    int64 // ns after the stall
		most, least uint64
	}{
		{"8 kpps, 5 ms", "8kpps", 0, 5 * ms, 0, 5 * ms, 1, 1},
		{"100 kpps, 5 ms", "100kpps", 0, 5 * ms, 0, 5 * ms, 1, 1},
		{"100 kpps, 15 ms", "100kpps", 0, 15 * ms, 501, 10 * ms, 1, 1},
		{"1 Mpps, 5 ms", "1Mpps", 0, 5 * ms, 0, 5 * ms, 41, 1},
		{"1 pps, 700 ms", "1pps", 0, 700 * ms, 0, 500 * ms, 1, 1},
		{"burst of 20", "8kpps", 20, 5 * ms, 21, 0, 20, 1},
		{"burst of 1", "8kpps", 1, 5 * ms, 40, 0, 1, 1},
	} {
		s := schedule(t, c.rate)
		p := New(Even(s), Stream{Length: 2000 * ms, Slots: math.MaxUint64, PPS: s.PPS(), Burst: c.burst})
		now, caughtUp, most := c.stall, int64(-1), uint64(0)
		var sent uint64
		for at, ok := p.Next(); ok; at, ok = p.Next() {
			now = max(now, at)
			if caughtUp < 0 && p.groupDue(p.next) >= now && now > c.stall {
				caughtUp = now - c.stall
			}
			n, _ := p.Take(now)
			sent, most = sent+n, max(most, n)
		}
		late, held := p.GivenUp()
		if planned := p.Planned(2000 * ms); late != c.missed || held != 0 || sent+late != planned ||
			planned != s.Count(2000*ms) {
			t.Errorf("%s: late %d, held %d, sent %d of %d; want %d late", c.name, late, held, sent, planned, c.missed)
		}
		gap := int64(1e9 / s.PPS())
		if off := caughtUp - c.caughtUp; caughtUp >= 0 && (off < -gap-2*CatchUpSlack || off > 2*gap) && c.burst == 0 {
			t.Errorf("%s: on time again after %d ns, want %d", c.name, caughtUp, c.caughtUp)
		}
		if most != c.most {
			t.Errorf("%s: at most %d packets in one go, want %d", c.name, most, c.most)
		}
	}
}

// Slots that passed while the kernel made the sender wait are held, others late.
func TestHeld(t *testing.T) {
	// A queue lets 25 of 30 packets through: the sender waits for it, and also has little
	// of its core. The queue alone loses slots; a sender that needs more time than there is
	// loses them itself, queue or not.
	for _, c := range []struct {
		name       string
		each       int64 // ns of a send
		late, held uint64
	}{{"held", 20_000, 0, 4700}, {"slow", 38_000, 4571, 129}} {
		s := schedule(t, "30kpps")
		p := New(Even(s), Stream{Length: 1000 * ms, Slots: math.MaxUint64, PPS: s.PPS()})
		var sent uint64
		now := int64(0)
		for at, ok := p.Next(); ok && now < 1000*ms; at, ok = p.Next() {
			now = max(now, at)
			if n, _ := p.Take(now); n == 0 {
				continue
			}
			sent++
			now += c.each
			if room := int64(sent) * 40_000; now < room {
				p.Blocked(room - now)
				now = room
			}
		}
		if late, held := p.GivenUp(); late != c.late || held != c.held {
			t.Errorf("%s: late %d, held %d; want %d and %d", c.name, late, held, c.late, c.held)
		}
	}

	for _, c := range []struct {
		name       string
		blocked    int64
		late, held uint64
	}{{"stalled", 0, 48, 0}, {"held", 15 * ms, 0, 48}, {"mostly stalled", 5 * ms, 48, 0}, {"mostly held", 8 * ms, 0,
		48}} {
		s := schedule(t, "8kpps")
		p := New(Even(s), Stream{Length: 1000 * ms, Slots: math.MaxUint64, PPS: s.PPS()})
		p.Take(0)
		p.Take(125_000)
		p.Blocked(c.blocked)
		p.Take(16*ms + 125_000)
		if late, held := p.GivenUp(); late != c.late || held != c.held {
			t.Errorf("%s: late %d, held %d; want %d and %d", c.name, late, held, c.late, c.held)
		}
	}
}

// What was planned is counted in slots, though they leave in groups.
func TestPlanned(t *testing.T) {
	s := schedule(t, "1kpps")
	p := New(Even(s), Stream{Length: 1000 * ms, Slots: math.MaxUint64, PPS: 1000, Group: 7})
	p.Take(7 * ms)
	if got := p.Planned(9 * ms); got != 10 {
		t.Errorf("%d slots are planned in 9 ms, want 10", got)
	}
}
