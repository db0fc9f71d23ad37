package udp

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"pelt/engine"
)

// Workers are a few threads that serve the streams of many ends, of any engines that
// were given them: a host with a hundred flows has no hundred cores for them. Each
// stream keeps its own socket, schedule, sequence and account. The threads come
// with the first stream and go with the last.
type Workers struct {
	mu        sync.Mutex
	senders   []*sendWorker
	receivers []*receiveWorker
	next      [2]int // who takes the next stream
}

// NewWorkers makes those of this machine: half of its cores send, half receive.
func NewWorkers() *Workers {
	c := &Workers{}
	for range max(runtime.NumCPU()/2, 1) {
		c.senders, c.receivers = append(c.senders, &sendWorker{}), append(c.receivers, &receiveWorker{})
	}
	return c
}

const (
	// pollInterval is how long a worker does not look for stop signals and new streams.
	pollInterval = time.Millisecond
	// gatherInterval is how long a receiving worker lets packets gather: while nobody
	// waits, the kernel wakes nobody for each of them, and they have their time from
	// the kernel. The smallest usual receive buffer holds 100 000 a second meanwhile.
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
		c.senders[c.next[0]%len(c.senders)].add(w)
		c.next[0]++
	}
	c.mu.Unlock()
	var first error
	for range s.streams {
		if err := <-done; err != nil {
			s.end.stop.set()
			first = cmp.Or(first, err)
		}
	}
	return first
}

// sendWorker is one thread that sends for many streams.
type sendWorker struct {
	mu    sync.Mutex
	fresh []*sendStream
	works bool
}

func (h *sendWorker) add(c *sendStream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fresh = append(h.fresh, c)
	if !h.works {
		h.works = true
		go h.work(c.clock)
	}
}

// take returns the streams that were added, and false if the worker may end.
func (h *sendWorker) take(have []*sendStream, times *threadTimes) ([]*sendStream, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.fresh {
		c.times = times
		have = append(have, c)
	}
	h.fresh = nil
	h.works = len(have) > 0
	return have, h.works
}

// work gives each stream its turn when it is due, one after the other.
func (h *sendWorker) work(clock engine.Clock) {
	runtime.LockOSThread() // never unlocked: the thread ends with its timer slack
	warning := ""
	if err := ownThread(-1); err != nil {
		warning = fmt.Sprintf("a thread of many streams could not be set up: %v", err)
	}
	var all []*sendStream
	var times threadTimes
	times.begin(clock.Now())
	defer times.end()
	look := int64(0)
	for {
		now := clock.Now()
		looks := now >= look
		if looks {
			var more bool
			if all, more = h.take(all, &times); !more {
				return
			}
			look = now + int64(pollInterval)
		}
		next := look
		kept := all[:0]
		for _, c := range all {
			if c.due > now && !(looks && c.waiter.stop.isSet()) {
				next = min(next, c.due)
				kept = append(kept, c)
				continue
			}
			over, err := c.turn(now)
			if over {
				c.warning = warning
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
			if left > spinNanos+leastNap {
				t := unix.NsecToTimespec(left - spinNanos)
				unix.Ppoll(nil, &t, nil) // an error such as EINTR only shortens it
			}
		}
	}
}

// receive counts a receiver's streams until it is stopped.
func (c *Workers) receive(r *receiver) error {
	c.mu.Lock()
	done := make(chan error, len(r.streams))
	var errs []error
	for i := range r.streams {
		r.streams[i].open()
		errs = append(errs, c.receivers[c.next[1]%len(c.receivers)].add(&pooledStream{receiveStream: r.streams[i], done: done}))
		c.next[1]++
	}
	c.mu.Unlock()
	err := errors.Join(errs...)
	if err != nil {
		r.end.stop.set() // those that were added must go, too
	}
	for _, err := range errs {
		if err == nil {
			<-done
		}
	}
	return err
}

// pooledStream is a stream that a receiving worker reads.
type pooledStream struct {
	*receiveStream
	in   *batchInbox
	done chan<- error
}

// receiveWorker is one thread that reads many sockets.
type receiveWorker struct {
	mu    sync.Mutex
	epoll int // while it works
	works bool
	all   map[int32]*pooledStream // by descriptor
}

func (h *receiveWorker) add(l *pooledStream) (err error) {
	l.in = l.receiveStream.in.(*batchInbox) // the socketMaker of this system makes no other
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.works {
		if h.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
			return fmt.Errorf("epoll_create: %w", err)
		}
		h.works, h.all = true, map[int32]*pooledStream{}
		go h.work()
	}
	e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(l.in.fd)}
	if err := unix.EpollCtl(h.epoll, unix.EPOLL_CTL_ADD, int(l.in.fd), &e); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	h.all[e.Fd] = l
	return nil
}

func (h *receiveWorker) work() {
	runtime.LockOSThread() // never unlocked: the thread ends with its timer slack
	warning := ""
	if err := ownThread(-1); err != nil {
		warning = fmt.Sprintf("a thread of many streams could not be set up: %v", err)
	}
	events := make([]unix.EpollEvent, 256)
	for h.look(warning) {
		n, err := unix.EpollWait(h.epoll, events, int(gatherInterval/time.Millisecond))
		for _, e := range events[:max(n, 0)] {
			h.mu.Lock()
			l := h.all[e.Fd]
			h.mu.Unlock()
			if l != nil {
				l.read()
			}
		}
		if n > 0 && n < len(events) || err != nil {
			t := unix.NsecToTimespec(int64(gatherInterval))
			unix.Ppoll(nil, &t, nil) // an error such as EINTR only shortens it
		}
	}
}

// read takes what a socket holds, some at most: others wait, too.
func (l *pooledStream) read() {
	const batches = 8
	l.first()
	for range batches {
		n, err := l.in.take()
		// An error is an ICMP message for something this end answered.
		if n == 0 || err != nil {
			return
		}
		l.step(l.in.out)
		if n < len(l.in.msgs) {
			return
		}
	}
}

// look begins with new streams and lets go those that are stopped; false if
// none is left.
func (h *receiveWorker) look(warning string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for fd, l := range h.all {
		l.first()
		if !l.receiver.end.stop.isSet() {
			continue
		}
		_ = unix.EpollCtl(h.epoll, unix.EPOLL_CTL_DEL, int(fd), nil) // it is there
		l.warning = warning
		l.close()
		delete(h.all, fd)
		l.done <- nil
	}
	if len(h.all) > 0 {
		return true
	}
	h.works = false
	_ = unix.Close(h.epoll) // nothing can be done about one that does not close
	return false
}
