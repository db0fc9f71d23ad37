//go:build !linux

package fleet

import (
	"net"
	"net/netip"
	"syscall"
)

// dialed does nothing where the system does not tell who refused a connection.
type dialed struct{}

func newDialed(bool) *dialed { return &dialed{} }

func (*dialed) control(string, string, syscall.RawConn) error { return nil }

func (*dialed) close() icmpError { return icmpError{} }

func noWay(netip.AddrPort, netip.Addr, icmpError) string { return "" }

func lost(net.Conn) bool { return false }
