package fleet

import (
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"pelt/internal/testenv"
	"pelt/model"
)

// The tests of this file take longest: its name has them begin first, beside the others.

// A host of a fleet that dies while a trial is set up is waited for as long as an order may take.
func TestFleetHostDiesInSetUp(t *testing.T) {
	t.Parallel()
	w, hub := newWire(), openHub(t)
	joinAs(t, hub, agentOn(w, "a"))
	joinWith(t, hub, agentOn(w, "b"), func(b *Agent, m *nats.Msg, client, verb string) {
		if verb == verbDo {
			_ = each(b.list(), func(s *session) error { return s.close(model.Reason{}) })
			return
		}
		_ = m.Respond(b.answer(t.Context(), client, verb, m.Data))
	})
	diesInSetUp(t, commander(t, hub, "a", "b"), "a", "b", "b has not answered for 15.0 s", makeTimeout+2*time.Second)
	nothingOpen(t, w)
}

// With a reconnect window a trial outlives its control connection, and says when it was gone.
func TestReconnect(t *testing.T) {
	t.Parallel()
	const outage = 4 * time.Second
	for name, c := range map[string]struct {
		measure time.Duration
		pull    func(w *wire, path *cable)
		restore func(w *wire, path *cable)
	}{
		"closed, and nothing gets through": {6 * time.Second,
			func(_ *wire, path *cable) { path.out.Store(true); path.reset() },
			func(_ *wire, path *cable) { path.out.Store(false); close(path.back) }},
		"silent": {6 * time.Second,
			func(_ *wire, path *cable) { path.out.Store(true) },
			func(_ *wire, path *cable) { path.out.Store(false) }}, // what was under way stays stuck
		"silent, the test's own path too": {6 * time.Second,
			func(w *wire, path *cable) { path.out.Store(true); w.cut.Store(true) },
			func(w *wire, path *cable) { path.out.Store(false); w.cut.Store(false) }},
		"gone when the senders end": {time.Second,
			func(_ *wire, path *cable) { path.out.Store(true); path.reset() },
			func(_ *wire, path *cable) { path.out.Store(false); close(path.back) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			late := heldUp(t)
			w := newWire()
			var isPulled atomic.Bool // until then senders do not end
			s := serve(t, w, func(c *ServeConfig) { c.Agent.Engines["udp"].(*fakeEngine).ends = isPulled.Load })
			path := newCable(t, s.addr)
			near := agentOn(w, "near")
			near.Engines["udp"].(*fakeEngine).ends = isPulled.Load
			ctl := dial(t, path.addr, near)
			trial := bothTrial("near", "far", c.measure)
			trial.Timing.PatienceSeconds = 20
			pulled := whenSending(w, 2, func() {
				c.pull(w, path)
				isPulled.Store(true)
				time.AfterFunc(outage, func() { c.restore(w, path) })
			})
			out := measured(t, ctl, trial, nil)
			<-pulled
			for i, f := range out.Flows {
				if f.Send == nil || f.Receive == nil {
					t.Errorf("flow %d: %+v", i, f)
				}
			}
			if len(out.Gaps) != 1 || len(out.Gaps[0].Nodes) != 1 || out.Gaps[0].Nodes[0] != "far" {
				t.Fatalf("gaps %+v; want one, of far", out.Gaps)
			}
			// The last beat before it may have been one earlier, and late.
			if g := out.Gaps[0]; g.From < -beatEvery-8*late() || g.From > 2*time.Second ||
				g.To-g.From < outage-time.Second || g.To-g.From > outage+5*time.Second+8*late() {
				t.Errorf("gap from %v to %v; it lasted %v", g.From, g.To, outage)
			}
			nothingOpen(t, w)
		})
	}
}

