package pace

import (
	"math"
	"runtime"
	"slices"
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

func TestSchedules(t *testing.T) {
	at := func(text string) unit.Schedule { return schedule(t, text) }
	for _, c := range []struct {
		name  string
		clock Clock
		due   map[uint64]int64
		slots map[int64]uint64
	}{
		{"burst", Burst(at("1kpps"), 4), map[uint64]int64{0: 0, 3: 0, 4: 4 * ms, 7: 4 * ms, 8: 8 * ms}, map[int64]uint64{0: 0, 1: 1, 4 * ms: 4, 4*ms + 1: 5, 1000 * ms: 1000, 1002 * ms: 1002}},
		{"burst of one", Burst(at("1kpps"), 1), map[uint64]int64{0: 0, 7: 7 * ms}, map[int64]uint64{1000 * ms: 1000}},
		{"on and off", OnOff(at("1kpps"), 10*ms, 90*ms), map[uint64]int64{0: 0, 9: 9 * ms, 10: 100 * ms, 25: 205 * ms}, map[int64]uint64{10 * ms: 10, 100 * ms: 10, 100*ms + 1: 11, 1000 * ms: 100}},
		{"on for less than a gap", OnOff(at("100pps"), 4*ms, 6*ms), map[uint64]int64{0: 0, 1: 22 * ms, 2: 50 * ms}, map[int64]uint64{22 * ms: 1, 22*ms + 1: 2, 1000 * ms: 40}},
		{"never off", OnOff(at("1kpps"), 10*ms, 0), map[uint64]int64{0: 0, 15: 15 * ms}, map[int64]uint64{1000 * ms: 1000}},
		{"ramp up", Ramp(at("10kpps"), at("100kpps"), 2000*ms), nil, map[int64]uint64{0: 0, 1000 * ms: 32500, 2000 * ms: 110000, 2001 * ms: 110100}},
		{"ramp down", Ramp(at("100kpps"), at("10kpps"), 2000*ms), nil, map[int64]uint64{0: 0, 1000 * ms: 77500, 2000 * ms: 110000, 2001 * ms: 110010}},
		{"level ramp", Ramp(at("1kpps"), at("1kpps"), 100*ms), map[uint64]int64{5: 5 * ms, 250: 250 * ms}, map[int64]uint64{100 * ms: 100, 1000 * ms: 1000}},
		{"trace", Trace(at("1kpps"), []int64{0, 3 * ms, 0, 1 * ms}), map[uint64]int64{0: 0, 1: 0, 2: 3 * ms, 3: 3 * ms, 4: 4 * ms, 6: 7 * ms}, map[int64]uint64{1: 2, 3 * ms: 2, 3*ms + 1: 4, 4 * ms: 4, 1000 * ms: 1000}},
		{"trace at half its rate", Trace(at("500pps"), []int64{0, 3 * ms, 0, 1 * ms}), map[uint64]int64{1: 0, 2: 6 * ms, 4: 8 * ms}, map[int64]uint64{1000 * ms: 500}},
		{"trace of one gap", Trace(at("3pps"), []int64{7}), map[uint64]int64{0: 0, 1: 333333333, 3: 1000 * ms}, map[int64]uint64{1000 * ms: 3}},
	} {
		for n, want := range c.due {
			if got := c.clock.Due(n); math.Abs(float64(got-want)) > 20 { // a ramp's is rounded by a millionth of a gap
				t.Errorf("%s: slot %d is due at %d, want %d", c.name, n, got, want)
			}
		}
		for phase, want := range c.slots {
			if got := c.clock.Slots(phase); got != want {
				t.Errorf("%s: %d slots in %d ns, want %d", c.name, got, phase, want)
			}
		}
	}
}

// drawClock is any profile at rates and lengths of any magnitude.
func drawClock(t *rapid.T) func() Clock {
	rate := func(label string) unit.Schedule {
		return schedule(t, rapid.SampledFrom([]string{"40kpps", "1Mpps", "3pps", "333333pps", "every 5ms", "95mbit", "1Gpps", "1/3mbit", "1/7pps"}).Draw(t, label))
	}
	mean, seed := rate("rate"), rapid.Uint64().Draw(t, "seed")
	gap := int64(1e9/mean.PPS()) + 1
	length := func(label string) int64 { // 140 070 slots, one in seven periods at least, are due within the time there is
		return min(gap*rapid.SampledFrom([]int64{3, 1, 100, 20000}).Draw(t, label)/rapid.Int64Range(1, 7).Draw(t, label+" part")+1, math.MaxInt64/4_000_000)
	}
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		size := uint64(rapid.SampledFrom([]int{1, 2, 64, 65536}).Draw(t, "burst"))
		return func() Clock { return Burst(mean, size) }
	case 1:
		return func() Clock { return Poisson(mean, seed) }
	case 2:
		on, off := length("on"), length("off")
		return func() Clock { return OnOff(mean, on, off) }
	case 3:
		on, off := length("on"), length("off")
		return func() Clock { return RandomOnOff(mean, on, off, seed) }
	case 4:
		to, over := rate("to"), min(length("length")*1000, math.MaxInt64/1000)
		return func() Clock { return Ramp(mean, to, over) }
	default:
		gaps := rapid.SliceOfN(rapid.SampledFrom([]int64{0, 0, 1, 1000, 25_000_000}), 1, 50).Draw(t, "gaps")
		gaps[len(gaps)-1]++
		return func() Clock { return Trace(mean, gaps) }
	}
}

