package design

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
)

func goalsOf(t *testing.T, names ...string) (goals []model.Goal) {
	for _, name := range names {
		g, ok := model.NamedGoal(strings.TrimSuffix(name, "-pdr"))
		if !ok {
			t.Fatal(name)
		}
		if strings.HasSuffix(name, "-pdr") {
			g.LossRatio = 0.005
		}
		goals = append(goals, g)
	}
	return goals
}

// path is what a search measures: the observation of a trial at a load.
type path func(load, seconds float64, flood bool) Observation

// runSearch runs a search to its end, or to too many trials.
func runSearch(q Question, p path, most int) (seen []Observation, ended bool) {
	for len(seen) < most {
		load, seconds, more := q.nextLoad(seen)
		if !more {
			return seen, true
		}
		seen = append(seen, p(load, seconds, len(seen) == 0))
	}
	return seen, false
}

func secondsIn(seen []Observation) (sum float64) {
	for _, o := range seen {
		sum += o.Seconds
	}
	return sum
}

// simulated is a device of testdata/mlrsearch.py: change both or none.
type simulated struct {
	kind            string
	noise           uint64
	limit, phase    float64
	trials, seconds float64
}

const deviceMostLoad = 1e7

// draw returns a number in [0, 1), by splitmix64.
func draw(seed uint64, trial, n float64) float64 {
	x := seed*0x9E3779B97F4A7C15 + (uint64(trial)*16+uint64(n)+1)*0xD1B54A32D192ED03
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return float64((x^x>>31)>>11) / (1 << 53)
}

func poisson(mean, u float64) float64 {
	if mean > 30 {
		return math.Floor(mean)
	}
	term := math.Exp(-mean)
	total, k := term, 0.0
	for u >= total && k < 200 {
		k++
		term *= mean / k
		total += term
	}
	return k
}

func newSimulated(kind string, seed, noise int) *simulated {
	d := &simulated{kind: kind, noise: uint64(seed)*1000003 + uint64(noise)}
	d.limit = 2e5 * math.Exp(draw(uint64(seed), 0, 0)*math.Log(16))
	d.phase = draw(d.noise, 0, 1)
	return d
}

func (d *simulated) try(load, seconds float64, flood bool) Observation {
	if flood {
		load = deviceMostLoad
	}
	d.trials++
	middle := d.seconds + seconds/2
	d.seconds += seconds
	sent, limit, lost := math.Floor(load*seconds), d.limit, 0.0
	u, v := draw(d.noise, d.trials, 0), draw(d.noise, d.trials, 1)
	switch {
	case d.kind == "noisy" && u < 0.2:
		lost = 1 + math.Floor(sent*1e-4*v*v)
	case d.kind == "soft" || d.kind == "rare": // tenfold the loss for each 1.7 % of load
		ratio := 1e-6 * math.Pow(10, min((load/limit-1)*60, 6))
		mean := sent * ratio / (1 + ratio*50)
		if lost = math.Floor(mean); d.kind == "rare" {
			lost = poisson(mean, u)
		}
		limit *= 1.1
	case d.kind == "inverted" && load >= 0.95*limit && load <= 0.97*limit:
		lost = 1 + math.Floor(sent*1e-3)
	case d.kind == "drifting":
		limit *= 1 + 0.01*math.Sin(2*math.Pi*(middle/30+d.phase))
	case d.kind == "beyond":
		limit = 2 * deviceMostLoad
	case d.kind == "stalls": // of a core, three a second, while a ring of 256 packets fills
		limit = 1e6 * math.Exp(draw(d.noise/1000003, 0, 0)*math.Log(2))
		for i := range int(min(poisson(3*seconds, u), 14)) {
			stall := -0.25e-3 * math.Log(1-draw(d.noise, d.trials, 2+float64(i)))
			lost += max(0, math.Floor(stall*load-256))
		}
	}
	lost = min(sent, max(lost, sent-math.Floor(limit*seconds)))
	return Observation{Load: load, Seconds: seconds, Loss: lost / max(sent, 1), Flood: flood}
}

