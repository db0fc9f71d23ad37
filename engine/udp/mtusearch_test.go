package udp

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
)

// wayOf is one direction of a path as a search meets it.
type wayOf struct {
	six            bool
	top, mtu       int
	says           bool // a router says packet too big
	loss           float64
	dead           bool
	deaf           int // packets of the largest size that are lost at first
	rounds, probes int // at most, for what the test wants
}

// walk plays the search against the way.
func (w wayOf) walk(seed uint64) (s *search, rounds int) {
	r := rand.New(rand.NewPCG(seed, 1))
	s = newSearch(w.six)
	s.routeMTU(w.top)
	for sizes := s.next(); len(sizes) > 0 && rounds < 100; sizes = s.next() {
		rounds++
		r.Shuffle(len(sizes), func(i, j int) { sizes[i], sizes[j] = sizes[j], sizes[i] })
		for _, n := range sizes {
			lost := w.dead || n > w.mtu || r.Float64() < w.loss
			if n == w.mtu && w.deaf > 0 {
				lost, w.deaf = true, w.deaf-1
			}
			if !lost {
				s.passed(n)
			}
		}
		if w.says && slices.Max(sizes) > w.mtu {
			s.routeMTU(w.mtu)
		}
		s.silent()
	}
	return s, rounds
}

func TestSearch(t *testing.T) {
	for _, c := range []struct {
		name  string
		way   wayOf
		found model.MTUFound
	}{
		{"all of the route", wayOf{top: 1500, mtu: 1500, rounds: 1, probes: 2}, model.MTUOfRoute},
		{"all of a small route", wayOf{top: 68, mtu: 68, rounds: 1, probes: 1}, model.MTUOfRoute},
		{"jumbo", wayOf{top: 9000, mtu: 9000, rounds: 1, probes: 2}, model.MTUOfRoute},
		{"loopback", wayOf{top: 65536, mtu: 65536, rounds: 1, probes: 2}, model.MTUOfRoute},
		{"a router says it", wayOf{top: 1500, mtu: 1400, says: true, rounds: 2, probes: 3}, model.MTUTold},
		{"a router says it, IPv6", wayOf{six: true, top: 1500, mtu: 1280, says: true, rounds: 2, probes: 3},
			model.MTUTold},
		{"a router says little", wayOf{top: 1500, mtu: 296, says: true, rounds: 3, probes: 6}, model.MTUTold},
		{"a router says the least", wayOf{top: 1500, mtu: 68, says: true, rounds: 3, probes: 6}, model.MTUTold},
		{"black hole at a common size", wayOf{top: 1500, mtu: 1420, rounds: 6, probes: 30}, model.MTUSearch},
		{"black hole anywhere", wayOf{top: 1500, mtu: 1373, rounds: 7, probes: 40}, model.MTUSearch},
		{"black hole, IPv6", wayOf{six: true, top: 1500, mtu: 1444, rounds: 7, probes: 40}, model.MTUSearch},
		{"black hole below the base", wayOf{top: 1500, mtu: 700, rounds: 9, probes: 50}, model.MTUSearch},
		{"black hole before jumbo frames", wayOf{top: 9000, mtu: 1500, rounds: 8, probes: 50}, model.MTUSearch},
		{"one byte less than the route", wayOf{top: 1500, mtu: 1499, rounds: 7, probes: 40}, model.MTUSearch},
		{"the first seven lost", wayOf{top: 1500, mtu: 1500, deaf: 7, rounds: 9, probes: 60}, model.MTUOfRoute},
		{"losses", wayOf{top: 1500, mtu: 1500, loss: 0.05, rounds: 10, probes: 60}, model.MTUOfRoute},
		{"heavy losses", wayOf{top: 1500, mtu: 1500, loss: 0.1, rounds: 14, probes: 80}, model.MTUOfRoute},
		{"losses and a word", wayOf{top: 1500, mtu: 1400, says: true, loss: 0.05, rounds: 12, probes: 60},
			model.MTUTold},
		{"losses in a black hole", wayOf{top: 1500, mtu: 1400, loss: 0.02, rounds: 14, probes: 80}, model.MTUSearch},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(200) {
				s, rounds := c.way.walk(seed)
				got := s.result()
				if got.Bytes != min(c.way.mtu, 65535) || got.Found != c.found {
					// Three lost in a row look like a wall: with loss p that is p^3 of the walls met below the top.
					if c.way.loss > 0 && (c.way.loss < 0.1 || got.Bytes < 1499) && got.Bytes > 0 &&
						got.Bytes < c.way.mtu && seed > 0 {
						continue
					}
					t.Fatalf("seed %d: found %d by %s, want %d by %s", seed, got.Bytes, got.Found, c.way.mtu, c.found)
				}
				if rounds > c.way.rounds || got.Probes > c.way.probes {
					t.Fatalf("seed %d: %d rounds and %d probes, want at most %d and %d", seed, rounds, got.Probes,
						c.way.rounds, c.way.probes)
				}
				if c.way.loss == 0 {
					break
				}
			}
		})
	}
}

