package udp

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"syscall"
)

// icmpError came back for a packet sent earlier. The next packet is not sent: the system
// returns this error for it instead.
type icmpError struct {
	errno syscall.Errno
	what  string     // "port unreachable"
	from  netip.Addr // who says so
}

// icmpCounts counts the ICMP errors of an end. Their senders may be forged, so that
// it names only so many of them.
type icmpCounts struct {
	mu     sync.Mutex
	counts map[string]uint64
}

const maxICMP = 16

func (b *icmpCounts) note(f icmpError) {
	key := fmt.Sprintf("%s from %v", f.what, f.from)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.counts == nil {
		b.counts = map[string]uint64{}
	}
	if _, ok := b.counts[key]; !ok && len(b.counts) >= maxICMP {
		key = "errors from others"
	}
	b.counts[key]++
}

// warnings tell the most frequent of them.
func (b *icmpCounts) warnings() (list []string) {
	const most = 3
	b.mu.Lock()
	defer b.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(b.counts), func(x, y string) int {
		return cmp.Or(cmp.Compare(b.counts[y], b.counts[x]), cmp.Compare(x, y))
	})
	var rest uint64
	for i, k := range keys {
		if i < most {
			list = append(list, fmt.Sprintf("%d ICMP %s", b.counts[k], k))
		} else {
			rest += b.counts[k]
		}
	}
	if rest > 0 {
		list = append(list, fmt.Sprintf("%d other ICMP errors", rest))
	}
	return list
}
