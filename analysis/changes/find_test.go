package changes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pelt/model"
)

// scene is a trial whose truth is known.
type scene struct {
	name   string
	metric string
	n      int
	at     func(i int, r *rand.Rand) float64 // value of a second
	want   []string                          // "kind start end before after", with tolerances below
}

func noisy(level, ratio float64, r *rand.Rand) float64 { return level * (1 + ratio*r.NormFloat64()) }

// piecewise is one of several levels, each from a second on.
func piecewise(i int, from ...float64) float64 {
	v := from[0]
	for k := 1; k+1 < len(from); k += 2 {
		if float64(i) >= from[k] {
			v = from[k+1]
		}
	}
	return v
}

func scenes() []scene {
	return []scene{
		{"a router gives out at 80 s", "receive_pps", 200, func(i int, r *rand.Rand) float64 {
			return noisy(piecewise(i, 262e3, 80, 148e3), 0.01, r)
		}, []string{"level-shift 80 200 262e3 148e3"}},
		{"and recovers", "receive_pps", 600, func(i int, r *rand.Rand) float64 {
			return noisy(piecewise(i, 262e3, 80, 148e3, 130, 262e3), 0.01, r)
		}, []string{"level-shift 80 130 262e3 148e3", "level-shift 130 600 148e3 262e3"}},
		{"in a short run", "receive_pps", 40, func(i int, r *rand.Rand) float64 {
			return noisy(piecewise(i, 262e3, 20, 148e3), 0.01, r)
		}, []string{"level-shift 20 40 262e3 148e3"}},
		{"in one too short", "receive_pps", 19, func(i int, r *rand.Rand) float64 {
			return noisy(piecewise(i, 262e3, 10, 148e3), 0.01, r)
		}, nil},
		{"three levels", "goodput_bps", 900, func(i int, r *rand.Rand) float64 {
			return noisy(piecewise(i, 900e6, 200, 880e6, 500, 700e6), 0.005, r)
		}, []string{"level-shift 200 500 900e6 880e6", "level-shift 500 900 880e6 700e6"}},
		{"autocorrelated noise", "receive_pps", 1200, func() func(i int, r *rand.Rand) float64 {
			x := 0.0
			return func(i int, r *rand.Rand) float64 {
				x = 0.9*x + 0.44*r.NormFloat64()
				return 200e3 + 2000*x + piecewise(i, 0, 600, -60e3)
			}
		}(), []string{"level-shift 600 1200 200e3 140e3"}},
		{"quiet, then wild", "lost_pps", 600, func(i int, r *rand.Rand) float64 {
			if i < 80 {
				return 0
			}
			return math.Round(114e3 + 8e3*r.NormFloat64())
		}, []string{"level-shift 80 600 0 114e3"}},
		{"a little loss begins", "lost_pps", 1800, func(i int, r *rand.Rand) float64 {
			return poisson(piecewise(i, 0, 900, 5), r)
		}, []string{"level-shift 900 1800 0 5"}},
		{"a constant rate changes by a hundredth", "send_pps", 300, func(i int, r *rand.Rand) float64 {
			return piecewise(i, 40000, 150, 39600) + float64(r.IntN(3)-1)
		}, []string{"level-shift 150 300 40000 39600"}},
		{"one packet more or less", "send_pps", 3600, func(i int, r *rand.Rand) float64 {
			return piecewise(i, 40000, 1800, 40001)
		}, nil},
		{"one second without", "receive_pps", 300, func(i int, r *rand.Rand) float64 {
			if i == 150 {
				return 0
			}
			return noisy(40e3, 0.001, r)
		}, nil},
		{"a spike at either end", "receive_pps", 300, func(i int, r *rand.Rand) float64 {
			if i == 0 || i == 299 {
				return 5e3
			}
			return noisy(40e3, 0.001, r)
		}, nil},
		{"a drift all the time", "receive_pps", 1200, func(i int, r *rand.Rand) float64 {
			return noisy(200e3-50*float64(i), 0.01, r)
		}, []string{"drift 0 1200 200e3 140e3"}},
		{"a slow drift", "receive_pps", 3600, func(i int, r *rand.Rand) float64 {
			return noisy(200e3-0.6*float64(i), 0.005, r)
		}, []string{"drift 0 3600 200e3 197.8e3"}},
		{"a drift between levels", "receive_pps", 900, func(i int, r *rand.Rand) float64 {
			return noisy(200e3-500*min(max(float64(i)-300, 0), 200), 0.01, r)
		}, []string{"drift 300 500 200e3 100e3"}},
		{"stalls every 10 s", "receive_pps", 300, func(i int, r *rand.Rand) float64 {
			if i%10 == 4 {
				return noisy(150e3, 0.01, r)
			}
			return noisy(200e3, 0.01, r)
		}, []string{"periodic-stall 4 295 200e3 150e3 10"}},
		{"stalls of 2 s every minute", "receive_pps", 600, func(i int, r *rand.Rand) float64 {
			if i%60 == 30 || i%60 == 31 {
				return noisy(20e3, 0.01, r)
			}
			return noisy(200e3, 0.01, r)
		}, []string{"periodic-stall 30 572 200e3 20e3 60"}},
		{"stalls that are not regular", "receive_pps", 600, func(i int, r *rand.Rand) float64 {
			if r.Float64() < 0.02 {
				return noisy(20e3, 0.01, r)
			}
			return noisy(200e3, 0.01, r)
		}, nil},
		{"a burst of loss", "lost_pps", 600, func(i int, r *rand.Rand) float64 {
			if i == 300 {
				return 900
			}
			return poisson(3, r)
		}, []string{"loss-burst 300 301 3 900"}},
		{"one of 4 s where nothing else is lost", "lost_pps", 3600, func(i int, r *rand.Rand) float64 {
			if i >= 1000 && i < 1004 {
				return 50
			}
			return 0
		}, []string{"loss-burst 1000 1004 0 50"}},
		{"regular bursts", "lost_pps", 600, func(i int, r *rand.Rand) float64 {
			if i%30 == 7 {
				return 400 + poisson(40, r)
			}
			return poisson(2, r)
		}, []string{"loss-burst 7 578 2 442 30"}},
		{"many bursts at any time", "lost_pps", 3600, func(i int, r *rand.Rand) float64 {
			if r.Float64() < 0.004 {
				return 500
			}
			return 0
		}, []string{"loss-burst 0 3600 0 500"}},
	}
}