// Count is what Due says, slots are due in order, and a clock's answers are the
// same in whatever order they are asked for.
func TestCountIsWhatDueSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		make := drawClock(t)
		c := make()
		for range 8 {
			n := uint64(rapid.SampledFrom([]int{0, 1, 63, 1000, 4096, 140_000}).Draw(t, "n") + rapid.IntRange(0, 70).Draw(t, "more"))
			at := c.Due(n)
			if at < 0 || at == math.MaxInt64 {
				t.Fatalf("slot %d is due at %d", n, at)
			}
			if next := c.Due(n + 1); next < at {
				t.Fatalf("slot %d is due at %d, the next at %d", n, at, next)
			}
			if before, after := c.Count(at), c.Count(at+1); before > n || after <= n {
				t.Fatalf("slot %d is due at %d: %d slots before it, %d up to it", n, at, before, after)
			}
			if end := c.End(n + 1); c.Slots(end) < n+1 {
				t.Fatalf("a phase of %d ns for %d slots has %d", end, n+1, c.Slots(end))
			}
			if fresh := make().Due(n); fresh != at {
				t.Fatalf("slot %d is due at %d, asked anew at %d", n, at, fresh)
			}
		}
	})
}

// Clocks apart from each other have one schedule and disturb each other in nothing.
func TestApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		make := drawClock(t)
		a := make()
		a.Slots(a.Due(70_000)) // a place somewhere
		b := Apart(a)
		n := rapid.Uint64Range(0, 140_000).Draw(t, "n")
		a.Due(140_000 - n)
		if got, want := b.Due(n), make().Due(n); got != want {
			t.Fatalf("slot %d is due at %d apart, at %d alone", n, got, want)
		}
		if got, want := a.Due(n), make().Due(n); got != want {
			t.Fatalf("slot %d is due at %d beside another, at %d alone", n, got, want)
		}
	})
	long := Trace(schedule(t, "1kpps"), slices.Repeat([]int64{25_000}, 1<<20))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		Apart(long)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("a hundred places in a long trace take %d B", used)
	}
}

// A schedule that ran out of time goes back as if it had not.
func TestBackFromTheEndOfTime(t *testing.T) {
	make := func() Clock {
		return RandomOnOff(schedule(t, "1pps"), int64(time.Second), math.MaxInt64/1000, 1)
	}
	c := make()
	if at := c.Due(100_000); at != math.MaxInt64 {
		t.Fatalf("slot 100000 is due at %d, want the end of time", at)
	}
	for _, n := range []uint64{5, 0} {
		if got, want := c.Due(n), make().Due(n); got != want {
			t.Errorf("slot %d is due at %d, at %d alone", n, got, want)
		}
	}
	if at := OnOff(schedule(t, "1pps"), int64(time.Second), math.MaxInt64/1000).Due(100_000); at != math.MaxInt64 {
		t.Errorf("slot 100000 of fixed times is due at %d, want the end of time", at)
	}
}

