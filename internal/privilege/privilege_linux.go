package privilege

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kept are the capabilities that an end of tests uses: ports below 1024, sockets' buffers, links and XDP, the kernel's
// packet drops and the names of its functions, and the priority of threads.
var kept = []uint{unix.CAP_NET_BIND_SERVICE, unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_SYS_NICE,
	unix.CAP_SYS_RESOURCE,
	unix.CAP_SYSLOG, unix.CAP_PERFMON, unix.CAP_BPF}

// Drop gives up all other capabilities of root, for this process and those that it starts. Without root it does
// nothing. In a program that was built with cgo it cannot reach all threads, and returns errors.ErrUnsupported.
func Drop() error {
	if os.Geteuid() != 0 {
		return nil
	}
	text, err := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	if err != nil {
		return err
	}
	last, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 6)
	if err != nil {
		return err
	}
	keep := kept
	if last < unix.CAP_BPF { // a kernel before 5.8 has the BPF of CAP_SYS_ADMIN
		keep = append(keep, unix.CAP_SYS_ADMIN)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var had, have [2]unix.CapUserData
	if err := unix.Capget(&header, &had[0]); err != nil {
		return err
	}
	for _, c := range keep {
		bit := uint32(1) << (c % 32)
		have[c/32].Permitted |= bit & had[c/32].Permitted
		have[c/32].Effective |= bit & had[c/32].Effective
	}
	var fixed runtime.Pinner // all threads read header and have: these must not move with this goroutine's stack
	defer fixed.Unpin()
	fixed.Pin(&header)
	fixed.Pin(&have)
	if err := allThreads(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); err != nil { // else what root starts has all again
		return err
	}
	return allThreads(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&have[0])), 0)
}

func allThreads(call, a, b, c uintptr) error {
	if _, _, errno := syscall.AllThreadsSyscall6(call, a, b, c, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
