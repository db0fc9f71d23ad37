package pace

import (
	"math"
	"math/bits"
	"slices"
	"sync"

	"pelt/unit"
)

// A Poisson process is laid out in windows of windowGaps mean gaps, each of
// leaves of leafGaps. A window's number of packets is drawn from the Poisson
// distribution, a fair coin for each of them says in which half it lies, and so
// on down to the leaves, in which each has a place of its own. That is the
// process exactly (a Poisson number of independent uniform points), and any part
// of it can be had without the parts before it but for the windows' numbers.
const (
	windowGaps = 1 << 16
	leafGaps   = 1 << 4
	leaves     = windowGaps / leafGaps
)

// Poisson has independent gaps of the exponential distribution around the mean
// one. The same seed makes the same schedule.
func Poisson(mean unit.Schedule, seed uint64) Clock {
	p := &poisson{mean: mean, seed: seed, table: windowNumbers(), split: math.MaxUint64, leaf: math.MaxUint64}
	p.draw()
	return p
}

type poisson struct {
	mean  unit.Schedule
	seed  uint64
	table []uint64

	window   uint64 // where the cursor stands
	key      uint64 // of its random words
	before   uint64 // packets before it
	inWindow uint64 // in it

	split    uint64             // the window that starts is of
	starts   [leaves + 1]uint32 // packets of that window before each of its leaves
	leaf     uint64             // of all windows, that times is of
	first    uint64             // packet of it
	low, end int64              // its time: from low on, before end
	times    []int64
}

func (p *poisson) draw() {
	p.key = Seed(p.seed, p.window)
	p.inWindow = draw(p.table, mix(p.key))
}

func (p *poisson) forward() {
	p.before += p.inWindow
	p.window++
	p.draw()
}

// back is cheap, too: a pacer looks back a little at the seam of two windows.
func (p *poisson) back() {
	p.window--
	p.draw()
	p.before -= p.inWindow
}

// open fills in one leaf of the window where the cursor stands.
func (p *poisson) open(leaf uint64) {
	if p.split != p.window {
		p.split = p.window
		p.halve()
	}
	all := p.window*leaves + leaf
	p.leaf, p.first = all, p.before+uint64(p.starts[leaf])
	p.low, p.end = p.mean.Due(all*leafGaps), p.mean.Due((all+1)*leafGaps)
	p.times = p.times[:0]
	key := mix(p.key + (leaves+leaf)*golden)
	for range p.starts[leaf+1] - p.starts[leaf] {
		key += golden
		in, _ := bits.Mul64(mix(key), uint64(p.end-p.low))
		p.times = append(p.times, p.low+int64(in))
	}
	slices.Sort(p.times)
}

// halve deals a window's packets out to its leaves.
func (p *poisson) halve() {
	n := p.starts[:leaves]
	n[0] = uint32(p.inWindow)
	for width, node := leaves, uint64(1); width > 1; width /= 2 {
		for at := 0; at < leaves; at += width {
			whole := n[at]
			n[at] = heads(whole, mix(p.key+node*golden))
			n[at+width/2] = whole - n[at]
			node++
		}
	}
	sum := uint32(0)
	for i := range n {
		n[i], sum = sum, sum+n[i]
	}
	p.starts[leaves] = sum
}

// heads throws n fair coins.
func heads(n uint32, key uint64) (count uint32) {
	for ; n >= 64; n -= 64 {
		key += golden
		count += uint32(bits.OnesCount64(mix(key)))
	}
	if n > 0 {
		count += uint32(bits.OnesCount64(mix(key+golden) >> (64 - n)))
	}
	return count
}

func (p *poisson) Due(n uint64) int64 {
	if n-p.first < uint64(len(p.times)) {
		return p.times[n-p.first]
	}
	for n < p.before {
		p.back()
	}
	for n-p.before >= p.inWindow {
		if p.mean.Due(p.window*windowGaps) == math.MaxInt64 {
			return math.MaxInt64
		}
		p.forward()
	}
	if p.split != p.window {
		p.open(0)
	}
	leaf, found := slices.BinarySearch(p.starts[:], uint32(n-p.before))
	for found && leaf < leaves-1 && p.starts[leaf+1] == p.starts[leaf] {
		leaf++ // an empty one begins with the same packet
	}
	if !found {
		leaf--
	}
	p.open(uint64(leaf))
	return p.times[n-p.first]
}

func (p *poisson) Count(elapsed int64) uint64 {
	if elapsed <= 0 {
		return 0
	}
	if p.leaf == math.MaxUint64 || elapsed <= p.low || elapsed > p.end {
		leaf := (p.mean.Count(elapsed) - 1) / leafGaps // the last that begins before
		window := leaf / leaves
		for p.window > window {
			p.back()
		}
		for p.window < window {
			p.forward()
		}
		p.open(leaf % leaves)
	}
	n := p.first
	for _, t := range p.times {
		if t >= elapsed {
			break
		}
		n++
	}
	return n
}

func (p *poisson) Slots(phase int64) uint64 { return p.Count(phase) }

// End is never the time of the last slot itself, which the next may share.
func (p *poisson) End(n uint64) int64 { return max(p.Due(n), plus(p.Due(n-1), 1)) }

// windowLeast is the least number of packets that is drawn for a window: 11
// standard deviations below the mean, where less has a chance below 1e-27.
const windowLeast = windowGaps - 11*256

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
