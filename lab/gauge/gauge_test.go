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
	normal, err := impair.Distribution("normal")
	if err != nil {
		t.Fatal(err)
	}
	random := func(ratio, correlation float64) impair.Loss {
		return impair.Loss{Chance: impair.Chance{Ratio: ratio, Correlation: correlation}}
	}
	return map[string]impair.Settings{
		"delay":      {Delay: 20 * time.Millisecond},
		"jitter":     {Delay: 40 * time.Millisecond, Jitter: 10 * time.Millisecond, Correlation: 0.25, Shape: normal},
		"loss":       {Loss: random(0.05, 0)},
		"bursts":     {Loss: random(0.05, 0.9)},
		"states":     {Loss: impair.Loss{Model: impair.GilbertElliott, P: 0.01, R: 0.1, Bad: 0.7, Good: 0.001}},
		"rate":       {Rate: 10_000_000, QueuePackets: 1000, MinFrame: 60},
		"report":     {Rate: 1_000_000, QueuePackets: 1000, MinFrame: 60, Loss: random(0.05, 0), Delay: 40 * time.Millisecond, Jitter: 10 * time.Millisecond, Correlation: 0.25, Shape: normal},
		"duplicates": {Rate: 50_000_000, QueuePackets: 1000, MinFrame: 60, Duplicate: impair.Chance{Ratio: 0.1}},
		"damage":     {Corrupt: impair.Chance{Ratio: 0.2}, Delay: time.Millisecond},
	}
}

// groupOf are so many ways of the same settings.
func groupOf(s impair.Settings, ways int) group {
	return group{slices.Repeat([]Way{{Settings: s}}, ways), plan(s, 1500, ways)}
}

// probed are the figures of a group as if its links were the model with other settings.
func probed(g group, real impair.Settings, seed uint64) figures {
	var samples []sample
	for i := range uint64(len(g.ways)) {
		samples = append(samples, simulate(real, g.plan, seed+i))
	}
	return g.figures(samples)
}

// A link that is what was asked is called otherwise as seldom as it is said, and its
// intervals hold the truth about as often as they say.
func TestHonestLink(t *testing.T) {
	const links = 40
	called, compared := 0, 0
	for name, s := range asked(t) {
		g := groupOf(s, 1)
		e := g.expect()
		held, figures := 0, 0
		for k := range uint64(links) {
			c := g.calibration(probed(g, s, 1_000_000+k*5000), e)
			called += len(c.Off)
			for _, f := range []*model.Gauged{c.Loss, c.DelayP50, c.Rate} {
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
		compared += figures
		// Binomial at 95 %: so many links, and figures that depend on each other.
		if share := float64(held) / float64(figures); share < 0.88 {
			t.Errorf("%s: %.3f of the intervals hold the truth", name, share)
		}
	}
	// 1 % of them at most, and four deviations of chance.
	if most := 0.01*float64(compared) + 4*math.Sqrt(0.01*float64(compared)); float64(called) > most {
		t.Errorf("%d of %d figures are called off, want at most %.0f", called, compared, most)
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
		g := groupOf(s, c.ways)
		if got := g.calibration(probed(g, real, 77), g.expect()); !strings.Contains(strings.Join(got.Off, "; "), c.say) {
			t.Errorf("%s: called %q, want %q", c.name, got.Off, c.say)
		}
	}
}

func TestSchedules(t *testing.T) {
	slow := impair.Settings{Rate: 64_000, QueuePackets: 100, MinFrame: 60}
	for ways := range 300 {
		for _, s := range []impair.Settings{slow, {}, {Rate: 10_000_000_000}} {
			p := plan(s, 1500, max(ways, 1))
			if span := time.Duration(p.small) * p.interval; p.small < 1 || span > longest {
				t.Fatalf("%d ways: %+v takes %v", ways, p, span)
			}
			if load := float64(onLink(s, smallBytes)) / float64(p.interval); load > 0.21 {
				t.Fatalf("%d ways: the probes load the link to %.2f", ways, load)
			}
		}
	}
	if p := plan(impair.Settings{Rate: 1_000_000, QueuePackets: 4}, 1500, 1); p.full != 0 || p.noRate == "" {
		t.Errorf("%+v: frames that the queue has no room for", p)
	}
	if p := plan(impair.Settings{}, 1500, 1); p.full != 0 || p.noRate != "" {
		t.Errorf("%+v: a link without a rate", p)
	}
}

func TestGrouped(t *testing.T) {
	way := func(seed uint64, words string) Way {
		return Way{Settings: impair.Settings{Delay: 5, Seed: seed}, Words: words}
	}
	if got := grouped([]Way{way(1, "delay=5ns"), way(2, "other"), way(3, "delay=5ns"), {}}); len(got) != 2 || len(got[0].ways) != 2 {
		t.Errorf("got %+v", got)
	}
}

// Ports read arrivals in their order: of a probe that comes twice, the copy that comes first
// is the one whose delay counts.
func TestSimulatedInOrder(t *testing.T) {
	s := impair.Settings{Delay: 20 * time.Millisecond, Jitter: 20 * time.Millisecond, Duplicate: impair.Chance{Ratio: 0.5}}
	got := simulate(s, plan(s, 1500, 1), 7)
	if !slices.IsSortedFunc(got.arrivals, func(a, b arrival) int { return cmp.Compare(a.at, b.at) }) || len(got.arrivals) <= len(got.sent) {
		t.Errorf("%d arrivals of %d probes, in order: false", len(got.arrivals), len(got.sent))
	}
}
