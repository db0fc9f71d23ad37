package iperf3

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"pelt/engine"
	"pelt/engine/udp"
	"pelt/finding"
	"pelt/model"
)

// refused says why an order cannot be carried out with an iperf3 server; nil if it can.
func refused(o engine.Order) error {
	f := o.Flow
	pps, paced := f.Rate.PPS(f.PayloadBytes)
	switch {
	case !o.Traffic():
		return engine.Refuse(model.IperfProbes)
	case f.Streams > mostStreams:
		return engine.Refuse(model.IperfStreams, "streams", float64(mostStreams))
	case o.Timing.WarmupSeconds > 0:
		return engine.Refuse(model.IperfWarmup)
	case paced && f.Protocol == model.UDP && pps/float64(f.Streams)*o.Timing.MeasureSeconds >= 1<<32:
		return engine.Refuse(model.IperfPackets)
	}
	return nil
}

// maker is an engine that makes ends by a function.
type maker struct {
	name string
	open func(context.Context, engine.Host, engine.Order) (engine.Transport, error)
}

func (m maker) Name() string { return m.name }

func (m maker) Open(ctx context.Context, host engine.Host, o engine.Order) (engine.Transport, error) {
	return m.open(ctx, host, o)
}

// standIn is part of each end that stands for an iperf3 program: that tells nothing and answers no probes before the
// test is over, and begins when it is told that the test runs.
type standIn struct{}

func (standIn) Settle([]bool) error                { return nil }
func (standIn) Count() (none engine.Snapshot)      { return none }
func (standIn) Pulse(uint64, bool) (theirs uint64) { return 0 }

// openNear opens the sockets at this host. Those of TCP are only connected later.
func (c *Client) openNear(ctx context.Context, host engine.Host, o engine.Order) (engine.Transport, error) {
	if err := refused(o); err != nil {
		return nil, err
	}
	l, err := c.of(o)
	if err != nil {
		return nil, err
	}
	n := &nearEnd{leg: l, over: make(chan struct{})}
	if o.Flow.Protocol == model.TCP {
		n.Transport, err = c.tcp.OpenFor(ctx, host, o, n.greet)
	} else {
		n.sockets, err = c.openUDP(host, o, l)
		n.Transport = n.sockets
	}
	if err != nil {
		return nil, err
	}
	l.test.mu.Lock()
	l.test.ends++
	l.near = n
	l.test.mu.Unlock()
	n.stopped, n.stop = context.WithCancel(context.Background())
	return n, nil
}

func (c *Client) openUDP(host engine.Host, o engine.Order, l *leg) (*udp.Sockets, error) {
	if o.Role == engine.Send {
		return c.udp.SocketsFor(host, o, codec{trial: o.Trial})
	}
	l.counts = &counter{streams: make([]streamCount, o.Flow.Streams)}
	o.Tap = func(m engine.Meter) engine.Meter { l.counts.Meter = m; return l.counts }
	return c.udp.SocketsFor(host, o, codec{trial: o.Trial})
}

// nearEnd is this host's end of a flow.
type nearEnd struct {
	engine.Transport
	leg     *leg
	sockets *udp.Sockets // nil of TCP
	stopped context.Context
	stop    context.CancelFunc
	over    chan struct{} // closed when it is over, and what was sent is known
}

func (n *nearEnd) Connect(ctx context.Context) (engine.Meeting, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.stopped, cancel)()
	err := n.leg.test.meet(ctx)
	return n.leg.meeting, err
}

// open opens the streams, but the last one of a test in which the server sends. started says that the server has begun.
func (n *nearEnd) open(ctx context.Context, k *control) (started bool, err error) {
	l := n.leg
	if n.sockets == nil {
		l.meeting, err = n.Transport.Connect(ctx)
		if err == nil && slices.ContainsFunc(l.meeting.Streams, func(s engine.MetStream) bool { return !s.Met }) {
			err = finding.NewFault(model.IperfNoData)
		}
		return false, err
	}
	l.meeting = engine.Meeting{}
	for i := range l.order.Flow.Streams {
		one := engine.MetStream{Stream: n.sockets.Stream(i), Met: true}
		if l == l.test.last() && i == l.order.Flow.Streams-1 {
			l.hold(func() error { return n.sockets.Tell(i, request[:]) })
		} else if started, err = l.test.ask(ctx, k, n.sockets, i); err != nil {
			return started, err
		} else {
			one.Sent, one.Heard = 1, 1
		}
		l.meeting.Streams = append(l.meeting.Streams, one)
	}
	return started, nil
}

func (l *leg) hold(last func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = last
}

// greet says on a connection of TCP which test it is of. The server waits for that on the last one, and then sends.
func (n *nearEnd) greet(stream int, conn net.Conn) error {
	l, told := n.leg, false
	say := func() error {
		if told {
			return nil
		}
		told = true
		_, err := conn.Write(l.test.cookie[:])
		return err
	}
	if l == l.test.last() && stream == l.order.Flow.Streams-1 {
		l.hold(say)
		return nil
	}
	return say()
}

// Run carries the packets once the server counts them.
func (n *nearEnd) Run(reading func()) error {
	if !n.leg.down() {
		select {
		case <-n.leg.test.running:
		case <-n.stopped.Done():
		}
	}
	return n.Transport.Run(reading)
}

