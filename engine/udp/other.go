//go:build !linux

package udp

import (
	"net"
	"net/netip"

	"pelt/engine"
)

// OnePort says that all listening ends of an engine share its port.
const OnePort = false

func newSocketMaker(at netip.AddrPort) socketMaker      { return portable{at.Addr()} }
func ListenShared(netip.AddrPort) (*net.UDPConn, error) { return nil, errOnlyLinux }

// Workers is nothing on this system: each stream has a thread of its own.
type Workers struct{}

func NewWorkers() *Workers                 { return &Workers{} }
func (*Workers) send(s *sender) error      { return s.runOnThreads() }
func (*Workers) receive(r *receiver) error { return r.runOnThreads() }

// sendWaits says whether a call to send may wait for room.
const sendWaits = true

// threadTimes knows nothing on this system.
type threadTimes struct{ behind engine.LateTime }

func (*threadTimes) begin(int64)      {}
func (*threadTimes) onTime(int64)     {}
func (*threadTimes) fellBehind(int64) {}
func (*threadTimes) end()             {}
