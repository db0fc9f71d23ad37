package udp

import (
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"pelt/engine"
)

// alarm wakes the threads that poll its eventfd.
type alarm struct{ fd int }

func newAlarm() (alarm, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	return alarm{fd}, err
}

// raise is called once.
func (a alarm) raise() {
	one := uint64(1)
	unix.Write(a.fd, (*[8]byte)(unsafe.Pointer(&one))[:]) // cannot block: the counter was 0
}

// close frees the alarm; no thread may poll or raise it any more.
func (a alarm) close() { unix.Close(a.fd) }

// waiter is one thread's way to wait for a time or the stop signal.
type waiter struct {
	stop  *stopSignal
	clock engine.Clock
	poll  []unix.PollFd
}

func newWaiter(s *stopSignal, c engine.Clock) *waiter {
	return &waiter{stop: s, clock: c, poll: []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}}
}

// A thread stops sleeping spinNanos before a deadline. A thread that spins longer
// looks like a hog to the scheduler, which then stalls it for more than 10 ms (4 of 15
// runs at 60 us, none of 28 at 30 us). It sleeps for leastNap at the least.
const (
	spinNanos = 30_000
	leastNap  = 5_000
)

// nap sleeps, but not through the stop signal.
func (w *waiter) nap(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	unix.Ppoll(w.poll, &t, nil) // an error such as EINTR only shortens the nap
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
	return engine.Pin(cpu)
}