// Over many gaps every profile has the rate that it says.
func TestMeanRate(t *testing.T) {
	mean := schedule(t, "40kpps")
	const hour = int64(time.Hour)
	for _, c := range []struct {
		name  string
		clock Clock
		want  float64 // slots an hour
		sigma float64 // of chance
	}{
		{"burst", Burst(mean, 1000), 144e6, 0},
		{"poisson", Poisson(mean, 1), 144e6, math.Sqrt(144e6)},
		{"on and off", OnOff(mean, 10*ms, 90*ms), 14.4e6, 0},
		{"random on and off", RandomOnOff(mean, 10*ms, 90*ms, 1), 14.4e6, 14.4e6 * math.Sqrt(2*0.9*0.9/36000)},
		{"ramp", Ramp(mean, schedule(t, "80kpps"), hour), 216e6, 0},
		{"trace", Trace(mean, []int64{1, 10, 100}), 144e6, 0},
	} {
		if got := float64(c.clock.Slots(hour)); math.Abs(got-c.want) > 4*c.sigma {
			t.Errorf("%s: %.0f slots an hour, want %.0f", c.name, got, c.want)
		}
	}
}

func TestSeedsMakeSchedules(t *testing.T) {
	mean := schedule(t, "40kpps")
	for name, of := range map[string]func(seed uint64) Clock{
		"poisson":           func(seed uint64) Clock { return Poisson(mean, seed) },
		"random on and off": func(seed uint64) Clock { return RandomOnOff(mean, ms, ms, seed) },
	} {
		same, other := 0, 0
		a, b, c := of(7), of(7), of(8)
		for n := uint64(1000); n < 2000; n++ {
			if a.Due(n) == b.Due(n) {
				same++
			}
			if a.Due(n) == c.Due(n) {
				other++
			}
		}
		if same != 1000 || other > 10 {
			t.Errorf("%s: %d of 1000 slots the same with one seed, %d with two", name, same, other)
		}
	}
}

func TestGaps(t *testing.T) {
	c := Burst(schedule(t, "1kpps"), 4)
	for _, x := range []struct {
		streams, own, most uint64
		want               []int64
	}{
		{1, 9, 100, []int64{0, 0, 0, 4 * ms, 0, 0, 0, 4 * ms}},
		{2, 5, 100, []int64{0, 4 * ms, 0, 4 * ms}},
		{4, 3, 2, []int64{4 * ms, 4 * ms}},
		{1, 1, 100, nil},
		{1, 0, 100, nil},
	} {
		var got []int64
		Gaps(c, 0, x.streams, x.own, x.most, func(nanos int64) { got = append(got, nanos) })
		if !slices.Equal(got, x.want) {
			t.Errorf("%d streams, %d slots: %v, want %v", x.streams, x.own, got, x.want)
		}
	}
	long := 0
	Gaps(c, 0, 1, 1_000_000, 10_000, func(nanos int64) {
		if nanos > 0 {
			long++
		}
	})
	if long < 2300 || long > 2700 {
		t.Errorf("%d of 10000 sampled gaps are between bursts of 4; want about 2500", long)
	}
}

// A day at a hundred thousand packets a second needs no memory, and a moment to begin.
func TestDay(t *testing.T) {
	const day = 24 * int64(time.Hour)
	p := Poisson(schedule(t, "100kpps"), 3)
	n := p.Slots(day)
	if mean := 8_640e6; math.Abs(float64(n)-mean) > 5*math.Sqrt(mean) {
		t.Errorf("%d slots a day", n)
	}
	if at := p.Due(n - 1); at >= day || day-at > int64(time.Millisecond) {
		t.Errorf("the last slot is due at %d of %d", at, day)
	}
}

func TestNothingIsAllocatedPerPacket(t *testing.T) {
	mean := schedule(t, "1Mpps")
	for name, c := range map[string]Clock{
		"poisson": Poisson(mean, 1), "random on and off": RandomOnOff(mean, ms/100, ms/100, 1), "on and off": OnOff(mean, ms, ms),
		"ramp": Ramp(mean, schedule(t, "2Mpps"), 1000*ms), "burst": Burst(mean, 64), "trace": Trace(mean, []int64{1, 1000, 17, 0, 40_000}),
	} {
		n := uint64(0)
		step := func() {
			for range 70_000 { // over the seams of windows
				c.Count(c.Due(n) + 1)
				n++
			}
		}
		step() // room for the packets of a window grows to what chance brings
		if allocations := testing.AllocsPerRun(3, step); allocations > 3 {
			t.Errorf("%s: %v allocations in 70000 packets", name, allocations)
		}
	}
}
