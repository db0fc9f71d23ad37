package tcp

import (
	"context"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/model"
)

// here is the machine the test runs on, used over loopback only.
type here struct{}

func (here) Do(f func() error) error { return f() }

// pair is one flow over loopback: both ends, prepared by engines of their own.
type pair struct {
	t        *testing.T
	host     engine.Host
	engines  [2]*Engine // sender's, receiver's
	send     engine.Order
	receive  engine.Order
	sender   testEnd
	receiver testEnd
	late     bool          // an end warned that this machine kept it waiting, or did not see its first byte at once
	shift    time.Duration // of the receiver's measured part against the sender's
}

// testEnd is an end and the connections it runs over.
type testEnd struct {
	*engine.End
	t *end
}

func prepare(g *Engine, host engine.Host, o engine.Order) (testEnd, error) {
	t, err := g.Open(context.Background(), host, o)
	if err != nil {
		return testEnd{}, err
	}
	return testEnd{engine.NewEnd(o, t), t.(*end)}, nil
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

func (e testEnd) account() engine.Report {
	r, _ := e.Report()
	return r
}

func (e testEnd) sample() (packets, bytes uint64) {
	n := e.Snapshot()
	return n.Packets, n.Bytes
}

func flow(streams, payload int, bulk bool) model.Flow {
	return model.Flow{Name: "up", Protocol: model.TCP, From: model.Sender, To: model.Receiver, PayloadBytes: payload, Streams: streams, Bulk: bulk}
}

func timing(warmup, measure, drain time.Duration) model.Timing {
	return model.Timing{WarmupSeconds: warmup.Seconds(), MeasureSeconds: measure.Seconds(), DrainSeconds: drain.Seconds()}
}

// newPair prepares both ends; the sender listens if senderListens, else the receiver.
func newPair(t *testing.T, host engine.Host, address string, senderListens bool, f model.Flow, timing model.Timing) *pair {
	t.Helper()
	leakCheck(t)
	p := &pair{t: t, host: host, engines: [2]*Engine{New(Config{}), New(Config{})}}
	base := engine.Order{Flow: f, Timing: timing, Trial: 7, Tag: 3, Key: []byte("0123456789abcdef0123456789abcdef"), CPU: -1, OneClock: true}
	p.send, p.receive = base, base
	p.send.Role, p.send.Listen = engine.Send, senderListens
	p.receive.Role, p.receive.Listen = engine.Receive, !senderListens
	listening, dialing := &p.send, &p.receive
	if !senderListens {
		listening, dialing = dialing, listening
	}
	end := p.prepare(*listening)
	dialing.Peer, dialing.Ports = netip.MustParseAddr(address), end.Ports()
	other := p.prepare(*dialing)
	p.sender, p.receiver = end, other
	if !senderListens {
		p.sender, p.receiver = other, end
	}
	return p
}

func (p *pair) prepare(o engine.Order) testEnd {
	p.t.Helper()
	g := p.engines[0]
	if o.Role == engine.Receive {
		g = p.engines[1]
	}
	e, err := prepare(g, p.host, o)
	if err != nil {
		p.t.Fatalf("prepare %s: %v", o.Role, err)
	}
	p.t.Cleanup(func() {
		if err := e.Close(); err != nil {
			p.t.Errorf("close: %v", err)
		}
	})
	return e
}

// background runs an end and hands over how it ended.
func (e testEnd) background(ctx context.Context) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- e.run(ctx) }()
	return ended
}

func (p *pair) connect() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), testenv.Patience)
	defer cancel()
	failed := make(chan error, 2)
	for _, e := range []testEnd{p.sender, p.receiver} {
		go func() { failed <- e.connect(ctx) }()
	}
	for range 2 {
		if err := <-failed; err != nil {
			p.t.Fatalf("connect: %v", err)
		}
	}
}

// playSome is play until some data has come.
func (p *pair) playSome() (engine.SendReport, engine.ReceiveReport) {
	p.t.Helper()
	enough := make(chan struct{})
	go func() {
		defer close(enough)
		testenv.Await(p.t, "data", func() bool {
			_, sent := p.sender.sample()
			_, came := p.receiver.sample()
			return min(sent, came) > 50*uint64(p.send.Flow.PayloadBytes)
		})
		p.sender.Stop()
	}()
	s, r := p.play()
	<-enough
	return s, r
}

// play runs a connected pair to its end and returns both reports.
func (p *pair) play() (engine.SendReport, engine.ReceiveReport) {
	p.t.Helper()
	if err := p.receiver.Start(p.t.Context()); err != nil {
		p.t.Fatalf("receive: %v", err)
	}
	if err := p.sender.run(p.t.Context()); err != nil {
		p.t.Fatalf("send: %v", err)
	}
	s := p.sender.account()
	if err := p.receiver.Drain(p.t.Context(), engine.Sent{Streams: s.Send.Streams}); err != nil {
		p.t.Fatalf("finish: %v", err)
	}
	r, err := p.receiver.Report()
	if err != nil {
		p.t.Fatalf("receive: %v", err)
	}
	// Writes that make up for lateness are joined to segments.
	p.late = s.Send.BurstMax > 4
	from, to := p.sender.t, p.receiver.t
	p.shift = time.Duration(to.clock.At(time.Duration(to.origin.Load())) - from.clock.At(time.Duration(from.origin.Load())))
	p.late = p.late || p.send.Flow.Connections == "" && p.shift > 2*time.Millisecond
	for role, report := range map[string]engine.Report{"sender": s, "receiver": r} {
		for _, w := range report.Warnings {
			p.t.Logf("%s warns: %s", role, w)
			p.late = p.late || strings.Contains(w, "late")
		}
	}
	return *s.Send, *r.Receive
}

// calm plays a flow until one trial ran on a machine that gave both ends their
// turn, at most five times; p.late tells whether even the last one did not.
func calm(make func() *pair) (p *pair, s engine.SendReport, r engine.ReceiveReport) {
	for range 5 {
		p = make()
		p.connect()
		s, r = p.play()
		p.close()
		if !p.late {
			break
		}
		testenv.AwaitCalm(p.t.Logf)
	}
	return p, s, r
}

func (p *pair) close() {
	p.t.Helper()
	for _, e := range []testEnd{p.sender, p.receiver} {
		if err := e.Close(); err != nil {
			p.t.Errorf("close: %v", err)
		}
	}
}

// leakCheck fails the test if descriptors or goroutines are left at its end.
func leakCheck(t *testing.T) {
	t.Helper()
	// The first socket brings the runtime's own descriptors, which stay.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	t.Cleanup(func() {
		// The last goroutines are on their way out: they have closed what they
		// hold, and end without anything to wait for.
		for over := time.Now().Add(testenv.Patience); time.Now().Before(over); time.Sleep(time.Millisecond) {
			if runtime.NumGoroutine() <= goroutines && openFiles(t) <= files {
				return
			}
		}
		buffer := make([]byte, 1<<16)
		t.Errorf("%d goroutines and %d descriptors before, %d and %d after:\n%s", goroutines, files,
			runtime.NumGoroutine(), openFiles(t), buffer[:runtime.Stack(buffer, true)])
	})
}

func openFiles(t *testing.T) int {
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil && runtime.GOOS == "linux" {
		t.Fatal(err)
	}
	return len(d)
}
