package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"pelt/analysis/internal/stats"
	"pelt/model"
)

// isSweep reports whether a run looks for the best of many cells: what makes a
// curve of sizes is not asked of it.
func isSweep(doc model.Document) bool { return doc.Plan.Command == "sweep" }

// spot is one cell of a sweep with its valid repeats.
type spot struct {
	cell      model.Cell
	payload   int // bytes
	fragments int // IP packets per datagram; 1 is whole
	family    int // 4 or 6
	packet    int // bytes of the path's largest IP packet; 0 is unknown
	protocol  model.Protocol
	trials    []sweepTrial // ascending repeats
	speed     float64      // mean over the repeats: payload bit/s received, of all flows and receivers together
	sent      float64      // the same of what left
	attempted float64      // packets, over all repeats
	lost      float64
}

type sweepTrial struct {
	repeat int
	speed  float64
	sent   float64
	result model.Result
}

// loss is the ratio over all repeats.
func (s spot) loss() float64 { return min(1, s.lost/max(s.attempted, 1)) }

func (s spot) whole() bool { return s.fragments <= 1 }

// speeds are those of the repeats.
func (s spot) speeds() []float64 {
	var all []float64
	for _, t := range s.trials {
		all = append(all, t.speed)
	}
	return all
}

// at returns the trial of a repeat.
func (s spot) at(repeat int) (sweepTrial, bool) {
	i := slices.IndexFunc(s.trials, func(t sweepTrial) bool { return t.repeat == repeat })
	if i < 0 {
		return sweepTrial{}, false
	}
	return s.trials[i], true
}

// point lends the trials to what tells the causes of loss.
func (s spot) point() point {
	var p point
	for _, t := range s.trials {
		for _, f := range t.result.Flows {
			p.trials = append(p.trials, trial{t.repeat, t.result.Engine, f})
		}
	}
	return p
}

// mostSpeed is more than any path carries, in bit/s: what claims more is no measurement.
const mostSpeed = 1e15

// spots groups a document's valid trials by cell, in the order of the plan's
// levels: whatever order the results came in, the same comes out.
func spots(doc model.Document) []spot {
	groups := map[string]*spot{}
	for _, r := range doc.Results {
		t, ok := sweepTrialOf(r)
		if !ok {
			continue
		}
		key := r.Cell.Key()
		if groups[key] == nil {
			groups[key] = &spot{cell: r.Cell}
		}
		groups[key].trials = append(groups[key].trials, t)
	}
	var all []spot
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		g := groups[key]
		g.measure(doc)
		all = append(all, *g)
	}
	slices.SortStableFunc(all, func(a, b spot) int { return compareCells(doc.Plan, a.cell, b.cell) })
	return all
}

// sweepTrialOf adds up the flows of a trial; ok is false if it says nothing.
func sweepTrialOf(r model.Result) (t sweepTrial, ok bool) {
	if r.State != model.Valid {
		return t, false
	}
	t.repeat, t.result = r.Repeat, r
	var attempted float64
	for _, f := range r.Flows {
		t.speed += f.GoodputBPS
		sent := f.SendGoodputBPS
		if sent == 0 && f.Protocol != model.TCP { // runs of before did not say
			sent = f.SendPPS * 8 * float64(f.PayloadBytes)
		}
		t.sent += sent
		attempted += float64(f.Attempted)
	}
	known := func(x float64) bool { return x >= 0 && x < mostSpeed }
	return t, attempted > 0 && known(t.speed) && known(t.sent)
}

func (s *spot) measure(doc model.Document) {
	slices.SortFunc(s.trials, func(a, b sweepTrial) int {
		return cmp.Or(cmp.Compare(a.repeat, b.repeat), cmp.Compare(a.speed, b.speed), cmp.Compare(a.sent, b.sent), a.result.Started.Compare(b.result.Started))
	})
	s.ofOneEngine()
	var sent []float64
	for _, t := range s.trials {
		sent = append(sent, t.sent)
		for _, f := range t.result.Flows {
			s.attempted, s.lost = s.attempted+float64(f.Attempted), s.lost+float64(f.Lost)
			s.payload, s.fragments = max(s.payload, f.PayloadBytes), max(s.fragments, f.Fragments)
			s.protocol, s.family = f.Protocol, familyOf(f)
		}
	}
	s.packet = packetBytes(doc, "")
	if s.fragments == 0 && s.protocol == model.UDP {
		s.fragments = model.Fragments(s.family, s.payload, s.packet)
	}
	s.speed, s.sent = stats.Mean(s.speeds()), stats.Mean(sent)
}