// TestSearchNeverLies: whatever is lost or said, what is found did pass, and every search ends.
func TestSearchNeverLies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := wayOf{six: rapid.Bool().Draw(t, "six"), says: rapid.Bool().Draw(t, "a router says it"),
			loss: rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 0.9)).Draw(t, "loss"), dead: rapid.IntRange(0, 9).Draw(t, "dead") == 0}
		least := newSearch(w.six).least()
		w.top = rapid.IntRange(least, 65535).Draw(t, "route")
		w.mtu = rapid.IntRange(least, w.top).Draw(t, "path")
		s, rounds := w.walk(rapid.Uint64().Draw(t, "losses"))
		got := s.result()
		if got.Bytes > w.mtu || rounds >= 100 || got.AtLeast || !s.done() || w.dead && got.Bytes > 0 ||
			w.loss == 0 && !w.dead && got.Bytes != w.mtu {
			t.Fatalf("%+v: found %+v in %d rounds", w, got, rounds)
		}
	})
}

// TestSearchCut: with the time up, what has passed is a bound. Messages that contradict an answer, or say nonsense, are
// nobody's.
func TestSearchCut(t *testing.T) {
	s := newSearch(false)
	s.routeMTU(1500)
	if s.next(); s.result().Bytes != 0 {
		t.Error("nothing was answered, and something was found")
	}
	s.passed(1200)
	s.silent()
	if got := s.result(); got.Bytes != 1200 || !got.AtLeast || got.Found != model.MTUSearch {
		t.Errorf("found %+v, want at least 1200", got)
	}
	for _, mtu := range []int{1100, 0, -5, 67, 1600} {
		if s.routeMTU(mtu); s.limit != 1500 {
			t.Errorf("packet too big of %d made the limit %d", mtu, s.limit)
		}
	}
}

// A search that its last round ended has found all, however late that round was over.
func TestSearchEndsWithItsLastRound(t *testing.T) {
	s := newSearch(false)
	s.routeMTU(1500)
	s.passed(1499)
	for range 2 { // once, and then as often as the largest is tried
		if s.next(); s.done() {
			t.Fatal("over before its last round")
		}
		s.silent()
	}
	if got := s.result(); got.Bytes != 1499 || got.AtLeast || got.Probes != topProbes {
		t.Errorf("found %+v", got)
	}
}

// A message that a later answer refutes ends nothing and is not told of.
func TestRefutedMessage(t *testing.T) {
	s := newSearch(false)
	s.routeMTU(9000)
	s.routeMTU(1400)
	if s.passed(1500); s.told() || s.done() {
		t.Fatalf("told %v, done %v after an answer of 1500 B to a message of 1400 B", s.told(), s.done())
	}
	for sizes := s.next(); len(sizes) > 0; sizes = s.next() {
		for _, n := range sizes {
			if n <= 2000 {
				s.passed(n)
			}
		}
		s.silent()
	}
	if s.low != 2000 || s.told() {
		t.Errorf("found %d B, told %v; want 2000 B that no message named", s.low, s.told())
	}
}
