package design

import (
	"maps"
	"math"

	"pelt/model"
)

// Standard is what the tests of RFC 2544 that follow a search found.
type Standard struct {
	Falling []*model.Result // at falling shares of the flood's rate; the flood itself is all of it
	Bursts  []Burst         // the longest without loss of each repeat
	Unlost  bool            // no burst that was tried lost any
}

// Burst is packets of each flow as fast as they leave.
type Burst struct {
	Packets float64
	PPS     float64 // at which they left; NaN where even the shortest burst lost some
}

const (
	burstSeconds = 2    // of the longest burst that is tried: RFC 2544 section 26.4
	burstWidth   = 0.01 // of a burst that lost packets, between it and one that did not
)

// shares of the flood's rate fall in steps of at most a tenth of it: RFC 2544 section 26.3. Virtual links take floods of
// many times what they pass, so a tenth is not the end.
var shares = []float64{0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01}

// standard makes the tests of RFC 2544 that follow a search, as far as the results go.
func (s *search) standard(r *replayed) {
	if s.Bursts == 0 || len(r.seen) == 0 {
		return
	}
	s.fall(r)
	if flood := r.trials[0]; lost(flood) == 0 { // no burst is too long: RFC 9004 section 4
		r.Unlost, r.Bursts = true, []Burst{{sentAtLeast(flood, math.Inf(1)), flood.Flows[0].SendPPS}}
		return
	}
	for n := 0; n < s.Bursts && r.next == nil; n++ {
		s.burst(r, n)
	}
}

// want returns a valid trial; nil if there is none, which is then the next trial unless it was tried in vain.
func (s *search) want(r *replayed, c model.Cell, repeat int) *model.Result {
	t := s.ended[c.TrialName(repeat)]
	switch {
	case t.Result != nil && t.State == model.Valid:
		return t.Result
	case t.invalid <= s.design.Redo:
		r.next, r.repeat = c, repeat
	}
	return nil
}

func lost(t *model.Result) (n uint64) {
	for _, f := range t.Flows {
		n += f.Lost
	}
	return n
}

// fall lowers the rate from the flood's until two rates in a row lose nothing.
func (s *search) fall(r *replayed) {
	whole := 0
	for _, share := range shares {
		c := maps.Clone(r.cell)
		c["load_ratio"], c["measure_s"] = model.Number(share), model.Number(s.Goals[0].FinalSeconds)
		c["rate_pps"] = model.Number(max(math.Floor(share*r.seen[0].Load), 1))
		t := s.want(r, c, 0)
		if r.next != nil {
			return
		}
		if whole++; t == nil || lost(t) > 0 {
			whole = 0
		}
		if t != nil {
			r.Falling = append(r.Falling, t)
		}
		if whole == 2 {
			return
		}
	}
}

// burst bisects the length of bursts, from the longest on.
func (s *search) burst(r *replayed, repeat int) {
	most := max(math.Floor(burstSeconds*r.seen[0].Load), 1)
	least := float64(max(r.trials[0].Flows[0].Streams, 1))
	low, high, pps := 0.0, most+1, math.NaN() // passes whole, and does not
	for n := most; high-low > max(1, burstWidth*high) && n < high; n = max(math.Floor(math.Sqrt(max(low, 1)*high)), low+1, least) {
		c := maps.Clone(r.cell)
		c["packets"], c["warmup_s"], c["measure_s"] = model.Number(n), model.Number(0), model.Number(burstSeconds)
		t := s.want(r, c, repeat)
		if t == nil || len(t.Flows) == 0 {
			return
		}
		sent := sentAtLeast(t, n) // less of the longest, where its time is over
		if lost(t) > 0 {
			high = sent
			continue
		}
		if sent <= low { // a burst that was not sent
			return
		}
		if low, pps = sent, t.Flows[0].SendPPS; n == most {
			r.Unlost = true
			break
		}
	}
	r.Bursts = append(r.Bursts, Burst{low, pps})
}

// sentAtLeast is what each flow of a trial sent, n packets at most.
func sentAtLeast(t *model.Result, n float64) float64 {
	for _, f := range t.Flows {
		n = min(n, float64(f.Attempted))
	}
	return n
}
