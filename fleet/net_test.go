package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pelt/engine"
	"pelt/finding"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/words"
)

// cable is a TCP path to a hub that can be pulled out (nothing gets through,
// nobody is told) or cut (both ends see the connection close).
type cable struct {
	addr   netip.AddrPort
	out    atomic.Bool
	slow   atomic.Int64  // nanoseconds that bytes take, either way
	back   chan struct{} // closed to let held bytes go on
	cancel func()

	mu    sync.Mutex
	conns []net.Conn
}

// reset closes what is connected.
func (c *cable) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		conn.Close()
	}
}

// dialHub connects to a hub as a controller does.
func dialHub(ctx context.Context, addr netip.AddrPort, code []byte) (*link, error) {
	return newLink().dial(ctx, code, addr)
}

func newCable(t *testing.T, to netip.AddrPort) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testenv.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	c := &cable{addr: l.Addr().(*net.TCPAddr).AddrPort(), back: make(chan struct{}), cancel: cancel}
	var wg sync.WaitGroup
	pump := func(dst, src net.Conn) {
		defer dst.Close()
		buf := make([]byte, 4096)
		for {
			n, err := src.Read(buf)
			if err != nil {
				return
			}
			if c.out.Load() {
				select {
				case <-c.back:
				case <-ctx.Done():
					return
				}
			}
			time.Sleep(time.Duration(c.slow.Load()))
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
	}
	wg.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to.String())
			if err != nil {
				near.Close()
				return
			}
			c.mu.Lock()
			c.conns = append(c.conns, near, far)
			c.mu.Unlock()
			context.AfterFunc(ctx, func() { near.Close(); far.Close() })
			wg.Go(func() { pump(far, near) })
			wg.Go(func() { pump(near, far) })
		}
	})
	t.Cleanup(func() { cancel(); l.Close(); wg.Wait() })
	return c
}

// whenSending does something once the senders are on.
func whenSending(w *wire, senders int, f func()) <-chan time.Time {
	at := make(chan time.Time, 1)
	go func() {
		for len(w.events("", "run send")) < senders {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(300 * time.Millisecond) // some beats into the trial
		at <- time.Now()
		f()
	}()
	return at
}

// stopLimit is the promise of 3 s, and what a busy machine adds; of a test that does not judge the clock it is any time.
func stopLimit(t *testing.T, late func() time.Duration) time.Duration {
	if !strings.HasPrefix(t.Name(), "TestClock") {
		return testenv.Patience
	}
	return 3*time.Second + 250*time.Millisecond + 8*late()
}

// control is a controller of two agents, and a cable on the way to one of them.
type control struct {
	near, far string
	side      int // of the cable
	dial      func(*testing.T, *wire) (*Controller, *cable)
}

var controls = map[string]control{
	"one hub": {"near", "far", 1, func(t *testing.T, w *wire) (*Controller, *cable) {
		path := newCable(t, serve(t, w, func(c *ServeConfig) { c.Agent = hearing(c.Agent) }).addr)
		return dial(t, path.addr, hearing(agentOn(w, "near"))), path
	}},
	"two hubs, the sender's": {"one", "two", 0, func(t *testing.T, w *wire) (*Controller, *cable) {
		c, cables := twoServed(t, w)
		return c, cables[0]
	}},
	"two hubs, the receiver's": {"one", "two", 1, func(t *testing.T, w *wire) (*Controller, *cable) {
		c, cables := twoServed(t, w)
		return c, cables[1]
	}},
}

// cutWith runs a trial and takes the cable and the test's own path away in the middle. Both sides stop in time, and
// the account of the other side alone is kept.
func (c control) cutWith(t *testing.T, probe bool, take func(*cable)) (*Controller, Outcome, time.Duration) {
	t.Helper()
	late := heldUp(t)
	w := newWire()
	ctl, path := c.dial(t, w)
	taken := whenSending(w, 2, func() { take(path); w.cut.Store(true) })
	trial := bothTrial(c.near, c.far, time.Minute)
	trial.Probe = probe
	out, err := ctl.RunTrial(t.Context(), trial, nil)
	at := <-taken
	returned := time.Since(at) - 8*late()
	lost, kept := out.Flows[c.side], out.Flows[1-c.side]
	if err != nil || lost.Send != nil || kept.Send == nil || lost.Receive == nil || kept.Receive != nil {
		t.Errorf("outcome %+v, %v; want the account of the other side alone", out, err)
	}
	for _, host := range []string{c.near, c.far} {
		testenv.Await(t, host+" stops", func() bool { return len(w.events(host, "ended send")) == 1 })
		if d := w.events(host, "ended send")[0].Sub(at); d > stopLimit(t, late) || d < time.Second {
			t.Errorf("the sender of %s stopped after %v", host, d)
		}
	}
	nothingOpen(t, w)
	return ctl, out, returned
}

// TestControlLost: nobody is told, also not by a probe, or both ends see the connection close, which the next trial is
// told at once.
func TestControlLost(t *testing.T) {
	t.Parallel()
	loseControl(t)
}

func TestClockControlLost(t *testing.T) {
	testenv.Clock(t)
	loseControl(t)
}

func loseControl(t *testing.T) {
	for name, c := range controls {
		for how, take := range map[string]func(*cable){"pulled": func(path *cable) { path.out.Store(true) },
			"closed": func(path *cable) { path.cancel() }} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				ctl, out, returned := c.cutWith(t, how == "closed", take)
				if closed := strings.HasSuffix(said(out.Cut), " was lost"); !strings.Contains(said(out.Cut), "has not answered for 2.50 s") &&
					!strings.Contains(said(out.Cut), " has not been heard") && !(closed && how == "closed") {
					t.Errorf("cut: %q", said(out.Cut))
				}
				if returned > stopLimit(t, func() time.Duration { return 0 }) {
					t.Errorf("RunTrial returned after %v", returned)
				}
				if how == "pulled" {
					return
				}
				if _, err := ctl.RunTrial(t.Context(), upTrial(c.near, c.far, time.Second), nil); err == nil ||
					!strings.HasSuffix(err.Error(), " was lost") {
					t.Errorf("a trial after that: %v", err)
				}
			})
		}
	}
}

