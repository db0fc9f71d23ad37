package udp

import (
	"errors"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"

	"pelt/engine"
	"pelt/model"
)

// refusals judges the errors that sending a stream returns.
type refusals struct {
	all     *allRefusals
	passing int64 // nanoseconds that an error which may pass may last
	patient bool  // any error may pass, once something was taken
	taken   bool
	row     int // packets refused since the last one taken
	single  int // packets still to be sent one by one
}

// allRefusals is what the streams of a sender know together: it is hopeless only if all are refused.
type allRefusals struct {
	streams int32
	refused atomic.Int32 // streams of which no packet was taken since one was refused, or that have ended
	since   atomic.Int64 // when the last of them became one
	taken   atomic.Bool  // a packet of any stream, the warm-up's included
}

const (
	// oneByOne is how many packets go alone after a refusal.
	oneByOne = 1024
	// So many in a row, or fewer over a longer time, and sending is hopeless:
	// what the error says holds for the packets to come.
	hopelessRow   = 64
	hopelessFew   = 4
	hopelessNanos = 500_000_000
	// What may pass may last longer: an error such as a missing route, and any but of the length once packets were
	// taken. It is less than the control connection's 2.5 s, so that the refusal is told and not its silence.
	passingNanos = 2_000_000_000
)

// hopeless counts a refusal, and reports whether the sender should give up.
func (r *refusals) hopeless(err error, now int64) bool {
	r.single = oneByOne
	if isQueueFull(err) {
		r.endRow()
		return false
	}
	if r.row++; r.row == 1 {
		r.all.since.Store(now)
		r.all.refused.Add(1)
	}
	if r.all.refused.Load() < r.all.streams {
		return false
	}
	lasted, taken := r.all.lasted(now), r.all.taken.Load()
	lasts := errors.Is(err, syscall.EMSGSIZE) && !(r.patient && taken)
	for _, errno := range []error{syscall.EPERM, syscall.EACCES, syscall.EINVAL} {
		lasts = lasts || errors.Is(err, errno) && !taken
	}
	if lasts {
		return r.row >= hopelessRow || r.row >= hopelessFew && lasted > hopelessNanos
	}
	return r.row >= hopelessFew && lasted > max(r.passing, passingNanos)
}

// take notes that a packet was taken.
func (r *refusals) take() {
	r.endRow()
	if !r.taken {
		r.taken = true
		r.all.taken.Store(true)
	}
}

func (r *refusals) endRow() {
	if r.row > 0 {
		r.row = 0
		r.all.refused.Add(-1)
	}
}

// end is called when the stream sends no more: the others are judged without it.
func (r *refusals) end(now int64) {
	if r.row == 0 {
		r.all.since.Store(now)
		r.all.refused.Add(1)
	}
}

// lasted is how long all streams have been refused, once they are.
func (a *allRefusals) lasted(now int64) int64 { return now - a.since.Load() }

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
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return engine.ErrnoName(errno)
	}
	return err.Error()
}

// remedy tells the user what an error means here; without a code nothing is known.
func remedy(err error, to netip.Addr, mtu, segments int) (why model.Reason) {
	switch {
	case segments > 1 && mtu > 0 && (errors.Is(err, syscall.EMSGSIZE) || errors.Is(err, syscall.EINVAL)):
		return model.NewReason(model.CutsWhole, "mtu_bytes", float64(mtu), "packets", float64(segments))
	case segments > 1 && errors.Is(err, syscall.EIO): // net/ipv4/udp.c udp_send_skb
		why.Code = model.CutsUnsummed
	case errors.Is(err, syscall.EMSGSIZE) && mtu > 0:
		return model.NewReason(model.FragmentsForbidden, "mtu_bytes", float64(mtu))
	case errors.Is(err, syscall.EPERM):
		why.Code = model.HostForbids
	case errors.Is(err, syscall.EACCES):
		return model.NewReason(model.RouteProhibits, "address", to)
	case errors.Is(err, syscall.EINVAL):
		return model.NewReason(model.RouteBlackholes, "address", to)
	}
	return why
}