// leastSeconds is how many seconds the classification of RFC 9971 takes at the bounds that were found, if nothing else
// is tried.
func leastSeconds(goals []model.Goal, found []Bounds, d *simulated) float64 {
	var seen []Observation
	undecidedAt := func(load float64) (g model.Goal, yes bool) {
		for i, g := range goals {
			for _, t := range tallies(g, append(seen, Observation{Load: load, Unsent: true})) {
				c, _ := t.class(g)
				if t.load == load && c == undecided && (load == found[i].Lower || load == found[i].Upper) {
					return g, true
				}
			}
		}
		return g, false
	}
	for _, b := range found {
		for _, load := range []float64{b.Lower, b.Upper} {
			for load > 0 && (load != b.Upper || b.Limit == PathLimit) {
				g, yes := undecidedAt(load)
				if !yes {
					break
				}
				seconds := g.FinalSeconds
				if g.ExceedRatio == 0 && load == b.Upper {
					seconds = g.InitialSeconds
				}
				seen = append(seen, d.try(load, seconds, false))
			}
		}
	}
	return secondsIn(seen)
}

// compared is how a search does on one kind of device, beside the reference.
type compared struct {
	agree, self                                        int
	seconds, reference, floor, aboveUs, aboveReference []float64
}

func middle(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return (s[len(s)/2] + s[(len(s)-1)/2]) / 2
}

// referenceRows are the rows of testdata/mlrsearch.csv, or of a file with other seeds that REFERENCE names.
func referenceRows(t *testing.T) [][]string {
	name := "testdata/mlrsearch.csv"
	if other := os.Getenv("REFERENCE"); other != "" {
		name = other
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatal(len(rows), err)
	}
	return rows[1:]
}

// TestAgainstMLRsearch: a search finds what the reference finds, and spends less time above the least that the
// classification takes.
func TestAgainstMLRsearch(t *testing.T) {
	goals := map[string][]model.Goal{"ndr": goalsOf(t, "csit"), "ndr+pdr": goalsOf(t, "csit", "csit-pdr"),
		"rfc2544": goalsOf(t, "rfc2544"), "quick": goalsOf(t, "quick")}
	all, names := map[string]*compared{}, []string{}
	one := func(name string, row []string) {
		key := fmt.Sprintf("%-8s %-8s", name, row[1])
		if all[key] == nil {
			all[key], names = &compared{}, append(names, key)
		}
		var n [6]float64
		for i := range n {
			n[i], _ = strconv.ParseFloat(row[2+i], 64)
		}
		q := Question{Goals: goals[name], MinLoad: 9001}
		all[key].add(t, q, newSimulated(row[1], int(n[0]), 0), n)
	}
	for _, row := range referenceRows(t) {
		one(row[0], row)
		if row[0] == "ndr" {
			one("quick", row)
		}
	}
	var ratios []float64
	table := "search   device    agree itself seconds reference floor above above-reference\n"
	for _, key := range names {
		c := all[key]
		table += fmt.Sprintf("%s  %5d %6d %7.2f %9.1f %5.1f %5.2f %5.2f\n", key, c.agree, c.self,
			middle(c.seconds), middle(c.reference), middle(c.floor), middle(c.aboveUs), middle(c.aboveReference))
		name, kind, _ := strings.Cut(strings.TrimSpace(key), " ")
		kind = strings.TrimSpace(kind)
		count := len(c.seconds)
		want := count - count/20
		if c.self < want { // the device's own noise decides: two counts differ by so much by chance
			want = c.self - count*3/20
		}
		if name != "quick" && c.agree < want {
			t.Errorf("%s: %d of %d agree, want %d", key, c.agree, count, want)
		}
		if name == "ndr" {
			ratios = append(ratios, middle(c.aboveUs)/middle(c.aboveReference))
		}
		if name == "quick" && (kind == "sharp" || kind == "noisy") && middle(c.seconds) > 8 {
			t.Errorf("%s: %.2f s, want 8", key, middle(c.seconds))
		}
	}
	t.Log("\n" + table)
	if r := middle(ratios); !(r <= 0.5) {
		t.Errorf("%.2f of the reference's seconds above the floor, in the median of the devices: %.2f", r, ratios)
	}
}

