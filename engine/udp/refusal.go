package udp

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"pelt/engine"
)

// refusals judges the errors that sending returns.
type refusals struct {
	passing int64 // nanoseconds that an error which may pass may last
	patient bool  // any error may pass, once something was taken
	taken   bool
	row     int   // packets refused since the last one taken
	since   int64 // when the first of them was
	single  int   // packets still to be sent one by one
}

const (
	// oneByOne is how many packets go alone after a refusal.
	oneByOne = 1024
	// So many in a row, or fewer over a longer time, and sending is hopeless:
	// what the error says holds for the packets to come.
	hopelessRow   = 64
	hopelessFew   = 4
	hopelessNanos = 500_000_000
	// An error that may pass, such as a missing route, may last longer.
	passingNanos = 2_000_000_000
)

// hopeless counts a refusal, and reports whether the sender should give up.
func (r *refusals) hopeless(err error, now int64) bool {
	if isQueueFull(err) {
		r.row, r.single = 0, oneByOne
		return false
	}
	if r.row == 0 {
		r.since = now
	}
	r.row++
	r.single = oneByOne
	lasted := now - r.since
	if r.patient && r.taken {
		return r.row >= hopelessRow && lasted > r.passing
	}
	if errors.Is(err, syscall.EMSGSIZE) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) ||
		errors.Is(err, syscall.EINVAL) {
		return r.row >= hopelessRow || r.row >= hopelessFew && lasted > hopelessNanos
	}
	return r.row >= hopelessRow && lasted > max(r.passing, passingNanos)
}

// isQueueFull reports whether a queue of this host had no room for the packet. At full rate that is normal.
func isQueueFull(err error) bool {
	return errors.Is(err, syscall.ENOBUFS) || errors.Is(err, wsaENOBUFS)
}

// wsaENOBUFS is WSAENOBUFS of winsock2.h, which package syscall lacks. No other
// system has an error of that number.
const wsaENOBUFS = syscall.Errno(10055)

// temporary says that nothing was tried: there was no room in time.
func temporary(err error) bool {
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR) || errors.Is(err, os.ErrDeadlineExceeded)
}

// causeName names an error for the ledger.
func causeName(err error) string {
	if isQueueFull(err) {
		return "ENOBUFS"
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return engine.ErrnoName(errno)
	}
	return err.Error()
}

// remedy tells the user what an error means here.
func remedy(err error, mtu, segments int) string {
	switch {
	case segments > 1 && mtu > 0 && (errors.Is(err, syscall.EMSGSIZE) || errors.Is(err, syscall.EINVAL)):
		return fmt.Sprintf("; the path takes IP packets of %d B, and what is cut from a buffer of %d packets is not fragmented", mtu, segments)
	case segments > 1 && errors.Is(err, syscall.EIO): // net/ipv4/udp.c udp_send_skb
		return "; the device that sends it cannot make the checksums of packets cut from one buffer"
	case errors.Is(err, syscall.EMSGSIZE) && mtu > 0:
		return fmt.Sprintf("; the path takes IP packets of %d B and the don't-fragment bit is set", mtu)
	case errors.Is(err, syscall.EPERM):
		return "; a packet filter on this host forbids it"
	}
	return ""
}
