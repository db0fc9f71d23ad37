package counters

import (
	"fmt"
	"strconv"
	"strings"
)

// action is one of tc's that loses packets: a policer, or a redirect to another interface.
type action struct {
	kind  string
	index uint32
	lost  uint32 // above the rate of a policer, or not taken by the other interface
	rate  uint64 // of a policer, bytes per second
	burst uint64 // likewise, bytes
}

const (
	policeKind = "police"
	mirredKind = "mirred"
)

func (a action) name() string { return fmt.Sprintf("%s.%d", a.kind, a.index) }

func (s *Snapshot) addAction(a action) {
	counter := a.name() + ".drops"
	if a.kind == mirredKind {
		counter = a.name() + ".overlimits" // as tc calls it
	}
	s.add(series{name: counter, scope: namespaceScope, unit: skbUnit, bits: 32, role: loss}, 0, uint64(a.lost))
	if a.kind == policeKind {
		s.policers = append(s.policers, a)
	}
}

// RouterActions is the command whose output Parse reads beside the files, "" where it was not run.
const RouterActions = "tc -s actions"

// parseActions adds what tc tells of in lines of the form
//
//	action order 0:  police 0x1 rate 20Mbit burst 16Kb mtu 2Kb action drop overhead 0b
//	ref 1 bind 1 installed 9 sec used 1 sec
//	Action statistics:
//	Sent 1234 bytes 12 pkt (dropped 3, overlimits 3 requeues 0)
//
//	action order 1: mirred (Egress Redirect to device ifb0) stolen
//	index 1 ref 1 bind 1 installed 9 sec used 1 sec
func (s *Snapshot) parseActions(text string) {
	var a action
	for line := range strings.Lines(text) {
		words := append(strings.Fields(line), "", "", "", "", "", "", "", "", "")
		index := words[1]
		switch {
		case words[0] == "action" && words[3] == policeKind && words[5] == "rate" && words[7] == "burst":
			rate, known := tcNumber(words[6], "bit", 1000)
			burst, limited := tcNumber(words[8], "b", 1024)
			if a, index = (action{}), words[4]; known && limited {
				a = action{kind: policeKind, rate: uint64(rate / 8), burst: uint64(burst)}
			}
		case words[0] == "action":
			if a = (action{}); words[3] == mirredKind && words[5] == "Redirect" {
				a.kind = mirredKind
			}
			continue
		case words[0] == "index" && a.kind == mirredKind:
		case words[0] == "Sent" && a.kind != "":
			q := qdisc{}
			q.parseStatistics(line, words)
			if a.lost = q.drops; a.kind == mirredKind {
				a.lost = q.overlimits
			}
			s.addAction(a)
			a = action{}
			continue
		default:
			continue
		}
		if n, err := strconv.ParseUint(index, 0, 32); err == nil {
			a.index = uint32(n)
		} else {
			a = action{}
		}
	}
}
