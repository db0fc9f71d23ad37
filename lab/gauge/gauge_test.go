package gauge

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pelt/lab/impair"
	"pelt/model"
	"pelt/unit"
)

// asked are settings that calibrations meet.
func asked(t *testing.T) map[string]impair.Settings {
	t.Helper()
	random := func(ratio, correlation float64) impair.Loss {
		return impair.Loss{Chance: impair.Chance{Ratio: ratio, Correlation: correlation}}
	}
	return map[string]impair.Settings{
		"delay":       {Delay: 20 * time.Millisecond},
		"jitter":      {Delay: 40 * time.Millisecond, Jitter: 10 * time.Millisecond, Correlation: 0.25, Shape: impair.Normal()},
		"loss":        {Loss: random(0.05, 0)},
		"bursts":      {Loss: random(0.05, 0.9)},
		"states":      {Loss: impair.Loss{Model: impair.GilbertElliott, P: 0.01, R: 0.1, Bad: 0.7, Good: 0.001}},
		"rate":        {Rate: 10_000_000, QueuePackets: 1000, MinFrame: 60},
		"report":      {Rate: 1_000_000, QueuePackets: 1000, MinFrame: 60, Loss: random(0.05, 0), Delay: 40 * time.Millisecond, Jitter: 10 * time.Millisecond, Correlation: 0.25, Shape: impair.Normal()},
		"duplicates":  {Rate: 50_000_000, QueuePackets: 1000, MinFrame: 60, Duplicate: impair.Chance{Ratio: 0.1}},
		"damage":      {Corrupt: impair.Chance{Ratio: 0.2}, Delay: time.Millisecond},
		"netem quirk": {Mode: impair.Netem, Loss: random(0.1, 0.25), Delay: 5 * time.Millisecond, QueuePackets: 1000},
	}
}

// measured is a calibration of the ways as if the link were the model with other settings.
func measured(t *testing.T, s, real impair.Settings, ways int, seed uint64) model.LinkCalibration {
	t.Helper()
	g := group{settings: s}
	for i := range ways {
		p := small(s, ways)
		f, why := full(s, 1500, 0)
		if why != "" {
			t.Fatal(why)
		}
		g.names = append(g.names, [2]string{"a", "b"})
		g.plans, g.fulls = append(g.plans, p), append(g.fulls, f)
		g.small = append(g.small, simulate(real, p, seed+uint64(i)))
		if f.count > 0 {
			g.full = append(g.full, simulate(real, f, seed+uint64(i)+1000))
		}
	}
	return g.calibration()
}

// A link that is what was asked is not called otherwise, and its intervals hold
// the truth about as often as they say.
func TestHonestLink(t *testing.T) {
	const links = 20
	for name, s := range asked(t) {
		held, figures := 0, 0
		for k := range uint64(links) {
			c := measured(t, s, s, 1, 1_000_000+k*5000)
			if len(c.Off) > 0 {
				t.Errorf("%s: called %q", name, c.Off)
			}
			for _, f := range []*model.Gauged{c.Loss, c.DelayP5, c.DelayP50, c.DelayP95, c.Rate} {
				if f == nil {
					continue
				}
				figures++
				if slack := 1e-9 * f.Expected; f.Low <= f.Expected+slack && f.Expected <= f.High+slack {
					held++
				}
				if !(f.Low <= f.Value && f.Value <= f.High) {
					t.Errorf("%s: %+v", name, *f)
				}
			}
		}
		// Binomial at 95 %: 20 links and 4 figures that depend on each other.
		if share := float64(held) / float64(figures); share < 0.88 {
			t.Errorf("%s: %.3f of the intervals hold the truth", name, share)
		}
	}
}

// A link that is not what was asked is called so, by the figure that is wrong.
func TestOtherLink(t *testing.T) {
	for _, c := range []struct {
		name string
		ways int
		make func(s *impair.Settings)
		say  string
	}{
		{"delay", 1, func(s *impair.Settings) { s.Delay = 23 * time.Millisecond }, "half of its frames take over"},
		{"loss", 1, func(s *impair.Settings) { s.Loss.Ratio = 0.08 }, "are lost"},
		{"loss", 1, func(s *impair.Settings) { s.Loss.Ratio = 0 }, "are lost"},
		{"rate", 1, func(s *impair.Settings) { s.Rate = unit.BitRate(9_500_000) }, "its rate is"},
		{"report", 100, func(s *impair.Settings) { s.Rate = 950_000 }, "its rate is"},
		{"report", 100, func(s *impair.Settings) { s.Loss.Ratio = 0.06 }, "are lost"},
	} {
		s := asked(t)[c.name]
		real := s
		c.make(&real)
		if got := measured(t, s, real, c.ways, 77); !strings.Contains(strings.Join(got.Off, "; "), c.say) {
			t.Errorf("%s: called %q, want %q", c.name, got.Off, c.say)
		}
	}
}

