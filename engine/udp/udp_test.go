package udp

import (
	"bytes"
	"context"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/unit"
)

// here is the machine that the test runs on.
type here struct{}

func (here) Do(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return f()
}

// trial is one flow between two hosts, ready to be run.
type trial struct {
	flow         model.Flow
	timing       model.Timing
	peer         netip.Addr
	dialer       engine.Role // Send (default), Receive or Probe
	near, far    engine.Host // dialer's and listener's; nil is here
	plain        bool
	surveys      bool
	number, tag  uint16
	key          []byte
	nearE, farE  *Engine
	cpu          int
	duringTheRun func(dialer, listener testEnd)
	// backlog is how many packets the backlog of this machine dropped in the run: it is one for all programs and namespaces.
	backlog uint64
}

// mostShifted is how many drops of the warm-up a stream may count as measured, and the other way round: a sender that the
// kernel moves to another core overtakes what is left of its batch.
const mostShifted = 64

// newTrial is a paced flow over loopback for a quarter of a second. A second without packets ends its drain.
func newTrial() trial {
	return trial{
		flow:   model.Flow{Name: "up", Protocol: model.UDP, From: "sender", To: "receiver", PayloadBytes: 64, Rate: unit.PacketRate(2000), Streams: 1},
		timing: model.Timing{WarmupSeconds: 0.05, MeasureSeconds: 0.25, DrainSeconds: 20},
		peer:   netip.MustParseAddr("127.0.0.1"),
		number: 5, tag: 1, key: bytes.Repeat([]byte{7}, 32), cpu: -1,
		dialer: engine.Send,
	}
}

func testEngine(t testing.TB, plainSockets bool) *Engine {
	e := New(Config{})
	if plainSockets {
		e.socketMaker = portable{}
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close the engine: %v", err)
		}
	})
	return e
}

// testEnd is an end and the sockets it runs over.
type testEnd struct {
	*engine.End
	t *Sockets
}

func prepare(e *Engine, host engine.Host, o engine.Order) (testEnd, error) {
	s, err := e.Sockets(host, o)
	return testEnd{engine.NewEnd(o, s), s}, err
}

func (e testEnd) connect(ctx context.Context) error {
	_, err := e.Connect(ctx)
	return err
}

// run returns once traffic has ended.
func (e testEnd) run(ctx context.Context) error {
	defer context.AfterFunc(ctx, e.Stop)()
	if err := e.Start(ctx); err != nil {
		return err
	}
	<-e.Done()
	_, err := e.Report()
	return err
}

// start starts ends in order, and returns what waits for them.
func start(t testing.TB, ends ...testEnd) (wait func()) {
	t.Helper()
	for _, e := range ends {
		if err := e.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		t.Helper()
		for _, e := range ends {
			<-e.Done()
			if _, err := e.Report(); err != nil {
				t.Error(err)
			}
		}
	}
}

func (e testEnd) account() engine.Report {
	r, _ := e.Report()
	return r
}

func (e testEnd) sample() (packets, bytes uint64) {
	n := e.Snapshot()
	return n.Packets, n.Bytes
}

// sends has a trial last until each stream has attempted so many packets, and no longer than a minute.
func (r *trial) sends(t testing.TB, packets uint64) {
	r.timing.MeasureSeconds = 60
	r.duringTheRun = func(dialer, listener testEnd) {
		from := dialer
		if r.dialer == engine.Receive {
			from = listener
		}
		for _, w := range from.t.role.(*sender).streams {
			testenv.Await(t, "packets", func() bool { return w.attempted.Load() >= packets })
		}
		from.Stop()
	}
}

