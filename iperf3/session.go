package iperf3

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"pelt/engine"
	"pelt/engine/udp"
	"pelt/model"
)

const (
	farewell = 2 * time.Second
	vanished = 10 * time.Second // until the kernel gives up a client that answers nothing
)

// Session is one client and its test.
type Session struct {
	Peer  netip.Addr
	Local netip.AddrPort // where the client called

	server  *Server
	control *control
	reads   bool // states of the control connection are read
	asked   asked
	flow    model.Flow

	opened  chan struct{} // closed when its streams are not being opened any more
	sockets *udp.Sockets  // the session owns them
	mu      sync.Mutex
	freed   bool
	streams []engine.Stream
	taken   chan error // one for each stream

	// Set while the test runs; read when it is over.
	theirs   *results // the client's
	ended    error    // what ended the test early
	duration time.Duration
	report   engine.Report // of the end that received
	sent     engine.Sent
}

func newSession(s *Server, c *net.TCPConn) *Session {
	unmapped := func(a net.Addr) netip.AddrPort {
		p := a.(*net.TCPAddr).AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	_ = c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second,
		Count: int(vanished/time.Second) - 1})
	return &Session{server: s, control: makeControl(c), Peer: unmapped(c.RemoteAddr()).Addr(),
		Local: unmapped(c.LocalAddr()), opened: make(chan struct{})}
}

// Flow is the flow that the client asks for.
func (x *Session) Flow() model.Flow { return x.flow }

// Timing is that of the test. An iperf3 client has no warm-up that can be told from the test, so what it omits counts.
func (x *Session) Timing() model.Timing {
	return model.Timing{MeasureSeconds: cmp.Or(float64(x.asked.seconds), x.server.config.Longest.Seconds()),
		DrainSeconds: 3}
}

// errNothing says that a client went away before it said what it wants.
var errNothing = errors.New("the client said nothing")

// ask learns what the client wants.
func (x *Session) ask() error {
	if err := x.server.config.Welcome(x.Peer); err != nil {
		return deny(codeStranger, "%v", err)
	}
	k := x.control
	_ = k.conn.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(k.conn, make([]byte, cookieBytes)); err != nil {
		return errNothing
	}
	_ = k.send(paramExchange) // an error shows when its answer is read
	b, err := k.readJSON(mostParams)
	var left net.Error
	switch {
	case errors.Is(err, errClosed) || errors.As(err, &left):
		return errNothing
	case err != nil:
		return deny(codeParams, "%v", err)
	}
	_ = k.conn.SetReadDeadline(time.Time{})
	if x.asked, err = readAsked(b); err == nil {
		x.flow, err = x.asked.flow()
	}
	return err
}

// test is the test of a client that has a place.
func (x *Session) test(ctx context.Context) error {
	x.reads = true
	go x.control.read()
	err := x.open(ctx)
	defer x.free()
	if err != nil {
		return err
	}
	text, err := x.server.config.Run(ctx, x)
	switch in := x.report.Receive; {
	case x.ended != nil:
		return x.ended
	case err != nil:
		return deny(codeResults, "its test has no account: %v", err)
	case x.theirs == nil || in == nil || len(in.Missing) != x.flow.Streams:
		return deny(codeResults, "its test has no account")
	}
	return x.tell(text)
}

// free closes the sockets of the streams.
func (x *Session) free() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.freed = true; x.sockets != nil {
		_ = x.sockets.Close()
	}
}

