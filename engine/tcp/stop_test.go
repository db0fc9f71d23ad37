package tcp

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/unit"
)

// within checks that f does not take as long as what it ends, which has a minute.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if d := time.Since(start); d > testenv.Patience {
		t.Errorf("%s took %v", what, d)
	}
}

// Nobody reads, so the sender's write blocks; Stop must wake it.
func TestStopWhileWriteBlocks(t *testing.T) {
	p := newPair(t, here{}, "127.0.0.1", false, flow(2, 1<<20, true), timing(0, time.Minute, 0))
	p.connect()
	ended := p.sender.background(t.Context())
	for last := uint64(0); ; { // until the bytes stand still
		time.Sleep(20 * time.Millisecond)
		_, now := p.sender.sample()
		if now == last && now > 0 {
			break
		}
		last = now
	}
	within(t, "stopping a blocked sender", func() {
		p.sender.Stop()
		if err := <-ended; err != nil {
			t.Errorf("a stopped sender says %v", err)
		}
	})
	r := p.sender.account()
	if r.Send.Attempted == 0 || r.Send.TCP.SentBytes == 0 {
		t.Errorf("after Stop: %d segments, %d bytes; what was measured must stay", r.Send.Attempted, r.Send.TCP.SentBytes)
	}
	within(t, "closing", p.close)
}

// What was not due yet when a sender was stopped was neither held back nor planned.
func TestStopEndsTheSchedule(t *testing.T) {
	const pps, wanted = 10_000, 600_000 // so that the sender spins, and is found in a write
	f := flow(1, 64, false)
	f.Rate = unit.PacketRate(pps)
	p := newPair(t, here{}, "127.0.0.1", false, f, timing(0, wanted/pps*time.Second, 0))
	p.connect()
	ended := make(chan error, 1)
	received := p.receiver.background(t.Context())
	go func() { ended <- p.sender.run(t.Context()) }()
	testenv.Await(t, "100 writes", func() bool { return p.sender.t.streams[0].made.Load() >= 100 })
	p.sender.Stop()
	p.receiver.Stop()
	if err := errors.Join(<-ended, <-received); err != nil {
		t.Errorf("after Stop: %v", err)
	}
	r := p.sender.account()
	due := uint64(r.Send.DurationNanos * pps / 1e9)
	held := p.sender.t.streams[0].heldBack.Load()
	if due >= wanted/2 || r.Send.TCP.Writes+held > wanted/2 || r.Send.Attempted > 0 && r.Send.Planned > wanted/2 {
		t.Errorf("of %d writes %d were due when it was stopped: made %d, held back %d, planned %d segments of %d; warned %q", wanted, due, r.Send.TCP.Writes, held, r.Send.Planned, r.Send.Attempted, r.Warnings)
	}
	within(t, "closing", p.close)
}

func TestStopIdleReceiver(t *testing.T) {
	p := newPair(t, here{}, "127.0.0.1", true, flow(2, 64, false), timing(0, time.Minute, 0))
	p.connect()
	ctx, cancel := context.WithCancel(t.Context())
	ended := p.receiver.background(ctx)
	within(t, "cancelling an idle receiver", func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("a cancelled receiver says %v", err)
		}
	})
}

func TestStopWhileConnecting(t *testing.T) {
	p := newPair(t, here{}, "127.0.0.1", false, flow(2, 64, false), timing(0, time.Minute, 0))
	ended := make(chan error, 1)
	go func() { ended <- p.receiver.connect(t.Context()) }()
	within(t, "stopping a waiting listener", func() {
		p.receiver.Stop()
		if err := <-ended; err == nil {
			t.Error("a stopped Connect says nothing")
		}
	})
}

// Nobody calls: the listening end says how many streams came.
func TestConnectEndsWithContext(t *testing.T) {
	p := newPair(t, here{}, "127.0.0.1", false, flow(2, 64, false), timing(0, time.Minute, 0))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := p.receiver.connect(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "0 of 2 streams") {
		t.Errorf("without a peer: %v", err)
	}
}

// The receiving host dies (its connections are reset): the sender ends by
// itself with the reason, and keeps what it measured.
func TestPeerDies(t *testing.T) {
	p := newPair(t, here{}, "127.0.0.1", false, flow(2, 1000, true), timing(0, time.Minute, 0))
	p.connect()
	ended := p.sender.background(t.Context())
	testenv.Await(t, "segments", func() bool { n, _ := p.sender.sample(); return n > 10 })
	within(t, "noticing that the peer died", func() {
		p.receiver.Close()
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "ended early") {
			t.Errorf("the sender says %v", err)
		}
	})
	r := p.sender.account()
	if len(r.Send.Errors) == 0 || len(r.Warnings) == 0 || r.Send.Attempted == 0 {
		t.Errorf("report: %+v, send %+v", r, *r.Send)
	}
	t.Logf("errors %v, warnings %q", r.Send.Errors, r.Warnings)
}

// The sending host dies: the receiver waits for Finish, which returns at once.
func TestSenderDies(t *testing.T) {
	f := flow(2, 1000, false)
	f.Rate = unit.PacketRate(1000)
	p := newPair(t, here{}, "127.0.0.1", false, f, timing(0, time.Minute, time.Minute))
	p.connect()
	received := p.receiver.background(t.Context())
	go p.sender.run(t.Context())
	testenv.Await(t, "bytes", func() bool { _, n := p.receiver.sample(); return n > 0 })
	p.sender.Stop()
	p.sender.Close()
	within(t, "finishing after the sender died", func() {
		if err := p.receiver.Drain(t.Context(), engine.Sent{}); err != nil {
			t.Errorf("finish: %v", err)
		}
		if err := <-received; err != nil {
			t.Errorf("receive: %v", err)
		}
	})
	if r := p.receiver.account(); r.Receive.Tally.Bytes == 0 {
		t.Errorf("what had arrived is lost: %+v", r.Receive.Tally)
	}
}

// An end whose accepted connection could not be used does not run without it.
func TestRunWithoutAStream(t *testing.T) {
	o := engine.Order{Flow: flow(1, 64, false), Timing: timing(0, time.Second, time.Second), Role: engine.Send, Key: make([]byte, engine.KeyBytes), Listen: true}
	broken := New(Config{}).newEnd(here{}, o)
	broken.listener = &listener{}
	broken.failed = errors.New("no such option")
	close(broken.ready)
	e := testEnd{engine.NewEnd(o, broken), broken}
	if err := e.connect(t.Context()); !errors.Is(err, broken.failed) {
		t.Errorf("it connected: %v", err)
	}
	if err := e.run(t.Context()); err == nil {
		t.Error("it ran")
	}
}

// A connection that comes when the end is closed is no stream of it: nobody would close it.
func TestNoStreamAfterClose(t *testing.T) {
	leakCheck(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, closed := range []bool{true, false} {
		e := &end{order: engine.Order{Flow: flow(1, 64, false)}, streams: make([]*stream, 1), ready: make(chan struct{}), closed: closed}
		if taken := e.take(0, conn.(*net.TCPConn)); taken == closed {
			t.Errorf("closed %v: taken %v", closed, taken)
		}
	}
}
