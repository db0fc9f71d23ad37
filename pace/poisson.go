package pace

import (
	"math"
	"slices"
	"sync"

	"pelt/unit"
)

// windowGaps is the length of a window in mean gaps. The number of packets in a window is drawn
// from the Poisson distribution, and they lie in it as so many independent uniform points do. That
// is the process exactly, and a window can be laid out knowing only the numbers of those before it.
const windowGaps = 1 << 12

// Poisson has independent gaps of the exponential distribution around the mean
// one. The same seed makes the same schedule.
func Poisson(mean unit.Schedule, seed uint64) Clock {
	p := &poisson{mean: mean, seed: seed, table: windowNumbers()}
	p.parts[1].window = math.MaxUint64
	p.draw(0)
	return p
}

type poisson struct {
	mean   unit.Schedule
	seed   uint64
	table  []uint64
	window uint64  // where the cursor stands
	parts  [2]part // window n is at n%2: a pacer looks back a little at the seam of two
}

// part is a window.
type part struct {
	window, key uint64
	before, in  uint64  // packets before it, and in it
	low, end    int64   // its time: from low on, before end
	at          float64 // ns after low of the last packet laid out
	times       []int64 // of those laid out so far, from the first on
}

func (p *poisson) here() *part { return &p.parts[p.window%2] }

// draw fills the part of the window where the cursor stands.
func (p *poisson) draw(before uint64) {
	w := p.here()
	key := Seed(p.seed, p.window)
	*w = part{window: p.window, key: key, before: before, in: draw(p.table, mix(key)), times: w.times[:0]}
}

func (p *poisson) forward() {
	before := p.here().before + p.here().in
	if p.window++; p.here().window != p.window {
		p.draw(before)
	}
}

func (p *poisson) back() {
	after := p.here().before
	if p.window--; p.here().window != p.window {
		p.draw(0)
		p.here().before = after - p.here().in
	}
}

// next lays out one packet more: the least of the uniform points that are left.
func (p *poisson) next(w *part) {
	done := uint64(len(w.times))
	if done == 0 {
		w.low, w.end = p.mean.Due(w.window*windowGaps), p.mean.Due((w.window+1)*windowGaps)
	}
	left := float64(w.end-w.low) - w.at
	w.at -= left * math.Expm1(math.Log(uniform(mix(w.key+(done+1)*golden)))/float64(w.in-done))
	w.times = append(w.times, min(w.low+int64(w.at), w.end-1))
}

func (p *poisson) Due(n uint64) int64 {
	for n < p.here().before {
		p.back()
	}
	for n-p.here().before >= p.here().in {
		if p.mean.Due(p.window*windowGaps) == math.MaxInt64 {
			return math.MaxInt64
		}
		p.forward()
	}
	w := p.here()
	for uint64(len(w.times)) <= n-w.before {
		p.next(w)
	}
	return w.times[n-w.before]
}

func (p *poisson) Count(elapsed int64) uint64 {
	if elapsed <= 0 {
		return 0
	}
	if w := p.here(); len(w.times) == 0 || elapsed <= w.low || elapsed > w.end {
		window := (p.mean.Count(elapsed) - 1) / windowGaps // the last that begins before
		for p.window > window {
			p.back()
		}
		for p.window < window {
			p.forward()
		}
	}
	w := p.here()
	for n := len(w.times); uint64(n) < w.in && (n == 0 || w.times[n-1] < elapsed); n++ {
		p.next(w)
	}
	n, _ := slices.BinarySearch(w.times, elapsed)
	return w.before + uint64(n)
}

func (p *poisson) Slots(phase int64) uint64 { return p.Count(phase) }

// End is never the time of the last slot itself, which the next may share.
func (p *poisson) End(n uint64) int64 { return max(p.Due(n), plus(p.Due(n-1), 1)) }

// windowLeast is the least number of packets that is drawn for a window: 11
// standard deviations below the mean, where less has a chance below 1e-27.
const windowLeast = windowGaps - 11*64

// windowNumbers is the Poisson distribution of windowGaps, cumulative, from
// windowLeast on: entry i is the chance in 2^-64 of at most windowLeast+i.
var windowNumbers = sync.OnceValue(func() []uint64 {
	const mean = float64(windowGaps)
	chances := make([]float64, 2*(windowGaps-windowLeast)+1)
	middle := len(chances) / 2
	chances[middle] = 1
	for i := middle; i > 0; i-- {
		chances[i-1] = chances[i] * float64(windowLeast+i) / mean
	}
	for i := middle; i < len(chances)-1; i++ {
		chances[i+1] = chances[i] * mean / float64(windowLeast+i+1)
	}
	total := 0.0
	for _, c := range chances {
		total += c
	}
	table, sum := make([]uint64, len(chances)), 0.0
	for i, c := range chances {
		sum += c
		if table[i] = math.MaxUint64; sum/total < 1 {
			table[i] = uint64(sum / total * (1 << 63) * 2)
		}
	}
	table[len(table)-1] = math.MaxUint64
	return table
})

// draw finds the number that a random word stands for.
func draw(table []uint64, word uint64) uint64 {
	low, high := 0, len(table)-1
	for low < high {
		if middle := (low + high) / 2; table[middle] > word {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return windowLeast + uint64(low)
}