// open lets the client open its streams, and makes the end that receives.
func (x *Session) open(ctx context.Context) (err error) {
	o := engine.Order{Flow: x.flow, Timing: x.Timing(), Role: engine.Receive, Listen: true, Trial: 1, CPU: -1,
		MostListed: mostLists / x.server.config.Sessions}
	x.sockets, err = x.server.udp.SocketsFor(thisHost{}, o, clientCodec{trial: o.Trial, wide: x.asked.wide})
	if err != nil {
		return err
	}
	x.taken = make(chan error, x.flow.Streams)
	if err := x.server.turn(ctx, x); err != nil {
		return err
	}
	defer x.server.endTurn(x)
	if err := x.control.send(createStreams); err != nil {
		return err
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	for n := range x.flow.Streams {
		select {
		case err := <-x.taken:
			if err != nil {
				return deny(codeStreamNot, "a stream could not be opened: %v", err)
			}
		case e := <-x.control.events:
			return e.left()
		case <-late.C:
			return deny(codeStreamNot, "%d of its %d streams came over UDP within %v: a firewall may drop UDP to port %d",
				n, x.flow.Streams, patience, x.Local.Port())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// take opens a stream for somebody at the client's address, and answers. It returns what reached the stream's socket for
// others.
func (x *Session) take(b []byte, from netip.AddrPort) []udp.Stray {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := len(x.streams)
	if x.freed || n == x.flow.Streams || slices.ContainsFunc(x.streams, func(s engine.Stream) bool { return s.Remote == from }) {
		return nil
	}
	strays, err := x.sockets.Take(n, x.Local, from)
	if err == nil {
		reply := replyTo(b)
		err = x.sockets.Tell(n, reply[:])
	}
	x.streams = append(x.streams, engine.Stream{Local: x.Local, Remote: from})
	x.taken <- err // it has room for all streams
	return strays
}

// left says why a client in a test is served no more.
func (e event) left() error {
	switch {
	case e.err != nil:
		return errors.New("it closed its control connection before the test was over")
	case e.state == clientTerminate:
		return errors.New("it ended the test early")
	}
	return deny(codeUnknown, "it sent state %d, which no iperf3 client sends then", e.state)
}

// lead has the client send until it says that it is done, and takes its results.
func (x *Session) lead(stopped <-chan struct{}) error {
	k, begun := x.control, time.Now()
	if err := k.write([]byte{byte(testStart), byte(testRunning)}); err != nil {
		return err
	}
	select {
	case e := <-k.events:
		if e.err != nil || e.state != testEnd {
			return e.left()
		}
	case <-stopped:
		return deny(codeRanLong, "it sent for longer than it asked for")
	}
	x.duration = time.Since(begun)
	if err := k.send(exchangeResults); err != nil {
		return err
	}
	b, err := k.readJSON(mostResults)
	var r results
	if err == nil {
		r, err = readResults(b, x.flow.Streams)
	}
	if err != nil {
		return deny(codeResults, "its results: %v", err)
	}
	x.theirs = &r
	return nil
}

// tell gives the client this side's figures: of each stream what did not come of all that was sent.
func (x *Session) tell(text string) error {
	r := results{CPU: 100 * x.report.CPU.ThreadRatio, HasRetransmits: -1}
	if x.asked.output {
		r.Output = text
	}
	in, none, seconds := x.report.Receive, count(0), x.duration.Seconds()
	for i, id := range streamIDs(x.flow.Streams) {
		packets := count(x.sent.Streams[i])
		lost := min(count(in.Missing[i].Packets), packets)
		r.Streams = append(r.Streams, streamResult{ID: id, Bytes: (packets - lost) * count(x.flow.PayloadBytes),
			Retransmits: -1, Jitter: in.Tally.JitterNanos / 1e9, Errors: lost, Packets: packets,
			OmittedErrors: &none, OmittedPackets: &none, End: &seconds})
	}
	if err := x.control.sendJSON(r); err != nil {
		return err
	}
	return x.control.send(displayResults)
}

// end says why the client is not served, if it is not, and closes its connection.
func (x *Session) end(err error) {
	k, denied := x.control, (*Denial)(nil)
	switch {
	case err == nil || errors.Is(err, errNothing):
	case errors.Is(err, errFull):
		_ = k.send(accessDenied)
	case errors.As(err, &denied):
		b := binary.BigEndian.AppendUint32([]byte{0xFE}, uint32(denied.Code))
		_ = k.write(binary.BigEndian.AppendUint32(b, 0)) // and no errno
	default:
		_ = k.send(serverTerminate)
	}
	_ = k.conn.CloseWrite()
	_ = k.conn.SetReadDeadline(time.Now().Add(farewell))
	_, _ = io.Copy(io.Discard, io.LimitReader(k.conn, mostResults)) // else a reset would overtake the last word
	if !x.reads {
		close(k.events)
	}
	_ = k.close()
}
