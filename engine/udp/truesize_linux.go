package udp

import "slices"

// truesize finds out how many bytes of a receive buffer one datagram takes. It
// looks, now and then, how much the kernel accounts for the queue, and then
// counts the datagrams that had arrived by then as they are read.
//
// A look may be too high, because the kernel gives back what was read in lots of
// up to a quarter of the buffer until the queue is empty (net/ipv4/udp.c
// udp_rmem_release), or too low, because a datagram was stamped but not yet
// queued. So the answer is the median of many: of those that followed an empty
// queue, if there are any.
type truesize struct {
	at     int64  // of the look being counted; 0 for none
	queued uint32 // bytes then
	count  uint32
	next   int64       // when to look again
	fresh  bool        // the queue had been empty before the look being counted
	looks  [2][]uint32 // 1: those that were fresh
}

const (
	truesizeEvery = 5_000_000
	truesizeLooks = 64
)

// due says whether to look now.
func (t *truesize) due(now int64) bool {
	return t.at == 0 && now >= t.next && len(t.looks[0])+len(t.looks[1]) < truesizeLooks
}

// look begins to count. fresh says that the last read found the queue empty.
func (t *truesize) look(now int64, queued uint32, fresh bool) {
	if queued > 0 {
		t.at, t.queued, t.count, t.next, t.fresh = now, queued, 0, now+truesizeEvery, fresh
	}
}

// read counts a batch, in order of arrival. empty says that nothing is left in the queue.
func (t *truesize) read(got []datagram, empty bool) {
	if t.at == 0 {
		return
	}
	n := len(got)
	if n > 0 && got[n-1].nanos > t.at {
		n = slices.IndexFunc(got, func(d datagram) bool { return d.nanos > t.at })
		empty = true
	}
	t.count += uint32(n)
	if !empty {
		return
	}
	t.at = 0
	if t.count == 0 {
		return
	}
	kind := 0
	if t.fresh {
		kind = 1
	}
	t.looks[kind] = append(t.looks[kind], t.queued/t.count)
}

// bytes is the answer, 0 if nothing was seen in the queue.
func (t *truesize) bytes() int {
	for _, kind := range []int{1, 0} {
		if s := slices.Sorted(slices.Values(t.looks[kind])); len(s) > 0 {
			return int(s[len(s)/2])
		}
	}
	return 0
}
