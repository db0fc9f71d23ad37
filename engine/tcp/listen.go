package tcp

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"pelt/engine"
	"pelt/model"
)

const (
	// greetTime is how long a caller may take to prove that it belongs to a
	// flow: two round trips of the slowest path, a satellite's, several times over.
	greetTime = 5 * time.Second
	// maxGreeted bounds callers that have not proved it yet. Beyond it the oldest
	// of the address that has most is dropped: a peer proves itself within two
	// round trips, a stranger that only holds connections does not.
	maxGreeted = 1024
)

type route struct{ trial, tag uint16 }

// listener is the one listening port of an Engine.
type listener struct {
	net     net.Listener
	port    uint16
	refused atomic.Uint64 // callers that were no peer of a waiting end, or came too late, or were dropped
	starved atomic.Uint64 // times that this host had no descriptor for a caller
	group   sync.WaitGroup

	mu      sync.Mutex
	users   int
	closed  bool
	waiting map[route][]*end // several, when clients chose the same numbers; the key tells them apart
	greeted []caller         // oldest first
	from    map[netip.Prefix]int
	dscp    int // of what the kernel answers to callers
}

// caller is one that has not proved itself yet.
type caller struct {
	conn net.Conn
	from netip.Prefix // its host's: an address, or a /64 of IPv6
}

func listen(host engine.Host, at netip.AddrPort) (*listener, error) {
	l := &listener{waiting: map[route][]*end{}, from: map[netip.Prefix]int{}}
	c := net.ListenConfig{KeepAlive: -1}
	c.SetMultipathTCP(false)            // its sockets answer other questions
	err := host.Do(func() (err error) { // Go makes the socket of a numeric address on the calling thread
		l.net, err = c.Listen(context.Background(), "tcp", engine.ListenText(at))
		return err
	})
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		why := model.NewReason(model.PortTaken, "port", at.Port(), "protocol", "TCP")
		return nil, &engine.Fault{Why: why, Cause: err}
	case err != nil:
		why := model.NewReason(model.ListenFailed, "port", at.Port(), "protocol", "TCP",
			"text", cmp.Or(model.SystemSaid(err), err.Error()))
		return nil, &engine.Fault{Why: why, Cause: err}
	}
	l.port = uint16(l.net.Addr().(*net.TCPAddr).Port)
	l.group.Go(l.accept)
	return l, nil
}

func (l *listener) accept() {
	for {
		conn, err := l.net.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			// Out of descriptors, or the caller left already: neither ends the port.
			l.refused.Add(1)
			if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
				l.starved.Add(1)
			}
			time.Sleep(time.Millisecond)
		case l.admit(conn):
			l.group.Go(func() { l.greet(conn.(*net.TCPConn)) })
		default:
			conn.Close()
		}
	}
}

func (l *listener) admit(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	if len(l.greeted) >= maxGreeted {
		most := 0
		for _, n := range l.from {
			most = max(most, n)
		}
		oldest := slices.IndexFunc(l.greeted, func(c caller) bool { return l.from[c.from] == most })
		l.removeGreeted(oldest).Close() // its greet fails and counts it
	}
	from := conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap().WithZone("")
	c := caller{conn: conn}
	c.from, _ = from.Prefix(min(from.BitLen(), 64))
	l.greeted = append(l.greeted, c)
	l.from[c.from]++
	return true
}

// removeGreeted takes one caller off the list of those that were not admitted yet. The caller of it holds the lock.
func (l *listener) removeGreeted(i int) net.Conn {
	c := l.greeted[i]
	l.greeted = slices.Delete(l.greeted, i, i+1)
	if l.from[c.from]--; l.from[c.from] == 0 {
		delete(l.from, c.from)
	}
	return c.conn
}

// greet finds the end that a caller belongs to and hands the connection over, or closes it.
func (l *listener) greet(conn *net.TCPConn) {
	taken := l.verify(conn)
	l.mu.Lock()
	if i := slices.IndexFunc(l.greeted, func(c caller) bool { return c.conn == conn }); i >= 0 {
		l.removeGreeted(i)
	}
	l.mu.Unlock()
	if !taken {
		l.refused.Add(1)
		conn.Close()
	}
}

func (l *listener) verify(conn *net.TCPConn) bool {
	conn.SetDeadline(time.Now().Add(greetTime))
	var message engine.ConsentMessage
	if _, err := io.ReadFull(conn, message[:]); err != nil {
		return false
	}
	from := conn.RemoteAddr().(*net.TCPAddr).AddrPort()
	e, consent, reply := l.answer(message[:], from)
	if e == nil {
		return false
	}
	if e.takesConnections() {
		e.takeConnection(conn, consent.Stream, reply)
		return true
	}
	for ok := true; ok; reply, ok = consent.Answer(message[:], from) {
		if _, err := conn.Write(reply[:]); err != nil {
			return false
		}
		if consent.Confirmed() {
			conn.SetDeadline(time.Time{})
			return e.take(int(consent.Stream), conn)
		}
		if _, err := io.ReadFull(conn, message[:]); err != nil {
			return false
		}
	}
	return false
}

// answer finds the end that a caller's first message is for, and what it answers; nil: none.
func (l *listener) answer(first []byte, from netip.AddrPort) (*end, *engine.ConsentListener, engine.ConsentMessage) {
	named, _ := engine.ConsentOf(first)
	l.mu.Lock()
	candidates := slices.Clone(l.waiting[route{named.Trial, named.Tag}])
	l.mu.Unlock()
	for _, e := range candidates {
		if stream := int(named.Stream); stream < e.order.Flow.Streams {
			consent := engine.NewConsentListener(e.order.StreamKey(stream))
			if reply, ok := consent.Answer(first, from); ok {
				return e, consent, reply
			}
		}
	}
	return nil, nil, engine.ConsentMessage{}
}

func (l *listener) enter(e *end) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := route{e.order.Trial, e.order.Tag}
	l.waiting[r] = append(l.waiting[r], e)
	l.setDSCP()
}

// setDSCP sets the DSCP with which the kernel answers callers: that of the waiting flows if all have the same, else
// 0. The kernel answers before a caller says which flow it is for.
func (l *listener) setDSCP() {
	dscp, first := 0, true
	for _, ends := range l.waiting {
		for _, e := range ends {
			if wanted := e.order.Flow.DSCP; first || wanted == dscp {
				dscp, first = wanted, false
			} else {
				dscp = -1 // none has it
			}
		}
	}
	if dscp = max(dscp, 0); dscp != l.dscp {
		l.dscp = dscp
		markAnswers(l.net, dscp)
	}
}

func (l *listener) leave(e *end) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := route{e.order.Trial, e.order.Tag}
	l.waiting[r] = slices.DeleteFunc(l.waiting[r], func(o *end) bool { return o == e })
	if len(l.waiting[r]) == 0 {
		delete(l.waiting, r)
	}
	l.setDSCP()
}

func (l *listener) close() error {
	l.mu.Lock()
	l.closed = true
	for _, c := range l.greeted {
		c.conn.Close()
	}
	l.mu.Unlock()
	err := l.net.Close()
	l.group.Wait()
	return err
}