func (n *nearEnd) Stop() {
	n.stop()
	n.Transport.Stop()
}

// Account reports what was carried, and keeps what was sent for the server, which is told at the end of the test.
func (n *nearEnd) Account(r *engine.Report, sent engine.Sent) {
	defer close(n.over)
	n.Transport.Account(r, sent)
	if r.Send == nil {
		return
	}
	l := n.leg
	l.test.mu.Lock()
	defer l.test.mu.Unlock()
	for i := range r.Send.Streams {
		l.sent = append(l.sent, sentResult(r.Send, i, l.order.Flow.PayloadBytes))
	}
}

func (n *nearEnd) Close() error {
	n.stop()
	n.leg.hold(nil)
	return errors.Join(n.Transport.Close(), n.leg.close())
}

// openFar makes the end of a flow that stands for the server.
func (c *Client) openFar(_ context.Context, _ engine.Host, o engine.Order) (engine.Transport, error) {
	if err := refused(o); err != nil {
		return nil, err
	}
	f := &farEnd{leg: c.begin(o)}
	f.stopped, f.stop = context.WithCancel(context.Background())
	return f, nil
}

// farEnd stands for the server.
type farEnd struct {
	standIn
	leg     *leg
	stopped context.Context
	stop    context.CancelFunc
	took    time.Duration // that the server sent for
}

func (f *farEnd) Ports() []uint16 {
	return slices.Repeat([]uint16{f.leg.test.client.server.Port()}, f.leg.order.Flow.Streams)
}

// Connect waits until the near end has met the server.
func (f *farEnd) Connect(ctx context.Context) (m engine.Meeting, err error) {
	t := f.leg.test
	select {
	case <-t.met:
	case <-ctx.Done():
	case <-f.stopped.Done():
		return m, context.Canceled
	}
	select {
	case <-t.met:
	default: // nothing is known of the streams
		m.Streams = make([]engine.MetStream, f.leg.order.Flow.Streams)
		return m, nil
	}
	if t.err != nil {
		return m, t.err
	}
	for _, s := range f.leg.meeting.Streams {
		s.Local, s.Remote = s.Remote, s.Local
		m.Streams = append(m.Streams, s)
	}
	return m, nil
}

func (f *farEnd) Run(reading func()) error {
	t := f.leg.test
	run := f.receive
	if f.leg.down() {
		run = f.send
	} else if reading(); t.last() != nil { // which ends the test
		select {
		case <-t.over:
		case <-f.stopped.Done():
		}
		return nil
	}
	err := run()
	if err == nil {
		err = t.finish()
	} else {
		close(t.over)
	}
	if err != nil {
		return t.explain(err)
	}
	return nil
}

// receive returns when the server is to be told that all is over: it reads no more from then on. That is when datagrams
// have had time to arrive. Of TCP a queue that drains after the sender's end is not in the figures.
func (f *farEnd) receive() error {
	over := f.stopped.Done()
	if f.leg.order.Flow.Protocol == model.TCP {
		over = f.leg.near.over
	}
	return f.until(over)
}

// until waits, or until the end is stopped, and returns earlier only if the server says something.
func (f *farEnd) until(over <-chan struct{}) error {
	for {
		select {
		case <-over:
			return nil
		case <-f.stopped.Done():
			return nil
		case e, isOpen := <-f.leg.test.control.events:
			if !isOpen {
				return errClosed
			}
			if err := e.problem(testStart, testRunning); err != nil {
				return err
			}
		}
	}
}

// settles is how much longer than the way to the server and back the last packets may take.
const settles = 100 * time.Millisecond

// send has the server send for as long as is ordered. If this host sends, too, its packets then get time to arrive.
func (f *farEnd) send() error {
	t, l := f.leg.test, f.leg
	if err := t.start(f.stopped); err != nil {
		return err
	}
	begun := time.Now()
	close(t.running)
	measured, cancel := context.WithTimeout(f.stopped, l.order.Timing.Measure())
	defer cancel()
	err := f.until(measured.Done())
	if up := t.legs[0]; err == nil && up != l {
		if err = f.until(up.near.over); err == nil && l.order.Flow.Protocol == model.UDP {
			late, cancel := context.WithTimeout(context.Background(), 2*t.trip+settles)
			defer cancel()
			err = f.until(late.Done())
		}
	}
	f.took = time.Since(begun)
	return err
}

func (f *farEnd) Stop() { f.stop() }

// Account reports what the server did; nothing if it did not say.
func (f *farEnd) Account(r *engine.Report, sent engine.Sent) {
	l := f.leg
	streams := l.theirs()
	if streams == nil {
		return
	}
	all := l.test.results
	peer := model.PeerReport{Program: all.program(l.test.reply), CPURatio: all.CPU / 100}
	r.CPU.ThreadRatio = min(peer.CPURatio, 1)
	switch {
	case l.down():
		r.Send = l.sentReport(f.took)
		r.Send.Peer = &peer
	default:
		r.Receive = receivedReport(l.order.Flow, streams, peer, sent.Streams)
	}
}

func (f *farEnd) Close() error {
	f.stop()
	return f.leg.close()
}
