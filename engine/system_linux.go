package engine

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func monotonic(time.Time) int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // the clock exists on every Linux
	return t.Nano()
}

// asleep is for how long the host was suspended since its boot: CLOCK_MONOTONIC stands
// still meanwhile, time_namespaces(7) and clock_gettime(2).
func asleep() time.Duration {
	slept := int64(math.MaxInt64)
	for range 4 { // a thread that has to wait between the two readings finds too much
		var awake, all unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake)
		_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &all) // Linux 2.6.39
		slept = min(slept, all.Nano()-awake.Nano())
	}
	return time.Duration(slept)
}

// A thread stops sleeping SpinNanos before a deadline. A thread that spins longer
// looks like a hog to the scheduler, which then stalls it for more than 10 ms (4 of 15
// runs at 60 us, none of 28 at 30 us). It sleeps for LeastNap at the least.
const (
	SpinNanos = 30_000
	LeastNap  = 5_000
)

// Nap has the calling thread sleep.
func Nap(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	unix.Ppoll(nil, &t, nil) // an error such as EINTR only shortens it
}

// threadNice gives an engine's thread three times the share of an ordinary one.
const threadNice = -5

// OwnThread prepares the calling, locked thread for exact timing and pins it
// to a core; -1 leaves it free. The thread must not be unlocked again.
func OwnThread(core int) error {
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return err
	}
	// Where it is allowed, other programs of a busy host are made to wait rather
	// than the schedule; on a single core the rest of this program must not.
	if runtime.NumCPU() > 1 {
		unix.Setpriority(unix.PRIO_PROCESS, 0, threadNice) // 0 is the calling thread
	}
	return Pin(core)
}

// Pin ties the calling thread, which must be locked, to a core; -1 leaves it free.
func Pin(core int) error {
	if core < 0 {
		return nil
	}
	var set unix.CPUSet
	set.Set(core)
	return unix.SchedSetaffinity(0, &set)
}

// SetBuffer asks for a socket's SO_SNDBUF or SO_RCVBUF, beyond the system's limit where that is allowed, and returns
// what the kernel makes of it: it accounts twice as much as it is given. granted is 0 if it does not tell.
func SetBuffer(fd, which, bytes int) (granted int) {
	force := unix.SO_RCVBUFFORCE
	if which == unix.SO_SNDBUF {
		force = unix.SO_SNDBUFFORCE
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, bytes) != nil {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, which, bytes) // takes the limit where that is less
	}
	granted, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, which)
	if err != nil {
		return 0
	}
	return granted
}

// threadNanos returns the processor time of the calling thread.
func threadNanos() (nanos int64, ok bool) {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0, false
	}
	return u.Utime.Nano() + u.Stime.Nano(), true
}

// ErrnoName names a system error as the ledger does: "ENOBUFS".
func ErrnoName(errno syscall.Errno) string {
	if name := unix.ErrnoName(errno); name != "" {
		return name
	}
	return errno.Error()
}

// Sockaddr returns an address for system calls, and its family. It looks up a zone in the
// calling thread's network namespace.
func Sockaddr(a netip.AddrPort) (sa unix.Sockaddr, family int, err error) {
	ip := a.Addr().Unmap()
	if ip.Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: ip.As4()}, unix.AF_INET, nil
	}
	six := &unix.SockaddrInet6{Port: int(a.Port()), Addr: ip.As16()}
	if zone := ip.Zone(); zone != "" {
		n, err := strconv.ParseUint(zone, 10, 32)
		if err != nil {
			i, err := net.InterfaceByName(zone)
			if err != nil {
				return nil, 0, fmt.Errorf("interface %s of address %v: %w", zone, ip, err)
			}
			n = uint64(i.Index)
		}
		six.ZoneId = uint32(n)
	}
	return six, unix.AF_INET6, nil
}
