package userlink

import (
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"pelt/lab/impair"
)

// pump is one thread that moves the frames of some ways.
type pump struct {
	waiter *waiter
	orders chan func() // for the thread to do
	ended  chan struct{}

	// The thread's own:
	ways    []*way
	leaving []departure // a heap, the next one first
	count   uint64      // of departures so far
	room    store
	scratch []byte
	closed  bool
}

// departure is a frame that leaves at a time.
type departure struct {
	at    int64
	limit int64  // how far behind it may leave without being late, in ns
	order uint64 // of those that leave at one time, the first that came goes first
	buf   []byte
	way   *way
}

const (
	// atOnce is how many frames of one way are read before others have a turn.
	atOnce = 64
	// together is how far apart in time segments of one buffer may be due, in ns,
	// and still leave in one buffer, when the last is due. It is below what a
	// kernel's own shaper lets pass as a burst.
	together = 100_000
	longest  = vnetBytes + etherBytes + 8 + 65536 // with two VLAN tags
)

func newPump() (*pump, error) {
	w, err := newWaiter()
	if err != nil {
		return nil, err
	}
	p := &pump{waiter: w, orders: make(chan func(), 16), ended: make(chan struct{}), scratch: make([]byte, longest)}
	go p.run()
	return p, nil
}

// do runs a function on the thread, between two frames, and returns when it has run.
func (p *pump) do(f func()) {
	done := make(chan struct{})
	select {
	case p.orders <- func() { f(); close(done) }:
	case <-p.ended:
		return
	}
	p.waiter.ring()
	select {
	case <-done:
	case <-p.ended:
	}
}

func (p *pump) close() error {
	p.do(func() { p.closed = true })
	<-p.ended
	return p.waiter.close()
}

// promptly lets a pump go before whoever sends through it: what it does late is a
// wrong delay. A short slice brings a thread to its core soon after it wakes
// (Linux 6.12, kernel/sched/fair.c); a real-time priority would too, but Go's
// runtime waits in loops for threads that then never come. Where it is not
// allowed, lateness shows it.
func promptly() {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: -20, Runtime: 100_000}
	_ = unix.SchedSetAttr(0, &attr, 0)
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
}

func (p *pump) run() {
	defer close(p.ended)
	runtime.LockOSThread() // never unlocked: the thread ends with its settings
	promptly()
	for !p.closed {
		now := monotonic()
		for _, w := range p.ways {
			for range atOnce {
				n, errno := read(w.in, p.scratch)
				if errno != 0 || n < vnetBytes+etherBytes {
					if errno == 0 {
						w.counts.Broken.Add(1)
						continue
					}
					break
				}
				p.take(w, n, now)
			}
		}
		p.release()
		p.rest()
	}
	for _, d := range p.leaving {
		p.room.put(d.buf)
	}
	p.leaving = nil
}

// rest waits for frames, orders, or the time of the next departure.
func (p *pump) rest() {
	wait := int64(-1)
	if len(p.leaving) > 0 {
		if wait = p.leaving[0].at - monotonic(); wait <= 0 {
			wait = 0
		}
	}
	for _, e := range p.waiter.wait(wait) {
		if e.Fd >= 0 {
			continue
		}
		p.waiter.answer()
		for len(p.orders) > 0 {
			(<-p.orders)()
		}
	}
}

// take puts a frame that was read into scratch through the model.
func (p *pump) take(w *way, n int, now int64) {
	k := parse(p.scratch[:n])
	segments := k.segments()
	w.counts.Frames.Add(uint64(segments))
	w.counts.Bytes.Add(uint64(n - vnetBytes))
	w.note(&k)
	if segments == 1 {
		fate := w.link.Offer(now, n-vnetBytes)
		if fate.Copies == 0 {
			w.lose(&k, 0, fate.Cause)
			return
		}
		if fate.Copies == 1 && fate.Copy[0].Flip < 0 {
			p.leave(w, p.room.keep(&p.scratch, n), now, fate.Copy[0].At)
			w.counts.Passed.Add(1)
			return
		}
		p.copies(w, &k, 0, 1, now, fate)
		return
	}
	// The run of segments that pass, are due about together, and are not to be changed.
	begin, first, last := -1, int64(0), int64(0)
	flush := func(end int) {
		if begin < 0 {
			return
		}
		w.counts.Passed.Add(uint64(end - begin))
		if begin == 0 && end == segments {
			p.leave(w, p.room.keep(&p.scratch, n), now, last)
		} else {
			out := p.room.get(k.partBytes(begin, end))
			k.part(out, begin, end)
			p.leave(w, out, now, last)
		}
		begin = -1
	}
	for i := range segments {
		fate := w.link.Offer(now, k.segmentBytes(i))
		if fate.Copies == 1 && fate.Copy[0].Flip < 0 {
			at := fate.Copy[0].At
			if begin >= 0 && (at < last || at-first > together) {
				flush(i)
			}
			if begin < 0 {
				begin, first = i, at
			}
			last = at
			continue
		}
		flush(i)
		if fate.Copies == 0 {
			w.lose(&k, i, fate.Cause)
		} else {
			p.copies(w, &k, i, segments, now, fate)
		}
	}
	flush(segments)
}

