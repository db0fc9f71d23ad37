package counters

import (
	"fmt"
	"strconv"
	"strings"
)

// policer is a tc action that drops what is above a rate.
type policer struct {
	index uint32
	drops uint32
	rate  uint64 // bytes per second
	burst uint64 // bytes
}

func (p policer) name() string { return fmt.Sprintf("police.%d", p.index) }

func (s *Snapshot) addPolicer(p policer) {
	s.add(series{name: p.name() + ".drops", scope: namespaceScope, unit: skbUnit, bits: 32, role: loss}, 0, uint64(p.drops))
	s.policers = append(s.policers, p)
}

// RouterPolicers is the command whose output Parse reads beside the files, "" where it was not run.
const RouterPolicers = "tc -s actions"

// parsePolicers adds the policers that tc tells of in lines of the form
//
//	action order 0:  police 0x1 rate 20Mbit burst 16Kb mtu 2Kb action drop overhead 0b
//	ref 1 bind 1 installed 9 sec used 1 sec
//	Action statistics:
//	Sent 1234 bytes 12 pkt (dropped 3, overlimits 3 requeues 0)
func (s *Snapshot) parsePolicers(text string) {
	var p *policer
	for line := range strings.Lines(text) {
		words := append(strings.Fields(line), "", "", "", "", "", "", "", "")
		switch {
		case words[0] == "action" && words[3] == "police" && words[5] == "rate" && words[7] == "burst":
			index, err := strconv.ParseUint(words[4], 0, 32)
			rate, known := tcNumber(words[6], "bit", 1000)
			burst, limited := tcNumber(words[8], "b", 1024)
			if p = nil; err == nil && known && limited {
				p = &policer{index: uint32(index), rate: uint64(rate / 8), burst: uint64(burst)}
			}
		case words[0] == "Sent" && p != nil:
			q := qdisc{}
			q.parseStatistics(line, words)
			p.drops = q.drops
			s.addPolicer(*p)
			p = nil
		}
	}
}