// add runs a search on a device. row are the numbers of the reference: the seed, its seconds, its lower bounds of the
// first and the last goal, and these bounds with other noise and other loads on the way.
func (c *compared) add(t *testing.T, q Question, d *simulated, row [6]float64) {
	seed, reference, lower, again := int(row[0]), row[1], row[2:4], row[4:6]
	seen, ended := runSearch(q, d.try, 1000)
	if !ended {
		t.Fatalf("%s, seed %d: no end", d.kind, seed)
	}
	var found []Bounds
	agree, self := 1, 1
	for i, g := range q.Goals {
		b := q.bounds(g, seen)
		found = append(found, b)
		if !(math.Abs(b.Lower-lower[i]) <= g.WidthRatio*max(b.Lower, lower[i])) {
			agree = 0
		}
		if !(math.Abs(again[i]-lower[i]) <= g.WidthRatio*max(again[i], lower[i])) {
			self = 0
		}
	}
	least := leastSeconds(q.Goals, found, newSimulated(d.kind, seed, 2))
	c.agree, c.self = c.agree+agree, c.self+self
	c.seconds, c.reference, c.floor = append(c.seconds, secondsIn(seen)), append(c.reference,
		reference), append(c.floor, least)
	c.aboveUs, c.aboveReference = append(c.aboveUs, secondsIn(seen)-least), append(c.aboveReference, reference-least)
}

// A search ends whatever a device does, tries only what it may, finds bounds that its trials prove, and goes on from
// any point of it as it would have gone on uncut.
func TestSearchProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var goals []model.Goal
		for _, name := range rapid.SampledFrom([][]string{{"quick"}, {"csit"}, {"rfc2544"}, {"quick", "csit"},
			{"csit", "csit"}}).Draw(t, "goals") {
			g, _ := model.NamedGoal(name)
			if len(goals) > 0 {
				g.LossRatio = 0.005
			}
			goals = append(goals, g)
		}
		q := Question{Goals: goals, MinLoad: rapid.SampledFrom([]float64{1, 10, 1000, 9001}).Draw(t, "least")}
		p := anyPath(t, q.MinLoad)
		seen, ended := runSearch(q, p, mostTrials*len(goals)+2)
		if !ended {
			t.Fatalf("no end after %d trials: %+v", len(seen), seen)
		}
		most := math.Floor(seen[0].Load)
		for i, o := range seen {
			if (i == 0) != o.Flood || i > 0 &&
				(o.Load != math.Floor(o.Load) || o.Load < q.MinLoad || o.Load > most || !(o.Seconds > 0)) {
				t.Fatalf("trial %d: %+v", i, o)
			}
		}
		cut := rapid.IntRange(1, len(seen)).Draw(t, "cut")
		load, seconds, more := q.nextLoad(slices.Clone(seen[:cut]))
		if more != (cut < len(seen)) || more && (load != seen[cut].Load || seconds != seen[cut].Seconds) {
			t.Fatalf("cut before trial %d: %v for %v s, %v", cut, load, seconds, more)
		}
		for _, g := range goals {
			if q.gaveUp(seen) {
				break
			}
			checkBounds(t, g, q.MinLoad, seen, q.bounds(g, seen))
		}
	})
}

// anyPath is a device that may do anything, sensible or not.
func anyPath(t *rapid.T, least float64) path {
	unit := rapid.Float64Range(0, 1)
	seed := rapid.Uint64().Draw(t, "seed")
	greatest := least * math.Exp(7*unit.Draw(t, "greatest"))
	limit := greatest * unit.Draw(t, "limit")
	slope := rapid.SampledFrom([]float64{0, 1e-3, 0.1, 1}).Draw(t, "slope") * unit.Draw(t, "slope of loss")
	noise := rapid.SampledFrom([]float64{0, 0.1, 0.5, 0.9, 1}).Draw(t, "noise")
	byLoad := rapid.Bool().Draw(t, "a load always does the same")
	unsent := rapid.SampledFrom([]float64{0, 0, 0.05, 0.5, 1}).Draw(t, "unsent")
	n := 0.0
	return func(load, seconds float64, flood bool) Observation {
		n++
		if flood {
			load = greatest
		}
		key := n
		if byLoad {
			key = load
		}
		o := Observation{Load: load, Seconds: seconds, Flood: flood, Loss: max(0, 1-limit/load) * slope}
		if draw(seed, key, 0) < noise {
			o.Loss = draw(seed, key, 1) * draw(seed, key, 2) * 0.02
		}
		o.EndLoss = o.Loss * math.Round(draw(seed, key, 3))
		o.Unsent = !flood && draw(seed, key, 4) < unsent
		o.Starved = o.Unsent && draw(seed, key, 5) < 0.5
		return o
	}
}