// copies sends a frame, or a segment of one, that is doubled or damaged.
func (p *pump) copies(w *way, k *packet, i, segments int, now int64, fate impair.Fate) {
	for _, c := range fate.Copy[:fate.Copies] {
		var out []byte
		if segments == 1 {
			out = p.room.get(len(k.buf))
			copy(out, k.buf)
		} else {
			out = p.room.get(k.partBytes(i, i+1))
			k.part(out, i, i+1)
		}
		if c.Flip >= 0 {
			flip(out, c.Flip)
			w.counts.Corrupted.Add(1)
			w.judge(k, i, Damaged)
		}
		p.leave(w, out, now, c.At)
	}
	w.counts.Passed.Add(1)
	if fate.Copies > 1 {
		w.counts.Duplicated.Add(1)
	}
}

// leave enters the departure of a frame that came now.
func (p *pump) leave(w *way, buf []byte, now, at int64) {
	p.count++
	h := append(p.leaving, departure{at, max(int64(LateLimit), (at-now)/lateShare), p.count, buf, w})
	i := len(h) - 1
	for d := h[i]; i > 0; {
		up := (i - 1) / 2
		if !d.before(&h[up]) {
			break
		}
		h[i], h[up] = h[up], d
		i = up
	}
	p.leaving = h
}

func (d *departure) before(o *departure) bool {
	return d.at < o.at || d.at == o.at && d.order < o.order
}

// release writes all that is due.
func (p *pump) release() {
	now := monotonic()
	for n := 0; len(p.leaving) > 0 && p.leaving[0].at <= now; n++ {
		d := p.pop()
		d.way.late(now-d.at, d.limit)
		if errno := write(d.way.out, d.buf); errno != 0 {
			d.way.counts.Refused.Add(1)
		}
		p.room.put(d.buf)
		if n&7 == 7 {
			now = monotonic()
		}
	}
}

func (p *pump) pop() departure {
	h := p.leaving
	first, last := h[0], h[len(h)-1]
	h[len(h)-1] = departure{}
	h = h[:len(h)-1]
	i := 0
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && h[c+1].before(&h[c]) {
			c++
		}
		if !h[c].before(&last) {
			break
		}
		h[i] = h[c]
		i = c
	}
	if len(h) > 0 {
		h[i] = last
	}
	p.leaving = h
	return first
}

// store keeps buffers for reuse, by size.
type store struct {
	free [len(sizes)][][]byte
}

var sizes = [...]int{256, 2048, 16384, longest}

func (s *store) get(n int) []byte {
	for i, size := range sizes {
		if n > size {
			continue
		}
		if k := len(s.free[i]); k > 0 {
			b := s.free[i][k-1]
			s.free[i] = s.free[i][:k-1]
			return b[:n]
		}
		return make([]byte, n, size)
	}
	panic(fmt.Sprintf("a frame of %d B", n)) // no TAP gives one
}

func (s *store) put(b []byte) {
	for i, size := range sizes {
		if cap(b) == size {
			s.free[i] = append(s.free[i], b)
		}
	}
}

// keep takes the first n bytes of scratch away: a short frame is copied, a long
// one leaves with the memory it is in.
func (s *store) keep(scratch *[]byte, n int) []byte {
	if n <= sizes[len(sizes)-2] {
		b := s.get(n)
		copy(b, *scratch)
		return b
	}
	b := (*scratch)[:n]
	*scratch = s.get(longest)
	return b
}

// pool is the pumps of one lab.
type pool struct {
	pumps []*pump
	next  int
}

// Pool makes cables whose frames a few threads move. Its methods may be called
// concurrently.
type Pool struct {
	mu     sync.Mutex
	pool   pool
	cables []*Cable
}
