//go:build !linux

package udp

import (
	"net"
	"net/netip"
)

// OnePort says that all listening ends of an engine share its port.
const OnePort = false

func newSocketMaker(at netip.AddrPort) socketMaker { return portable{at.Addr()} }

// ListenShared opens a UDP port that streams share; see Sockets.Take.
func ListenShared(netip.AddrPort) (*net.UDPConn, error) { return nil, errOnlyLinux }
