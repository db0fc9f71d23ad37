package udp

import (
	"cmp"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/model"
)

// Workers are a few threads that serve the streams of many ends, of any engines that
// were given them: a host with a hundred flows has no hundred cores for them. Each
// stream keeps its own socket, schedule, sequence and account. The threads come
// with the first stream and go with the last.
type Workers struct {
	mu        sync.Mutex
	senders   []*pool[*sendStream]
	receivers []*pool[*receiveStream]
	next      [2]int // who takes the next stream
}

// NewWorkers makes those of this machine: half of its cores send, half receive.
func NewWorkers() *Workers {
	c := &Workers{}
	for range max(runtime.NumCPU()/2, 1) {
		c.senders, c.receivers = append(c.senders, &pool[*sendStream]{}), append(c.receivers, &pool[*receiveStream]{})
	}
	return c
}

const (
	// pollInterval is how long a worker does not look for stop signals and new streams.
	pollInterval = time.Millisecond
	// gatherInterval is how long a receiving worker lets packets gather: the kernel
	// wakes nobody for each of them, and they have their time from the kernel. The smallest usual receive buffer holds
	// 100 000 a second meanwhile.
	gatherInterval = 2 * time.Millisecond
)

// send runs a sender's streams, all from the same time on.
func (c *Workers) send(s *sender) error {
	for _, w := range s.streams {
		w.prepare(true)
	}
	// Flows that begin within the same moment shall be due together ever after: a
	// worker must not spin before each of them.
	begin := (s.end.settings.clock.Now()/int64(pollInterval) + 2) * int64(pollInterval)
	s.start = begin + s.end.order.Timing.Warmup().Nanoseconds()
	done := make(chan error, len(s.streams))
	c.mu.Lock()
	for _, w := range s.streams {
		w.begin(begin)
		w.done = done
		p := c.senders[c.next[0]%len(c.senders)]
		p.add(w, func() { sendAll(p, w.clock) })
		c.next[0]++
	}
	c.mu.Unlock()
	var first error
	for range s.streams {
		if err := <-done; err != nil {
			s.end.stop()
			first = cmp.Or(first, err)
		}
	}
	return first
}

// pool is the streams of one thread.
type pool[T any] struct {
	mu    sync.Mutex
	fresh []T // added, and not taken yet
	works bool
}

// add hands over a stream, and begins a thread that does the work if there is none.
func (p *pool[T]) add(stream T, work func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fresh = append(p.fresh, stream)
	if !p.works {
		p.works = true
		go work()
	}
}

// take returns the streams that the thread has with those that were added; none: it is to end.
func (p *pool[T]) take(have []T) []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	have = append(have, p.fresh...)
	p.fresh = nil
	p.works = len(have) > 0
	return have
}

// ownSharedThread prepares the calling thread, and returns warnings.
func ownSharedThread() model.Reasons {
	runtime.LockOSThread() // never unlocked: the thread ends with its timer slack
	if err := engine.OwnThread(-1); err != nil {
		return model.Reasons{{Code: model.ThreadPlain, Text: err.Error()}}
	}
	return nil
}

// sendAll gives each stream its turn when it is due, one after the other.
func sendAll(p *pool[*sendStream], clock engine.Clock) {
	warnings := ownSharedThread()
	// The emulated links of a lab have this priority and short slices, too: else a busy link keeps a sender off their
	// core for longer than a slot may be late.
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: -20, Runtime: 100_000}
	_ = unix.SchedSetAttr(0, &attr, 0) // where it is allowed
	var all []*sendStream
	var times threadTimes
	times.begin(clock.Now())
	defer times.end()
	look := int64(0)
	for {
		now := clock.Now()
		looks := now >= look
		if looks {
			had := len(all)
			if all = p.take(all); len(all) == 0 {
				return
			}
			for _, c := range all[had:] {
				c.times = &times
			}
			look = now + int64(pollInterval)
		}
		next := look
		kept := all[:0]
		for _, c := range all {
			if c.due > now && !(looks && c.sender.end.stopped.Err() != nil) {
				next = min(next, c.due)
				kept = append(kept, c)
				continue
			}
			over, err := c.turn(now)
			if over {
				c.warnings = warnings
				c.end()
				c.done <- err
			} else {
				kept = append(kept, c)
				next = min(next, c.due)
			}
			now = c.now
		}
		clear(all[len(kept):])
		all = kept
		if left := next - now; left > 0 {
			times.onTime(now)
			if left > engine.SpinNanos+engine.LeastNap {
				engine.Nap(time.Duration(left - engine.SpinNanos))
			}
		}
	}
}

// receive counts a receiver's streams until it is stopped.
func (c *Workers) receive(r *receiver) error {
	done := make(chan error, len(r.streams))
	c.mu.Lock()
	for _, w := range r.streams {
		w.open()
		w.done = done
		p := c.receivers[c.next[1]%len(c.receivers)]
		p.add(w, func() { readAll(p) })
		c.next[1]++
	}
	c.mu.Unlock()
	for range r.streams {
		<-done
	}
	return nil
}

// readAll reads all sockets in turn, until their ends are stopped.
func readAll(p *pool[*receiveStream]) {
	warnings := ownSharedThread()
	var all []*receiveStream
	for {
		had := len(all)
		if all = p.take(all); len(all) == 0 {
			return
		}
		for _, w := range all[had:] {
			w.tellReading()
		}
		kept := all[:0]
		for _, w := range all {
			if w.receiver.end.stopped.Err() != nil {
				w.warnings = warnings
				w.close()
				w.done <- nil
				continue
			}
			w.readSome()
			kept = append(kept, w)
		}
		clear(all[len(kept):])
		all = kept
		engine.Nap(gatherInterval)
	}
}

// readSome takes what a socket holds, some at most: others wait, too.
func (w *receiveStream) readSome() {
	const batches = 8
	in := w.in.(*batchInbox) // the socketMaker of this system makes no other
	for range batches {
		n, err := in.take()
		// An error is an ICMP message for something this end answered.
		if n == 0 || err != nil {
			return
		}
		w.step(in.out)
		if n < len(in.msgs) {
			return
		}
	}
}