// What was connected anew over a slow path is not given up again before anything can come over it.
func TestReconnectOverSlowPath(t *testing.T) {
	t.Parallel()
	w := newWire()
	path := newCable(t, serve(t, w, nil).addr)
	ctl := dial(t, path.addr, agentOn(w, "near"))
	trial := upTrial("near", "far", 6*time.Second)
	trial.Timing.PatienceSeconds = 20
	whenSending(w, 1, func() { path.slow.Store(int64(650 * time.Millisecond)); path.reset() })
	out := measured(t, ctl, trial, nil)
	if len(out.Gaps) != 1 || out.Gaps[0].To-out.Gaps[0].From < gapAfter {
		t.Errorf("gaps %+v; want one longer than %v", out.Gaps, gapAfter)
	}
	nothingOpen(t, w)
}

// stuckServer lets a client in, and then holds it up as it comes again.
type stuckServer struct {
	nats.InProcessConnProvider
	first       net.Conn
	comes, held chan struct{}
}

func (s *stuckServer) InProcessConn() (c net.Conn, err error) {
	if s.first == nil {
		s.first, err = s.InProcessConnProvider.InProcessConn()
		return s.first, err
	}
	select {
	case s.comes <- struct{}{}:
	default:
	}
	<-s.held
	return nil, net.ErrClosed
}

// Nobody who looks after several links waits for one that is dialed.
func TestAwayWhileDialed(t *testing.T) {
	t.Parallel()
	h, l := hubAt(t, nil), newLink()
	s := &stuckServer{h.server, nil, make(chan struct{}, 1), make(chan struct{})}
	nc, err := nats.Connect("", append(append(l.options(), l.reconnecting()...), nats.InProcessServer(s),
		nats.Token(h.admission.ownToken()))...)
	testenv.Must(t, err)
	l.use(nc)
	_ = s.first.Close()
	testenv.Receive(t, "another dial", s.comes)
	told := make(chan time.Duration, 1)
	go func() { told <- l.away(time.Now()) }()
	testenv.Receive(t, "how long it is away", told)
	close(s.held)
	l.close()
}

// A host that cannot be reached when the trial is cut is asked for its account when it is back.
func TestCutTrialWaitsForHosts(t *testing.T) {
	t.Parallel()
	w := newWire()
	path := newCable(t, serve(t, w, nil).addr)
	near := agentOn(w, "near")
	near.Engines["udp"].(*fakeEngine).runErr = errors.New("no answer")
	near.Engines["udp"].(*fakeEngine).ends = path.out.Load // not before the far host is gone
	ctl := dial(t, path.addr, near)
	trial := upTrial("near", "far", 12*time.Second) // for so long the far host is waited for
	trial.Timing.PatienceSeconds = 20
	whenSending(w, 1, func() { path.out.Store(true); path.reset() })
	told := ""
	out, err := ctl.RunTrial(t.Context(), trial, func(p Progress) {
		if said(p.Cut) != "" {
			told = said(p.Cut)
			path.out.Store(false)
			close(path.back)
		}
	})
	if want := "near: flow up: no answer"; err != nil || said(out.Cut) != want || told != want {
		t.Fatalf("%v, cut %q, told %q; want %q", err, said(out.Cut), told, want)
	}
	if f := out.Flows[0]; f.Receive == nil || f.Receive.Receive.Tally.Late != f.Send.Send.Accepted {
		t.Errorf("the receiver's account is %+v", f.Receive)
	}
	nothingOpen(t, w)
}

// Once the time to send is over, a far host is waited for no longer than that time makes worth it.
func TestReconnectWindowAfterTheEnd(t *testing.T) {
	t.Parallel()
	w := newWire()
	path := newCable(t, serve(t, w, nil).addr)
	near := agentOn(w, "near")
	near.Engines["udp"].(*fakeEngine).ends = path.out.Load
	ctl := dial(t, path.addr, near)
	trial := upTrial("near", "far", time.Second)
	trial.Timing.PatienceSeconds = 60
	whenSending(w, 1, func() { path.out.Store(true); path.reset() })
	out, err := ctl.RunTrial(t.Context(), trial, nil)
	if err != nil || !strings.HasSuffix(said(out.Cut), "has not answered for 8 s") || out.Flows[0].Send == nil ||
		out.Flows[0].Receive != nil {
		t.Errorf("%+v, %v", out, err)
	}
	now := time.Now()
	for measured, want := range map[time.Duration]time.Duration{10 * time.Second: 8 * time.Second,
		5 * time.Minute: 30 * time.Second, time.Hour: time.Minute} {
		l := newLiveness(now, time.Minute)
		if l.shorten(measured, now); l.after != want {
			t.Errorf("after %v its hosts are waited for %v, want %v", measured, l.after, want)
		}
	}
}