// checkBounds checks an answer by its meaning: no load is better proven than the two, and no work is left between them.
func checkBounds(t *rapid.T, g model.Goal, least float64, seen []Observation, b Bounds) {
	var best, worst float64 = math.NaN(), math.NaN()
	for _, s := range tallies(g, seen) {
		c, _ := s.class(g)
		if c == upper && math.IsNaN(worst) {
			worst = s.load
		}
		if c == lower && math.IsNaN(worst) {
			best = s.load
		}
	}
	most := worst
	if math.IsNaN(worst) {
		most = seen[0].Load
		if b.Limit != FloodLimit {
			t.Fatalf("limit of the flood: %+v", b)
		}
	}
	if !same(b.Lower, best) || !same(b.Upper, worst) {
		t.Fatalf("%+v, want %v and %v", b, best, worst)
	}
	if math.IsNaN(best) {
		if most > least && seen[0].Load >= least {
			t.Fatalf("no lower bound, but %v was not tried: %+v", least, b)
		}
		return
	}
	if b.Throughput > best || b.Throughput < best*(1-g.LossRatio) || seen[b.Quantile].Load != best {
		t.Fatalf("throughput: %+v", b)
	}
	if most-b.Lower > g.WidthRatio*most+1 {
		t.Fatalf("too wide: %+v", b)
	}
}

// TestStarvedSender: where other work takes the sender's CPU in half of all trials, a search finds the path's limit all
// the same, with about twice the trials. Where it takes more, a search ends after a few times its trials, and knows less:
// what it could not find out it does not claim. Bursts of a late sender lose packets; no answer names them as a limit of
// the path.
func TestStarvedSender(t *testing.T) {
	q := Question{Goals: goalsOf(t, "quick"), MinLoad: 9001}
	for _, c := range []struct {
		starved     float64 // share of the trials
		found, long float64 // least share of the searches that find the limit; most seconds, as a multiple
	}{{0.5, 0.9, 3}, {0.8, 0.4, 3.5}, {0.9, 0, 3}, {1, 0, 3}} {
		const searches = 500
		found, wrong, unknown, quiet, busy, longest := 0, 0, 0, 0.0, 0.0, 0.0
		least := math.Inf(1) // share of the limit that a search says is carried
		for seed := range searches {
			d := newSimulated("sharp", seed, 0)
			limit := d.limit
			seen, _ := runSearch(q, d.try, 1000)
			alone := secondsIn(seen)
			quiet += alone
			seen, _ = runSearch(q, func(load, seconds float64, flood bool) Observation {
				o := d.try(load, seconds, flood)
				if !flood && draw(d.noise, d.trials, 3) < c.starved {
					o.Unsent, o.Starved, o.Loss = true, true, 0.1
				}
				return o
			}, 1000)
			busy += secondsIn(seen)
			longest = max(longest, secondsIn(seen)/alone)
			b := q.bounds(q.Goals[0], seen)
			if b.Regular && b.Lower <= limit && limit <= b.Upper {
				found++
			}
			if b.Lower > limit || b.Limit == PathLimit && b.Upper < limit {
				wrong++
			}
			if b.Lower > 0 {
				least = min(least, b.Lower/limit)
			} else {
				unknown++
			}
		}
		t.Logf("%g of the trials starved: of %d searches %d found the limit, %d know nothing, %d are wrong; "+
			"%.2f times the seconds, at most %.1f; at least %.2f of the limit", c.starved, searches, found, unknown, wrong,
			busy/quiet, longest, least)
		if float64(found) < c.found*searches || busy > c.long*quiet || longest > 7 || wrong > 0 || least < 0.9 ||
			c.starved == 1 && unknown < searches {
			t.Error("a starved sender misleads the search, or makes it long")
		}
	}
}

