//go:build !linux

package tcp

import (
	"errors"
	"syscall"
	"time"

	"pelt/engine"
)

// No other system tells its TCP's counters as Linux does, and none lets a
// program read or set all that an order may ask.

func monotonicNanos() int64 { return 0 }

func tryOptions(o engine.Order) error {
	switch {
	case o.Flow.DSCP != 0:
		return &engine.Refusal{Why: "DSCP can be set on Linux only"}
	case o.Role == engine.Send && o.Flow.Control != "":
		return &engine.Refusal{Why: "a congestion control can be chosen on Linux only"}
	}
	return nil
}

func setOptions(syscall.RawConn, engine.Order) error { return nil }

func controlInUse(syscall.RawConn) string { return "" }

func readInfo(syscall.RawConn) (i info, ok bool) { return info{}, false }

func limitOrphan(syscall.RawConn) {}

func pathMTU(syscall.RawConn) int { return 0 }

func pin(int) error { return errors.ErrUnsupported }

func threadTime() (d time.Duration, ok bool) { return 0, false }

func errnoName(errno syscall.Errno) string { return errno.Error() }