// familyOf is the IP version that a flow's frames are of: 4 or 6.
func familyOf(f model.FlowResult) int {
	if f.FrameBytes == model.FrameBytes(f.Protocol, 6, f.PayloadBytes) && f.FrameBytes != model.FrameBytes(f.Protocol, 4, f.PayloadBytes) {
		return 6
	}
	return 4
}

// ofOneEngine keeps the repeats of the engine that carried most of them: what
// another measured is another thing.
func (s *spot) ofOneEngine() {
	count := map[string]int{}
	most := ""
	for _, t := range s.trials {
		if count[t.result.Engine]++; count[t.result.Engine] >= count[most] {
			most = t.result.Engine
		}
	}
	s.trials = slices.DeleteFunc(s.trials, func(t sweepTrial) bool { return t.result.Engine != most })
}

// sweep returns what a sweep showed: the verdict first, then what it rests on.
func sweep(doc model.Document) []model.Finding {
	a := &analyst{doc: doc}
	all := spots(doc)
	if len(all) == 0 {
		return a.nothing()
	}
	best := bestSpot(all)
	if all[best].speed > 0 {
		a.best(all, best)
		a.ties(all, best)
		a.slowest(all, best)
		a.fragments(all)
		a.limit(all, best)
		a.conditions(all)
	}
	a.fairness(all)
	a.losses(all)
	a.changed()
	a.unfit()
	a.swallowed()
	a.engines()
	a.lab()
	a.invalid()
	found := append([]model.Finding{a.sweepVerdict(all, best)}, a.found...)
	for _, f := range found { // whatever a document holds
		maps.DeleteFunc(f.Values, func(_ string, x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	}
	return found
}

// sameSpeed is a difference, as a ratio, that is of rounding alone.
const sameSpeed = 1e-9

// bestSpot is the one with the highest mean speed; of equals the one that
// loses least, sends least, and comes first.
func bestSpot(all []spot) int {
	top := slices.MaxFunc(all, bySpeed).speed
	best := -1
	for i, s := range all {
		if s.speed < top*(1-sameSpeed) {
			continue
		}
		if best < 0 || cmp.Or(cmp.Compare(all[best].loss(), s.loss()), cmp.Compare(all[best].sent, s.sent)) > 0 {
			best = i
		}
	}
	return best
}

// tell adds a finding that speaks of cells.
func (a *analyst) tell(kind string, cells []model.Cell, values map[string]float64, format string, args ...any) {
	a.add(kind, values, format, args...)
	a.found[len(a.found)-1].Cells = cells
}

// sweepVerdict is the best cell in one line.
func (a *analyst) sweepVerdict(all []spot, best int) model.Finding {
	b := all[best]
	if b.speed == 0 {
		return model.Finding{Kind: KindVerdict, Text: "Nothing arrived in any setting.", Values: map[string]float64{}}
	}
	text := fmt.Sprintf("Best: %s: %s arrived, %s", b.words(), speedText(b.speed), lostText(b.loss()))
	if len(all) == 1 {
		text = fmt.Sprintf("%s: %s arrived, %s", b.words(), speedText(b.speed), lostText(b.loss()))
	}
	for _, f := range a.found {
		switch count := f.Values["not_separable_cells"]; {
		case f.Kind != KindSweepTies:
		case f.Values["repeats_needed"] > 0:
			text += "; measured too seldom to tell it from others"
		case count == 1:
			text += "; 1 other setting is not separable from it"
		case count > 1:
			text += fmt.Sprintf("; %.0f other settings are not separable from it", count)
		}
	}
	values := b.values()
	values["goodput_bps"], values["loss_ratio"] = b.speed, b.loss()
	return model.Finding{Kind: KindVerdict, Text: text + ".", Values: values, Cells: []model.Cell{b.cell}}
}
