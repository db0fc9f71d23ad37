package udp

import (
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bell ends the waiting of an end's threads. It rings once.
type bell struct {
	rung chan struct{}
	fd   int // eventfd: readable once rung

	mu     sync.Mutex
	closed bool
}

func newBell() (*bell, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return &bell{rung: make(chan struct{}), fd: fd}, nil
}

func (b *bell) rang() bool {
	select {
	case <-b.rung:
		return true
	default:
		return false
	}
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rang() {
		return
	}
	close(b.rung)
	if !b.closed {
		one := uint64(1)
		unix.Write(b.fd, (*[8]byte)(unsafe.Pointer(&one))[:]) // cannot block: the counter was 0
	}
}

// close frees the bell; no thread may wait on it any more.
func (b *bell) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		unix.Close(b.fd)
	}
}

// waiter is one thread's way to wait for a time or the bell.
type waiter struct {
	bell  *bell
	clock clock
	poll  []unix.PollFd
}

func newWaiter(b *bell, c clock) *waiter {
	return &waiter{bell: b, clock: c, poll: []unix.PollFd{{Fd: int32(b.fd), Events: unix.POLLIN}}}
}

// spinNanos is how long before a deadline a thread stops sleeping: a wake-up
// with the least timer slack comes some 30 us late on an ordinary machine.
const spinNanos = 80_000

// nap sleeps, but not through the bell.
func (w *waiter) nap(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	unix.Ppoll(w.poll, &t, nil) // an error such as EINTR only shortens the nap
}

// monotonic reads CLOCK_MONOTONIC.
func monotonic(time.Time) int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0 // cannot happen: the clock exists on every Linux
	}
	return t.Nano()
}

// threadNice gives an engine's thread three times the share of an ordinary one.
const threadNice = -5

// ownThread prepares the calling, locked thread for exact timing and pins it
// to a core; cpu -1 leaves it free. The thread must not be unlocked again.
func ownThread(cpu int) error {
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return err
	}
	// Where it is allowed, other programs of a busy host are made to wait rather
	// than the schedule; on a single core the rest of this program must not.
	if runtime.NumCPU() > 1 {
		unix.Setpriority(unix.PRIO_PROCESS, 0, threadNice) // 0 is the calling thread
	}
	if cpu < 0 {
		return nil
	}
	var set unix.CPUSet
	set.Set(cpu)
	return unix.SchedSetaffinity(0, &set)
}

// threadNanos returns the processor time of the calling thread.
func threadNanos() (nanos int64, ok bool) {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0, false
	}
	return u.Utime.Nano() + u.Stime.Nano(), true
}

// errnoName names a system error as the ledger does: "ENOBUFS".
func errnoName(errno unix.Errno) string {
	if name := unix.ErrnoName(errno); name != "" {
		return name
	}
	return errno.Error()
}
