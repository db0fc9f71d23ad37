package iperf3

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"pelt/engine"
	"pelt/engine/tcp"
	"pelt/engine/udp"
	"pelt/finding"
	"pelt/model"
	"pelt/words"
)

// ServerConfig is how clients are served.
type ServerConfig struct {
	Listen   netip.AddrPort // TCP and UDP; no address is all of the host's
	Sessions int            // clients at once
	Longest  time.Duration  // of a test that ends by an amount of data
	// Welcome says why a host may not come; nil if it may.
	Welcome func(netip.Addr) error
	// Admit says why a test is refused; nil if it is not. A *Denial has a code of its own. others are the tests that are
	// under way.
	Admit func(s *Session, others []*Session) error
	// Run carries out a test by its ends Near and Far, and returns what the client is told beside the figures.
	Run    func(ctx context.Context, s *Session) (text string, err error)
	Events func(error) // one sentence each
}

const (
	// mostGuests bounds the clients that have not said what they want. If there are more, the one that waits longest is
	// closed: a right client says it at once.
	mostGuests = 256
	mostTurns  = 30 * time.Second // that a client waits while others of its host open streams

	// Clients without a result are told of in so many lines in such a time. The next line counts the others.
	mostLines = 20
	linesTime = 10 * time.Second
)

// lines bounds what is told.
type lines struct {
	since      time.Time
	told, more int
}

// next reports whether a line is told now, and how many were not since the one before.
func (l *lines) next(now time.Time) (more int, ok bool) {
	if now.Sub(l.since) >= linesTime {
		l.since, l.told = now, 0
	}
	if l.told >= mostLines {
		l.more++
		return 0, false
	}
	more, l.more = l.more, 0
	l.told++
	return more, true
}

// tell says why a client has no result.
func (s *Server) tell(x *Session, err error) {
	s.mu.Lock()
	more, ok := s.lines.next(time.Now())
	s.mu.Unlock()
	if !ok {
		return
	}
	said := words.Errorf("iperf3 client %v: no result: %w", x.Peer, &finding.Fault{Reason: finding.ReasonOf(err)})
	if more > 0 {
		said = words.Errorf("%w; %d clients before it had none either", said, more)
	}
	s.config.Events(said)
}

// Server serves iperf3 clients, many at once.
type Server struct {
	config   ServerConfig
	listener *net.TCPListener
	port     *net.UDPConn // takes the requests of streams
	udp      *udp.Engine
	tcp      *tcp.Engine

	mu       sync.Mutex
	over     bool
	lines    lines
	guests   []net.Conn // that wait to say what they want, the oldest first
	sessions []*Session
	// opening are the sessions whose streams are being opened, one of a host: requests do not say whose they are.
	opening map[netip.Addr]*Session
}

func Listen(c ServerConfig) (*Server, error) {
	busy := func(kind string, err error) error {
		return words.Errorf("port %d/%s cannot be opened for iperf3 clients: %w; end what uses it, "+
			"or choose another port", c.Listen.Port(), kind, err)
	}
	l, err := net.Listen("tcp", engine.ListenText(c.Listen))
	if err != nil {
		return nil, busy("tcp", err)
	}
	at := netip.AddrPortFrom(c.Listen.Addr(), uint16(l.Addr().(*net.TCPAddr).Port))
	u, err := udp.ListenShared(at)
	if err != nil {
		return nil, errors.Join(busy("udp", err), l.Close())
	}
	return &Server{config: c, listener: l.(*net.TCPListener), port: u, udp: udp.New(udp.Config{}),
		tcp: tcp.New(tcp.Config{}), opening: map[netip.Addr]*Session{}}, nil
}

func (s *Server) Port() uint16 { return uint16(s.listener.Addr().(*net.TCPAddr).Port) }