func (s scene) values(seed uint64) []float64 {
	r := rand.New(rand.NewPCG(seed, 5))
	return drawn(s.n, func(i int) float64 { return s.at(i, r) })
}

// meant reports whether a change is the one that was meant: times within its own
// interval or 3 s (a drift's corners: a tenth of its length), levels within 5 %.
func meant(want string, c model.Change) bool {
	f := strings.Fields(want)
	var start, end, before, after, period float64
	fmt.Sscan(strings.Join(f[1:], " "), &start, &end, &before, &after, &period)
	near := func(got, want, slack float64) bool { return math.Abs(got-want) <= slack }
	slack := 3.0
	if c.Kind == model.ChangeDrift {
		slack = 0.1 * (end - start)
	}
	anyTime := f[0] == model.ChangeBurst && end-start > 1000 // bursts at random
	scale := max(math.Abs(before), math.Abs(after))
	return c.Kind == f[0] && (anyTime || near(c.StartS, start, slack) && near(c.EndS, end, slack)) &&
		near(c.Before, before, 0.05*scale) && near(c.After, after, 0.05*scale) && near(c.Size, after-before, 0.05*scale) && near(c.PeriodS, period, 0.05)
}

func TestFind(t *testing.T) {
	for _, s := range scenes() {
		t.Run(s.name, func(t *testing.T) {
			for seed := range uint64(5) {
				got := Find(trial(s.metric, s.values(seed)))
				ok := len(got) == len(s.want)
				for i := range min(len(got), len(s.want)) {
					ok = ok && meant(s.want[i], got[i])
				}
				if !ok {
					var text []string
					for _, c := range got {
						text = append(text, fmt.Sprintf("%s %g %g %.6g %.6g %.4g [%g to %g, %d times, p %.2g]", c.Kind, c.StartS, c.EndS, c.Before, c.After, c.PeriodS, c.StartLowS, c.StartHighS, c.Count, c.PValue))
					}
					t.Errorf("seed %d: got\n  %s\nwant\n  %s", seed, strings.Join(text, "\n  "), strings.Join(s.want, "\n  "))
				}
			}
		})
	}
}

// A minute of a lab on a machine whose sender had too little of the processors: what was
// sent stalls and catches up, which is no change; the router was limited after 35 s.
func TestFindInALab(t *testing.T) {
	sent := []float64{500, 500, 496, 403, 544, 499, 498, 503, 457, 541, 500, 500, 500, 500, 500, 500, 500, 500, 397, 536, 397, 500, 500, 500, 500, 499, 388, 529, 500, 500,
		498, 399, 505, 421, 484, 500, 500, 487, 513, 500, 500, 500, 500, 500, 500, 500, 500, 500, 499, 496, 505, 500, 500, 500, 498, 502, 500, 498, 502, 500}
	received := []float64{500, 501, 496, 387, 560, 498, 502, 501, 455, 541, 501, 500, 499, 501, 500, 501, 500, 499, 396, 538, 397, 499, 501, 499, 501, 499, 386, 531, 500, 500,
		496, 399, 505, 421, 484, 242, 231, 231, 230, 231, 231, 230, 231, 230, 231, 231, 230, 231, 231, 229, 231, 228, 230, 231, 231, 230, 231, 231, 230, 231}
	r := trial("receive_pps", received)
	r.Series = append(r.Series, model.Series{Metric: "send_pps", Flow: "up", At: "sender", StepSeconds: 1, Values: sent})
	if got := Find(r); len(got) != 1 || !meant("level-shift 35 60 492 231", got[0]) || len(got[0].Causes) != 0 {
		t.Errorf("found %+v; want one shift at 35 s, which the sender does not explain", got)
	}
}