// TestControlStarved holds the control connection up for longer than the
// silence that ends a trial, while the data path works.
func TestControlStarved(t *testing.T) {
	t.Parallel()
	const starved = 7 * time.Second // 2 s of a silence are forgiven on a busy machine
	for _, probe := range []bool{true, false} {
		w := newWire()
		s := serve(t, w, nil)
		path := newCable(t, s.addr)
		near := agentOn(w, "near")
		if probe { // whose packets show there that the far host lives
			near = hearing(near)
		}
		c := dial(t, path.addr, near)
		trial := bothTrial("near", "far", starved)
		trial.Probe = probe
		t.Run(map[bool]string{true: "probe", false: "no probe"}[probe], func(t *testing.T) {
			t.Parallel()
			whenSending(w, 2, func() {
				path.out.Store(true)
				time.Sleep(starved)
				path.out.Store(false)
				close(path.back)
			})
			out, err := c.RunTrial(t.Context(), trial, nil)
			if err != nil || (said(out.Cut) == "") != probe {
				t.Errorf("with a probe flow %v: %+v, %v", probe, out, err)
			}
			if probe && (out.Flows[1].Send == nil || out.Flows[0].Receive == nil) {
				t.Errorf("far reports are missing: %+v", out)
			}
		})
	}
}

// TestClosingDelaysNobodyElse: a client's test runs while the host still closes the test of another.
func TestClosingDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	w, closing, further, first := newWire(), make(chan struct{}), make(chan struct{}), make(chan struct{})
	var closed atomic.Bool
	s := serve(t, w, func(c *ServeConfig) {
		c.Agent.Engines["udp"].(*fakeEngine).closing = func() {
			if !closed.Swap(true) {
				close(closing)
				<-further
			}
		}
	})
	one, other := dial(t, s.addr, agentOn(w, "one")), dial(t, s.addr, agentOn(w, "other"))
	go func() {
		defer close(first)
		_, _ = one.RunTrial(t.Context(), upTrial("one", "far", 100*time.Millisecond), nil)
	}()
	testenv.Receive(t, "the end of the first test", closing)
	measured(t, other, upTrial("other", "far", 100*time.Millisecond), nil)
	select {
	case <-first:
		t.Error("the test of the other client waited until the first was closed")
	default:
	}
	close(further)
	testenv.Receive(t, "the first client", first)
}

func TestTwoControllersAndMaxSessions(t *testing.T) {
	t.Parallel()
	w := newWire()
	s := serve(t, w, func(c *ServeConfig) { c.Agent.Limits.MaxSessions = 2 })
	near := map[string]*Controller{}
	for _, id := range []string{"near1", "near2", "near3"} {
		near[id] = dial(t, s.addr, agentOn(w, id))
	}
	c := near["near3"]
	var wg sync.WaitGroup
	both := func(ctx context.Context, measure time.Duration, cut string) {
		for _, id := range []string{"near1", "near2"} {
			wg.Go(func() {
				out, err := near[id].RunTrial(ctx, bothTrial(id, "far", measure), nil)
				if err != nil || said(out.Cut) != cut || out.Flows[0].Receive == nil {
					t.Errorf("%s: %+v, %v; want cut %q", id, out, err, cut)
				}
			})
		}
	}
	refused, cancel := context.WithCancel(t.Context())
	defer cancel()
	both(refused, time.Minute, "interrupted")
	testenv.Await(t, "both run", func() bool { return len(w.events("", "run send")) == 4 })
	_, err := c.RunTrial(t.Context(), upTrial("near3", "far", time.Second), nil)
	if want := "far (127.0.0.1): 2 clients use that host, and it allows no more (--max-sessions there): try again later"; err == nil || err.Error() != want {
		t.Errorf("third: %v\nwant   %s", err, want)
	}
	cancel()
	wg.Wait()
	both(t.Context(), time.Second, "")
	wg.Wait()
	measured(t, c, upTrial("near3", "far", 50*time.Millisecond), nil)
	if s.count("refused") != 1 {
		t.Errorf("events:\n%s", s.text())
	}
}

