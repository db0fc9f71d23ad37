//go:build !linux

package fleet

import (
	"net"
	"syscall"
)

// quietTCP does nothing where the system has no such option.
func quietTCP(net.Conn) {}

func lost(net.Conn) bool { return false }

func smallSegments(syscall.RawConn) {}