// prepare makes both ends; they are closed with the test.
func (r *trial) prepare(t testing.TB) (dialer, listener testEnd) {
	t.Helper()
	if r.near == nil {
		r.near = here{}
	}
	if r.far == nil {
		r.far = here{}
	}
	if r.nearE == nil {
		r.nearE = testEngine(t, r.plain)
	}
	if r.farE == nil {
		r.farE = testEngine(t, r.plain)
	}
	other := map[engine.Role]engine.Role{engine.Send: engine.Receive, engine.Receive: engine.Send, engine.Probe: engine.Echo}[r.dialer]
	order := engine.Order{Flow: r.flow, Timing: r.timing, Role: other, Listen: true, Trial: r.number, Tag: r.tag, Key: r.key, OneClock: true, CPU: -1, Survey: r.surveys}
	if r.cpu >= 0 {
		order.CPU = r.cpu + 1
	}
	listener, err := prepare(r.farE, r.far, order)
	if err != nil {
		t.Fatalf("prepare the listener: %v", err)
	}
	t.Cleanup(func() { listener.Close() })
	order.Listen, order.Role, order.Peer, order.Ports, order.CPU = false, r.dialer, r.peer, listener.Ports(), r.cpu
	dialer, err = prepare(r.nearE, r.near, order)
	if err != nil {
		t.Fatalf("prepare the dialer: %v", err)
	}
	t.Cleanup(func() { dialer.Close() })
	return dialer, listener
}

func connectBoth(t testing.TB, dialer, listener testEnd) (near, far []engine.Stream) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	heard := make(chan error, 1)
	go func() {
		var err error
		far, err = listener.Connect(ctx)
		heard <- err
	}()
	near, err := dialer.Connect(ctx)
	if err != nil {
		t.Fatalf("dialer: %v", err)
	}
	if err := <-heard; err != nil {
		t.Fatalf("listener: %v", err)
	}
	return near, far
}

