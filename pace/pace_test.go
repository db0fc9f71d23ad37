package pace

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pelt/unit"
)

func schedule(t interface{ Fatal(...any) }, text string) unit.Schedule {
	rate, err := unit.ParseRate(text)
	if err != nil {
		t.Fatal(err)
	}
	s, ok := rate.Schedule(64)
	if !ok {
		t.Fatal(text + " is no schedule")
	}
	return s
}

const ms = int64(time.Millisecond)

// due returns when a slot is due.
func (s Schedule) due(n uint64) int64 { return s(n, 1)() }

// slots counts those that are due before so many nanoseconds have passed.
func (s Schedule) slots(nanos int64) (n uint64) {
	for next := s(0, 1); next() < nanos; n++ {
	}
	return n
}

func TestSchedules(t *testing.T) {
	at := func(text string) unit.Schedule { return schedule(t, text) }
	const century = math.MaxInt64 / 1000
	for _, c := range []struct {
		name     string
		schedule Schedule
		due      map[uint64]int64
		slots    map[int64]uint64
	}{
		{"even", Even(at("333333pps")), map[uint64]int64{0: 0, 1: 3000, 333_333: 1000 * ms, 666_667: 2000*ms + 3000},
			map[int64]uint64{1000 * ms: 333_333}},
		{"burst", Burst(at("1kpps"), 4), map[uint64]int64{0: 0, 3: 0, 4: 4 * ms, 7: 4 * ms, 8: 8 * ms},
			map[int64]uint64{0: 0, 1: 4, 4 * ms: 4, 4*ms + 1: 8}},
		{"burst of one", Burst(at("1kpps"), 1), map[uint64]int64{0: 0, 7: 7 * ms}, map[int64]uint64{1000 * ms: 1000}},
		{"on and off", OnOff(at("1kpps"), 10*ms, 90*ms),
			map[uint64]int64{0: 0, 9: 9 * ms, 10: 100 * ms, 25: 205 * ms},
			map[int64]uint64{10 * ms: 10, 100 * ms: 10, 100*ms + 1: 11, 1000 * ms: 100}},
		{"on for less than a gap", OnOff(at("100pps"), 4*ms, 6*ms), map[uint64]int64{0: 0, 1: 22 * ms, 2: 50 * ms},
			map[int64]uint64{22 * ms: 1, 22*ms + 1: 2, 1000 * ms: 40}},
		{"never off", OnOff(at("1kpps"), 10*ms, 0), map[uint64]int64{0: 0, 15: 15 * ms},
			map[int64]uint64{1000 * ms: 1000}},
		{"off for ever", OnOff(at("1pps"), 1000*ms, century), map[uint64]int64{100_000: Never}, nil},
		{"off for ever at random", RandomOnOff(at("1pps"), 1000*ms, century, 1),
			map[uint64]int64{0: 0, 100_000: Never}, nil},
		{"ramp up", Ramp(at("10kpps"), at("100kpps"), 2000*ms),
			map[uint64]int64{32_500: 1000 * ms, 110_100: 2001 * ms},
			map[int64]uint64{0: 0, 1000 * ms: 32500, 2000 * ms: 110000, 2001 * ms: 110100}},
		{"ramp down", Ramp(at("100kpps"), at("10kpps"), 2000*ms), nil,
			map[int64]uint64{0: 0, 1000 * ms: 77500, 2000 * ms: 110000, 2001 * ms: 110010}},
		{"level ramp", Ramp(at("1kpps"), at("1kpps"), 100*ms), map[uint64]int64{5: 5 * ms, 250: 250 * ms},
			map[int64]uint64{100 * ms: 100, 1000 * ms: 1000}},
		{"trace", Trace(at("1kpps"), []int64{0, 3 * ms, 0, 1 * ms}),
			map[uint64]int64{0: 0, 1: 0, 2: 3 * ms, 3: 3 * ms, 4: 4 * ms, 6: 7 * ms},
			map[int64]uint64{1: 2, 3 * ms: 2, 3*ms + 1: 4, 4 * ms: 4, 1000 * ms: 1000}},
		{"trace at half its rate", Trace(at("500pps"), []int64{0, 3 * ms, 0, 1 * ms}),
			map[uint64]int64{1: 0, 2: 6 * ms, 4: 8 * ms}, map[int64]uint64{1000 * ms: 500}},
		{"trace of one gap", Trace(at("3pps"), []int64{7}), map[uint64]int64{0: 0, 1: 333333333, 3: 1000 * ms},
			map[int64]uint64{1000 * ms: 3}},
	} {
		for n, want := range c.due {
			if got := c.schedule.due(n); math.Abs(float64(got-want)) > 1 {
				t.Errorf("%s: slot %d is due at %d, want %d", c.name, n, got, want)
			}
		}
		for phase, want := range c.slots {
			if got := c.schedule.slots(phase); got != want {
				t.Errorf("%s: %d slots in %d ns, want %d", c.name, got, phase, want)
			}
		}
	}
}

