package iperf3

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"pelt/engine"
	"pelt/engine/tcp"
	"pelt/engine/udp"
	"pelt/model"
)

const (
	farewell = 2 * time.Second
	vanished = 9 * time.Second // until the kernel gives up a client that answers nothing
)

// Session is one client and its test.
type Session struct {
	Peer  netip.Addr
	Local netip.AddrPort // where the client called

	server  *Server
	control *control
	cookie  [cookieBytes]byte
	number  uint64 // of its connection, in the order in which they came
	remote  netip.AddrPort
	reads   bool // states of the control connection are read
	asked   asked
	flow    model.Flow

	opened  chan struct{}    // closed when its streams are not being opened any more
	sockets engine.Transport // the session owns them
	udp     *udp.Sockets     // the same, of a test over UDP
	tcp     tcp.Sockets      // the same, of a test over TCP
	mu      sync.Mutex
	freed   bool
	streams []engine.Stream
	joined  []*Session // of a test over TCP: its connections, each of which began as a client's
	taken   chan error // one for each stream; nil before they are opened

	// Set while the test runs; read when it is over.
	theirs   *results // the client's
	ended    error    // what ended the test early
	duration time.Duration
	segments []uint64      // of each stream over TCP, that came
	gaps     *gaps         // of UDP
	report   engine.Report // of the end that received
	sent     engine.Sent
}