// TestLateSender: a search takes few trials to find the limit of a sender, also of one whose limit differs from trial
// to trial. A sender that is late by chance is seldom taken for the limit where the path is. No answer is wider for it.
func TestLateSender(t *testing.T) {
	const searches, flood = 200, 3 // a flood sends so many times what the sender keeps
	for _, c := range []struct {
		goal    string
		kind    string
		chance  float64 // share of the trials that are late at any load
		spread  float64 // of the sender's own limit, as a logarithm; 0: it has none
		power   float64 // it keeps this power of the part of a load that it could keep; 0: all but a little
		starved float64 // share of the late trials
		trials  float64 // of a search in the mean, at most
		limits  float64 // share of the searches that the sender ends, at most
	}{
		{"quick", "sharp", 0.05, 0, 0, 0, 7.5, 0.01},
		{"quick", "sharp", 0.1, 0, 0, 0, 8, 0.03},
		{"quick", "sharp", 0.2, 0, 0, 0, 9, 0.12},
		{"quick", "noisy", 0.1, 0, 0, 0, 11, 0.05},
		{"quick", "soft", 0.1, 0, 0, 0, 14, 0.04},
		{"quick", "beyond", 0, 0.001, 1, 0, 10, 1},
		{"quick", "beyond", 0, 0.03, 1, 0, 20, 1},
		{"quick", "beyond", 0, 0.03, 1, 0.5, 30, 1},
		{"quick", "beyond", 0, 0.1, 1, 0, 28, 1},
		{"quick", "beyond", 0, 0.03, 2, 0, 40, 1},
		{"quick", "beyond", 0, 0.03, 0, 0, 42, 1},
		{"csit", "sharp", 0.1, 0, 0, 0, 29, 0.03},
		{"csit", "sharp", 0.2, 0, 0, 0, 32, 0.15},
		{"csit", "beyond", 0, 0.001, 1, 0, 24, 1},
		{"csit", "beyond", 0, 0.03, 1, 0, 50, 1},
		{"csit", "beyond", 0, 0.03, 1, 0.5, 70, 1},
	} {
		q := Question{Goals: goalsOf(t, c.goal), MinLoad: 9001}
		trials, unsent, limits, least := 0, 0, 0, math.Inf(1)
		for seed := range searches {
			d := newSimulated(c.kind, seed, 0)
			own := d.limit
			seen, _ := runSearch(q, func(load, seconds float64, first bool) Observation {
				o := d.try(load, seconds, first)
				u, v := draw(d.noise, d.trials, 10), draw(d.noise, d.trials, 11)
				late := 0.0
				if keeps := own * math.Exp(c.spread*math.Log(u/(1-u))); c.spread > 0 && keeps < load {
					late = max(0.006, 1-math.Pow(keeps/load, c.power))
				}
				if draw(d.noise, d.trials, 12) < c.chance {
					late = 0.006 + 0.3*v*v*v
				}
				switch {
				case first && c.spread > 0:
					o.Load = flood * own
				case !first && late > 0:
					o.Unsent, o.Starved, o.Loss = true, draw(d.noise, d.trials, 13) < c.starved, late
				}
				return o
			}, 1000)
			trials += len(seen)
			for _, o := range seen {
				if o.Unsent {
					unsent++
				}
			}
			b := q.bounds(q.Goals[0], seen)
			if b.Limit == SenderLimit {
				limits++
			}
			if least = min(least, b.Lower/own); b.Upper-b.Lower > q.Goals[0].WidthRatio*b.Upper+1 {
				t.Errorf("%+v, seed %d: %+v", c, seed, b)
			}
		}
		each, share := float64(trials)/searches, float64(limits)/searches
		t.Logf("%+v: %.1f trials, %.1f of them unsent; the sender ends %.3f; at least %.2f of the limit", c, each,
			float64(unsent)/searches, share, least)
		if each > c.trials || share > c.limits {
			t.Error("too many")
		}
	}
}
