package userlink

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"pelt/lab/impair"
)

// pump is one thread that moves the frames of some ways.
type pump struct {
	waiter *waiter
	born   time.Time
	orders chan func() // for the thread to do
	ended  chan struct{}

	// The thread's own:
	ways    []*way
	ready   []*way
	leaving queue[departure]
	held    int // bytes of memory in it
	granted int // bytes that it may hold
	budget  *budget
	room    store
	scratch []byte
	closed  bool

	prompt   bool  // some way is too short to let frames gather
	count    int   // of frames read
	rested   int64 // when the thread last looked for frames, and
	counted  int   // how many it had read then
	gathered int64 // for how long what is read now may have waited, in ns
}

// departure is a frame that will leave.
type departure struct {
	limit int64 // how far behind its time it may leave without being late, in ns
	buf   []byte
	way   *way
}

const (
	// atOnce is how many frames of one way are read before others have a turn, and
	// glance after how many the thread looks at the clock, for when they came and
	// for what is to leave: some 10 us. A buffer of many segments counts as one
	// frame more for each heavy bytes: to move 64 KiB takes some 15 us.
	atOnce = 64
	glance = 8
	heavy  = 4096
	// While frames come closer than gatherNanos/gatherLeast to each other, a thread
	// does not wait for each of them but lets them gather for gatherNanos: to be
	// woken, often before whoever sends, costs more than all else. Those that
	// gathered count as come halfway. It does so only if no frame spends less than
	// gatherDelay on any of its ways.
	gatherNanos = 150_000
	gatherLeast = 4
	gatherDelay = 10 * time.Millisecond
	// together is how far apart in time segments of one buffer may be due, in ns,
	// and still leave in one buffer, when the last is due. It is below what a
	// kernel's own shaper lets pass as a burst.
	together = 100_000
	longest  = vnetBytes + etherBytes + 8 + 65536 // with two VLAN tags
)

func newPump(memory *budget) (*pump, error) {
	w, err := newWaiter()
	if err != nil {
		return nil, err
	}
	p := &pump{waiter: w, born: time.Now(), orders: make(chan func(), 16), ended: make(chan struct{}),
		scratch: make([]byte, longest), budget: memory}
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

// now is a time in ns of the thread's own; reading it is no system call.
func (p *pump) now() int64 { return int64(time.Since(p.born)) }

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
		for _, w := range p.rest() {
			p.drain(w)
		}
		p.release(p.now())
	}
	for p.leaving.len() > 0 {
		_, d := p.leaving.pop()
		p.room.put(d.buf)
	}
}

// rest waits for frames, orders, or the time of the next departure, and returns
// the ways that have frames.
func (p *pump) rest() []*way {
	wait := int64(-1)
	now := p.now()
	if p.leaving.len() > 0 {
		wait = max(p.leaving.next()-now, 0)
	}
	p.gathered = 0
	if n := int64(p.count - p.counted); !p.prompt && n > 0 && wait != 0 && (now-p.rested)*gatherLeast < n*gatherNanos {
		if nap := int64(gatherNanos); wait < 0 || wait > nap {
			wait = nap
		}
		p.waiter.sleep(wait)
		p.gathered = p.now() - now
		wait = 0
	}
	p.rested, p.counted = now, p.count
	p.ready = p.ready[:0]
	for _, e := range p.waiter.wait(wait) {
		if e.Fd >= 0 {
			p.ready = append(p.ready, p.ways[e.Fd])
			continue
		}
		p.waiter.answer()
		for len(p.orders) > 0 {
			(<-p.orders)()
		}
	}
	return p.ready
}

// drain reads the frames of a way, so many at most. What becomes due meanwhile
// leaves meanwhile.
func (p *pump) drain(w *way) {
	now, moved := int64(0), glance
	for range atOnce {
		if moved >= glance {
			now, moved = p.now(), 0
		}
		// A frame that is due at once is not kept in hand while more are read: it would
		// be late whenever the kernel takes this thread's core meanwhile.
		if p.leaving.len() > 0 && p.leaving.next() <= now {
			now, moved = p.release(p.now()), 0
		}
		n, errno := read(w.in, p.scratch)
		switch {
		case errno == unix.EAGAIN || errno == unix.EINTR:
			return
		case errno != 0: // the interface is gone, which a wait would say for ever
			p.waiter.forget(w.in)
			return
		case n < vnetBytes+etherBytes: // no frame
		default:
			p.count++
			moved += 1 + n/heavy
			p.take(w, n, now-p.gathered/2)
		}
	}
}

