package engine

import (
	"fmt"
	"net"
	"net/netip"
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

// Pin ties the calling thread, which must be locked, to a core; -1 leaves it free.
func Pin(core int) error {
	if core < 0 {
		return nil
	}
	var set unix.CPUSet
	set.Set(core)
	return unix.SchedSetaffinity(0, &set)
}

// ThreadNanos returns the processor time of the calling thread.
func ThreadNanos() (nanos int64, ok bool) {
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
