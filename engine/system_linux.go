package engine

import (
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
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

// linkStates returns how to look at the interfaces of the calling thread's namespace, from
// any thread.
func linkStates() (state func(index int) (now link, there bool), free func(), err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	state = func(index int) (link, bool) {
		r, _ := unix.NewIfreq("")
		r.SetUint32(uint32(index))
		if unix.IoctlIfreq(fd, unix.SIOCGIFNAME, r) != nil || unix.IoctlIfreq(fd, unix.SIOCGIFMTU, r) != nil {
			return link{}, false
		}
		return link{r.Name(), index, int(r.Uint32())}, true
	}
	return state, func() { unix.Close(fd) }, nil
}

// holders lists which interfaces of the calling thread's namespace have the addresses.
func holders(wanted map[netip.Addr]bool) (indexes []int) {
	answer, _ := syscall.NetlinkRIB(unix.RTM_GETADDR, unix.AF_UNSPEC)
	messages, _ := syscall.ParseNetlinkMessage(answer)
	for i := range messages {
		m := &messages[i]
		if m.Header.Type != unix.RTM_NEWADDR || len(m.Data) < unix.SizeofIfAddrmsg {
			continue
		}
		index := int(binary.NativeEndian.Uint32(m.Data[4:])) // struct ifaddrmsg
		attributes, _ := syscall.ParseNetlinkRouteAttr(m)
		for _, a := range attributes { // IFA_ADDRESS of a point-to-point interface is the peer's
			held, _ := netip.AddrFromSlice(a.Value)
			if (a.Attr.Type == unix.IFA_LOCAL || a.Attr.Type == unix.IFA_ADDRESS) && wanted[held] &&
				!slices.Contains(indexes, index) {
				indexes = append(indexes, index)
			}
		}
	}
	return indexes
}

// Pin ties the calling thread, which must be locked, to a core; -1 leaves it free.
func Pin(core int) error {
	if core < 0 {
		return nil
	}
	return unix.SchedSetaffinityDynamic(0, oneCore(core))
}

// oneCore is a set of one core, whatever its number: a CPUSet ends at 1024.
func oneCore(core int) unix.CPUSetDynamic {
	set := unix.NewCPUSet(core + 1)
	set.Set(core)
	return set
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