// drawSchedule is any profile at rates and lengths of any magnitude.
func drawSchedule(t *rapid.T) Schedule {
	rate := func(label string) unit.Schedule {
		return schedule(t, rapid.SampledFrom([]string{"40kpps", "1Mpps", "3pps", "333333pps", "every 5ms", "95mbit",
			"1Gpps", "1/3mbit", "1/7pps"}).Draw(t, label))
	}
	mean, seed := rate("rate"), rapid.Uint64().Draw(t, "seed")
	gap := int64(1e9/mean.PPS()) + 1
	length := func(label string) int64 {
		return min(gap*rapid.SampledFrom([]int64{3, 1, 100, 20000}).Draw(t, label)/rapid.Int64Range(1, 7).Draw(t,
			label+" part")+1, math.MaxInt64/4_000_000)
	}
	switch rapid.IntRange(0, 6).Draw(t, "kind") {
	case 0:
		return Burst(mean, uint64(rapid.SampledFrom([]int{1, 2, 64, 65536}).Draw(t, "burst")))
	case 1:
		return Poisson(mean, seed)
	case 2:
		return OnOff(mean, length("on"), length("off"))
	case 3:
		return RandomOnOff(mean, length("on"), length("off"), seed)
	case 4:
		return Ramp(mean, rate("to"), min(length("length")*1000, math.MaxInt64/1000))
	case 5:
		return Even(mean)
	default:
		gaps := rapid.SliceOfN(rapid.SampledFrom([]int64{0, 0, 1, 1000, 25_000_000}), 1, 50).Draw(t, "gaps")
		gaps[len(gaps)-1]++
		return Trace(mean, gaps)
	}
}

// Slots are due in order, and the streams of a flow, however many, have its slots between them.
func TestStreamsShareTheSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchedule(t)
		step := uint64(rapid.SampledFrom([]int{3, 1, 128}).Draw(t, "streams"))
		var streams []Generator
		for i := range step {
			streams = append(streams, s(i, step))
		}
		last := int64(0)
		flow := s(0, 1)
		for n := range uint64(rapid.SampledFrom([]int{10, 1000, 5000}).Draw(t, "slots")) {
			at := flow()
			if got := streams[n%step](); got != at || at < last || at == Never {
				t.Fatalf("slot %d is due at %d for its stream, at %d for the flow, the one before at %d", n, got, at,
					last)
			}
			last = at
			if n%977 == 0 {
				if end := End(s, n+1); end <= at || end < s.due(n+1) {
					t.Fatalf("a phase of %d ns for slots up to %d", end, at)
				}
			}
		}
	})
}

// An even schedule is that of its rate, at any place.
func TestEvenIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawRate(t)
		first, step := rapid.Uint64Max(1<<40).Draw(t, "first"), rapid.Uint64Range(1, 1<<20).Draw(t, "step")
		next := Even(s)(first, step)
		for n := first; n < first+100*step; n += step {
			if got, want := next(), s.Due(n); got != want {
				t.Fatalf("slot %d is due at %d, want %d", n, got, want)
			}
		}
	})
}

// Over many gaps every profile has the rate that it says.
func TestMeanRate(t *testing.T) {
	mean := schedule(t, "40kpps")
	const length = 100_000 * ms
	for _, c := range []struct {
		name     string
		schedule Schedule
		want     float64 // slots
		sigma    float64 // of chance
	}{
		{"burst", Burst(mean, 1000), 4e6, 0},
		{"poisson", Poisson(mean, 1), 4e6, math.Sqrt(4e6)},
		{"on and off", OnOff(mean, 10*ms, 90*ms), 4e5, 0},
		{"random on and off", RandomOnOff(mean, 10*ms, 90*ms, 1), 4e5, 4e5 * math.Sqrt(2*0.9*0.9/1000)},
		{"ramp", Ramp(mean, schedule(t, "80kpps"), length), 6e6, 0},
		{"trace", Trace(mean, []int64{1, 10, 100, 1000}), 4e6, 0},
	} {
		if got := float64(c.schedule.slots(length)); math.Abs(got-c.want) > 4*c.sigma {
			t.Errorf("%s: %.0f slots, want %.0f", c.name, got, c.want)
		}
	}
}

func TestSeedsMakeSchedules(t *testing.T) {
	mean := schedule(t, "40kpps")
	for name, of := range map[string]func(seed uint64) Schedule{
		"poisson":           func(seed uint64) Schedule { return Poisson(mean, seed) },
		"random on and off": func(seed uint64) Schedule { return RandomOnOff(mean, ms, ms, seed) },
	} {
		same, other := 0, 0
		a, b, c := of(7)(1000, 1), of(7)(1000, 1), of(8)(1000, 1)
		for range 1000 {
			at := a()
			if b() == at {
				same++
			}
			if c() == at {
				other++
			}
		}
		if same != 1000 || other > 10 {
			t.Errorf("%s: %d of 1000 slots the same with one seed, %d with two", name, same, other)
		}
	}
}

func TestNothingIsAllocatedPerPacket(t *testing.T) {
	mean := schedule(t, "1Mpps")
	for name, s := range map[string]Schedule{
		"poisson": Poisson(mean, 1), "random on and off": RandomOnOff(mean, ms/100, ms/100,
			1), "on and off": OnOff(mean, ms, ms),
		"ramp": Ramp(mean, schedule(t, "2Mpps"), 1000*ms), "burst": Burst(mean, 64), "trace": Trace(mean,
			[]int64{1, 1000, 17, 0, 40_000}),
	} {
		p := New(s, Stream{Length: Never, Slots: math.MaxUint64, PPS: 1e6})
		step := func() {
			for range 10_000 {
				at, _ := p.Next()
				p.Take(at)
			}
		}
		step() // room for the slots ahead grows to what is due at once
		if allocations := testing.AllocsPerRun(3, step); allocations > 0 {
			t.Errorf("%s: %v allocations in 10000 turns", name, allocations)
		}
	}
}
