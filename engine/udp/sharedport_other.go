//go:build !linux

package udp

import "net/netip"

// OnePort says that all listening ends of an engine share its port.
const OnePort = false

func newSocketMaker(at netip.AddrPort) socketMaker { return portable{at.Addr()} }
