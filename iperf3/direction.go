package iperf3

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"pelt/engine"
	"pelt/engine/tcp"
	"pelt/engine/udp"
	"pelt/finding"
	"pelt/model"
)

// direction is one flow of a session, as this host sees it.
type direction struct {
	session *Session
	flow    model.Flow

	sockets engine.Transport // the session owns them
	udp     *udp.Sockets     // the same, of a test over UDP
	tcp     tcp.Sockets      // the same, of a test over TCP
	streams []engine.Stream
	gaps    *gaps // of a client that sends over UDP

	// Set while the test runs; read when it is over.
	segments  []uint64      // of each stream over TCP, that came
	report    engine.Report // of this host's end
	sent      engine.Sent   // by the client
	accounted chan struct{} // closed when report is set
}

// directions are those that the client asks for, in the order in which it opens their streams.
func (x *Session) directions() (list []*direction) {
	for _, d := range []*direction{x.up, x.down} {
		if d != nil {
			list = append(list, d)
		}
	}
	return list
}

func (d *direction) sends() bool { return d.flow.From == model.Receiver }

// of are the results of the direction's streams, of those of all.
func (d *direction) of(all []streamResult) []streamResult {
	if n := d.flow.Streams; d.sends() {
		return all[len(all)-n:]
	}
	return all[:d.flow.Streams]
}

// open lets the client open its streams.
func (x *Session) open(ctx context.Context) error {
	x.mu.Lock()
	x.taken = make(chan error, x.Streams())
	x.mu.Unlock()
	for _, d := range x.directions() {
		if err := d.prepare(); err != nil {
			return err
		}
	}
	if !x.asked.udp {
		return x.openTCP(ctx)
	}
	if err := x.server.turn(ctx, x); err != nil {
		return err
	}
	defer x.server.endTurn(x)
	return x.awaitStreams(ctx, "UDP")
}

// order is that of this host's end of a flow.
func (d *direction) order() engine.Order {
	x := d.session
	o := engine.Order{Flow: d.flow, Timing: x.Timing(), Role: engine.Receive, Listen: true, Trial: 1, CPU: -1,
		MostListed: mostLists / x.server.config.Sessions, Key: make([]byte, 32)}
	if d.sends() {
		o.Role = engine.Send
	}
	return o
}

// prepare makes this host's end of a flow, without its streams.
func (d *direction) prepare() (err error) {
	x, o := d.session, d.order()
	if !x.asked.udp {
		d.tcp, err = x.server.tcp.SocketsFor(engine.ThisHost{}, o)
		if refused := new(engine.Refusal); errors.As(err, &refused) && d.flow.Control != "" {
			x.server.mu.Lock()                      // others are admitted by what this one asks for
			d.flow.Control, o.Flow.Control = "", "" // as iperf3 does; the client is told which one it is
			x.server.mu.Unlock()
			d.tcp, err = x.server.tcp.SocketsFor(engine.ThisHost{}, o)
		}
		if err == nil {
			d.sockets = d.tcp
		}
		return err
	}
	if !d.sends() {
		d.gaps = newGaps(d.flow.Streams)
		o.Tap = func(m engine.Meter) engine.Meter { d.gaps.Meter = m; return d.gaps }
	}
	packets := codec{trial: o.Trial, wide: x.asked.wide}
	if d.udp, err = x.server.udp.SocketsFor(engine.ThisHost{}, o, packets); err == nil {
		d.sockets = d.udp
	}
	return err
}

// openTCP opens the streams of a test over TCP. They are numbered as their connections came.
func (x *Session) openTCP(ctx context.Context) error {
	if err := x.awaitStreams(ctx, "TCP"); err != nil {
		return err
	}
	slices.SortFunc(x.joined, func(a, b *Session) int { return cmp.Compare(a.number, b.number) })
	for i, stream := range x.joined {
		conn, d := stream.control.conn, x.directions()[i/x.asked.streams]
		if x.asked.window > 0 {
			_, _ = conn.SetReadBuffer(x.asked.window), conn.SetWriteBuffer(x.asked.window)
		}
		if err := d.tcp.Take(i%x.asked.streams, conn); err != nil {
			return &Denial{codeStreamNot, finding.Because(err, model.IperfUnopened)}
		}
		d.streams = append(d.streams, engine.Stream{Local: x.Local, Remote: stream.remote})
	}
	return nil
}

