package udp

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"pelt/internal/icmp"
	"pelt/model"
)

// icmpCounts counts the ICMP errors of an end. Their senders may be forged, so that
// it names only so many of them.
type icmpCounts struct {
	mu     sync.Mutex
	counts map[icmp.Error]uint64 // without their errno
	of     map[icmp.Error][]model.Span
	quoted int // spans of all
}

// othersICMP are errors from more addresses than are told apart.
var othersICMP = icmp.Error{What: "errors from others"}

const (
	maxICMP   = 16
	maxQuoted = 1024 // packets of which is told that an error quoted them
)

// note counts one error, and keeps the packets that it quotes.
func (b *icmpCounts) note(e icmp.Error, of ...model.Span) {
	e.Errno = 0
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.counts == nil {
		b.counts = map[icmp.Error]uint64{}
	}
	if _, ok := b.counts[e]; !ok && len(b.counts) >= maxICMP {
		e = othersICMP
	}
	b.counts[e]++
	if len(of) > 0 && b.quoted < maxQuoted {
		if b.of == nil {
			b.of = map[icmp.Error][]model.Span{}
		}
		b.quoted += len(of)
		b.of[e] = append(b.of[e], of...)
	}
}

// frequent lists the kinds, the most frequent first. The counts are locked.
func (b *icmpCounts) frequent() []icmp.Error {
	return slices.SortedFunc(maps.Keys(b.counts), func(x, y icmp.Error) int {
		return cmp.Or(cmp.Compare(b.counts[y], b.counts[x]), cmp.Compare(x.What, y.What), x.From.Compare(y.From))
	})
}

// list returns all of them.
func (b *icmpCounts) list() (all []model.ICMPErrors) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range b.frequent() {
		one := model.ICMPErrors{What: k.What, Packets: b.counts[k], Of: b.of[k]}
		if k.From.IsValid() {
			one.From = k.From.String()
		}
		all = append(all, one)
	}
	return all
}

// warnings tell the most frequent of them.
func (b *icmpCounts) warnings() (list model.Reasons) {
	const most = 3
	b.mu.Lock()
	defer b.mu.Unlock()
	var rest uint64
	for i, k := range b.frequent() {
		if i < most {
			list = append(list, model.NewReason(model.ICMPCame, "text", k.String(), "packets", float64(b.counts[k])))
		} else {
			rest += b.counts[k]
		}
	}
	if rest > 0 {
		list = append(list, model.Reason{Code: model.ICMPMore, Numbers: map[string]float64{"packets": float64(rest)}})
	}
	return list
}
