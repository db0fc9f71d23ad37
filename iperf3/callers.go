package iperf3

import (
	"context"
	"sync"

	"pelt/engine"
	"pelt/measure"
	"pelt/model"
)

// mostLists bounds the lists of packets of all tests together, in bytes.
const mostLists = 64 << 20

// thisHost is where clients are served.
type thisHost struct{}

// Do runs f here.
func (thisHost) Do(f func() error) error { return f() }

// Near makes the end that receives from the client. It has its sockets already.
func (x *Session) Near() engine.Engine { return sessionEngine{x, engine.Receive} }

// Far makes the end that stands for the client.
func (x *Session) Far() engine.Engine { return sessionEngine{x, engine.Send} }

// sessionEngine makes one of the two ends.
type sessionEngine struct {
	session *Session
	role    engine.Role
}

// Name is that of the engine whose sockets the session has.
func (e sessionEngine) Name() string { return string(e.session.flow.Protocol) }

// Open makes the end; see engine.Engine.
func (e sessionEngine) Open(_ context.Context, _ engine.Host, o engine.Order) (engine.Transport, error) {
	switch {
	case o.Role != e.role || !o.Traffic():
		return nil, refuse("an iperf3 client only sends")
	case e.role == engine.Receive:
		return &servingEnd{e.session.sockets, e.session}, nil
	}
	return &clientEnd{session: e.session, stopped: make(chan struct{})}, nil
}

// servingEnd receives from a client.
type servingEnd struct {
	engine.Transport
	session *Session
}

// Ports are the one port of the server.
func (e *servingEnd) Ports() []uint16 { return e.session.ports() }

// Connect tells of the streams, which are open.
func (e *servingEnd) Connect(context.Context) (engine.Meeting, error) {
	return e.session.meeting(false), nil
}

// Account reports what was received, and keeps it for the client.
func (e *servingEnd) Account(r *engine.Report, sent engine.Sent) {
	e.Transport.Account(r, sent)
	e.session.report, e.session.sent = *r, sent
}

// Close leaves the sockets to the session.
func (e *servingEnd) Close() error { return nil }

func (x *Session) ports() (list []uint16) {
	for range x.flow.Streams {
		list = append(list, x.Local.Port())
	}
	return list
}

// meeting is that of the two ends: by the time that they look for each other, the client has asked and got its answers.
func (x *Session) meeting(client bool) (m engine.Meeting) {
	for _, s := range x.streams {
		if client {
			s.Local, s.Remote = s.Remote, s.Local
		}
		m.Streams = append(m.Streams, engine.MetStream{Stream: s, Met: true, Sent: 1, Heard: 1})
	}
	return m
}

// clientEnd stands for the client.
type clientEnd struct {
	session *Session
	stopped chan struct{}
}

// Ports are the client's.
func (e *clientEnd) Ports() (list []uint16) {
	for _, s := range e.session.streams {
		list = append(list, s.Remote.Port())
	}
	return list
}

// Connect tells of the streams, which are open.
func (e *clientEnd) Connect(context.Context) (engine.Meeting, error) {
	return e.session.meeting(true), nil
}

// Settle does nothing: the client sends when it is told that the test runs.
func (e *clientEnd) Settle([]bool) error { return nil }

// Run returns when the client has sent all, and said how much.
func (e *clientEnd) Run(func()) error {
	e.session.ended = e.session.lead(e.stopped)
	return e.session.ended
}

// Stop ends Run.
func (e *clientEnd) Stop() { close(e.stopped) }

// Count tells nothing: a client reports when the test is over.
func (e *clientEnd) Count() (s engine.Snapshot) { return s }

// Pulse exchanges nothing: a client sends no probes.
func (e *clientEnd) Pulse(uint64, bool) (theirs uint64) { return 0 }

// Account reports what the client sent, by its own account; nothing if it did not say.
func (e *clientEnd) Account(r *engine.Report, _ engine.Sent) {
	x := e.session
	if x.theirs == nil {
		return
	}
	r.Send = &engine.SendReport{DurationNanos: x.duration.Nanoseconds()}
	if x.asked.udp {
		r.Send.Gap, r.Send.GapCounts = x.gaps.told()
	} else {
		r.Send.TCP = &model.TCPFacts{Control: model.Clip(x.theirs.Congestion)}
	}
	for i, s := range x.theirs.Streams {
		sent := uint64(s.Packets)
		if tcp := r.Send.TCP; tcp != nil {
			again := uint64(max(s.Retransmits, 0)) // -1 of a system that does not tell
			sent = x.segments[i] + again           // a client does not tell: each came, or was sent again
			tcp.Retransmits, tcp.SentBytes = tcp.Retransmits+again, tcp.SentBytes+uint64(s.Bytes)
		}
		r.Send.Streams = append(r.Send.Streams, sent)
		r.Send.Attempted += sent
	}
	r.Send.Planned, r.Send.Accepted = r.Send.Attempted, r.Send.Attempted
	if x.flow.Bytes > 0 {
		r.Send.TCP.Completion = &model.Completion{Done: true, Seconds: x.duration.Seconds()}
	}
}

// Close frees nothing: the session owns all.
func (e *clientEnd) Close() error { return nil }

// gaps are the times between a client's sends, by the time stamps of packets that came and were sent one after the
// other. The client's end tells them while the receiving one still waits for what is on the way.
type gaps struct {
	mu    sync.Mutex
	times *measure.Histogram
	last  []model.Arrival // by stream
}

func newGaps(streams int) *gaps {
	return &gaps{times: measure.NewHistogram(streams), last: make([]model.Arrival, streams)}
}

func (g *gaps) observe(stream int, batch []model.Arrival) {
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

// gapMeter is a meter that also times a client's sends.
type gapMeter struct {
	engine.Meter
	gaps *gaps
}

// Observe counts packets; see engine.Meter.
func (g *gapMeter) Observe(stream int, batch []model.Arrival) {
	g.gaps.observe(stream, batch)
	g.Meter.Observe(stream, batch)
}
