package udp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"pelt/engine"
)

// sharedPort makes the sockets of Linux: all listening ends of an engine share one port.
// Its own socket takes each stream's first hello; a socket of the stream's, bound to the
// same port and connected to the caller, takes all that follows, because the kernel prefers
// a connected socket. What reaches that socket in the moment between bind and connect is
// another's, and is counted as foreign or answered by no one; its sender repeats it.
type sharedPort struct {
	wanted uint16

	mu     sync.Mutex
	closed bool
	// Of the port, while an end listens:
	ends map[flowID]*listeningEnd
	host engine.Host
	conn *net.UDPConn
	port uint16
	done chan struct{} // closed when nobody reads conn any more
}

func newSocketMaker(port uint16) socketMaker { return &sharedPort{wanted: port} }

func (p *sharedPort) dial(host engine.Host, s settings, stream int, peer netip.AddrPort) (socket, error) {
	k, err := connect(host, s, s.from(stream, peer.Addr()), peer, false)
	if err != nil {
		return nil, err // not k, which would be a non-nil socket
	}
	return k, nil
}

func (p *sharedPort) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if len(p.ends) > 0 {
		return errors.New("close udp engine: a listening end is still open")
	}
	return nil
}

type flowID struct{ trial, tag uint16 }

// listeningEnd waits for the callers of its streams.
type listeningEnd struct {
	shared   *sharedPort
	flow     flowID
	settings settings
	consents []*engine.ConsentListener
	admit    func(int, socket) bool
	sockets  []*linuxSocket // under the port's lock
	peers    []netip.AddrPort
	once     sync.Once
}

func (p *sharedPort) listen(host engine.Host, s settings, consents []*engine.ConsentListener, admit func(int, socket) bool) (io.Closer, []uint16, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, errors.New("listen on UDP: the engine is closed")
	}
	if len(p.ends) == 0 {
		if err := p.open(host); err != nil {
			return nil, nil, err
		}
	}
	flow := flowID{consents[0].Trial, consents[0].Tag}
	if p.ends[flow] != nil {
		return nil, nil, fmt.Errorf("listen on UDP port %d: trial %d has a flow with tag %d already", p.port, flow.trial, flow.tag)
	}
	e := &listeningEnd{shared: p, flow: flow, settings: s, consents: consents, admit: admit,
		sockets: make([]*linuxSocket, len(consents)), peers: make([]netip.AddrPort, len(consents))}
	p.ends[flow] = e
	return e, slices.Repeat([]uint16{p.port}, len(consents)), nil
}

// Close lets no further caller in; the last end closes the port.
func (e *listeningEnd) Close() (err error) {
	e.once.Do(func() {
		p := e.shared
		p.mu.Lock()
		delete(p.ends, e.flow)
		done := p.done
		last := len(p.ends) == 0
		if last {
			err = p.conn.Close()
		}
		p.mu.Unlock()
		if last {
			<-done // it may be serving a caller, with the lock
		}
	})
	return err
}

func (p *sharedPort) open(host engine.Host) error {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			// To answer from the address that was called; one of the two fits the family.
			unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
			unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
		})
	}}
	var conn *net.UDPConn
	err := host.Do(func() error {
		// Without a host this is a dual-stack socket where the system has IPv6.
		c, err := config.ListenPacket(context.Background(), "udp", fmt.Sprintf(":%d", p.wanted))
		if err == nil {
			conn = c.(*net.UDPConn)
		}
		return err
	})
	if errors.Is(err, unix.EADDRINUSE) {
		return fmt.Errorf("listen on UDP port %d: another program uses it; choose another port: %w", p.wanted, unix.EADDRINUSE)
	}
	if err != nil {
		return fmt.Errorf("listen on UDP port %d: %w", p.wanted, err)
	}
	port := conn.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	if err := share(conn); err != nil {
		return errors.Join(fmt.Errorf("share UDP port %d: %w", port, err), conn.Close())
	}
	p.host, p.conn, p.port, p.done, p.ends = host, conn, port, make(chan struct{}), map[flowID]*listeningEnd{}
	go p.serve(conn, p.done)
	return nil
}

// share sets SO_REUSEPORT only now: a socket that had it before it was bound
// would share the port with another program of the same user unnoticed.
func share(conn *net.UDPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	})
	return errors.Join(err, set)
}

func (p *sharedPort) serve(conn *net.UDPConn, done chan<- struct{}) {
	defer close(done)
	b, control := make([]byte, headBytes), make([]byte, controlRoom)
	for {
		n, nc, _, from, err := conn.ReadMsgUDPAddrPort(b, control)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // such as an ICMP error; callers repeat
		}
		if k, hello, ok := engine.ConsentOf(b[:n]); ok && hello {
			p.receive(k, b[:n], from, called(control[:nc]))
		}
	}
}

// receive leads a caller to its stream.
func (p *sharedPort) receive(k engine.StreamKey, text []byte, from netip.AddrPort, at netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.ends[flowID{k.Trial, k.Tag}]
	if e == nil || int(k.Stream) >= len(e.consents) {
		return
	}
	from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	i := int(k.Stream)
	if c := e.consents[i]; c.Confirmed() || !c.Signed(text) {
		return
	}
	if e.sockets[i] == nil || e.peers[i] != from {
		local := netip.AddrPortFrom(at, p.port)
		if !at.IsValid() || at.Is4() != from.Addr().Is4() {
			local = netip.AddrPortFrom(unspecified(from.Addr()), p.port)
		}
		if zone := from.Addr().Zone(); zone != "" && at.IsLinkLocalUnicast() {
			local = netip.AddrPortFrom(at.WithZone(zone), p.port)
		}
		k, err := connect(p.host, e.settings, local, from, true)
		if err != nil {
			return // the caller asks again
		}
		if !e.admit(i, k) {
			return
		}
		e.sockets[i], e.peers[i] = k, from
	}
	if reply, ok := e.consents[i].Answer(text, from); ok {
		e.sockets[i].write(reply[:])
	}
}

// called returns the local address that a datagram was sent to, the zero
// address if the kernel did not say.
func called(control []byte) netip.Addr {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return netip.Addr{}
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= 16:
			return netip.AddrFrom16([16]byte(m.Data[:16])).Unmap()
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= 12:
			return netip.AddrFrom4([4]byte(m.Data[4:8])) // ipi_spec_dst: what to answer from
		}
	}
	return netip.Addr{}
}