// run plays the whole trial and returns the reports of sender and receiver.
func (r *trial) run(t testing.TB) (send, receive engine.Report) {
	t.Helper()
	dialer, listener := r.prepare(t)
	connectBoth(t, dialer, listener)
	sender, receiver := dialer, listener
	if r.dialer == engine.Receive {
		sender, receiver = listener, dialer
	}
	before := backlogDrops(t)
	if err := receiver.Start(t.Context()); err != nil { // receivers first
		t.Fatalf("receiver: %v", err)
	}
	if r.duringTheRun != nil {
		go r.duringTheRun(dialer, listener)
	}
	if err := sender.run(t.Context()); err != nil {
		t.Fatalf("sender: %v", err)
	}
	send = sender.account()
	if err := receiver.Drain(t.Context(), engine.Sent{Streams: send.Send.Streams, Unsent: send.Send.Attempted - send.Send.Accepted}); err != nil {
		t.Fatalf("finish: %v", err)
	}
	receive, err := receiver.Report()
	if err != nil {
		t.Fatalf("receiver: %v", err)
	}
	r.backlog = uint64(backlogDrops(t) - before)
	for _, e := range []testEnd{dialer, listener} {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	return send, receive
}

func both(t *testing.T, f func(t *testing.T, r trial)) {
	for _, c := range []struct {
		name           string
		plain, workers bool
	}{{"native", false, false}, {"portable", true, false}, {"workers", false, true}} {
		t.Run(c.name, func(t *testing.T) {
			r := newTrial()
			r.plain = c.plain
			if c.workers {
				workers := NewWorkers()
				r.nearE, r.farE = testEngine(t, false), testEngine(t, false)
				r.nearE.config.Workers, r.farE.config.Workers = workers, workers
			}
			f(t, r)
		})
	}
}

// exact checks what must hold of every trial on a path that loses nothing but what
// the backlog dropped.
func (r *trial) exact(t *testing.T, send, receive engine.Report) {
	t.Helper()
	s, got := send.Send, receive.Receive
	if s.Attempted != s.Accepted || s.Attempted+s.Late+s.Held == 0 || got.Tally.Received > s.Accepted || s.Accepted-got.Tally.Received > r.backlog {
		t.Errorf("planned %d, attempted %d, accepted %d, received %d (errors %v, drops %d, unread %d, the backlog's %d)", s.Planned, s.Attempted, s.Accepted, got.Tally.Received, s.Errors, got.SocketDrops, got.Unread, r.backlog)
	}
	if n := got.Tally.Duplicates + got.Tally.Late + got.Tally.WrongLength + got.SocketDrops + got.Unread; n != 0 {
		t.Errorf("oddities on loopback: %+v", got)
	}
	// A sender that the kernel moves to another core may overtake itself: each core has a backlog of its own.
	if most := 1 + s.Attempted/100; got.Tally.Reordered > most {
		t.Errorf("%d of %d packets out of order; want at most %d", got.Tally.Reordered, s.Attempted, most)
	}
	var steps, streams uint64
	for _, n := range s.PerStep {
		steps += n
	}
	for _, n := range s.Streams {
		streams += n
	}
	if steps != s.Attempted || streams != s.Attempted {
		t.Errorf("attempted %d, steps sum to %d, streams to %d", s.Attempted, steps, streams)
	}
}

func TestPacedFlowIsExact(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*trial)
		want uint64 // planned
	}{
		{"2 kpps", func(*trial) {}, 500},
		{"IPv6", func(r *trial) { r.peer = netip.IPv6Loopback() }, 500},
		{"three streams", func(r *trial) { r.flow.Streams = 3 }, 500},
		{"dialer receives", func(r *trial) { r.dialer = engine.Receive }, 500},
		{"16 B", func(r *trial) { r.flow.PayloadBytes = 16 }, 500},
		{"largest payload", func(r *trial) { r.flow.PayloadBytes, r.flow.Rate = 65507, unit.PacketRate(100) }, 25},
		{"no warm-up", func(r *trial) { r.timing.WarmupSeconds = 0 }, 500},
		{"every 100 ms", func(r *trial) { r.flow.Rate = unit.IntervalRate(100 * time.Millisecond) }, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			both(t, func(t *testing.T, r trial) {
				c.set(&r)
				send, receive := r.run(t)
				r.exact(t, send, receive)
				s := send.Send
				if s.Planned != c.want || s.Attempted > s.Planned { // how many fewer is a matter of the machine's load
					t.Errorf("planned %d, attempted %d, want %d", s.Planned, s.Attempted, c.want)
				}
				if d := time.Duration(s.DurationNanos); d < 250*time.Millisecond || d > testenv.Patience {
					t.Errorf("lasted %v", d)
				}
				if s.Attempted < 2 {
					return // all others were late
				}
				if s.BurstMax != 1 || s.Gap == nil || s.Gap.Count == 0 {
					t.Errorf("burst %d, gap %+v", s.BurstMax, s.Gap)
				}
				if d := receive.Receive.Tally.Delay; d == nil || d.Count != receive.Receive.Tally.Received || d.Out != 0 || d.P50 <= 0 {
					t.Errorf("delay %+v", d)
				}
			})
		})
	}
}

func TestFullRateIsAccountedFor(t *testing.T) {
	both(t, func(t *testing.T, r trial) {
		r.flow.Rate, r.flow.Streams = unit.Rate{}, 2
		r.sends(t, 1000)
		send, receive := r.run(t)
		s, got := send.Send, receive.Receive
		if s.Planned != s.Attempted || s.Attempted != s.Accepted || s.Attempted < 1000 {
			t.Errorf("planned %d, attempted %d, accepted %d", s.Planned, s.Attempted, s.Accepted)
		}
		if lost := s.Attempted - got.Tally.Received; got.SocketKnown &&
			(lost+2*mostShifted < got.SocketDrops || lost > got.SocketDrops+r.backlog+2*mostShifted) {
			t.Errorf("lost %d, the sockets dropped %d, the backlog %d", lost, got.SocketDrops, r.backlog)
		}
	})
}

func TestBothDirectionsAtOnce(t *testing.T) {
	both(t, func(t *testing.T, r trial) {
		r.nearE, r.farE = testEngine(t, r.plain), testEngine(t, r.plain)
		up, down := r, r
		down.tag, down.dialer = 2, engine.Receive
		var wg sync.WaitGroup
		for _, r := range []*trial{&up, &down} {
			wg.Go(func() {
				send, receive := r.run(t)
				r.exact(t, send, receive)
			})
		}
		wg.Wait()
	})
}