func newSession(s *Server, c *net.TCPConn, number uint64) *Session {
	unmapped := func(a net.Addr) netip.AddrPort {
		p := a.(*net.TCPAddr).AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	_ = c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second,
		Count: int(vanished/time.Second) - 1})
	remote := unmapped(c.RemoteAddr())
	return &Session{server: s, control: makeControl(c), number: number, remote: remote, Peer: remote.Addr(),
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

// greet reads the cookie, which says whether the connection is a stream of a test that waits for it.
func (x *Session) greet() error {
	if err := x.server.config.Welcome(x.Peer); err != nil {
		return deny(codeStranger, "%v", err)
	}
	_ = x.control.conn.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(x.control.conn, x.cookie[:]); err != nil {
		return errNothing
	}
	return nil
}

// ask learns what the client wants.
func (x *Session) ask() error {
	k := x.control
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
	case x.theirs == nil || in == nil || x.asked.udp && len(in.Missing) != x.flow.Streams:
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
	for _, stream := range x.joined {
		_ = stream.control.conn.Close()
	}
}

// open lets the client open its streams, and makes the end that receives.
func (x *Session) open(ctx context.Context) (err error) {
	o := engine.Order{Flow: x.flow, Timing: x.Timing(), Role: engine.Receive, Listen: true, Trial: 1, CPU: -1,
		MostListed: mostLists / x.server.config.Sessions}
	x.mu.Lock()
	x.taken = make(chan error, x.flow.Streams)
	x.mu.Unlock()
	if !x.asked.udp {
		return x.openTCP(ctx, o)
	}
	x.gaps = newGaps(x.flow.Streams)
	o.Tap = func(m engine.Meter) engine.Meter {
		return &gapMeter{Meter: m, gaps: x.gaps}
	}
	x.udp, err = x.server.udp.SocketsFor(thisHost{}, o, clientCodec{trial: o.Trial, wide: x.asked.wide})
	if err != nil {
		return err
	}
	x.sockets = x.udp
	if err := x.server.turn(ctx, x); err != nil {
		return err
	}
	defer x.server.endTurn(x)
	return x.await(ctx, "UDP")
}

// openTCP opens the streams of a test over TCP. They are numbered as their connections came.
func (x *Session) openTCP(ctx context.Context, o engine.Order) (err error) {
	if x.tcp, err = x.server.tcp.SocketsFor(thisHost{}, o); err != nil {
		return err
	}
	x.sockets = x.tcp
	if err := x.await(ctx, "TCP"); err != nil {
		return err
	}
	slices.SortFunc(x.joined, func(a, b *Session) int { return cmp.Compare(a.number, b.number) })
	for i, stream := range x.joined {
		conn := stream.control.conn
		if x.asked.window > 0 {
			_ = conn.SetReadBuffer(x.asked.window)
		}
		if err := x.tcp.Take(i, conn); err != nil {
			return deny(codeStreamNot, "a stream could not be opened: %v", err)
		}
		x.streams = append(x.streams, engine.Stream{Local: x.Local, Remote: stream.remote})
	}
	return nil
}

// await has the client open its streams, and waits until all are there.
func (x *Session) await(ctx context.Context, protocol string) error {
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
			return deny(codeStreamNot, "%d of its %d streams came over %s within %v: a firewall may drop %s to port %d",
				n, x.flow.Streams, protocol, patience, protocol, x.Local.Port())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// join adds a connection to a test over TCP, if it still wants one.
func (x *Session) join(stream *Session) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.freed || x.asked.udp || x.taken == nil || len(x.joined) == x.flow.Streams {
		return false
	}
	_ = stream.control.conn.SetReadDeadline(time.Time{})
	x.joined = append(x.joined, stream)
	x.taken <- nil // it has room for all streams
	return true
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
	strays, err := x.udp.Take(n, x.Local, from)
	if err == nil {
		reply := replyTo(b)
		err = x.udp.Tell(n, reply[:])
	}
	x.streams = append(x.streams, engine.Stream{Local: x.Local, Remote: from})
	x.taken <- err // it has room for all streams
	return strays
}

// left says why a client in a test is served no more.
func (e event) left() error {
	var late net.Error
	switch {
	case errors.As(e.err, &late) && late.Timeout():
		return fmt.Errorf("it has not answered for %v: the client or the path is gone", vanished)
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
	sends := sending{asked: x.asked}
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for running := true; running; {
		select {
		case e := <-k.events:
			if e.err != nil || e.state != testEnd {
				return e.left()
			}
			running = false
		case now := <-look.C:
			if err := sends.problem(x.sockets.Count().Heard, now.Sub(begun)); err != nil {
				return err
			}
		case <-stopped:
			return deny(codeRanLong, "it sent for longer than it asked for")
		}
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
	if !x.asked.udp {
		x.arrive(r, stopped)
	}
	x.theirs = &r
	return nil
}

// longestSilence of a client that should send is that of iperf3's own server.
const longestSilence = 2 * time.Minute

// sending is how a client sends.
type sending struct {
	asked asked
	heard uint64        // packets over UDP, bytes over TCP
	at    time.Duration // of its test, when they were as many
}

// problem says what is wrong with what was heard so long after the begin of the test. iperf3 sends in bursts, after -O
// those of so many seconds at once.
func (s *sending) problem(heard uint64, after time.Duration) error {
	if heard != s.heard {
		s.heard, s.at = heard, after
	}
	if s.asked.udp {
		heard *= uint64(s.asked.payload)
	}
	const burst = 2 * time.Second
	perSecond, streams := float64(s.asked.bandwidth)/8, float64(s.asked.streams)
	switch {
	case after-s.at >= longestSilence:
		return deny(codeNoData, "it sent nothing for %v", longestSilence)
	case perSecond > 0 && float64(heard) > 2*streams*(perSecond*(after+burst).Seconds()+float64(s.asked.payload)):
		return deny(codeRate, "it sends more than twice the rate that it asked for")
	}
	return nil
}

// quiet is how long nothing comes over TCP until what the client still said that it sent is not waited for.
const quiet = 500 * time.Millisecond

// arrive waits until all that the client sent over TCP has come. Then no more is read.
func (x *Session) arrive(r results, stopped <-chan struct{}) {
	var sent, before uint64
	for _, s := range r.Streams {
		sent += uint64(s.Bytes)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for last, cut := time.Now(), false; before < sent && time.Since(last) < quiet && !cut; {
		if n := x.sockets.Count().Heard; n > before {
			before, last = n, time.Now()
		}
		select {
		case <-tick.C:
		case <-stopped:
			cut = true
		}
	}
	for i, stream := range x.joined {
		x.segments = append(x.segments, x.tcp.Segments(i))
		_ = stream.control.conn.CloseRead()
	}
}

// tell gives the client this side's figures: of each stream what did not come of all that was sent.
func (x *Session) tell(text string) error {
	r := results{CPU: 100 * x.report.CPU.ThreadRatio, HasRetransmits: -1}
	if x.asked.output {
		r.Output = text
	}
	in, none, seconds := x.report.Receive, count(0), x.duration.Seconds()
	for i, id := range streamIDs(x.flow.Streams) {
		one := streamResult{ID: id, Retransmits: -1, OmittedErrors: &none, OmittedPackets: &none, End: &seconds}
		switch {
		case x.asked.udp:
			one.Packets, one.Jitter = count(x.sent.Streams[i]), in.Tally.JitterNanos/1e9
			one.Errors = min(count(in.Missing[i].Packets), one.Packets)
			one.Bytes = (one.Packets - one.Errors) * count(x.flow.PayloadBytes)
		case x.flow.Streams == 1:
			one.Bytes = count(in.Tally.Bytes)
		default:
			one.Bytes = count(in.TCP.PerStream[i].ReceivedBytes)
		}
		r.Streams = append(r.Streams, one)
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