// judge finds out whether frames may gather.
func (p *pump) judge() {
	p.prompt = slices.ContainsFunc(p.ways, func(w *way) bool { return w.least < gatherDelay })
}

// take puts a frame that was read into scratch through the model.
func (p *pump) take(w *way, n int, now int64) {
	k := parse(p.scratch[:n])
	segments := k.segments()
	w.counts.Frames += uint64(segments)
	w.note(&k)
	if segments == 1 {
		fate := w.link.Offer(now, n-vnetBytes)
		if fate.Copies == 0 {
			w.lose(&k, 0, fate.Cause)
			return
		}
		if fate.Copies == 1 && fate.Copy[0].Flip < 0 {
			p.leave(w, p.room.keep(&p.scratch, n), now, fate.Copy[0].At)
			w.counts.Passed++
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
		w.counts.Passed += uint64(end - begin)
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
			w.counts.Corrupted++
			w.judge(k, i, Damaged)
		}
		p.leave(w, out, now, c.At)
	}
	w.counts.Passed++
	if fate.Copies > 1 {
		w.counts.Duplicated++
	}
}

// leave enters the departure of a frame that came now.
func (p *pump) leave(w *way, buf []byte, now, at int64) {
	if p.held+cap(buf) > p.granted {
		if !p.budget.take(grant) {
			w.counts.Refused++
			p.room.put(buf)
			return
		}
		p.granted += grant
	}
	p.held += cap(buf)
	p.leaving.push(at, departure{max(int64(LateLimit), (at-now)/lateShare), buf, w})
}

// release writes all that is due and returns the time after.
func (p *pump) release(now int64) int64 {
	for moved := 0; p.leaving.len() > 0 && p.leaving.next() <= now; {
		at, d := p.leaving.pop()
		p.held -= cap(d.buf)
		d.way.late(now-at, d.limit)
		if errno := write(d.way.out, d.buf); errno != 0 {
			d.way.counts.Refused++
		}
		p.room.put(d.buf)
		if p.granted-p.held > 2*grant {
			p.granted -= grant
			p.budget.give(grant)
		}
		if moved += 1 + len(d.buf)/heavy; moved >= glance {
			now, moved = p.now(), 0
		}
	}
	return now
}

// budget is the memory, in bytes, that all links of a pool may take: for frames under way, and to list what became of
// a trial's packets.
type budget struct{ left atomic.Int64 }

func newBudget(bytes int64) *budget {
	b := &budget{}
	b.left.Store(bytes)
	return b
}

// take reports whether so much is left, and takes it.
func (b *budget) take(bytes int) bool {
	if b.left.Add(int64(-bytes)) < 0 {
		b.give(bytes)
		return false
	}
	return true
}

func (b *budget) give(bytes int) { b.left.Add(int64(bytes)) }

// grant is how much of the budget a thread takes at a time: all threads share it.
const grant = 1 << 20

// store keeps buffers for reuse, by size, up to keptBytes.
type store struct {
	free [len(sizes)][][]byte
	kept int // bytes
}

const keptBytes = 16 << 20

var sizes = [...]int{256, 512, 1024, 2048, 16384, longest}

func (s *store) get(n int) []byte {
	for i, size := range sizes {
		if n > size {
			continue
		}
		if k := len(s.free[i]); k > 0 {
			b := s.free[i][k-1]
			s.free[i] = s.free[i][:k-1]
			s.kept -= size
			return b[:n]
		}
		return make([]byte, n, size)
	}
	panic(fmt.Sprintf("a frame of %d B", n)) // no TAP gives one
}

func (s *store) put(b []byte) {
	for i, size := range sizes {
		if cap(b) == size && s.kept+size <= keptBytes {
			s.kept += size
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

// Pool makes cables whose frames a few threads move. Its methods may be called
// concurrently.
type Pool struct {
	mu     sync.Mutex
	pumps  []*pump
	next   int // of them, to have another way
	cables []*Cable
	budget *budget
}
