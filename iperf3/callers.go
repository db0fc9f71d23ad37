package iperf3

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"pelt/engine"
	"pelt/finding"
	"pelt/measure"
	"pelt/model"
)

// mostLists bounds the lists of packets of all tests together, in bytes.
const mostLists = 64 << 20

// Near makes this host's ends. They have their sockets already.
func (x *Session) Near() engine.Engine { return x.side(true) }

// Far makes the ends that stand for the client.
func (x *Session) Far() engine.Engine { return x.side(false) }

// side is called as the engine whose sockets the session has.
func (x *Session) side(near bool) engine.Engine {
	name := model.TCP
	if x.asked.udp {
		name = model.UDP
	}
	return maker{string(name), func(_ context.Context, _ engine.Host, o engine.Order) (engine.Transport, error) {
		d := x.up
		if near == (o.Role == engine.Send) {
			d = x.down
		}
		switch {
		case d == nil || !o.Traffic():
			return nil, engine.Refuse(model.IperfUnasked)
		case near:
			return &servingEnd{Transport: d.sockets, direction: d}, nil
		}
		return &clientEnd{direction: d}, nil
	}}
}

// meeting is that of the two ends: by the time that they look for each other, the client has asked and got its answers.
func (d *direction) meeting(client bool) (m engine.Meeting) {
	for _, s := range d.streams {
		if client {
			s.Local, s.Remote = s.Remote, s.Local
		}
		m.Streams = append(m.Streams, engine.MetStream{Stream: s, Met: true, Sent: 1, Heard: 1})
	}
	return m
}

// servingEnd is this host's end of a flow.
type servingEnd struct {
	engine.Transport
	*direction
	over sync.Once
}

// Ports are the one port of the server.
func (e *servingEnd) Ports() []uint16 {
	return slices.Repeat([]uint16{e.session.Local.Port()}, e.flow.Streams)
}

// Connect tells of the streams, which are open.
func (e *servingEnd) Connect(context.Context) (engine.Meeting, error) { return e.meeting(false), nil }

// Run carries the packets. An end that sends stops as soon as the client has all that it waited for, or is gone. It
// returns when the client has said what came.
func (e *servingEnd) Run(reading func()) error {
	if !e.sends() {
		return e.Transport.Run(reading)
	}
	x, over := e.session, make(chan struct{})
	var watching sync.WaitGroup
	x.begin()
	watching.Go(func() {
		select {
		case <-x.ending:
			e.halt()
		case <-over:
		}
	})
	err := e.Transport.Run(reading)
	close(over)
	watching.Wait()
	if err == nil && !x.asked.udp {
		<-x.ending
		e.endStreams()
	}
	if err != nil {
		select {
		case <-x.led: // which may be why
		case <-time.After(farewell):
			x.stop(&Denial{codeNotSent, finding.Because(err, model.IperfSendFailed)})
		}
	}
	<-x.led
	return cmp.Or(x.ended, err)
}

func (e *servingEnd) halt() { e.over.Do(e.Transport.Stop) }

func (e *servingEnd) Stop() {
	if e.sends() {
		e.session.stop(errLong)
	}
	e.halt()
}

// Account reports what was carried, and keeps it for the client.
func (e *servingEnd) Account(r *engine.Report, sent engine.Sent) {
	defer close(e.accounted)
	e.Transport.Account(r, sent)
	x := e.session
	if theirs := x.said(); r.Send != nil && x.asked.udp && theirs != nil {
		leaveOut(r.Send, e.of(theirs.Streams), x.trip+mostStall)
	}
	e.report, e.direction.sent = *r, sent
}

// Close leaves the sockets to the session.
func (e *servingEnd) Close() error { return nil }

// clientEnd stands for the client.
type clientEnd struct {
	standIn
	*direction
}

func (e *clientEnd) Ports() (list []uint16) {
	for _, s := range e.streams {
		list = append(list, s.Remote.Port())
	}
	return list
}