// Serve serves until ctx ends. Then no client is left.
func (s *Server) Serve(ctx context.Context) {
	var serving sync.WaitGroup
	serving.Go(s.readRequests)
	defer context.AfterFunc(ctx, func() {
		_, _ = s.listener.Close(), s.port.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.over = true
		for _, c := range s.guests {
			_ = c.Close()
		}
	})()
	for number := uint64(0); ctx.Err() == nil; number++ {
		c, err := s.listener.AcceptTCP()
		if err != nil {
			engine.Sleep(ctx, 10*time.Millisecond) // such as that no descriptor is left
			continue
		}
		serving.Go(func() { s.serve(ctx, newSession(s, c, number)) })
	}
	serving.Wait()
}

// come notes a client that has not said what it wants.
func (s *Server) come(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guests = append(s.guests, c); len(s.guests) > mostGuests || s.over {
		_ = s.guests[0].Close()
		s.guests = s.guests[1:]
	}
}

// begun forgets such a client.
func (s *Server) begun(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.guests = slices.DeleteFunc(s.guests, func(guest net.Conn) bool { return guest == c })
}

// errFull says that no place is left. The protocol has a state for it.
var errFull error = finding.NewFault(model.IperfFull)

// serve is the whole life of a connection: of a client, or of a stream of one until its test takes it.
func (s *Server) serve(ctx context.Context, x *Session) {
	s.come(x.control.conn)
	err := x.greet()
	var test *Session // to which the connection belongs
	if err == nil {
		if test = s.testOf(x); test == nil {
			err = x.ask()
		}
	}
	s.begun(x.control.conn)
	if test != nil {
		if !test.join(x) {
			_ = x.control.conn.Close()
		}
		return
	}
	if err == nil {
		err = s.enter(x)
	}
	if err == nil {
		err = x.test(ctx)
		s.leave(x)
	}
	if err != nil && !errors.Is(err, errNothing) && ctx.Err() == nil {
		s.tell(x, err)
	}
	x.end(err)
}

// testOf finds the test whose cookie a connection from the same host brings.
func (s *Server) testOf(x *Session) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, test := range s.sessions {
		if test.cookie == x.cookie && test.Peer == x.Peer {
			return test
		}
	}
	return nil
}

// enter gives a client a place, if its test is allowed.
func (s *Server) enter(x *Session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sessions) >= s.config.Sessions {
		return errFull
	}
	if err := s.config.Admit(x, s.sessions); err != nil {
		return err
	}
	s.sessions = append(s.sessions, x)
	return nil
}

func (s *Server) leave(x *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions = slices.DeleteFunc(s.sessions, func(other *Session) bool { return other == x })
}

// turn waits until no other client of the same host opens streams. The caller ends the turn.
func (s *Server) turn(ctx context.Context, x *Session) error {
	late := time.NewTimer(mostTurns)
	defer late.Stop()
	for {
		s.mu.Lock()
		other := s.opening[x.Peer]
		if other == nil {
			s.opening[x.Peer] = x
		}
		s.mu.Unlock()
		if other == nil {
			return nil
		}
		select {
		case <-other.opened:
		case e := <-x.control.events:
			return e.left()
		case <-late.C:
			return deny(codeStreamNot, model.IperfTurns)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// endTurn ends a client's turn.
func (s *Server) endTurn(x *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.opening, x.Peer)
	close(x.opened)
}

// readRequests opens streams for those who ask. Nothing else is answered.
func (s *Server) readRequests() {
	b := make([]byte, 64)
	for {
		n, from, err := s.port.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			s.request(b[:n], netip.AddrPortFrom(from.Addr().Unmap(), from.Port()))
		}
	}
}

// request opens a stream, if it is the turn of a client at that address. Late data of a test before is longer.
func (s *Server) request(b []byte, from netip.AddrPort) {
	if len(b) != len(request) {
		return
	}
	s.mu.Lock()
	x := s.opening[from.Addr()]
	s.mu.Unlock()
	if x == nil {
		return
	}
	for _, other := range x.take(b, from) {
		s.request(other.Head, other.From)
	}
}
