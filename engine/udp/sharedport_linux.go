package udp

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/internal/icmp"
	"pelt/model"
)

// sharedPort makes the sockets of Linux: all listening ends of an engine share one port.
// Its own socket takes the consent messages, and what comes from a stream's new address. A stream's socket is bound to
// the same port and connected to the peer; it takes the flow, because the kernel prefers a connected socket. What
// reaches it in the moment between bind and connect is another's, and is answered by no one; its sender repeats it.
type sharedPort struct {
	wanted netip.AddrPort

	mu sync.Mutex
	// Of the port, while an end listens. Two clients may draw the same numbers for their flows; the keys differ:
	ends map[flowID][]*listeningEnd
	host engine.Host
	conn *net.UDPConn
	raw  syscall.RawConn // of conn
	icmp *errorQueue     // likewise
	port uint16
	done chan struct{} // closed when nobody reads conn any more
}

// OnePort says that all listening ends of an engine share its port.
const OnePort = true

func newSocketMaker(at netip.AddrPort) socketMaker { return &sharedPort{wanted: at} }

func (p *sharedPort) dial(host engine.Host, s settings, stream int, peer netip.AddrPort) (socket, error) {
	k, err := connect(host, s, s.from(stream, peer.Addr()), peer, false)
	if err != nil {
		return nil, err // not k, which would be a non-nil socket
	}
	return k, nil
}

// ListenShared opens a UDP port that streams share; see Sockets.Take. The caller closes it.
func ListenShared(at netip.AddrPort) (*net.UDPConn, error) {
	c, err := net.ListenPacket("udp", engine.ListenText(at))
	if err != nil {
		return nil, err
	}
	conn := c.(*net.UDPConn)
	raw, err := conn.SyscallConn()
	if err == nil {
		err = shareBound(raw)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// mostStrays bounds what a stream's socket is searched for.
const mostStrays = 1024

func (p *sharedPort) take(host engine.Host, s settings, at, peer netip.AddrPort) (socket, []Stray, error) {
	k, err := connect(host, s, at, peer, true)
	if err != nil {
		return nil, nil, err // not k, which would be a non-nil socket
	}
	var strays []Stray
	b := make([]byte, headBytes)
	for range mostStrays {
		n, from, err := unix.Recvfrom(k.fd, b, unix.MSG_DONTWAIT)
		if err != nil { // none is left
			break
		}
		if a := addrPort(from); a != peer {
			strays = append(strays, Stray{From: a, Head: slices.Clone(b[:n])})
		}
	}
	return k, strays, nil
}

type flowID struct{ trial, tag uint16 }

// listeningEnd waits for the dialers of its streams.
type listeningEnd struct {
	shared   *sharedPort
	flow     flowID
	settings settings
	consents []*engine.ConsentListener
	follower *follower
	locals   []netip.AddrPort // where each dialer reaches this host; under the port's lock, as what follows
	failed   []map[string]uint64
	icmp     icmpCounts // errors that came back for answers
	once     sync.Once
}

func (p *sharedPort) listen(host engine.Host, s settings, consents []*engine.ConsentListener, f *follower) (
	listening, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ends) == 0 {
		if err := p.open(host); err != nil {
			return nil, err
		}
	}
	flow := flowID{consents[0].Trial, consents[0].Tag}
	e := &listeningEnd{shared: p, flow: flow, settings: s, consents: consents, follower: f,
		locals: make([]netip.AddrPort, len(consents)), failed: make([]map[string]uint64, len(consents))}
	p.ends[flow] = append(p.ends[flow], e)
	return e, nil
}

func (e *listeningEnd) ports() []uint16 {
	return slices.Repeat([]uint16{e.shared.port}, len(e.consents))
}

func (e *listeningEnd) meeting() (m engine.Meeting) {
	e.shared.mu.Lock()
	defer e.shared.mu.Unlock()
	for i, c := range e.consents {
		m.Streams = append(m.Streams, engine.MetStream{Stream: engine.Stream{Local: e.locals[i], Remote: c.Peer()},
			Errors: maps.Clone(e.failed[i])})
	}
	m.ICMP = e.icmp.list()
	return m
}

func (e *listeningEnd) open(living []int) ([]socket, error) {
	streams := e.meeting().Streams
	list := make([]socket, len(streams))
	for _, i := range living {
		k, err := connect(e.shared.host, e.settings, streams[i].Local, streams[i].Remote, true)
		if err != nil {
			return list, err
		}
		list[i] = k
	}
	return list, nil
}

// close ends the answering; the last end closes the port.
func (e *listeningEnd) close() (err error) {
	e.once.Do(func() {
		p := e.shared
		p.mu.Lock()
		p.ends[e.flow] = slices.DeleteFunc(p.ends[e.flow], func(other *listeningEnd) bool { return other == e })
		if len(p.ends[e.flow]) == 0 {
			delete(p.ends, e.flow)
		}
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
		c, err := config.ListenPacket(context.Background(), "udp", engine.ListenText(p.wanted))
		if err == nil {
			conn = c.(*net.UDPConn)
		}
		return err
	})
	if errors.Is(err, unix.EADDRINUSE) {
		why := model.NewReason(model.PortTaken, "port", p.wanted.Port(), "protocol", "UDP")
		return &engine.Fault{Why: why, Cause: unix.EADDRINUSE}
	}
	if err != nil {
		why := model.NewReason(model.ListenFailed, "port", p.wanted.Port(), "protocol", "UDP",
			"text", cmp.Or(model.SystemSaid(err), err.Error()))
		return &engine.Fault{Why: why, Cause: err}
	}
	port := conn.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	if p.raw, err = sharePort(conn); err != nil {
		return errors.Join(fmt.Errorf("share UDP port %d: %w", port, err), conn.Close())
	}
	p.icmp = &errorQueue{messages: newMessages(batchICMP, headBytes)}
	p.host, p.conn, p.port, p.done, p.ends = host, conn, port, make(chan struct{}), map[flowID][]*listeningEnd{}
	go p.serve(conn, p.done)
	return nil
}

// sharePort lets streams share a port, and has ICMP errors gathered.
func sharePort(conn *net.UDPConn) (syscall.RawConn, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	err = raw.Control(func(fd uintptr) {
		icmp.Gather(int(fd), false, true)
		icmp.Gather(int(fd), true, true)
	})
	return raw, errors.Join(err, shareBound(raw))
}

// shareBound sets SO_REUSEPORT after bind: a socket that has it before would share the port, unnoticed, with another
// program of the same user.
func shareBound(raw syscall.RawConn) (err error) {
	failed := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	})
	return errors.Join(failed, err)
}

