package udp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"pelt/engine"
	"pelt/internal/icmp"
	"pelt/model"
)

// portable is the socketMaker for every system: each stream has a port of its own and
// an unconnected socket, and what does not come from the peer is ignored.
type portable struct{ address netip.Addr } // where listening ends are reached; invalid: at all of the host's

func (portable) dial(host engine.Host, s settings, stream int, peer netip.AddrPort) (socket, error) {
	w, err := openPortable(host, s, s.from(stream, peer.Addr()).String())
	if err != nil {
		return nil, err
	}
	w.peer = peer
	return w, nil
}

func (portable) take(engine.Host, settings, netip.AddrPort, netip.AddrPort) (socket, []Stray, error) {
	return nil, nil, errOnlyLinux
}

func (p portable) listen(host engine.Host, s settings, consents []*engine.ConsentListener, f *follower) (
	listening, error) {
	l := &portableListening{consents: consents, follower: f, over: make(chan struct{})}
	for _, c := range consents {
		w, err := openPortable(host, s, engine.ListenText(netip.AddrPortFrom(p.address, 0)))
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
		l.sockets = append(l.sockets, w)
		l.answering.Go(func() { l.answer(w, c) })
	}
	return l, nil
}

// portableListening answers on the streams' own sockets, until they are opened.
type portableListening struct {
	consents  []*engine.ConsentListener
	follower  *follower
	sockets   []*portableSocket // nil once others own them
	answering sync.WaitGroup
	over      chan struct{} // closed to end the answering
	once      sync.Once
}

func (l *portableListening) answer(w *portableSocket, c *engine.ConsentListener) {
	for {
		select {
		case <-l.over:
			return
		default:
		}
		n, nanos, err := w.take(readWait)
		if err != nil || nanos == 0 {
			continue
		}
		if reply, ok := c.Answer(w.whole[:n], w.caller); ok {
			w.conn.WriteToUDPAddrPort(reply[:], w.caller)
		}
	}
}

func (l *portableListening) stop() {
	l.once.Do(func() { close(l.over) })
	l.answering.Wait()
}

func (l *portableListening) ports() (list []uint16) {
	for _, w := range l.sockets {
		list = append(list, w.local().Port())
	}
	return list
}

// meeting knows of no errors: the system does not tell what came back, and an answer that does not leave is lost.
func (l *portableListening) meeting() (m engine.Meeting) {
	for i, w := range l.sockets {
		m.Streams = append(m.Streams,
			engine.MetStream{Stream: engine.Stream{Local: w.local(), Remote: l.consents[i].Peer()}})
	}
	return m
}

func (l *portableListening) open(living []int) (list []socket, err error) {
	l.stop()
	list = make([]socket, len(l.sockets))
	for i, w := range l.sockets {
		if slices.Contains(living, i) {
			w.peer, w.stream, w.follower = l.consents[i].Peer(), i, l.follower
			list[i] = w
		} else {
			err = errors.Join(err, w.close())
		}
	}
	l.sockets = nil
	return list, err
}

func (l *portableListening) close() error {
	l.stop()
	var errs []error
	for _, w := range l.sockets {
		errs = append(errs, w.close())
	}
	l.sockets = nil
	return errors.Join(errs...)
}

// portableSocket is a socket over net.UDPConn.
type portableSocket struct {
	conn     *net.UDPConn
	clock    engine.Clock
	buffer   int // bytes, of the flooded direction
	peer     netip.AddrPort
	stream   int            // of the follower
	follower *follower      // nil: none
	caller   netip.AddrPort // of the last datagram read
	whole    []byte         // room for any datagram: its length must be seen
	until    time.Time      // read deadline that is set

	bytes [][]byte    // what is sent
	sends time.Time   // write deadline that is set for it
	out   [1]datagram // what was received
}