// A host of another version is told apart from rubbish, whatever else it says.
func TestOtherVersion(t *testing.T) {
	newer := fmt.Sprintf(`{"id":"x","node":"receiver","version":"9.1","protocol":%d,"news":true}`, protocolVersion+1)
	_, err := (&Controller{version: "1.0"}).decodeHello([]byte(newer), "127.0.0.1")
	want := fmt.Sprintf("127.0.0.1 runs pelt 9.1 (protocol %d), this is pelt 1.0 (protocol %d): upgrade pelt here",
		protocolVersion+1, protocolVersion)
	if !Refuses(err) || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	old := otherVersion("receiver", "2.0", "1.0", 1)
	if want := fmt.Sprintf("receiver runs pelt 1.0 (protocol 1), this is pelt 2.0 (protocol %d): upgrade pelt on receiver",
		protocolVersion); old.Error() != want {
		t.Errorf("got %s\nwant %s", old, want)
	}
	if said, want := words.Chinese.Error(old), fmt.Sprintf("receiver 运行 pelt 1.0（协议 1），本机是 pelt 2.0（协议 %d）："+
		"请升级 receiver 上的 pelt", protocolVersion); said != want {
		t.Errorf("got %s\nwant %s", said, want)
	}
}

// TestLongReport sends a report in several parts.
func TestLongReport(t *testing.T) {
	t.Parallel()
	w := newWire()
	cfg := agentOn(w, "far")
	long := make([]model.Series, 60)
	for i := range long {
		long[i] = model.Series{Metric: "x", StepSeconds: 0.015, Values: make([]float64, 1000)}
		for k := range long[i].Values {
			long[i].Values[k] = float64(1000*i+k) / 7
		}
	}
	measuring(&cfg, engine.Load{Series: long})
	c := quick(t, agentOn(w, "near"), cfg)
	out := measured(t, c, upTrial("near", "far", 100*time.Millisecond), nil)
	if !reflect.DeepEqual(out.Load["far"].Series, long) {
		t.Errorf("series did not arrive whole")
	}
}

func TestServeNeedsCode(t *testing.T) {
	t.Parallel()
	err := Serve(t.Context(), ServeConfig{Agent: agentOn(newWire(), "far")})
	if err == nil || !strings.Contains(err.Error(), "want one such as tiger-42-amber") {
		t.Errorf("got %v", err)
	}
}

// An agent that is on its hub no more is not served in vain.
func TestServeEndsWithItsAgent(t *testing.T) {
	t.Parallel()
	a := quietAgent(t, newWire(), Limits{})
	a.link.nc.Close()
	if err := a.stay(t.Context()); err == nil || !strings.Contains(err.Error(), "start pelt serve again") {
		t.Errorf("got %v", err)
	}
	a = quietAgent(t, newWire(), Limits{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.stay(ctx); err != nil {
		t.Errorf("stopped: %v", err)
	}
}

// TestReasonOf: of a chain of errors the outermost reason is told, with the host that it is of.
func TestReasonOf(t *testing.T) {
	refused := engine.Refuse(model.NotOwnAddress, "address", "10.0.0.1")
	host := &HostError{"far", "receiver", "10.0.0.2", errLate}
	for want, err := range map[string]error{
		"10.0.0.1 is no address of this host": fmt.Errorf("open: %w", refused),
		"receiver (10.0.0.2): no answer in time: look whether that host is busy, then try again": errors.Join(
			words.Errorf("x: %w", host)),
		"flow up: out of time": (&finding.Fault{Reason: model.Reason{Code: model.OfFlow, Flow: "up",
			Of: model.Reasons{{Code: model.OutOfTime}}}}).From(host),
		"out of time; no answer": errors.Join(&cutError{Fault: finding.NewFault(model.OutOfTime)}, errors.New("no answer")),
		"no such file":           words.Errorf("no such file"),
	} {
		if got := finding.Clause(finding.ReasonOf(err)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if _, err := open([]byte(`{"fault":{}}`)); err == nil || finding.ReasonOf(err).Code == "" || err.Error() != "it failed" {
		t.Errorf("a fault without a code is %v", err)
	}
}
