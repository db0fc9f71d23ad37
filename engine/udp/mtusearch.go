package udp

import (
	"slices"

	"pelt/model"
)

// search finds the largest IP packet that passes in one direction: the search of RFC 8899 (DPLPMTUD) in a second
// instead of minutes, and so by rounds of several sizes at once. A size that is answered passes. One that is not may
// have been lost like any other packet: the least of those is tried again until maxProbes of it are gone.
type search struct {
	six     bool
	unable  model.Doubts // why nothing can be searched
	top     int          // MAX_PLPMTU: what the route takes, bytes; 0 not known yet
	low     int          // PLPMTU: the largest that was answered; 0 none yet
	limit   int          // the largest that may pass: top, or what a packet-too-big message said
	waiting []int        // sizes of this round that may still be answered
	tries   map[int]int  // probes of a size that were not answered
	sent    int
}

const (
	maxProbes = 3 // MAX_PROBES, RFC 8899 section 5.1.2
	// of the largest that may pass: of a hundred ways that lose 10 % of their probes one would lose 3 each tenth time
	topProbes  = 8
	roundSizes = 8 // of one round
	leastSix   = 1280
	baseFour   = 1200 // BASE_PLPMTU, RFC 8899 section 5.1.2
)

// commonMTUs are what links and tunnels have: the old ones of RFC 1191 section 7.1, the least of IPv6, GRE, IPsec,
// WireGuard, mobile carriers, PPPoE, Ethernet and jumbo frames.
var commonMTUs = [...]int{576, 1006, 1280, 1300, 1340, 1360, 1380, 1400, 1420, 1430, 1440, 1450, 1460, 1472, 1476, 1480,
	1492, 1500, 4352, 9000}

func newSearch(six bool) *search { return &search{six: six, tries: map[int]int{}} }

// least is the smallest packet that a survey sends.
func (s *search) least() int {
	if s.six {
		return leastSix
	}
	return probeBytes + overheadOf(false)
}

func overheadOf(six bool) int {
	if six {
		return 48
	}
	return 28
}

// routeMTU notes what the sending end's kernel takes for the MTU of its route. Later calls with less are
// packet-too-big messages that the kernel got. A message that contradicts an answer is ignored.
func (s *search) routeMTU(mtu int) {
	if s.top == 0 {
		s.top = min(mtu, 65535)
		s.limit = s.top
	} else if mtu < s.limit && mtu >= s.low && mtu >= s.least() {
		s.limit = mtu
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(n int) bool { return n > s.limit })
}

func (s *search) told() bool { return s.limit < s.top }

// passed notes an answer, after which none of a smaller packet is awaited.
func (s *search) passed(size int) {
	if size > s.low && size <= s.top {
		s.low = size
	}
	if s.low > s.limit { // the message was wrong
		s.limit = s.top
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(n int) bool { return n <= s.low })
}

// silent ends a round: what is still awaited was not answered.
func (s *search) silent() {
	for _, n := range s.waiting {
		s.tries[n]++
	}
	s.waiting = nil
}

// next begins a round.
func (s *search) next() []int {
	s.waiting = s.sizes()
	s.sent += len(s.waiting)
	return slices.Clone(s.waiting)
}

// sizes lists the packets of the next round, the smallest first; none if nothing is left to find out, or if the route
// is not known yet.
func (s *search) sizes() []int {
	if s.top == 0 || s.unable != nil {
		return nil
	}
	low, wall := max(s.low, s.least()-1), s.limit+1
	for n := range s.tries { // the search tries to stay below the smallest one that was tried in vain
		if n > low && n < wall {
			wall = n
		}
	}
	most := maxProbes
	if wall == s.limit {
		most = topProbes
	}
	var sizes []int
	switch {
	case wall > s.limit && low+1 == wall:
		return nil
	case low+1 == wall:
		return slices.Repeat([]int{wall}, max(0, most-s.tries[wall]))
	case s.tries[s.limit] == 0: // mostly the first round, and the last
		if sizes = append(sizes, s.limit); s.low == 0 {
			sizes = append(sizes, min(s.base(), s.limit))
		}
	default:
		sizes = between(low, wall)
		if wall <= s.limit && s.tries[wall] < maxProbes {
			sizes = append(sizes, wall)
		}
	}
	if s.low == 0 && (len(s.tries) > 0 || s.told()) {
		sizes = append(sizes, s.least())
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

func (s *search) base() int {
	if s.six {
		return leastSix
	}
	return baseFour
}

// between parts what lies between two sizes: at common ones as long as there are any, then evenly.
func between(low, wall int) (sizes []int) {
	var all []int
	for _, n := range commonMTUs {
		if n > low && n < wall {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		for n := low + 1; n < wall; n++ {
			all = append(all, n)
		}
	}
	step := (len(all) + roundSizes - 1) / roundSizes
	for i := step / 2; i < len(all); i += step {
		sizes = append(sizes, all[i])
	}
	return sizes
}

// done says that there is nothing left to find out.
func (s *search) done() bool { return s.top > 0 && len(s.sizes()) == 0 }

// result is what was found.
func (s *search) result() *model.PathMTU {
	r := &model.PathMTU{Family: 4, Bytes: s.low, Probes: s.sent}
	if s.six {
		r.Family = 6
	}
	switch {
	case s.low == 0:
	case s.low == s.top:
		r.Found = model.MTUOfRoute
	case s.low == s.limit:
		r.Found = model.MTUTold
	default:
		r.Found, r.AtLeast = model.MTUSearch, !s.done()
	}
	return r
}