func openPortable(host engine.Host, s settings, at string) (w *portableSocket, err error) {
	err = host.Do(func() error {
		address, err := net.ResolveUDPAddr("udp", at)
		if err != nil {
			return err
		}
		conn, err := net.ListenUDP("udp", address)
		if err != nil {
			return err
		}
		w = &portableSocket{conn: conn, clock: s.clock, whole: make([]byte, 1<<16)}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// These systems grant what they are asked for, or say that they do not.
	if s.sends {
		w.buffer = s.sendBuffer()
		err = w.conn.SetWriteBuffer(w.buffer)
	} else {
		if w.buffer = s.receiveBuffer(); s.flow.ReceiveBuffer == 0 {
			w.buffer /= 2 // some let no more than 8 MiB be asked for
		}
		err = w.conn.SetReadBuffer(w.buffer)
	}
	if s.flow.DSCP != 0 || s.flow.DontFragment {
		err = engine.Refuse(model.SystemDSCP)
	}
	if s.flow.Joined {
		err = engine.Refuse(model.SystemJoins)
	}
	if s.sends && s.flow.Segments > 1 {
		err = engine.Refuse(model.SystemCuts)
	}
	if err != nil {
		return nil, errors.Join(err, w.conn.Close())
	}
	return w, nil
}

func (w *portableSocket) local() netip.AddrPort {
	a := w.conn.LocalAddr().(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// take reads one datagram from anyone into whole.
func (w *portableSocket) take(wait time.Duration) (n int, nanos int64, err error) {
	// A deadline is moved only when it has passed: that costs as much as a packet.
	if now := time.Now(); !now.Before(w.until) || w.until.Sub(now) > wait {
		w.until = now.Add(max(wait, time.Millisecond)) // after a deadline not even what is there is read
		if err := w.conn.SetReadDeadline(w.until); err != nil {
			return 0, 0, err
		}
	}
	n, from, err := w.conn.ReadFromUDPAddrPort(w.whole)
	nanos = w.clock.Now()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	w.caller = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	return n, nanos, nil
}

func (w *portableSocket) read(wait time.Duration) (datagram, error) {
	n, nanos, err := w.take(wait)
	if err != nil || nanos == 0 {
		return datagram{}, err
	}
	d := datagram{head: w.whole[:min(n, headBytes)], bytes: n, nanos: nanos}
	if w.caller != w.peer {
		d.head = nil // whatever it is, it is foreign
		if w.follower != nil {
			w.follower.take(w.stream, w.whole[:n], w.caller)
		}
	}
	return d, nil
}

// portableWait bounds how long a thread that sends does not see that it was stopped.
const portableWait = 20 * time.Millisecond

func (w *portableSocket) write(b []byte) error {
	_ = w.conn.SetWriteDeadline(time.Now().Add(portableWait)) // one that stands may be over
	_, err := w.conn.WriteToUDPAddrPort(b, w.peer)
	return err
}

// follow is called by who reads the socket.
func (w *portableSocket) follow(to netip.AddrPort) error {
	w.peer = to
	return nil
}

func (w *portableSocket) watchICMP(bool) {}

// icmpErrors knows of none: the system tells only the error, with the next packet.
func (w *portableSocket) icmpErrors(func(icmp.Error, []byte)) {}

func (w *portableSocket) try(b []byte) error           { return w.write(b) }
func (w *portableSocket) memory() (socketMemory, bool) { return socketMemory{}, false }

func (w *portableSocket) remote() netip.AddrPort { return w.peer }
func (w *portableSocket) pathMTU() int           { return 0 }
func (w *portableSocket) forbidFragments() error {
	return errors.New("this system cannot forbid fragments")
}
func (w *portableSocket) bufferBytes() (granted, asked int) {
	return w.buffer, w.buffer
}
func (w *portableSocket) close() error { return w.conn.Close() }

// What follows sends and receives one packet a call.

func (w *portableSocket) newOutbox(payloadBytes, _, _ int) outbox {
	w.bytes = layOut(payloadBytes, 1)
	return w
}

func (w *portableSocket) newInbox() inbox { return w }

func (w *portableSocket) packets() [][]byte { return w.bytes }

func (w *portableSocket) send(from, to int) (int, error) {
	for i := from; i < to; i++ {
		if now := time.Now(); !now.Before(w.sends) {
			w.sends = now.Add(portableWait)
			if err := w.conn.SetWriteDeadline(w.sends); err != nil {
				return i - from, err
			}
		}
		if _, err := w.conn.WriteToUDPAddrPort(w.bytes[i], w.peer); err != nil {
			return i - from, err
		}
	}
	return to - from, nil
}

func (w *portableSocket) room() {} // send waits itself

func (w *portableSocket) receive(wait time.Duration) ([]datagram, error) {
	d, err := w.read(wait)
	if err != nil || d.nanos == 0 {
		return nil, err
	}
	w.out[0] = d
	return w.out[:], nil
}

func (w *portableSocket) truesize() int { return 0 }