// hearICMP counts the ICMP errors that came back for answers of the ends. The port is locked.
func (p *sharedPort) hearICMP() (any bool) {
	_ = p.raw.Control(func(fd uintptr) { // fails if the port is closed
		p.icmp.fd = fd
		p.icmp.drain(func(e icmp.Error, answer []byte) {
			any = true
			k, _ := engine.ConsentOf(answer)
			for _, end := range p.ends[flowID{k.Trial, k.Tag}] {
				end.icmp.note(e)
			}
		})
	})
	return any
}

func (p *sharedPort) serve(conn *net.UDPConn, done chan<- struct{}) {
	defer close(done)
	b, control := make([]byte, headBytes), make([]byte, controlRoom)
	for {
		n, nc, _, from, err := conn.ReadMsgUDPAddrPort(b, control)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as an ICMP error
			p.mu.Lock()
			p.hearICMP()
			p.mu.Unlock()
			continue
		}
		p.answer(b[:n], netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), calledAddress(control[:nc]))
	}
}

// answer serves what came to an address of this host: a consent message, or what a stream sends from a new address.
func (p *sharedPort) answer(text []byte, from netip.AddrPort, at netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h, ok := engine.ParseHeader(text); ok {
		for flow, ends := range p.ends {
			for _, e := range ends {
				if flow.trial == h.Trial {
					e.follower.take(0, text, from)
				}
			}
		}
		return
	}
	k, ok := engine.ConsentOf(text)
	if !ok {
		return
	}
	for _, e := range p.ends[flowID{k.Trial, k.Tag}] {
		if int(k.Stream) >= len(e.consents) {
			continue
		}
		if reply, ok := e.consents[k.Stream].Answer(text, from); ok {
			p.reply(e, int(k.Stream), reply, from, at)
			return
		}
		if check, ok := e.follower.seek(int(k.Stream), text, from); ok {
			p.reply(e, int(k.Stream), check, from, at)
			return
		}
		if e.follower.take(int(k.Stream), text, from) {
			return
		}
	}
}

// reply sends an answer of an end from an address of this host.
func (p *sharedPort) reply(e *listeningEnd, stream int, reply engine.ConsentMessage, from netip.AddrPort,
	at netip.Addr) {
	var control []byte
	if dscp := e.settings.flow.DSCP; dscp != 0 {
		level, kind := int32(unix.IPPROTO_IPV6), int32(unix.IPV6_TCLASS)
		if from.Addr().Is4() {
			level, kind = unix.IPPROTO_IP, unix.IP_TOS
		}
		control = controlMessage(level, kind, binary.NativeEndian.AppendUint32(nil, uint32(dscp)<<2))
	}
	switch {
	case !at.IsValid() || at.Is4() != from.Addr().Is4():
		at = unspecified(from.Addr())
	case at.Is4(): // answers from the address that was called
		control = append(control, unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: at.As4()})...)
	default:
		control = append(control, unix.PktInfo6(&unix.Inet6Pktinfo{Addr: at.As16()})...)
		if at.IsLinkLocalUnicast() {
			at = at.WithZone(from.Addr().Zone())
		}
	}
	e.locals[stream] = netip.AddrPortFrom(at, p.port)
	_, _, err := p.conn.WriteMsgUDPAddrPort(reply[:], control, from)
	if err != nil && p.hearICMP() { // it was that of an answer before
		_, _, err = p.conn.WriteMsgUDPAddrPort(reply[:], control, from)
	}
	if err != nil { // the dialer asks again
		if e.failed[stream] == nil {
			e.failed[stream] = map[string]uint64{}
		}
		e.failed[stream][causeName(err)]++
	}
}

// calledAddress returns the local address that a datagram was sent to, the zero address if the kernel did not say.
func calledAddress(control []byte) netip.Addr {
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
