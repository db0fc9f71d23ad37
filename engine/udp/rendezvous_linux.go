package udp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"pelt/engine"
)

// shared is the Linux carrier: all listening ends of an engine share one port.
// A rendezvous socket takes each stream's first hello; a socket of its own,
// bound to the same port and connected to the caller, takes all that follows,
// because the kernel prefers a connected socket. What reaches that socket in
// the moment between bind and connect is another's, and is counted as foreign
// or answered by no one; its sender repeats it.
type shared struct {
	port uint16 // asked for

	mu     sync.Mutex
	open   *rendezvous
	closed bool
}

func newCarrier(port uint16) carrier { return &shared{port: port} }

func (c *shared) dial(host engine.Host, s settings, stream int, peer netip.AddrPort) (wire, error) {
	k, err := connect(host, s, s.from(stream, peer.Addr()), peer, false)
	if err != nil {
		return nil, err // not k, which would be a non-nil wire
	}
	return k, nil
}

func (c *shared) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.open == nil {
		return nil
	}
	return errors.New("close udp engine: a listening end is still open")
}

// guests is one listening end at the rendezvous.
type guests struct {
	carrier  *shared
	settings settings
	consents []*engine.ConsentListener
	admit    func(int, wire) bool
	wires    []*socket // under the rendezvous' lock
	peers    []netip.AddrPort
	once     sync.Once
}

func (c *shared) listen(host engine.Host, s settings, consents []*engine.ConsentListener, admit func(int, wire) bool) (io.Closer, []uint16, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, errors.New("listen on UDP: the engine is closed")
	}
	if c.open == nil {
		r, err := openRendezvous(host, c.port)
		if err != nil {
			return nil, nil, err
		}
		c.open = r
	}
	g := &guests{carrier: c, settings: s, consents: consents, admit: admit, wires: make([]*socket, len(consents)), peers: make([]netip.AddrPort, len(consents))}
	r := c.open
	r.mu.Lock()
	defer r.mu.Unlock()
	key := place{consents[0].Trial, consents[0].Tag}
	if r.guests[key] != nil {
		return nil, nil, fmt.Errorf("listen on UDP port %d: trial %d has a flow with tag %d already", r.port, key.trial, key.tag)
	}
	r.guests[key] = g
	ports := make([]uint16, len(consents))
	for i := range ports {
		ports[i] = r.port
	}
	return g, ports, nil
}

// Close lets no further caller in; the last guest closes the rendezvous.
func (g *guests) Close() (err error) {
	g.once.Do(func() {
		c := g.carrier
		c.mu.Lock()
		defer c.mu.Unlock()
		r := c.open
		r.mu.Lock()
		delete(r.guests, place{g.consents[0].Trial, g.consents[0].Tag})
		last := len(r.guests) == 0
		r.mu.Unlock()
		if last {
			c.open = nil
			err = r.conn.Close()
			<-r.done
		}
	})
	return err
}

// place is where a guest waits.
type place struct{ trial, tag uint16 }

type rendezvous struct {
	host engine.Host
	conn *net.UDPConn
	port uint16
	done chan struct{}

	mu     sync.Mutex
	guests map[place]*guests
}

func openRendezvous(host engine.Host, port uint16) (*rendezvous, error) {
	r := &rendezvous{host: host, done: make(chan struct{}), guests: map[place]*guests{}}
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			// To answer from the address that was called; one of the two fits the family.
			unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
			unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
		})
	}}
	err := host.Do(func() error {
		// Without a host this is a dual-stack socket where the system has IPv6.
		conn, err := config.ListenPacket(context.Background(), "udp", fmt.Sprintf(":%d", port))
		if err != nil {
			return err
		}
		r.conn = conn.(*net.UDPConn)
		return nil
	})
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fmt.Errorf("listen on UDP port %d: another program uses it; choose another port: %w", port, unix.EADDRINUSE)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on UDP port %d: %w", port, err)
	}
	r.port = r.conn.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	if err := r.share(); err != nil {
		return nil, errors.Join(fmt.Errorf("share UDP port %d: %w", r.port, err), r.conn.Close())
	}
	go r.serve()
	return r, nil
}

// share sets SO_REUSEPORT only now: a socket that had it before it was bound
// would share the port with another program of the same user unnoticed.
func (r *rendezvous) share() error {
	raw, err := r.conn.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	})
	return errors.Join(err, set)
}

func (r *rendezvous) serve() {
	defer close(r.done)
	b, control := make([]byte, headBytes), make([]byte, controlRoom)
	for {
		n, nc, _, from, err := r.conn.ReadMsgUDPAddrPort(b, control)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // such as an ICMP error: nobody's loss, callers repeat
		}
		if k, hello, ok := engine.ConsentOf(b[:n]); ok && hello {
			r.receive(k, b[:n], from, called(control[:nc]))
		}
	}
}

// receive leads a caller to its stream.
func (r *rendezvous) receive(k engine.StreamKey, text []byte, from netip.AddrPort, at netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.guests[place{k.Trial, k.Tag}]
	if g == nil || int(k.Stream) >= len(g.consents) {
		return
	}
	from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	if c := g.consents[k.Stream]; c.Confirmed() || !c.Signed(text) {
		return
	}
	i := int(k.Stream)
	if g.wires[i] == nil || g.peers[i] != from {
		local := netip.AddrPortFrom(at, r.port)
		if !at.IsValid() || at.Is4() != from.Addr().Is4() {
			local = netip.AddrPortFrom(unspecified(from.Addr()), r.port)
		}
		if zone := from.Addr().Zone(); zone != "" && at.IsLinkLocalUnicast() {
			local = netip.AddrPortFrom(at.WithZone(zone), r.port)
		}
		k, err := connect(r.host, g.settings, local, from, true)
		if err != nil {
			return // the caller asks again
		}
		if !g.admit(i, k) {
			return
		}
		g.wires[i], g.peers[i] = k, from
	}
	if reply, ok := g.consents[i].Answer(text, from); ok {
		g.wires[i].write(reply[:])
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
