package udp

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"pelt/model"
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
	counts map[icmpKind]uint64
}

// icmpKind is what an ICMP error says, and who.
type icmpKind struct {
	what string
	from netip.Addr
}

// othersICMP are errors from more addresses than are told apart.
var othersICMP = icmpKind{what: "errors"}

func (k icmpKind) String() string {
	if k == othersICMP {
		return "errors from others"
	}
	return fmt.Sprintf("%s from %v", k.what, k.from)
}

const maxICMP = 16

func (b *icmpCounts) note(f icmpError) {
	key := icmpKind{f.what, f.from}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.counts == nil {
		b.counts = map[icmpKind]uint64{}
	}
	if _, ok := b.counts[key]; !ok && len(b.counts) >= maxICMP {
		key = othersICMP
	}
	b.counts[key]++
}

// frequent lists the kinds, the most frequent first. The counts are locked.
func (b *icmpCounts) frequent() []icmpKind {
	return slices.SortedFunc(maps.Keys(b.counts), func(x, y icmpKind) int {
		return cmp.Or(cmp.Compare(b.counts[y], b.counts[x]), cmp.Compare(x.what, y.what), x.from.Compare(y.from))
	})
}

// list returns all of them.
func (b *icmpCounts) list() (all []model.ICMPErrors) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range b.frequent() {
		one := model.ICMPErrors{What: k.what, Packets: b.counts[k]}
		if k.from.IsValid() {
			one.From = k.from.String()
		}
		all = append(all, one)
	}
	return all
}

// warnings tell the most frequent of them.
func (b *icmpCounts) warnings() (list []string) {
	const most = 3
	b.mu.Lock()
	defer b.mu.Unlock()
	var rest uint64
	for i, k := range b.frequent() {
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
