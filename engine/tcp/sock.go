package tcp

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"pelt/engine"
	"pelt/engine/tcpinfo"
)

// openListener and openConn make their socket on the calling thread, and so in
// its network namespace: the addresses are numbers, and Go asks no resolver
// and starts no goroutine for those.
func openListener(at netip.AddrPort) (net.Listener, error) {
	c := net.ListenConfig{KeepAlive: -1}
	c.SetMultipathTCP(false) // its sockets answer other questions
	return c.Listen(context.Background(), "tcp", engine.ListenText(at))
}

// openConn also returns how many SYNs left before ctx ended, 0 where that is not known.
func openConn(ctx context.Context, peer netip.AddrPort, o engine.Order, stream int) (_ *net.TCPConn, asked uint64, _ error) {
	var opened atomic.Pointer[syscall.RawConn]
	var count atomic.Uint64
	if end, ok := ctx.Deadline(); ok { // after which there is no socket to ask
		ask := time.AfterFunc(time.Until(end)-lastLook, func() {
			if raw := opened.Load(); raw != nil {
				if i, ok := readInfo(*raw, false); ok {
					count.Store(1 + i.Figure[tcpinfo.Retransmits])
				}
			}
		})
		defer ask.Stop()
	}
	d := net.Dialer{KeepAlive: -1, Control: func(_, _ string, raw syscall.RawConn) error {
		opened.Store(&raw)
		return setOptions(raw, o, stream)
	}}
	d.SetMultipathTCP(false)
	if from := o.Flow.Source(stream); from.IsValid() || o.Flow.SourcePort != 0 {
		local := &net.TCPAddr{IP: from.AsSlice(), Zone: from.Zone()}
		if o.Flow.SourcePort != 0 {
			local.Port = o.Flow.SourcePort + stream
		}
		d.LocalAddr = local
	}
	conn, err := d.DialContext(ctx, "tcp", peer.String())
	if err != nil {
		return nil, count.Load(), err
	}
	return conn.(*net.TCPConn), 0, nil
}

// lastLook is how long before the end of an attempt its SYNs are counted.
const lastLook = 20 * time.Millisecond
