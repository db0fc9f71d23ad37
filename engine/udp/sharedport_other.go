//go:build !linux

package udp

import "net/netip"

func newSocketMaker(netip.AddrPort) socketMaker { return portable{} }
