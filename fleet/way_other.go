//go:build !linux

package fleet

import (
	"context"
	"net"
	"net/netip"
	"syscall"

	"pelt/internal/icmp"
)

func smallSegments(string, string, syscall.RawConn) error { return nil }

func noWay(context.Context, netip.AddrPort, netip.Addr, icmp.Error) string { return "" }

func lost(net.Conn) bool { return false }
