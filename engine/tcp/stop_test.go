package tcp

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"pelt/engine"
	"pelt/engine/enginetest"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/unit"
)

// start begins to send or to receive.
func (p *pair) start(ends ...testEnd) {
	p.t.Helper()
	for _, e := range ends {
		testenv.Must(p.t, e.Start(p.t.Context()))
	}
}

// stop ends both ends and waits for them; one that was not started ends with its Close.
func (p *pair) stop(ends ...testEnd) {
	p.t.Helper()
	for _, e := range ends {
		e.Stop()
	}
	for _, e := range ends {
		if err := e.Wait(p.t); err != nil {
			p.t.Errorf("a stopped %s says %v", e.Order.Role, err)
		}
	}
}

// Nobody reads, so the sender's write blocks; Stop must wake it.
func TestStopWhileWriteBlocks(t *testing.T) {
	p := newPair(t, enginetest.Here{}, "127.0.0.1", false, flow(2, 1<<20, true), timing(0, time.Hour, 0))
	p.Connect()
	p.start(p.sender)
	for last := uint64(0); ; { // until the bytes stand still
		time.Sleep(20 * time.Millisecond)
		now := p.sender.Snapshot().Bytes
		if now == last && now > 0 {
			break
		}
		last = now
	}
	p.stop(p.sender)
	if r := p.sender.Account(); r.Send.Attempted == 0 || r.Send.TCP.SentBytes == 0 {
		t.Errorf("after Stop: %d segments, %d bytes; what was measured must stay", r.Send.Attempted,
			r.Send.TCP.SentBytes)
	}
}

// What was not due yet when a sender was stopped was neither held back nor planned.
func TestStopEndsTheSchedule(t *testing.T) {
	const pps, wanted = 10_000, 10_000 * 3600 // so that the sender spins, and is found in a write
	f := flow(1, 64, false)
	f.Rate = unit.PacketRate(pps)
	p := newPair(t, enginetest.Here{}, "127.0.0.1", false, f, timing(0, wanted/pps*time.Second, 0))
	p.Connect()
	p.start(p.receiver, p.sender)
	testenv.Await(t, "100 writes", func() bool { return p.sender.t.streams[0].made.Load() >= 100 })
	p.stop(p.sender, p.receiver)
	r := p.sender.Account()
	held := p.sender.t.streams[0].heldBack.Load()
	if r.Send.TCP.Writes+held > wanted/2 || r.Send.Attempted > 0 && r.Send.Planned > wanted/2 {
		t.Errorf("of %d writes: made %d, held back %d, planned %d segments of %d; warned %v", wanted,
			r.Send.TCP.Writes, held, r.Send.Planned,
			r.Send.Attempted, r.Warnings)
	}
}

// The receiving host dies (its connections are reset): the sender ends by itself with the reason, and keeps what it
// measured.
func TestPeerDies(t *testing.T) {
	p := newPair(t, enginetest.Here{}, "127.0.0.1", false, flow(2, 1000, true), timing(0, time.Hour, 0))
	p.Connect()
	p.start(p.sender)
	testenv.Await(t, "segments", func() bool { return p.sender.Snapshot().Packets > 10 })
	p.receiver.Close()
	if err := p.sender.Wait(t); err == nil || !strings.Contains(err.Error(), model.StreamsEnded) {
		t.Errorf("the sender says %v", err)
	}
	if r := p.sender.Account(); len(r.Send.Errors) == 0 || len(r.Warnings) == 0 || r.Send.Attempted == 0 {
		t.Errorf("report: %+v, send %+v", r, *r.Send)
	}
}

// The sending host dies: the receiver's drain ends at once, not after its hour.
func TestSenderDies(t *testing.T) {
	f := flow(2, 1000, false)
	f.Rate = unit.PacketRate(1000)
	p := newPair(t, enginetest.Here{}, "127.0.0.1", false, f, timing(0, time.Hour, time.Hour))
	p.Connect()
	p.start(p.receiver, p.sender)
	testenv.Await(t, "bytes", func() bool { return p.receiver.Snapshot().Bytes > 0 })
	p.sender.Close()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	if err := p.receiver.Drain(ctx, engine.Sent{}); err != nil {
		t.Errorf("drain: %v", err)
	}
	if r, err := p.receiver.Report(); err != nil || r.Receive.Tally.Bytes == 0 {
		t.Errorf("%v: what had arrived is lost: %+v", err, r.Receive.Tally)
	}
}

// An end whose accepted connection could not be used does not connect without it.
func TestUnusableConnection(t *testing.T) {
	o := engine.Order{Flow: flow(1, 64, false), Timing: timing(0, time.Second, time.Second), Role: engine.Send,
		Key: make([]byte, engine.KeyBytes), Listen: true}
	broken := New(Config{}).newEnd(enginetest.Here{}, o)
	broken.listener = &listener{}
	broken.failed = errors.New("no such option")
	close(broken.ready)
	if _, err := broken.Connect(t.Context()); !errors.Is(err, broken.failed) {
		t.Errorf("it connected: %v", err)
	}
}

// A connection that comes when the end is closed is no stream of it: nobody would close it.
func TestNoStreamAfterClose(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testenv.Must(t, err)
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	testenv.Must(t, err)
	defer conn.Close()
	for _, closed := range []bool{true, false} {
		e := &end{order: engine.Order{Flow: flow(1, 64, false)}, streams: make([]*stream, 1),
			ready: make(chan struct{}), closed: closed}
		if taken := e.take(0, conn.(*net.TCPConn)); taken == closed {
			t.Errorf("closed %v: taken %v", closed, taken)
		}
	}
}
