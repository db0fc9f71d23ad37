package tcp

import (
	"context"
	"net"
	"net/netip"
	"syscall"

	"pelt/engine"
	"pelt/internal/icmp"
)

// openListener and openConn make their socket on the calling thread, and so in
// its network namespace: the addresses are numbers, and Go asks no resolver
// and starts no goroutine for those.
func openListener(at netip.AddrPort) (net.Listener, error) {
	c := net.ListenConfig{KeepAlive: -1}
	c.SetMultipathTCP(false) // its sockets answer other questions
	return c.Listen(context.Background(), "tcp", engine.ListenText(at))
}

// openConn also returns what is told of a connection that does not come about.
func openConn(ctx context.Context, peer netip.AddrPort, o engine.Order, stream int) (*net.TCPConn, icmp.Attempt,
	error) {
	d := net.Dialer{KeepAlive: -1, Control: func(_, _ string, raw syscall.RawConn) error {
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
	conn, tried, err := icmp.Dial(ctx, d, peer)
	if err != nil {
		return nil, tried, err
	}
	return conn.(*net.TCPConn), tried, nil
}
