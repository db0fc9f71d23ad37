package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"pelt/engine"
	"pelt/finding"
	"pelt/internal/testenv"
	"pelt/model"
)

// fakeRouter writes down what it is asked for.
type fakeRouter struct {
	refuse error // of the opening

	mu    sync.Mutex
	calls []string
}

func (d *fakeRouter) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, fmt.Sprintf(format, args...))
}

func (d *fakeRouter) noted() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.calls, "; ")
}

func (d *fakeRouter) open(context.Context) (Router, error) {
	d.note("open")
	return d, d.refuse
}

func (d *fakeRouter) Facts() model.RouterFacts {
	return model.RouterFacts{Kernel: "6.1\x1b[31m", Cores: 2, Before: []model.Text{{Name: "top", Text: "one\ntwo\x07"}}}
}

func (d *fakeRouter) Finish(context.Context) model.RouterFacts {
	f := d.Facts()
	f.After = f.Before
	return f
}

func (d *fakeRouter) Close() error { d.note("close"); return nil }

func (d *fakeRouter) Begin(o engine.WatchOrder) engine.Part {
	d.note("begin %d %s %v", o.Trial, o.Drops, o.Timing.Measure())
	return &fakeRouterWatch{d: d}
}

type fakeRouterWatch struct {
	engine.Passive
	d *fakeRouter
}

func (w *fakeRouterWatch) Do(_ context.Context, s engine.Step, _ engine.Known) (l engine.Learned, _ error) {
	w.d.note("%s", s)
	return l, nil
}
func (w *fakeRouterWatch) Close() error { w.d.note("ended"); return nil }
func (w *fakeRouterWatch) Account() engine.Account {
	return engine.Account{Observed: &model.Observation{Mode: model.DropsSeq, Router: &model.RouterWatch{Node: "x"}}}
}

// routerOn makes a router with an observer, and a watch there.
func routerOn(t *testing.T, d *fakeRouter) (Router, *Hub) {
	t.Helper()
	h, _ := observingHub(t, d)
	r, err := WatchRouter(t.Context(), HubAddress{Local: h}, "pelt://r", "1.0")
	testenv.Must(t, err)
	t.Cleanup(func() { r.Close() })
	return r, h
}

func observingHub(t *testing.T, d *fakeRouter) (*Hub, *Agent) {
	t.Helper()
	h := hubWith(t, AgentConfig{ID: "router", Version: "1.0", Router: d.open})
	return h, h.joined()[0]
}

// TestObserverLost: a router that goes leaves a gap, and is waited for once. Its connection is closed with the hub, or
// is made anew in vain.
func TestObserverLost(t *testing.T) {
	t.Parallel()
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		d := &fakeRouter{}
		r, h := routerOn(t, d)
		observerLost(t, r, func() { h.Close() }, errLost.Error())
		if calls := d.noted(); !strings.HasSuffix(calls, "ended; close") {
			t.Errorf("the router's side was left open: %s", calls)
		}
	})
	t.Run("made anew", func(t *testing.T) {
		t.Parallel()
		s := serve(t, newWire(), func(c *ServeConfig) {
			c.Agent = AgentConfig{ID: "router", Version: "1.0", Router: (&fakeRouter{}).open}
		})
		path := newCable(t, s.addr)
		r, err := WatchRouter(t.Context(), HubAddress{Addr: path.addr, Code: testCode}, "pelt://r", "1.0")
		testenv.Must(t, err)
		observerLost(t, r, func() {
			path.cancel()
			testenv.Await(t, "the end of the connection",
				func() bool { return !r.(*farRouter).agent.link.nc.IsConnected() })
		}, errLate.Error())
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

func observerLost(t *testing.T, r Router, lose func(), why string) {
	t.Helper()
	late := heldUp(t)
	name := r.(*farRouter).agent.info.Node
	if at := r.(*farRouter).agent.at; at != "" {
		name += " (" + at + ")"
	}
	begin := func(trial uint16) engine.Part {
		w := r.Begin(engine.WatchOrder{Trial: trial, Drops: model.DropsSeq, Timing: model.Timing{MeasureSeconds: 1}})
		_, _ = w.Do(t.Context(), engine.Open, engine.Known{}) // what it cannot do stands in its account
		return w
	}
	w := begin(5)
	for _, s := range []engine.Step{engine.Ready, engine.Go} {
		_, _ = w.Do(t.Context(), s, engine.Known{})
	}
	lose()
	begun := time.Now()
	_, _ = w.Do(t.Context(), engine.Still, engine.Known{Lost: true})
	o := w.Account().Observed
	told, series := o.Router, o.Series
	if o.Mode != model.DropsOff || !o.Why.Has(model.UntoldFault) || !strings.Contains(finding.Why(o.Why), why) ||
		len(o.Unread) != 1 {
		t.Errorf("observed %+v", o)
	}
	if len(told.Gaps) != 1 || len(series) != 0 || finding.Why(told.Gaps[0].Of) != name+": "+why {
		t.Errorf("watched %+v", told)
	}
	next := begin(6).Account().Observed.Router
	if len(next.Gaps) != 1 || finding.Why(next.Gaps[0].Of) != name+": "+why {
		t.Errorf("the next trial's gaps: %+v", next.Gaps)
	}
	if f := r.Finish(t.Context()); f.Cores != 2 || len(f.Told) != 1 || f.Kernel != "6.1\ufffd[31m" ||
		f.Before[0].Text != "one\ntwo\ufffd" {
		t.Errorf("at the end %+v", f)
	}
	if took := time.Since(begun); took > momentTimeout+time.Second+8*late() {
		t.Errorf("that took %v", took)
	}
}

// TestObserverIsNoEnd: whatever it is ordered, nothing is opened.
func TestObserverIsNoEnd(t *testing.T) {
	t.Parallel()
	d := &fakeRouter{}
	h, a := observingHub(t, d)
	var refusal *engine.Refusal
	if err := orderOf(t, a, verbMake, goodOrder()); !errors.As(err, &refusal) ||
		!strings.Contains(err.Error(), "only observes") {
		t.Errorf("ends: %v, want a refusal", err)
	}
	if i := a.info(netip.Addr{}); !i.Observer || len(i.Engines) != 0 {
		t.Errorf("it introduces itself as %+v", i)
	}
	if _, err := NewController(t.Context(), "1.0", HubAddress{Local: h}); err == nil ||
		!strings.Contains(err.Error(), "no end of a test") {
		t.Errorf("as an end of tests: %v", err)
	}
	d.refuse = errors.New("no shell")
	if _, err := WatchRouter(t.Context(), HubAddress{Local: h}, "", "1.0"); err == nil ||
		!strings.Contains(err.Error(), "router: no shell") {
		t.Errorf("a router that cannot be watched: %v", err)
	}
	if len(a.sessions) != 0 {
		t.Error("its session stays")
	}
}

// TestObserverLease: a session whose heartbeat ends is closed.
func TestObserverLease(t *testing.T) {
	t.Parallel()
	d := &fakeRouter{}
	_, a := observingHub(t, d)
	testenv.Must(t, orderOf(t, a, verbMake, makeOrder{sessionOrder: sessionOrder{aSession}}))
	l := a.find(aSession).liveness
	l.mu.Lock()
	l.after = 50 * time.Millisecond
	l.mu.Unlock()
	testenv.Await(t, "the session is closed",
		func() bool { return d.noted() == "open; close" && a.find(aSession) == nil })
}
