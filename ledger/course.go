package ledger

import (
	"sort"

	"pelt/model"
)

// Course says when packets were lost, by the steps of the sender's series in which
// they had been sent. Those whose sequences are not known are in none.
type Course struct {
	Layer, Host, Cause string   // of a line; all "" of all that was lost
	Lost               []uint64 // by step, as many as Input.PerStep has
}

// clock tells in which step a sequence was sent. Streams take turns, so what a flow
// has sent by the end of a step is shared evenly by them, to within a burst.
type clock struct {
	ends    []float64 // of each step: the share of all packets attempted by then
	streams []uint64  // attempted by each
}

func newClock(in Input) clock {
	total := uint64(0)
	for _, n := range in.PerStep {
		total = plus(total, n)
	}
	c := clock{streams: in.Streams}
	if total == 0 {
		return c
	}
	sum := uint64(0)
	for _, n := range in.PerStep {
		sum = plus(sum, n)
		c.ends = append(c.ends, float64(sum)/float64(total))
	}
	return c
}

// count adds a run of sequences of one stream to the steps they were sent in.
func (c clock) count(steps []uint64, stream int, from, n uint64) []uint64 {
	if len(c.ends) == 0 || stream >= len(c.streams) || c.streams[stream] == 0 {
		return steps
	}
	if steps == nil {
		steps = make([]uint64, len(c.ends))
	}
	all, last := c.streams[stream], len(c.ends)-1
	step := min(sort.Search(len(c.ends), func(i int) bool { return c.first(i, all) > from }), last)
	for n > 0 {
		here := n
		if step < last {
			here = min(n, minus(c.first(step, all), from))
		}
		steps[step] += here
		from, n, step = from+here, n-here, step+1
	}
	return steps
}

// first is the first sequence of a stream after a step.
func (c clock) first(step int, all uint64) uint64 { return uint64(c.ends[step]*float64(all) + 0.5) }

// courses are when what the lines tell was lost; none if a list of missing sequences was
// full or left out: later steps would look as if nothing was lost in them.
func (b *book) courses(lines []model.Line) []Course {
	if b.join.steps == nil || b.join.unlisted > 0 {
		return nil
	}
	list := []Course{{Lost: b.join.steps}}
	for _, l := range lines {
		var steps []uint64
		for _, c := range b.claims {
			if c.taken == 0 || c.steps == nil || c.layer != l.Layer || c.host != l.Host || c.cause != l.Cause {
				continue
			}
			if steps == nil {
				steps = make([]uint64, len(b.in.PerStep))
			}
			for i, n := range c.steps {
				steps[i] += n
			}
		}
		if steps != nil {
			list = append(list, Course{l.Layer, l.Host, l.Cause, steps})
		}
	}
	return list
}
