package udp

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pelt/model"
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

func drawProfile(t *rapid.T) (model.Flow, int64) {
	rate := rapid.SampledFrom([]uint64{1000, 40_000, 7, 1_000_000}).Draw(t, "pps")
	f := model.Flow{
		Name: "up", Protocol: model.UDP, From: "a", To: "b", PayloadBytes: 64, Rate: unit.PacketRate(rate),
		Streams: rapid.SampledFrom([]int{3, 1, 8}).Draw(t, "streams"), Burst: rapid.SampledFrom([]int{0, 1, 50}).Draw(t, "burst"),
	}
	trace, err := model.TraceText([]int64{0, 0, 3000, 70_000, 5_000_000})
	if err != nil {
		t.Fatal(err)
	}
	f.Profile = &[]model.Profile{
		{Kind: model.Poisson, Seed: 3}, {Kind: model.Burst, BurstPackets: 64}, {Kind: model.OnOff, OnSeconds: 0.01, OffSeconds: 0.03},
		{Kind: model.OnOff, OnSeconds: 0.01, OffSeconds: 0.03, Random: true, Seed: 5}, {Kind: model.Ramp, From: unit.PacketRate(5000)}, {Kind: model.TraceProfile, Trace: trace},
	}[rapid.IntRange(0, 5).Draw(t, "profile")]
	return f, int64(rapid.SampledFrom([]int{100, 1, 900, 3000}).Draw(t, "ms")) * 1_000_000
}

// pacingOf is the measured part of a stream.
func pacingOf(f model.Flow, t model.Timing, stream int) (p pacer, length int64, paced bool) {
	return pacing(f.Clock(t, false), f, t, false, stream, 1)
}

// With a profile, too, a sender uses no slot before it is due and none twice,
// gives up only what is overdue, and accounts for every slot of its streams.
func TestPacerKeepsItsPromisesOfProfiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, phase := drawProfile(t)
		timing := model.Timing{MeasureSeconds: float64(phase) / 1e9}
		if rapid.Bool().Draw(t, "counted") {
			f.Packets = uint64(rapid.SampledFrom([]int{100, 8, 3000}).Draw(t, "packets"))
		}
		reference := f.Clock(timing, false)
		var planned uint64
		for i := range f.Streams {
			p, length, _ := pacingOf(f, timing, i)
			planned += p.slots
			var sent uint64
			now := int64(0)
			for range 300 {
				at, ok := p.deadline()
				if !ok {
					break
				}
				if at >= length {
					t.Fatalf("slot %d is due at %d, after the phase of %d", p.next, at, length)
				}
				if at > now && p.take(at-1) != 0 {
					t.Fatalf("sent before %d", at)
				}
				now = max(now, at) + rapid.SampledFrom([]int64{0, 0, 10, 30_000, 5_000_000, 1_000_000_000}).Draw(t, "late")
				first, given := p.next, p.forfeited
				n := p.take(now)
				sent += n
				last := reference.Due(uint64(i) + (p.next-1)*uint64(f.Streams))
				if n == 0 || last > now {
					t.Fatalf("at %d sent %d packets, the last is due at %d", now, n, last)
				}
				if p.forfeited > given {
					if missed := reference.Due(uint64(i) + (p.next-n-1)*uint64(f.Streams)); missed > now-p.patience {
						t.Fatalf("at %d gave up %d slots from %d on, though one is due at %d", now, p.forfeited-given, first, missed)
					}
				}
				if p.take(now) != 0 {
					t.Fatal("the same time gave packets twice")
				}
			}
			sent += p.take(math.MaxInt64)
			if sent+p.forfeited != p.slots || p.next != p.slots {
				t.Fatalf("sent %d + forfeited %d != %d slots", sent, p.forfeited, p.slots)
			}
		}
		want := reference.Slots(phase)
		if f.Packets > 0 {
			want = min(want, f.Packets)
		}
		if planned != want {
			t.Fatalf("streams plan %d, the flow %d", planned, want)
		}
	})
}

func TestPunctualSenderOfProfilesForfeitsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, phase := drawProfile(t)
		for i := range f.Streams {
			p, _, _ := pacingOf(f, model.Timing{MeasureSeconds: float64(min(phase, 100_000_000)) / 1e9}, i)
			var sent uint64
			for at, ok := p.deadline(); ok; at, ok = p.deadline() {
				sent += p.take(at)
			}
			if sent != p.slots || p.forfeited != 0 {
				t.Fatalf("%+v: sent %d of %d, forfeited %d", *f.Profile, sent, p.slots, p.forfeited)
			}
		}
	})
}

// A burst that comes late comes whole; late packets of irregular gaps leave
// together up to profilePatience, and those of regular ones do not.
func TestLateSender(t *testing.T) {
	timing := model.Timing{MeasureSeconds: 1}
	flow := func(p model.Profile) model.Flow {
		return model.Flow{PayloadBytes: 64, Rate: unit.PacketRate(40_000), Streams: 1, Profile: &p}
	}
	trace, err := model.TraceText([]int64{5_000, 5_000, 5_000, 85_000})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		flow model.Flow
		at   int64
		want uint64
	}{
		{"burst, late by a millisecond", flow(model.Profile{Kind: model.Burst, BurstPackets: 64}), 1_000_000, 64},
		{"two bursts, the later counts", flow(model.Profile{Kind: model.Burst, BurstPackets: 64}), 1_600_000, 64},
		{"on and off, late by three gaps", flow(model.Profile{Kind: model.OnOff, OnSeconds: 0.5, OffSeconds: 0.5}), 75_000, 1},
		{"trace, late by 90 µs", flow(model.Profile{Kind: model.TraceProfile, Trace: trace}), 90_000, 4},
		{"trace, late by 5 ms: what was due in the last 100 µs", flow(model.Profile{Kind: model.TraceProfile, Trace: trace}), 5_000_000, 5},
		{"trace, its last four late by 84 µs and the others more", flow(model.Profile{Kind: model.TraceProfile, Trace: trace}), 1_099_000, 4},
	} {
		p, _, _ := pacingOf(c.flow, timing, 0)
		if got := p.take(c.at); got != c.want {
			t.Errorf("%s: %d packets leave, want %d", c.name, got, c.want)
		}
	}
}

var taken uint64

// BenchmarkPacer is what pacing a packet costs that leaves on time.
func BenchmarkPacer(b *testing.B) {
	for _, c := range []struct {
		name    string
		profile *model.Profile
	}{{"EvenGaps", nil}, {"Poisson", &model.Profile{Kind: model.Poisson, Seed: 1}}, {"Burst", &model.Profile{Kind: model.Burst, BurstPackets: 16}},
		{"OnOff", &model.Profile{Kind: model.OnOff, OnSeconds: 0.01, OffSeconds: 0.01}}, {"Ramp", &model.Profile{Kind: model.Ramp, From: unit.PacketRate(1000)}}} {
		b.Run(c.name, func(b *testing.B) {
			f := model.Flow{PayloadBytes: 64, Rate: unit.PacketRate(1_000_000), Streams: 1, Profile: c.profile}
			p, _, _ := pacingOf(f, model.Timing{MeasureSeconds: 3600}, 0)
			b.ReportAllocs()
			for b.Loop() {
				at, ok := p.deadline()
				if !ok {
					b.Fatal("an hour was not enough")
				}
				taken += p.take(at)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(max(p.next, 1)), "ns/packet")
		})
	}
}