func TestSchedules(t *testing.T) {
	slow := impair.Settings{Rate: 64_000, QueuePackets: 100, MinFrame: 60}
	for ways := range 300 {
		for _, s := range []impair.Settings{slow, {}, {Rate: 10_000_000_000}} {
			p := small(s, max(ways, 1))
			if span := time.Duration(p.count) * p.interval; p.count < 1 || span > longest {
				t.Fatalf("%d ways: %+v takes %v", ways, p, span)
			}
			if load := float64(onLink(s, p.bytes)) / float64(p.interval); load > 0.21 {
				t.Fatalf("%d ways: the probes load the link to %.2f", ways, load)
			}
		}
	}
	if p, why := full(impair.Settings{Rate: 1_000_000, QueuePackets: 4}, 1500, 0); p.count != 0 || why == "" {
		t.Errorf("%+v, %q: frames that the queue has no room for", p, why)
	}
	if p, why := full(impair.Settings{}, 1500, 0); p.count != 0 || why != "" {
		t.Errorf("%+v, %q: a link without a rate", p, why)
	}
}

func TestGrouped(t *testing.T) {
	table := func() *impair.Table { c := *impair.Normal(); return &c }
	way := func(seed uint64, delay time.Duration) Way {
		return Way{Settings: impair.Settings{Delay: delay, Jitter: 1, Shape: table(), Seed: seed}}
	}
	if got := grouped([]Way{way(1, 5), way(2, 6), way(3, 5)}); len(got) != 2 || !slices.Equal(got[0], []int{0, 2}) {
		t.Errorf("got %v", got)
	}
}

func TestDistance(t *testing.T) {
	if d := distance([]float64{1, 2, 3, 4}, []float64{3, 4, 5, 6}); math.Abs(d-0.5) > 1e-12 {
		t.Errorf("got %v, want 0.5", d)
	}
	if d := distance([]float64{1, 1, 2}, []float64{1, 1, 2}); d != 0 {
		t.Errorf("got %v of the same", d)
	}
}

// Frames that a token bucket lets through at once say nothing of its rate.
func TestBurst(t *testing.T) {
	s := impair.Settings{Rate: 100_000_000, QueuePackets: 1000, MinFrame: 60}
	plain, _ := full(s, 1500, 0)
	p, why := full(s, 1500, 20_000)
	if p.burst != 20_000/1514 || p.count != plain.count+p.burst || why != "" {
		t.Fatalf("%+v, %q beside %+v", p, why, plain)
	}
	got := sample{bytes: p.bytes, burst: p.burst, sent: make([]int64, p.count)}
	each := int64(p.bytes) * 8 * 10 // ns at the rate
	for i := range p.count {
		got.arrivals = append(got.arrivals, arrival{i, max(0, int64(i-p.burst)*each)})
	}
	if r, _ := slope(got, bitsOnLink(s, p.bytes)); math.Abs(r-1e8) > 1 {
		t.Errorf("a rate of %.0f, want 100 Mbit/s", r)
	}
	got.burst = 0
	if r, _ := slope(got, bitsOnLink(s, p.bytes)); math.Abs(r-1e8) < 1e5 {
		t.Errorf("with the burst's frames the rate is still %.0f: the test shows nothing", r)
	}
}

// Ports read arrivals in their order: of a probe that comes twice, the copy that comes first
// is the one whose delay counts.
func TestSimulatedInOrder(t *testing.T) {
	s := impair.Settings{Delay: 20 * time.Millisecond, Jitter: 20 * time.Millisecond, Duplicate: impair.Chance{Ratio: 0.5}}
	got := simulate(s, small(s, 1), 7)
	if !slices.IsSortedFunc(got.arrivals, func(a, b arrival) int { return cmp.Compare(a.at, b.at) }) || len(got.arrivals) <= len(got.sent) {
		t.Errorf("%d arrivals of %d probes, in order: false", len(got.arrivals), len(got.sent))
	}
}
