// Package icmp reads the ICMP errors that came back for the packets of a socket, names them, and dials TCP so that a
// failure can be explained.
package icmp

import (
	"fmt"
	"net/netip"
	"syscall"
)

// Error is an ICMP error. The zero value says that none came.
type Error struct {
	Errno syscall.Errno // the system returns it for a later packet
	What  string        // "port unreachable"
	From  netip.Addr    // who says so, without a zone; invalid if not known
}

func (e Error) String() string {
	if !e.From.IsValid() {
		return e.What
	}
	return fmt.Sprintf("%s from %v", e.What, e.From)
}

// Attempt is what the system tells of a TCP connection that did not come about.
type Attempt struct {
	Error
	Sent uint64 // segments; 0 where that is not known
}

// Names that the control connection has a remedy for.
const (
	NetworkUnreachable = "network unreachable"
	HostUnreachable    = "host unreachable"
	TimeExceeded       = "time to live exceeded"
)
