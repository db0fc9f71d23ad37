package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"pelt/engine"
	"pelt/engine/tcpinfo"
	"pelt/model"
)

// count is a number that one goroutine or several add to while others read it.
type count = atomic.Uint64

// end is one end of one flow.
type end struct {
	host    engine.Host
	order   engine.Order
	clock   engine.Clock
	held    *atomic.Int64 // of the engine: connections that are kept
	message []byte        // what a sender writes
	greet   func(stream int, conn net.Conn) error
	foreign bool // the peer is no pelt, and ends the test

	device        string    // see Config; of a dialing end
	listener      *listener // nil on a dialing end
	release       func() error
	refusedBefore uint64
	starvedBefore uint64
	opener        *opener   // of a flow of connections: the sender's
	watching      *readings // of a sender that reads its TCP_INFO while it runs

	mu      sync.Mutex
	streams []*stream // nil until connected
	joined  int
	closed  bool
	// Of a flow of connections that are kept: the receiver's, beside the streams.
	kept       []*net.TCPConn
	most       int64        // that all ends may keep, so that the rest of this program has descriptors
	why        model.Reason // it may not keep more: Text or Numbers
	turnedAway uint64       // beyond most
	failed     error        // why an accepted connection could not be used
	warnings   model.Reasons
	busiest    float64 // share of a core that the busiest thread used
	span       span

	stopped context.Context // ended by Stop
	stop    context.CancelFunc

	ready chan struct{} // closed when all streams are connected, or failed is set
	first chan struct{} // receiver: closed at the flow's first byte
	idle  chan struct{} // closed when all streams of Run have ended
	over  chan struct{} // closed when a sender's measured part is over

	firstOnce sync.Once

	origin       atomic.Int64 // when the warm-up began, ns after the clock's start; set before first is closed
	firstSeen    atomic.Int64 // receiver, measured part: ns after the clock's start, plus 1; 0 none
	lastSeen     atomic.Int64
	arrived      count // receiver: bytes, warm-up included
	stepSegments []count
	stepTaken    []count      // receiver of connections
	answering    sync.RWMutex // ... read-locked from an answer to its being booked: the sender may be over in between
	stepBytes    []count
}

// span is how the measured part went.
type span struct {
	begun, ended time.Duration // after the origin
	latest       time.Duration // by which a reading came late
	complete     bool
}

// stream is one connection.
type stream struct {
	number int
	conn   *net.TCPConn
	raw    syscall.RawConn

	writes, bytes count         // sender: since the origin; receiver: bytes read in the measured part
	begun         time.Duration // sender: after the origin; its goroutine's until it ends
	done          atomic.Int64  // sender of a number of bytes: all of them acknowledged, ns after the origin; 0 not yet
	sending       atomic.Bool   // sender: it has begun
	asked         time.Duration // receiver of HTTP: when, after the clock's start; its goroutine's until it ends
	answered      time.Duration // likewise when all of the answer was there; 0 not yet
	made          count         // sender with a rate: writes of the measured part
	late          count         // sender with a rate: writes of the measured part not made because it was late
	heldBack      count         // likewise because TCP took no more
	taken         count         // receiver of connections: in the measured part
	phases        [2]engine.Phase
	burst         int    // sender with a rate: most writes made in one go; the writer's until it ends
	control       string // sender: congestion control in use, read back
	ended         error  // why the stream ended, nil at its regular end; its goroutine's until it ends

	mu     sync.Mutex
	opened bool         // the counts begin at last and base
	active bool         // the measured part is running
	known  bool         // the kernel tells its counters
	last   tcpinfo.Info // at the newest reading
	sum    tcpinfo.Sum
	base   written // sender: before the measured part
	wrote  written // sender: in it, at the newest reading
}

type written struct{ writes, bytes uint64 }

// Ports lists the local port of each stream of a listening end.
func (e *end) Ports() []uint16 {
	port := uint16(0)
	if e.listener != nil {
		port = e.listener.port
	}
	return slices.Repeat([]uint16{port}, e.order.Flow.Streams)
}