// awaitStreams has the client open its streams, and waits until all are there.
func (x *Session) awaitStreams(ctx context.Context, protocol string) error {
	if err := x.control.send(createStreams); err != nil {
		return err
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	for n := range x.Streams() {
		select {
		case err := <-x.taken:
			if err != nil {
				return &Denial{codeStreamNot, finding.Because(err, model.IperfUnopened)}
			}
		case e := <-x.control.events:
			return e.left()
		case <-late.C:
			return deny(codeStreamNot, model.IperfMissing, "streams", float64(n), "asked", float64(x.Streams()),
				"protocol", protocol, "within_s", patience.Seconds(), "port", x.Local.Port())
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
	if x.freed || x.asked.udp || x.taken == nil || len(x.joined) == x.Streams() {
		return false
	}
	_ = stream.control.conn.SetReadDeadline(time.Time{})
	x.joined = append(x.joined, stream)
	x.taken <- nil // it has room for all streams
	return true
}

// take opens a stream for somebody at the client's address, and answers. It returns what reached the stream's socket
// for others.
func (x *Session) take(b []byte, from netip.AddrPort) []udp.Stray {
	x.mu.Lock()
	defer x.mu.Unlock()
	known := func(d *direction) bool {
		return slices.ContainsFunc(d.streams, func(s engine.Stream) bool { return s.Remote == from })
	}
	if x.freed || x.count == x.Streams() || slices.ContainsFunc(x.directions(), known) {
		return nil
	}
	d, n := x.directions()[x.count/x.asked.streams], x.count%x.asked.streams
	strays, err := d.udp.Take(n, x.Local, from)
	if err == nil {
		reply := replyTo(b)
		err = d.udp.Tell(n, reply[:])
	}
	d.streams = append(d.streams, engine.Stream{Local: x.Local, Remote: from})
	x.count++
	x.taken <- err // it has room for all streams
	return strays
}

// free closes the sockets of the streams.
func (x *Session) free() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.freed = true
	for _, d := range x.directions() {
		if d.sockets != nil {
			_ = d.sockets.Close()
		}
	}
	for _, stream := range x.joined {
		_ = stream.control.conn.Close()
	}
}

// quiet is how long nothing comes over TCP until what the client still said that it sent is not waited for.
const quiet = 500 * time.Millisecond

// endStreams ends what this host sends over TCP: the client still reads, and may be in the middle of a block.
func (d *direction) endStreams() {
	joined := d.session.joined // the streams of this direction came last
	for _, stream := range joined[len(joined)-d.flow.Streams:] {
		_ = stream.control.conn.CloseWrite()
	}
}

// arrive waits until all that the client sent over TCP has come. Then no more is read.
func (d *direction) arrive(theirs []streamResult) {
	var sent, before uint64
	for _, s := range theirs {
		sent += uint64(s.Bytes)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	x := d.session
	for last := time.Now(); before < sent && time.Since(last) < quiet && x.stopped.Err() == nil; {
		if n := d.sockets.Count().Heard; n > before {
			before, last = n, time.Now()
		}
		select {
		case <-tick.C:
		case <-x.stopped.Done():
		}
	}
	for i := range d.streams {
		d.segments = append(d.segments, d.tcp.Segments(i))
		_ = x.joined[i].control.conn.CloseRead() // the streams of this direction came first
	}
}

// told reports whether this host's end has all that the client is to be told.
func (d *direction) told() bool {
	in := d.report.Receive
	return d.session.theirs != nil && (d.sends() && d.report.Send != nil ||
		in != nil && (!d.session.asked.udp || len(in.Missing) == d.flow.Streams))
}

// own are this side's results of the streams: of those that the client sent over UDP, what did not come of all.
func (d *direction) own() []streamResult {
	list := make([]streamResult, d.flow.Streams)
	for i := range list {
		s := &list[i]
		s.Retransmits = -1
		switch {
		case d.sends():
			*s = sentResult(d.report.Send, i, d.flow.PayloadBytes)
		case d.session.asked.udp:
			in := d.report.Receive
			s.Packets, s.Jitter = count(d.sent.Streams[i]), in.Tally.JitterNanos/1e9
			s.Errors = min(count(in.Missing[i].Packets), s.Packets)
			s.Bytes = (s.Packets - s.Errors) * count(d.flow.PayloadBytes)
		case d.flow.Streams == 1:
			s.Bytes = count(d.report.Receive.Tally.Bytes)
		default:
			s.Bytes = count(d.report.Receive.TCP.PerStream[i].ReceivedBytes)
		}
	}
	return list
}