// Connect tells of the streams, which are open.
func (e *clientEnd) Connect(context.Context) (engine.Meeting, error) { return e.meeting(true), nil }

// Run returns when the client has said what it sent, or received.
func (e *clientEnd) Run(reading func()) error {
	x := e.session
	if !e.sends() {
		x.begin()
		<-x.led
		return x.ended
	}
	reading()
	select {
	case <-e.accounted: // by the end that sends
	case <-x.stopped.Done():
	}
	return nil
}

func (e *clientEnd) Stop() { e.session.stop(errLong) }

// Account reports what the client did, by its own account; nothing if it did not say.
func (e *clientEnd) Account(r *engine.Report, _ engine.Sent) {
	x := e.session
	theirs := x.said()
	if theirs == nil {
		return
	}
	streams := e.of(theirs.Streams)
	peer := model.PeerReport{Program: x.program(), CPURatio: theirs.CPU / 100}
	r.CPU.ThreadRatio = min(peer.CPURatio, 1)
	if e.sends() {
		if x.asked.omit > 0 { // its bytes are those after the omitted seconds, its packets all
			streams = slices.Clone(streams)
			for i := range streams {
				streams[i].Bytes = max(0, streams[i].Packets-streams[i].Errors) * count(e.flow.PayloadBytes)
			}
		}
		r.Receive = receivedReport(e.flow, streams, peer, e.sentStreams())
		return
	}
	r.Send = &engine.SendReport{DurationNanos: x.duration.Nanoseconds(), Peer: &peer}
	if x.asked.udp {
		r.Send.Gap, r.Send.GapCounts = e.gaps.told()
	} else {
		r.Send.TCP = &model.TCPFacts{Control: model.Clip(theirs.Congestion)}
	}
	for i, s := range streams {
		sent := uint64(s.Packets)
		if tcp := r.Send.TCP; tcp != nil {
			again := uint64(max(s.Retransmits, 0)) // -1 of a system that does not tell
			sent = e.segments[i] + again           // a client does not tell: each came, or was sent again
			tcp.Retransmits, tcp.SentBytes = tcp.Retransmits+again, tcp.SentBytes+uint64(s.Bytes)
		}
		r.Send.Streams = append(r.Send.Streams, sent)
		r.Send.Attempted += sent
	}
	r.Send.Planned, r.Send.Accepted = r.Send.Attempted, r.Send.Attempted
	if e.flow.Bytes > 0 {
		r.Send.TCP.Completion = &model.Completion{Done: true, Seconds: x.duration.Seconds()}
	}
}

// sentStreams is what this host sent of each stream; nil before that is known.
func (d *direction) sentStreams() []uint64 {
	select {
	case <-d.accounted:
		if d.report.Send != nil {
			return d.report.Send.Streams
		}
	default:
	}
	return nil
}

// Close frees nothing: the session owns all.
func (e *clientEnd) Close() error { return nil }

// gaps are the times between a client's sends, by the time stamps of packets that came and were sent one after the
// other. The client's end tells them while the receiving one still waits for what is on the way.
type gaps struct {
	engine.Meter // of the end that receives

	mu    sync.Mutex
	times *measure.Histogram
	last  []model.Arrival // by stream
}

func newGaps(streams int) *gaps {
	return &gaps{times: measure.NewHistogram(streams), last: make([]model.Arrival, streams)}
}

// Observe times a client's sends, and counts their packets; see engine.Meter.
func (g *gaps) Observe(stream int, batch []model.Arrival) {
	defer g.Meter.Observe(stream, batch)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range batch {
		last := &g.last[stream]
		if last.Bytes > 0 && a.Sequence == last.Sequence+1 && a.SendNanos >= last.SendNanos {
			g.times.Record(stream, int64(a.SendNanos-last.SendNanos), 1)
		}
		*last = a
	}
}

func (g *gaps) told() (*model.Percentiles, []model.Bucket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.times.Percentiles(), g.times.Buckets()
}
