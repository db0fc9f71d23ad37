package design

import (
	"maps"
	"math"
	"slices"

	"pelt/model"
)

// search looks for the rates that meet goals: first every flood of its grid, then a search for each cell of it, then
// the loads that follow the search. It replays each search from the results, so a cut run goes on as it was.
type search struct {
	*grid
	model.Search
	question Question
	searched []flood
	floods   map[string][]*model.Result // trials that search no rate, by the key of their cell

	at    int       // this search is under way: those before have no trial left
	now   *replayed // the search under way; nil: not yet replayed
	asked string    // the trial that Next returned last
}

// flood is a cell of the grid that a search begins with.
type flood struct {
	model.Cell
	most float64 // packets a second of each flow that the plan allows
}

func newSearch(p model.Plan, floods *grid) *search {
	s := &search{grid: floods, Search: *p.Design.Search, floods: map[string][]*model.Result{},
		question: Question{Goals: p.Design.Search.Goals, MinLoad: p.Design.Search.MinPPS}}
	for _, c := range floods.cells {
		t, err := p.Trial(c, 0)
		_, paced := c["rate_pps"]
		other := func(f model.Flow) bool { return f.Protocol != model.UDP || f.Packets > 0 }
		if err != nil || paced || slices.ContainsFunc(t.Flows, other) {
			continue
		}
		most := math.Inf(1)
		for _, f := range t.Flows {
			if pps, asked := f.Rate.PPS(f.PayloadBytes); asked {
				most = min(most, pps)
			}
		}
		s.searched = append(s.searched, flood{c, most})
	}
	return s
}

// times returns how many searches are made of each cell.
func (s *search) times() int { return max(s.Searches, 1) }

// Total is 0: how many trials a search takes depends on what they find.
func (s *search) Total() int { return 0 }

func (s *search) Add(r *model.Result) {
	s.grid.Add(r)
	if s.asked == "" || s.asked != r.Cell.TrialName(r.Repeat) { // it may be of a search that was replayed without it
		s.at, s.now = 0, nil
	}
	if !r.Cell.Searching() && r.State != model.Aborted {
		s.floods[r.Cell.Key()] = append(s.floods[r.Cell.Key()], r)
	}
}

func (s *search) Next() (model.Cell, int, bool) {
	cell, repeat, more := s.grid.Next()
	for ; !more && s.at < s.times()*len(s.searched); s.at++ {
		if s.now == nil {
			s.now = s.beginAt(s.at)
		}
		r := s.replay(s.now)
		if cell, repeat, more = r.next, r.repeat, r.next != nil; !more {
			cell, repeat, more = s.follow(r)
		}
		if more {
			break
		}
		s.now = nil
	}
	s.asked = ""
	if more {
		s.asked = cell.TrialName(repeat)
	}
	return cell, repeat, more
}

// replayed is a search as far as the results go.
type replayed struct {
	cell   model.Cell // of the grid, with the number of the search where there are several
	most   float64    // as of its flood
	seen   []Observation
	trials []*model.Result // that were seen
	used   map[string]int  // trials of a cell that were seen
	next   model.Cell      // of the next trial; nil: there is none, or no flood to begin with
	repeat int

	answered bool
}

// beginAt begins search number `at` of the run.
func (s *search) beginAt(at int) *replayed {
	return s.begin(s.searched[at%len(s.searched)], at/len(s.searched)+1)
}

// begin begins a search with its flood, if there is one.
func (s *search) begin(of flood, number int) *replayed {
	r := &replayed{cell: maps.Clone(of.Cell), most: of.most, used: map[string]int{}}
	flood := floodOf(s.floods[of.Cell.Key()], number)
	if flood == nil {
		return r
	}
	if s.times() > 1 {
		r.cell["search"] = model.Number(float64(number))
	}
	r.add(flood, true)
	return r
}

// replay goes on with a search as far as the results go.
func (s *search) replay(r *replayed) replayed {
	for len(r.seen) > 0 {
		load, seconds, more := s.question.nextLoad(r.seen)
		if !more {
			whole := *r
			whole.answered = true
			return whole
		}
		cell := maps.Clone(r.cell)
		cell["rate_pps"], cell["measure_s"] = model.Number(load), model.Number(max(math.Round(seconds*100), 1)/100)
		key := cell.Key()
		trial := s.ended[cell.TrialName(r.used[key])].Result
		if trial == nil {
			so := *r
			so.next, so.repeat = cell, r.used[key]
			return so
		}
		r.used[key]++
		r.add(trial, false)
	}
	return *r
}

