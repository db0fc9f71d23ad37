package tcp

import (
	"net"
	"time"

	"pelt/engine"
	"pelt/model"
)

// The model tells people what a connection carries.
var _ = [1]struct{}{}[engine.ConsentBytes-model.ConnectionMessageBytes]

// takesConnections reports whether callers are further connections of a flow of them: both ends
// have consented on its streams.
func (e *end) takesConnections() bool {
	if e.order.Flow.Connections == "" || e.order.Role != engine.Receive {
		return false
	}
	select {
	case <-e.ready:
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.failed == nil
	default:
		return false
	}
}

// takeConnection answers a caller and keeps the connection or ends it.
func (e *end) takeConnection(conn *net.TCPConn, stream uint8, answer engine.ConsentMessage) {
	keep := e.order.Flow.Connections == model.ConnectionKeep
	if keep && !e.keepOpen(conn) {
		conn.Close()
		return
	}
	e.answering.RLock()
	if _, err := conn.Write(answer[:]); err == nil {
		e.countConnection(e.streams[stream], time.Since(e.clock.Began))
	}
	e.answering.RUnlock()
	if keep {
		conn.SetDeadline(time.Time{})
	} else {
		// The end that closes first is left with the waiting state, which holds a
		// port of the calling end for a minute otherwise (RFC 9293 section 3.6.1).
		conn.Close()
	}
}

// keepOpen holds an accepted connection until the end is closed; false if the end is closed, or has as many as it
// may.
func (e *end) keepOpen(conn *net.TCPConn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	if e.held.Add(1) > e.most {
		e.held.Add(-1)
		e.turnedAway++
		return false
	}
	e.kept = append(e.kept, conn)
	return true
}

func (e *end) countConnection(s *stream, now time.Duration) {
	e.account(s, engine.ConsentBytes, now)
	at := int64(now) - e.origin.Load() - int64(e.order.Timing.Warmup())
	if at < 0 || at >= int64(e.order.Timing.Measure()) {
		return
	}
	s.taken.Add(1)
	e.stepTaken[at/engine.StepNanos].Add(1)
}

// receivedConnections makes connections what the receiver counted.
func (e *end) receivedConnections(r *engine.ReceiveReport) {
	t := &r.Tally
	t.Received = 0
	for _, s := range e.streams {
		t.Received += s.taken.Load()
	}
	t.PerStep = load(e.stepTaken)
}

// sampleConnections counts what is established so far, in the measured part.
func (e *end) sampleConnections() (connections, bytes uint64) {
	if e.opener != nil {
		connections = e.opener.established.Load()
		return connections, connections * engine.ConsentBytes
	}
	for _, s := range e.streams {
		connections += s.taken.Load()
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
	e.held.Add(-int64(len(e.kept)))
	e.kept = nil
}
