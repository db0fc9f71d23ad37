//go:build !linux

package icmp

import (
	"context"
	"net"
	"net/netip"
)

// Dial opens a TCP connection. This system does not tell who refused one.
func Dial(ctx context.Context, d net.Dialer, to netip.AddrPort) (net.Conn, Attempt, error) {
	conn, err := d.DialContext(ctx, "tcp", to.String())
	return conn, Attempt{}, err
}