func (r *replayed) add(t *model.Result, flood bool) {
	o := observe(t, flood)
	if flood && o.Load >= (1-mostUnsent)*r.most {
		o.Load, o.Most = min(o.Load, r.most), true
	}
	r.seen, r.trials = append(r.seen, o), append(r.trials, t)
}

// addAll adds the trials of a search that were not seen, in the order in which they were made.
func (r *replayed) addAll(done []model.Result) {
	for i := range done {
		t := &done[i]
		cell := maps.Clone(t.Cell)
		delete(cell, "rate_pps")
		delete(cell, "measure_s")
		if t.Cell.Searching() && t.State != model.Aborted && cell.Equal(r.cell) && !slices.Contains(r.trials, t) {
			r.add(t, false)
		}
	}
}

// floodOf returns the flood that begins search number `number`, of all trials of its cell: the valid one of that
// repeat or the last before it. An invalid flood counts if there is no valid one: it still shows the sender's rate.
func floodOf(trials []*model.Result, number int) (flood *model.Result) {
	for _, r := range trials {
		sent := len(r.Flows) > 0 && !slices.ContainsFunc(r.Flows,
			func(f model.FlowResult) bool { return f.Attempted == 0 })
		if sent && (flood == nil || r.State == model.Valid && (flood.State != model.Valid || r.Repeat <= number-1)) {
			flood = r
		}
	}
	return flood
}

// fullCore is the share of a core from which on a thread that is late has itself to blame, not other work.
const fullCore = 0.9

// mostUnsent is the share of a load that a sender may leave out before the trial says nothing of that load.
const mostUnsent = 0.005

// A queue has grown if packets came out of it for longer than they went in, by this time, this share of it, and more
// than the delay differs from packet to packet: all of a uniform jitter is three times that of RFC 3550.
const (
	grownSeconds = 0.004
	grownRatio   = 0.005
	grownJitter  = 4
)

// An invalid trial is made again for as long as it lasted, as stored searches were, unless that is off the time that
// was asked by more than this share.
const mostOff = 0.1

// Waiting is the share of the packets that arrived of which a queue on the path let none out while the sender sent.
// It is above 0 also by chance: a packet may wait anywhere.
func Waiting(f *model.FlowResult) float64 {
	if kept := f.SendPPS * (1 - f.LossRatio); kept > 0 {
		return max(1-f.ReceivePPS/kept, 0)
	}
	return 0
}

// observe is a trial as its search sees it. What a queue of the sender's own host held back is lost to its host; what
// is left in a queue that grew is lost to the path: a longer trial would fill it.
func observe(t *model.Result, flood bool) Observation {
	invalid := t.State != model.Valid
	o := Observation{Load: t.Cell["rate_pps"].Number, Unsent: invalid, Starved: t.Starved(), Flood: flood}
	var intended, lost, atEnds, late float64
	busy := false // a sending thread had its core all the time
	sent := math.Inf(1)
	for _, f := range t.Flows {
		o.Seconds = max(o.Seconds, f.DurationS)
		intended, lost = intended+float64(f.Attempted), lost+float64(f.Lost)
		sent = min(sent, f.SendPPS)
		busy = busy || f.SenderCPU.ThreadRatio > fullCore || f.SenderCPU.ThreadRatio == 0 // not read
		grown := max(grownSeconds, grownRatio*f.DurationS, grownJitter*f.JitterNS/1e9)
		if left := Waiting(&f); !flood && left*f.DurationS > grown {
			lost += left * float64(f.Attempted-f.Lost)
		}
		for _, l := range f.Ledger.Lines {
			if l.Layer != model.LayerNetwork {
				atEnds += float64(l.Packets)
			}
		}
		for _, l := range f.Ledger.Pacing {
			switch n := float64(l.Packets); {
			case l.Cause == model.PacingLate:
				late += n
			case flood:
			case l.Cause == model.PacingQuiet:
				intended, lost = intended+n, lost+n
			default:
				intended, lost, atEnds = intended+n, lost+n, atEnds+n
			}
		}
	}
	if flood {
		o.Load = sent
	}
	asked := t.Cell["measure_s"].Number
	if o.Unsent && !flood && math.Abs(o.Seconds-asked) > mostOff*asked { // its account is wrong, or it stalled
		o.Seconds = asked
	}
	if !flood && !invalid && late > mostUnsent*(intended+late) {
		o.Unsent, o.Starved = true, !busy
	}
	if o.Unsent && !flood {
		intended, lost = intended+late, lost+late
	}
	o.Loss, o.EndLoss = lost/max(intended, 1), min(atEnds, lost)/max(intended, 1)
	return o
}

