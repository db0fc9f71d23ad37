package lab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pelt/lab/fastpath"
	"pelt/unit"
)

// Words of a router's character, joined by +.
const (
	Plain     = "plain" // nothing
	wordRules = "rules"
	wordLog   = "log"
	wordFast  = "fast"
	wordSteer = "steer"
	wordLimit = "limit"
)

// leastLimit is the slowest that a kernel's token bucket keeps well.
const leastLimit = 8000

// MaxRules is the most that rules=N takes: the kernel looks at each for every packet.
const MaxRules = 10_000

// character is what a router is made to be beside what its topology makes it.
type character struct {
	rules int // that match nothing, evaluated for every packet it forwards
	log   bool
	fast  bool
	limit unit.BitRate // that it sends at most; 0: as it can
	steer bool         // what comes in waits in a backlog for a core that is not the sender's
}

// CheckCharacter reports whether the router of a topology can be made to be that;
// see SetRouter for the words. The error is a *UsageError.
func CheckCharacter(topology, text string) error {
	t, err := findTopology(topology)
	if err != nil {
		return err
	}
	_, err = t.parseCharacter(text)
	return err
}

func (t topologySpec) parseCharacter(text string) (c character, err error) {
	if t.middle() < 0 {
		return c, &UsageError{fmt.Sprintf("lab %s has no router or switch that could be %q; want switch, router, nat or fast", t.name, text)}
	}
	if text == "" || text == Plain {
		return c, nil
	}
	wrong := func(format string, args ...any) error {
		want := "want plain, or rules=N, limit=RATE, log and steer joined by +"
		if t.fast {
			want = "want plain, or rules=N, limit=RATE, log, steer and fast joined by +"
		}
		return &UsageError{fmt.Sprintf("router %.80q: ", text) + fmt.Sprintf(format, args...) + "; " + want}
	}
	var seen []string
	for _, word := range strings.Split(text, "+") {
		name, value, valued := strings.Cut(word, "=")
		if slices.Contains(seen, name) {
			return character{}, wrong("%s stands twice", name)
		}
		seen = append(seen, name)
		switch {
		case name == wordRules && valued:
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 || n > MaxRules {
				return character{}, wrong("%.80q is no number of rules from 1 to %d", value, MaxRules)
			}
			c.rules = n
		case word == wordLog:
			c.log = true
		case name == wordLimit && valued:
			r, err := unit.ParseBitRate(value)
			if err != nil || r < leastLimit {
				return character{}, wrong("%.80q is no rate of 8kbit or more, as 50mbit", value)
			}
			c.limit = r
		case word == wordSteer:
			c.steer = true
		case word == wordFast && !t.fast:
			return character{}, wrong("lab %s has no fast path, lab fast has", t.name)
		case word == wordFast:
			c.fast = true
		case word == Plain:
			return character{}, wrong("plain stands alone")
		default:
			return character{}, wrong("no such word as %.80q", word)
		}
	}
	return c, nil
}

// String is the character in the words that make it, in a fixed order.
func (c character) String() string {
	var words []string
	if c.rules > 0 {
		words = append(words, fmt.Sprintf("%s=%d", wordRules, c.rules))
	}
	if c.limit > 0 {
		words = append(words, fmt.Sprintf("%s=%dbit", wordLimit, c.limit))
	}
	if c.log {
		words = append(words, wordLog)
	}
	if c.steer {
		words = append(words, wordSteer)
	}
	if c.fast {
		words = append(words, wordFast)
	}
	if len(words) == 0 {
		return Plain
	}
	return strings.Join(words, "+")
}

// middle is the node that others talk through, -1 in a lab that has none or many ends.
func (t topologySpec) middle() int {
	if t.many() {
		return -1
	}
	return slices.IndexFunc(t.nodes, func(n nodeSpec) bool { return n.role != end })
}

// Router is the node between the two ends: router or switch. ok is false for a lab
// that has none, and for a star.
func (l *Lab) Router() (n *Node, ok bool) {
	if l.spec.middle() < 0 {
		return nil, false
	}
	return l.nodes[l.spec.middle()], true
}

// RouterAccount is what a router did by its character. A packet that was logged is
// a line, was missed, or is on its way to the log; one whose being missed no later
// line tells stays there.
type RouterAccount struct {
	Character string           // in the words of SetRouter
	Logged    uint64           // packets that its filter logged since SetRouter
	Lines     uint64           // written
	Missed    uint64           // packets that came faster than lines were written
	Fast      []fastpath.Count // of its fast path, since the lab opened; none without one
}
