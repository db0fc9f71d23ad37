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

// schedule is what is sent over one way, and when.
type schedule struct {
	bytes    int // of each frame
	count    int
	interval time.Duration // 0: at once
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

// small is the schedule of loss and delay on one of so many ways: it leaves four
// fifths of the link's rate unused, so no frame waits for another.
func small(s impair.Settings, ways int) schedule {
	p := schedule{bytes: smallBytes, interval: max(leastEach, time.Duration(ways)*leastOfAll, 5*onLink(s, smallBytes))}
	p.count = int(spread / p.interval)
	if p.count < fewest {
		p.count = min(fewest, int(longest/p.interval))
	}
	p.count = max(p.count, 1)
	return p
}

// full is the schedule of the rate; its count is 0 where it cannot be measured so,
// and why says why.
func full(s impair.Settings, mtu int) (p schedule, why string) {
	if s.Rate == 0 {
		return p, ""
	}
	p.bytes = mtu + etherBytes
	p.count = min(int(rateSpread/max(onLink(s, p.bytes), 1)), mostFull)
	if q := s.QueuePackets; q > 0 {
		p.count = min(p.count, q)
	}
	if q := s.QueueBytes; q > 0 {
		p.count = min(p.count, q/p.bytes)
	}
	if p.count < fewestFull {
		p.count = 0
		return p, fmt.Sprintf("rate: fewer than %d full frames fit into its queue and a quarter of a second", fewestFull)
	}
	return p, ""
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
	bytes    int     // of each frame
	sent     []int64 // by sequence, ns
	arrivals []arrival
}

type arrival struct {
	sequence int
	at       int64 // ns, of the clock of sent
}

// simulate runs a schedule over the model.
func simulate(s impair.Settings, p schedule, seed uint64) sample {
	s.Seed = seed
	link := impair.New(s)
	out := sample{bytes: p.bytes}
	for i := range p.count {
		now := int64(i) * int64(p.interval)
		out.sent = append(out.sent, now)
		fate := link.Offer(now, p.bytes)
		for _, c := range fate.Copy[:fate.Copies] {
			if c.Flip >= 0 && c.Flip/8 < headerBytes {
				continue // not known for a probe any more
			}
			out.arrivals = append(out.arrivals, arrival{i, c.At})
		}
	}
	slices.SortStableFunc(out.arrivals, func(a, b arrival) int { return cmp.Compare(a.at, b.at) }) // as a port reads them
	return out
}

// settle is how long to wait for the last frame: what the model takes at most and as
// much again, at most a second.
func settle(s impair.Settings, p schedule) time.Duration {
	last := int64(0)
	out := simulate(s, p, 1)
	for _, a := range out.arrivals {
		last = max(last, a.at-out.sent[p.count-1])
	}
	return time.Duration(last) + min(time.Duration(last), time.Second) + 50*time.Millisecond
}