// follow returns the next trial at a share of the rate that a search found.
func (s *search) follow(r replayed) (model.Cell, int, bool) {
	return newGrid(s.design, s.loads(r), s.index).Next()
}

// loads returns the cells at shares of the rate that a search found.
func (s *search) loads(r replayed) (cells []model.Cell) {
	if len(s.Loads) == 0 || len(r.seen) == 0 {
		return nil
	}
	found := s.found(r)
	if !(found > 0) {
		return nil
	}
	up, down := s.eachWay(r, found)
	idle := max(1, min(math.Floor(found/100), model.IdlePPS)) // of a slow path 100 packets a second are a load
	for _, share := range s.Loads {
		if share*max(up, down) > r.most {
			continue
		}
		c := maps.Clone(r.cell)
		c["load_ratio"] = model.Number(share)
		c["rate_pps"] = model.Number(max(math.Round(share*up), idle))
		if up != down {
			c["return_pps"] = model.Number(max(math.Round(share*down), idle))
		}
		cells = append(cells, c)
	}
	return cells
}

// found is the highest rate of a flow without too much loss, by the first goal.
func (s *search) found(r replayed) float64 {
	return s.question.bounds(s.question.Goals[0], r.seen).Throughput
}

// A way has a limit of its own if it carries this share beside the other of what it carries alone. Ways are unequal if
// one carries less than this share of the other.
const ownLimit = 0.9

// eachWay returns the rates of flows up and down that are a load of 1. Both ways together are searched at one rate, so
// the slower one ends that search. If that is its own limit, the faster one has its own rate: else a load would leave
// it idle. Ways that share a limit, as a processor or a radio channel, have the one rate that was found.
func (s *search) eachWay(r replayed, found float64) (up, down float64) {
	if r.cell["direction"].Text == "both" {
		up, down = s.alone(r.cell, "up"), s.alone(r.cell, "down")
	}
	slower, faster := min(up, down), max(up, down)
	switch {
	case !(slower > 0) || found < ownLimit*slower || slower >= ownLimit*faster || faster > r.most:
		return found, found
	case up < down:
		return found, down
	}
	return up, found
}

// alone is what the search number of a cell found in another direction; 0 if it has not ended.
func (s *search) alone(cell model.Cell, direction string) float64 {
	cell = maps.Clone(cell)
	cell["direction"] = model.Word(direction)
	for at := range s.times() * len(s.searched) {
		if begun := s.beginAt(at); begun.cell.Equal(cell) {
			if r := s.replay(begun); r.answered {
				return s.found(r)
			}
		}
	}
	return 0
}

// Answer is what a search found for one goal.
type Answer struct {
	Cell model.Cell // what was searched, with the number of the search where there are several
	Goal model.Goal
	Bounds
	Done   bool            // it was searched to its end
	Trials []*model.Result // of the search, the flood first
	Seen   []Observation   // what the search made of them
}

// Failed counts the trials at a load that lost more than the goal allows.
func (a Answer) Failed(load float64) (n int) {
	for _, o := range a.Seen {
		if o.Load == load && !o.Flood && !o.Unsent && o.Loss > a.Goal.LossRatio {
			n++
		}
	}
	return n
}

// Answers are what the searches of a run found, in the order of their cells and goals. Searches that did not begin
// have none. No further trial comes to a complete run.
func Answers(p model.Plan, done []model.Result, complete bool) (out []Answer) {
	if p.Design.Search == nil || p.Check() != nil { // of a file from outside
		return nil
	}
	d, err := New(p)
	if err != nil {
		return nil // the plan is of another version
	}
	s := d.(*search)
	for i := range done {
		s.Add(&done[i])
	}
	for _, cell := range s.searched {
		for n := range s.times() {
			r := s.replay(s.begin(cell, n+1))
			if len(r.seen) == 0 {
				continue
			}
			question := s.question
			dead := len(done) > 0 && model.Reasons(done[len(done)-1].Why).Has(model.NothingThrough)
			if complete && !dead && (!r.answered || question.gaveUp(r.seen)) { // by the rules of another version, say
				question.over, r.answered = true, true
				r.addAll(done)
			}
			for _, g := range s.Goals {
				out = append(out, Answer{r.cell, g, question.bounds(g, r.seen), r.answered, r.trials, r.seen})
			}
		}
	}
	return slices.Clip(out)
}
