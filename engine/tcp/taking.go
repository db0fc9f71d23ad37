package tcp

import (
	"net"
	"time"

	"pelt/engine"
	"pelt/model"
)

// takeTicket is the listening end's part of a flow of connections: it answers the ticket
// and keeps the connection or ends it. It reports whether the caller was one of
// this flow's; the connection is no longer the listener's then.
func (e *end) takeTicket(conn *net.TCPConn, stream int, ticket []byte) bool {
	select {
	case <-e.ready: // both ends have consented
	default:
		return false
	}
	if e.failedOrNone() || e.order.Role != engine.Receive {
		return false
	}
	keep := e.order.Flow.Connections == model.ConnectionKeep
	if keep && !e.keep(conn) {
		conn.Close()
		return true
	}
	e.answering.RLock()
	if _, err := conn.Write(makeStub(ticket, e.order.Key)); err == nil {
		e.accountTicket(e.streams[stream], time.Since(e.clock.Began))
	}
	e.answering.RUnlock()
	if keep {
		conn.SetDeadline(time.Time{})
	} else {
		// The end that closes first is left with the waiting state, which holds a
		// port of the calling end for a minute otherwise (RFC 9293 section 3.6.1).
		conn.Close()
	}
	return true
}

// keep holds a connection until the end is closed.
func (e *end) keep(conn *net.TCPConn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	if int64(len(e.kept)) >= e.most {
		e.turnedAway++
		return false
	}
	e.kept = append(e.kept, conn)
	return true
}

func (e *end) accountTicket(s *stream, now time.Duration) {
	e.account(s, ticketBytes, now)
	at := int64(now) - e.origin.Load() - int64(e.order.Timing.Warmup())
	if at < 0 || at >= int64(e.order.Timing.Measure()) {
		return
	}
	s.tickets.Add(1)
	e.stepTickets[at/engine.StepNanos].Add(1)
}

// receivedTickets makes connections what the receiver counted.
func (e *end) receivedTickets(r *engine.ReceiveReport) {
	t := &r.Tally
	t.Received, t.Streams = 0, nil
	for _, s := range e.streams {
		n := s.tickets.Load()
		t.Received, t.Streams = t.Received+n, append(t.Streams, n)
	}
	t.PerStep = load(e.stepTickets)
}

// sampleConnections counts what is established so far, in the measured part.
func (e *end) sampleConnections() (connections, bytes uint64) {
	if e.opening != nil {
		connections = e.opening.established.Load()
		return connections, connections * ticketBytes
	}
	for _, s := range e.streams {
		connections += s.tickets.Load()
		bytes += s.bytes.Load()
	}
	return connections, bytes
}

// dropKept ends what was kept; the caller holds the lock.
func (e *end) dropKept() {
	for _, conn := range e.kept {
		conn.SetLinger(0) // a reset tells the path, too, and leaves nothing behind
		conn.Close()
	}
	e.kept = nil
}