// A hub that was started again knows nothing of the trial: nobody waits for it.
func TestHubStartedAgain(t *testing.T) {
	t.Parallel()
	w := newWire()
	s := serve(t, w, func(c *ServeConfig) { c.Listen = ownAddress() })
	path := newCable(t, s.addr)
	ctl, err := dialWith(t, path.addr, testCode, agentOn(w, "near"))
	testenv.Must(t, err)
	defer ctl.Close()
	trial := upTrial("near", "far", time.Minute)
	trial.Timing.PatienceSeconds = 60
	whenSending(w, 1, func() {
		path.out.Store(true) // as if it was killed
		path.reset()
		s.stop()
		serve(t, w, func(c *ServeConfig) { c.Listen = s.addr })
		path.out.Store(false)
		close(path.back)
	})
	out, err := ctl.RunTrial(t.Context(), trial, nil)
	if err != nil || said(out.Cut) == "" || out.Flows[0].Send == nil || out.Flows[0].Receive != nil {
		t.Errorf("%+v, %v", out, err)
	}
}

// The reconnect window has an end.
func TestReconnectWindowEnds(t *testing.T) {
	t.Parallel()
	late := heldUp(t)
	w := newWire()
	s := serve(t, w, nil)
	path := newCable(t, s.addr)
	ctl := dial(t, path.addr, agentOn(w, "near"))
	trial := bothTrial("near", "far", time.Minute)
	trial.Timing.PatienceSeconds = 4
	cut := whenSending(w, 2, func() { path.out.Store(true); path.reset(); w.cut.Store(true) })
	out, err := ctl.RunTrial(t.Context(), trial, nil)
	at := <-cut
	if err != nil || !strings.Contains(said(out.Cut), "4 s") && !strings.Contains(said(out.Cut), "lost") {
		t.Fatalf("%v, cut %q", err, said(out.Cut))
	}
	for _, host := range []string{"near", "far"} {
		testenv.Await(t, host+" stops", func() bool { return len(w.events(host, "ended send")) == 1 })
		if d := w.events(host, "ended send")[0].Sub(at); d < 3*time.Second || d > 9*time.Second+8*late() {
			t.Errorf("the sender of %s stopped after %v; want 4 s", host, d)
		}
	}
	nothingOpen(t, w)
}

// A connection over which nothing comes is left alone until the trial runs: an order before that is given once, and may
// take long. So it is while what came over it may not have been heard, because this process stood still.
func TestNoReconnectBeforeTheTrial(t *testing.T) {
	t.Parallel()
	w := newWire()
	s := serve(t, w, nil)
	ctl := dial(t, s.addr, agentOn(w, "near"))
	trial := upTrial("near", "far", time.Second)
	trial.Timing.PatienceSeconds = 20
	tr, err := ctl.place(trial)
	testenv.Must(t, err)
	far, now := ctl.members[1].link, time.Now()
	for _, c := range []struct {
		at            time.Duration
		running, anew bool
	}{{5 * time.Second, false, false}, {5*time.Second + beatEvery, false, false}, {10 * time.Second, true, false},
		{10*time.Second + beatEvery, true, true}} {
		if c.running {
			tr.begun = now
		}
		tr.look(now.Add(c.at))
		far.mu.Lock()
		if far.tried.IsZero() == c.anew || (len(tr.silent) > 0) != c.anew {
			t.Errorf("%+v: made anew at %v, silent %v", c, far.tried, tr.silent)
		}
		far.mu.Unlock()
	}
}
