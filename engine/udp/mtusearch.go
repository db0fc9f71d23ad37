package udp

import (
	"slices"

	"pelt/model"
)

// search finds the largest IP packet that passes in one direction: the search
// of RFC 8899 (DPLPMTUD) in a second instead of minutes, and so by rounds of
// several sizes at once. A size that is answered passes. One that is not may
// have been lost like any other packet: the least of those is tried again until
// maxProbes of it are gone.
type search struct {
	six   bool
	top   int // MAX_PLPMTU: what the route takes, bytes; 0 not known yet
	low   int // PLPMTU: the largest that was answered; 0 none yet
	limit int // the largest that may pass: top, or what a packet-too-big message said
	told  bool
	tries map[int]int // unanswered probes of a size
	sent  int
}

const (
	maxProbes = 3 // MAX_PROBES, RFC 8899 section 5.1.2
	// of the largest that may pass: of a hundred ways that lose 10 % of their probes one would lose 3 each tenth time
	topProbes  = 8
	roundSizes = 8 // of one round
	leastSix   = 1280
	baseFour   = 1200 // BASE_PLPMTU, RFC 8899 section 5.1.2
)

// commonMTUs are what links and tunnels have: Ethernet and jumbo frames, PPPoE,
// mobile carriers, WireGuard, IPsec, GRE, the least of IPv6, and the old ones of
// RFC 1191 section 7.1.
var commonMTUs = [...]int{9000, 4352, 1500, 1492, 1480, 1476, 1472, 1460, 1450, 1440, 1430, 1420, 1400, 1380, 1360,
	1340, 1300, 1280, 1006, 576}

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

// start tells what the sending end's kernel takes for its route to be; later
// calls with less are packet-too-big messages that it got.
func (s *search) start(top int) {
	if s.top == 0 {
		top = min(top, 65535)
		s.top, s.limit = top, top
		return
	}
	s.tooBig(top)
}

// tooBig notes a packet-too-big message: packets above mtu do not pass. A message that contradicts an answer is
// ignored.
func (s *search) tooBig(mtu int) {
	if mtu < s.limit && mtu >= s.low && mtu >= s.least() {
		s.limit, s.told = mtu, true
	}
}

func (s *search) passed(size int) {
	if size > s.low && size <= s.top {
		s.low = size
	}
	if s.low > s.limit { // the message was wrong
		s.limit, s.told = s.top, false
	}
}

// silent notes the probes of a round that nobody answered. A size below one that was answered is not counted: that
// probe was lost by chance.
func (s *search) silent(sizes []int) {
	for _, n := range sizes {
		if n > s.low {
			s.tries[n]++
		}
	}
}

// wall returns the size that the search tries to stay below: the smallest one above low that was tried in vain, or
// the first beyond the limit.
func (s *search) wall() int {
	wall := s.limit + 1
	for n := range s.tries {
		if n > s.low && n < wall {
			wall = n
		}
	}
	return wall
}

// gaveUp says that not even the smallest packet is answered.
func (s *search) gaveUp() bool { return s.low == 0 && s.tries[s.least()] >= maxProbes }

// mostTries returns how many probes of a size are sent before the size counts as too large.
func (s *search) mostTries(size int) int {
	if size == s.limit {
		return topProbes
	}
	return maxProbes
}

// done says that there is nothing left to find out.
func (s *search) done() bool {
	wall := s.wall()
	return s.top > 0 && (s.gaveUp() || s.low > 0 && s.low+1 == wall &&
		(wall > s.limit || s.tries[wall] >= s.mostTries(wall)))
}

// next lists the sizes of the next round, the smallest first; none if done, or
// if the route is not known yet.
func (s *search) next() []int {
	if s.top == 0 || s.done() {
		return nil
	}
	wall := s.wall()
	var sizes []int
	switch {
	case s.low == 0 && len(s.tries) == 0: // the first round: mostly it is the last
		sizes = []int{s.base(), s.limit}
	case s.low+1 == wall:
		return slices.Repeat([]int{wall}, s.mostTries(wall)-s.tries[wall])
	case s.told && s.tries[s.limit] == 0:
		sizes = []int{s.limit}
		if s.low == 0 {
			sizes = append(sizes, s.base(), s.least())
		}
	default:
		sizes = s.ladder(s.low, wall)
		if s.low == 0 {
			sizes = append(sizes, s.least())
		}
		if wall <= s.limit && s.tries[wall] < maxProbes {
			sizes = append(sizes, wall)
		}
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

func (s *search) base() int {
	base := baseFour
	if s.six {
		base = leastSix
	}
	return min(base, s.limit)
}

// ladder parts what lies between two sizes: at common ones as long as there are
// any, then evenly.
func (s *search) ladder(low, wall int) []int {
	low = max(low, s.least()-1)
	var sizes []int
	for _, n := range commonMTUs {
		if n > low && n < wall && s.tries[n] == 0 {
			sizes = append(sizes, n)
		}
	}
	if len(sizes) > 0 {
		for len(sizes) > roundSizes { // every other: the ends of the list matter less than its spread
			kept := sizes[:0]
			for i, n := range sizes {
				if i%2 == 0 {
					kept = append(kept, n)
				}
			}
			sizes = kept
		}
		return sizes
	}
	room := wall - low - 1
	steps := min(room, roundSizes)
	for i := range steps {
		sizes = append(sizes, low+(i+1)*(room+1)/(steps+1))
	}
	return sizes
}

// result is what was found; late says that the time was up before all was.
func (s *search) result(late bool) *model.PathMTU {
	r := &model.PathMTU{Family: 4, Bytes: s.low, Probes: s.sent}
	if s.six {
		r.Family = 6
	}
	switch {
	case s.low == 0:
		return r
	case s.low == s.top:
		r.Found = model.MTUOfRoute
	case s.told && s.low == s.limit:
		r.Found = model.MTUTold
	default:
		r.Found = model.MTUSearch
		r.AtLeast = late && !s.done()
	}
	return r
}
