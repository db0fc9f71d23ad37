//go:build !linux

package fleet

import (
	"net"
	"net/netip"
	"syscall"

	"pelt/internal/icmp"
)

func smallSegments(string, string, syscall.RawConn) error { return nil }

func noWay(netip.AddrPort, netip.Addr, icmp.Error) string { return "" }

func lost(net.Conn) bool { return false }
