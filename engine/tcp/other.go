//go:build !linux

package tcp

import (
	"net"
	"syscall"
	"time"

	"pelt/engine"
	"pelt/engine/tcpinfo"
	"pelt/model"
)

// No other system tells its TCP's counters as Linux does, and none lets a
// program read or set all that an order may ask.

func tryOptions(o engine.Order) error {
	switch {
	case o.Flow.DSCP != 0:
		return engine.Refuse(model.LinuxDSCP)
	case o.Flow.MSS != 0 || o.Flow.Window != 0:
		return engine.Refuse(model.LinuxMSS)
	case o.Role == engine.Send && o.Flow.Control != "":
		return engine.Refuse(model.LinuxControl)
	case o.Role == engine.Send && o.Flow.Bytes > 0 && !o.Flow.HTTP:
		return engine.Refuse(model.LinuxArrival)
	}
	return nil
}

func loaded([]string) error { return nil }

func setOptions(syscall.RawConn, engine.Order, int) error { return nil }

func markAnswers(net.Listener, int) {}

func controlInUse(syscall.RawConn) string { return "" }

func window(syscall.RawConn, engine.Role) int { return 0 }

func readInfo(syscall.RawConn, bool) (i tcpinfo.Info, ok bool) { return i, false }

func broken(syscall.RawConn) error { return nil }

func outstanding(syscall.RawConn) (n int, known bool) { return 0, false }

func limitUnanswered(syscall.RawConn, time.Duration) {}

func pathMTU(syscall.RawConn) int { return 0 }

const opensConnections = false

func mostOpen(int64) (n int64, why model.Reason) { return 0, why }

func (*opener) work(*stream) error {
	return engine.Refuse(model.LinuxConnections)
}