// Connect makes all streams, each with mutual consent. See engine.Transport. A stream whose first segments nobody
// answers, or somebody refuses, has not met; anything else that keeps a connection from being set up is an error.
func (e *end) Connect(ctx context.Context) (engine.Meeting, error) {
	m := engine.Meeting{Streams: make([]engine.MetStream, len(e.streams))}
	if e.listener == nil {
		if err := e.dialAll(ctx, &m); err != nil {
			return m, err
		}
	} else {
		select {
		case <-e.ready:
		case <-e.stopped.Done():
		case <-ctx.Done():
		}
	}
	if e.stopped.Err() != nil { // the dials above may not have seen it
		return m, fmt.Errorf("connect tcp: %w", errStopped)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed != nil {
		return m, fmt.Errorf("connect tcp: %w", e.failed)
	}
	for i, s := range e.streams {
		if s != nil {
			m.Streams[i].Met, m.Streams[i].Stream = true, engine.Stream{
				Local:  s.conn.LocalAddr().(*net.TCPAddr).AddrPort(),
				Remote: s.conn.RemoteAddr().(*net.TCPAddr).AddrPort()}
		} else if e.listener == nil {
			m.Streams[i].Remote = e.peer(i)
		}
	}
	return m, nil
}

// Settle does nothing: all streams are there, or nothing is carried.
func (e *end) Settle(living []bool) error {
	if slices.Contains(living, false) {
		return errors.New("connect tcp: a flow needs all of its streams")
	}
	return nil
}

// take makes an open connection the stream of that number. It refuses a
// second one, and all once the end is closed.
func (e *end) take(number int, conn *net.TCPConn) bool {
	s, err := e.adopt(number, conn)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.failed != nil || e.streams[number] != nil {
		return false
	}
	if err != nil {
		e.failed = fmt.Errorf("connection %d: %w", number+1, err)
		close(e.ready)
		return false
	}
	e.streams[number] = s
	if e.joined++; e.joined == len(e.streams) {
		close(e.ready)
	}
	return true
}

// adopt makes a stream of an open connection, with the options of the order.
func (e *end) adopt(number int, conn *net.TCPConn) (*stream, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	if e.order.Listen {
		if err := setOptions(raw, e.order, number); err != nil {
			return nil, err
		}
	}
	if asked, granted := e.order.Flow.Window, window(raw, e.order.Role); number == 0 && granted > 0 && granted < asked {
		code := model.ReceiveBufferCut
		if e.order.Role == engine.Send {
			code = model.SendBufferCut
		}
		e.warn(model.NewReason(code, "granted_bytes", float64(granted), "asked_bytes", float64(asked)))
	}
	// Go turns Nagle's algorithm off by itself; bulk data wants it.
	if err := conn.SetNoDelay(!e.order.Flow.Bulk); err != nil {
		return nil, err
	}
	s := &stream{number: number, conn: conn, raw: raw, phases: e.order.Phases(e.order.Schedules(), number, 1, nil)}
	s.last, s.known = readInfo(raw, false)
	s.control = controlInUse(raw)
	return s, nil
}

var longAgo = time.Unix(1, 0)

func (e *end) Run(reading func()) error {
	switch {
	case e.opener != nil:
		return e.openConnections()
	case e.order.Role == engine.Send:
		return e.send()
	}
	reading() // what comes earlier waits for the readers, and holds the sender back
	return e.receive()
}

// Stop ends Run and Connect at once, even while TCP takes or brings nothing.
func (e *end) Stop() {
	e.stop()
	e.interrupt()
}

// Pulse says that TCP has no probe packets.
func (e *end) Pulse(uint64, bool) uint64 { return 0 }

// interrupt wakes every stream that waits in a read or a write.
func (e *end) interrupt() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.streams {
		if s != nil {
			s.conn.SetDeadline(longAgo)
		}
	}
}

// longestOrphan is how long a closed sender's queue may wait for a peer that is gone.
const longestOrphan = 3 * time.Second

// LimitSilence closes a connection whose peer has answered nothing for a while. On Linux that holds for what was sent,
// too; elsewhere for an idle connection only.
func LimitSilence(c *net.TCPConn, d time.Duration) {
	_ = c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second,
		Count: max(int(d/time.Second)-1, 1)})
	if raw, err := c.SyscallConn(); err == nil {
		limitUnanswered(raw, d)
	}
}

// Close frees the connections and, with the last listening end, the port.
func (e *end) Close() error {
	e.mu.Lock()
	e.closed = true
	var errs []error
	for _, s := range e.streams {
		if s == nil {
			continue
		}
		if e.order.Role == engine.Receive || !e.span.complete {
			// A reset leaves nothing behind: no waiting state that holds the
			// port for a minute, no sender that goes on with what it had queued.
			s.conn.SetLinger(0)
		} else {
			limitUnanswered(s.raw, longestOrphan)
		}
		if err := s.conn.Close(); err != nil && !errors.Is(err, os.ErrClosed) && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	e.dropKept()
	release := e.release
	e.release = nil
	e.mu.Unlock()
	if release != nil {
		e.listener.leave(e)
		errs = append(errs, release())
	}
	return errors.Join(errs...)
}

func (e *end) warn(r model.Reason) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.warnings = append(e.warnings, r)
}
