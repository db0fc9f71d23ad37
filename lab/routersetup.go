package lab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pelt/lab/fastpath"
	"pelt/model"
	"pelt/words"
)

// Words of a router's setup, joined by +.
const (
	Plain     = model.RouterPlain // nothing
	wordRules = model.RouterRules
	wordLog   = model.RouterLog
	wordFast  = model.RouterFast
)

// MaxRules is the most that rules=N takes: the kernel looks at each for every packet.
const MaxRules = 10_000

// routerSetup is what a router is made to be beside what its topology makes it.
type routerSetup struct {
	rules int // that match nothing, evaluated for every packet it forwards
	log   bool
	fast  bool
}

// CheckRouter reports whether the router of a topology can be made to be that;
// see SetRouter for the words. The error is a *UsageError.
func CheckRouter(topology, text string) error {
	t, err := findTopology(topology)
	if err != nil {
		return err
	}
	_, err = t.parseRouter(text)
	return err
}

func (t topologySpec) parseRouter(text string) (c routerSetup, err error) {
	if t.middle() < 0 {
		return c, usagef("lab %s has no router or switch that could be %q; want switch, router, nat or fast", t.name,
			text)
	}
	if text == "" || text == Plain {
		return c, nil
	}
	var seen []string
	for _, word := range strings.Split(text, "+") {
		name, value, valued := strings.Cut(word, "=")
		var why error
		switch {
		case slices.Contains(seen, name):
			why = words.Errorf("%s stands twice", name)
		case name == wordRules && valued:
			if c.rules, err = strconv.Atoi(value); err != nil || c.rules < 1 || c.rules > MaxRules {
				why = words.Errorf("%.80q is no number of rules from 1 to %d", value, MaxRules)
			}
		case word == wordLog:
			c.log = true
		case word == wordFast && !t.fast:
			why = words.Errorf("lab %s has no fast path, lab fast has", t.name)
		case word == wordFast:
			c.fast = true
		case word == Plain:
			why = words.Errorf("plain stands alone")
		default:
			why = words.Errorf("no such word as %.80q", word)
		}
		if why != nil {
			want := "rules=N, log"
			if t.fast {
				want = "rules=N, log, fast"
			}
			return routerSetup{}, usagef("router %.80q: %w; want plain, or any of %s, joined by +", text, why, want)
		}
		seen = append(seen, name)
	}
	return c, nil
}

// String is the setup in the words that make it, in a fixed order.
func (c routerSetup) String() string {
	var words []string
	if c.rules > 0 {
		words = append(words, fmt.Sprintf("%s=%d", wordRules, c.rules))
	}
	if c.log {
		words = append(words, wordLog)
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

// RouterAccount is what a router did by its setup. A packet that was logged is
// a line, was missed, or is on its way to the log; one whose being missed no later
// line tells stays there.
type RouterAccount struct {
	Setup  string           // in the words of SetRouter
	Logged uint64           // packets that its filter logged since SetRouter
	Lines  uint64           // written
	Missed uint64           // packets that came faster than lines were written
	Fast   []fastpath.Count // of its fast path, since the lab opened; none without one
}
