package gauge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"pelt/lab/impair"
)

// Way is one direction of a link.
type Way struct {
	From, To string // nodes
	In, Out  Port   // where frames go in and where they come out
	MTU      int    // bytes
	Settings impair.Settings
	Words    string // the settings, for people
}

// Port is a network interface, and how to run a function in its namespace.
type Port struct {
	Do   func(func() error) error
	Name string
}

// A frame holds, behind its Ethernet header:
//
//	magic u32 | way u16 | sequence u32
const (
	etherType   = 0x88b5 // IEEE 802, local experiments
	magic       = 0x70656c74
	etherBytes  = 14
	headerBytes = etherBytes + 4 + 2 + 4
	smallBytes  = 60 // the least frame, without its check sequence
)

// schedule is what is sent over one way: small frames one after the other for loss and delay,
// and when the last of these has come full ones at once for the rate.
type schedule struct {
	small, full int           // frames
	interval    time.Duration // between small ones
	wait        time.Duration // for the last frame
	fullBytes   int
	fullAt      time.Duration
	noRate      string // why there are no full ones on a link with a rate
}

const (
	spread      = 500 * time.Millisecond // of the small frames
	longest     = 2 * spread             // where few fit into that
	leastEach   = 200 * time.Microsecond // between two of a way
	leastOfAll  = 50 * time.Microsecond  // between any two: some 20 kpps, which no emulator is late for
	fewest      = 100
	rateSpread  = 250 * time.Millisecond // of the full frames, on the link
	fewestFull  = 8
	mostFull    = 400
	mostWaiting = 4 * time.Second // for the last frame
)

// plan makes the schedule of one of so many ways. The small frames leave four fifths of the
// link's rate unused, so none waits for another.
func plan(s impair.Settings, mtu, ways int) (p schedule) {
	p.interval = max(leastEach, time.Duration(ways)*leastOfAll, 5*onLink(s, smallBytes))
	p.small = int(spread / p.interval)
	if p.small < fewest {
		p.small = min(fewest, int(longest/p.interval))
	}
	p.small = max(p.small, 1)
	// What the model takes at most and as much again, at most a second.
	last := int64(0)
	for _, a := range simulate(s, p, 1).arrivals {
		last = max(last, a.at-int64(p.small-1)*int64(p.interval))
	}
	p.wait = time.Duration(last) + min(time.Duration(last), time.Second) + 50*time.Millisecond
	p.fullAt = time.Duration(p.small)*p.interval + p.wait
	if s.Rate == 0 {
		return p
	}
	p.fullBytes = mtu + etherBytes
	p.full = min(int(rateSpread/max(onLink(s, p.fullBytes), 1)), mostFull)
	if q := s.QueuePackets; q > 0 {
		p.full = min(p.full, q)
	}
	if q := s.QueueBytes; q > 0 {
		p.full = min(p.full, q/p.fullBytes)
	}
	if p.full < fewestFull {
		p.full = 0
		p.noRate = fmt.Sprintf("rate: fewer than %d full frames fit into its queue and a quarter of a second", fewestFull)
	}
	return p
}

// frame is when a frame is due and how long it is.
func (p schedule) frame(sequence int) (due time.Duration, bytes int) {
	if sequence < p.small {
		return time.Duration(sequence) * p.interval, smallBytes
	}
	return p.fullAt, p.fullBytes
}

// onLink is how long a frame occupies the link.
func onLink(s impair.Settings, bytes int) time.Duration {
	if s.Rate == 0 {
		return 0
	}
	return time.Duration(float64(bitsOnLink(s, bytes)) / float64(s.Rate) * 1e9)
}

func bitsOnLink(s impair.Settings, bytes int) int { return (max(bytes, s.MinFrame) + s.Overhead) * 8 }

// sample is what was seen of a schedule on one way.
type sample struct {
	sent     []int64 // by sequence, ns
	arrivals []arrival
}

type arrival struct {
	sequence int
	at       int64 // ns, of the clock of sent
}

// simulate runs a schedule over the model.
func simulate(s impair.Settings, p schedule, seed uint64) (out sample) {
	s.Seed = seed
	link := impair.New(s)
	for i := range p.small + p.full {
		due, bytes := p.frame(i)
		out.sent = append(out.sent, int64(due))
		fate := link.Offer(int64(due), bytes)
		for _, c := range fate.Copy[:fate.Copies] {
			if c.Flip < 0 || c.Flip/8 >= headerBytes { // else it is not known for a probe any more
				out.arrivals = append(out.arrivals, arrival{i, c.At})
			}
		}
	}
	slices.SortStableFunc(out.arrivals, func(a, b arrival) int { return cmp.Compare(a.at, b.at) }) // as a port reads them
	return out
}
