package counters

import (
	"regexp"
	"strings"
)

// What a driver's statistics are called differs by driver. These are the names
// that tell of losses: no descriptor or buffer for a frame, a full FIFO, a failed
// allocation, a frame that an XDP program or the driver let go.
var (
	ringNames = regexp.MustCompile(
		`rx.*(miss|no_?buf|out_of_buf|no_?desc|no_dma_res|discard|fifo|overflow|overrun|drop)|rx_nombuf`)
	otherNames = regexp.MustCompile(`tx.*(drop|discard|fifo|underrun|err)|alloc.*(fail|err)|(fail|err).*alloc`)
	xdpNames   = regexp.MustCompile(`xdp.*(drop|err|full)`)
	notLosses  = regexp.MustCompile(`xdp|csum|vlan|pause|filter|tpa|bytes`)
	// perQueue finds the queue in rx0_drops, rx_queue_3_drops, rx-3.drops, [3]: rx_discards.
	perQueue = regexp.MustCompile(`(_queue_?|[rt]x-?|ring_?|q|ch|^\[)[0-9]+(\]: ?|[_.:]|$)`)
)

// driverLosses picks the names that tell of losses out of all that a driver
// has. One that a driver gives by queue is left out if it gives the total, too.
func driverLosses(names []string) (kept []string) {
	whole := map[string]bool{}
	var found []string
	for _, name := range names {
		lower := strings.ToLower(name)
		loses := xdpNames.MatchString(lower) ||
			(ringNames.MatchString(lower) || otherNames.MatchString(lower)) && !notLosses.MatchString(lower)
		if !loses {
			continue
		}
		found = append(found, name)
		if !perQueue.MatchString(lower) {
			whole[stem(lower)] = true
		}
	}
	for _, name := range found {
		lower := strings.ToLower(name)
		if perQueue.MatchString(lower) && whole[stem(lower)] {
			continue
		}
		kept = append(kept, name)
	}
	return kept
}

var separators = strings.NewReplacer("_", "", ".", "", ":", "", " ", "", "-", "", "queue", "", "[", "", "]", "")

// stem is what rx_drops, rx0_drops and rx_queue_0_drops have in common: letters
// without a queue's number.
func stem(lower string) string {
	return separators.Replace(perQueue.ReplaceAllStringFunc(lower, func(s string) string {
		return strings.TrimRight(strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return -1
			}
			return r
		}, s), "_.:] ")
	}))
}
