package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/model"
)

// fakeRouter writes down what it is asked for.
type fakeRouter struct {
	refuse error // of the opening

	mu    sync.Mutex
	calls []string
	tag   uint16 // of the flow named last
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

func (d *fakeRouter) Begin(trial uint16, drops model.DropMode, measured time.Duration) RouterWatch {
	d.note("begin %d %s %v", trial, drops, measured)
	return &fakeRouterWatch{d}
}

type fakeRouterWatch struct{ d *fakeRouter }

func (w *fakeRouterWatch) Meet(f model.Flow, tag uint16) error {
	w.d.mu.Lock()
	w.d.tag = tag
	w.d.mu.Unlock()
	w.d.note("meet %s", f.Name)
	return nil
}
func (w *fakeRouterWatch) Track(f model.Flow, tuples []model.Tuple, alone bool) error {
	w.d.note("track %s %v %t", f.Name, tuples, alone)
	return nil
}
func (w *fakeRouterWatch) Snapshot(m model.Moment)             { w.d.note("%s", m) }
func (w *fakeRouterWatch) Settle(_ context.Context, lost bool) { w.d.note("end lost=%v", lost) }
func (w *fakeRouterWatch) Close() error                        { w.d.note("ended"); return nil }
func (w *fakeRouterWatch) Cores() map[int]float64              { return nil }
func (w *fakeRouterWatch) Report() model.Observation {
	return model.Observation{Mode: model.DropsSeq, Namespace: 7, Counters: []model.Counter{{Name: "Udp.NoPorts", Whole: 3}},
		Router: &model.RouterWatch{Node: "x", Samples: 3}, Series: []model.Series{{Metric: "cpu_idle_ratio", StepSeconds: 1, Values: []float64{1, math.NaN()}}}}
}

// routerOn makes a router with an observer, and a watch there.
func routerOn(t *testing.T, d *fakeRouter) (Router, *Hub) {
	t.Helper()
	h, _ := observingHub(t, d)
	r, err := WatchRouter(t.Context(), HubAddress{Local: h}, "pelt://r", "1.0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r, h
}

func observingHub(t *testing.T, d *fakeRouter) (*Hub, *Agent) {
	t.Helper()
	h := hubWith(t, AgentConfig{ID: "router", Version: "1.0", Router: d.open})
	return h, h.joined()[0]
}

// TestObserverInATrial: the router is led through a trial on two hubs, and told the
// ports on both its sides.
func TestObserverInATrial(t *testing.T) {
	t.Parallel()
	w := newWire()
	near, far := farHost(w, "one"), farHost(w, "two")
	at := func(local, remote uint16) []engine.Stream {
		a := netip.MustParseAddr("192.0.2.1")
		return []engine.Stream{{Local: netip.AddrPortFrom(a, local), Remote: netip.AddrPortFrom(a, remote)}}
	}
	near.Engines["udp"].(*fakeEngine).streams = at(1000, 7359) // the sender
	far.Engines["udp"].(*fakeEngine).streams = at(7359, 2000)
	end := observing(&far, w)
	c := two(t, near, far)
	d := &fakeRouter{}
	r, _ := routerOn(t, d)
	if f := r.Facts(); f.Node != "router" || f.Source != "pelt://r" || f.Kernel != "6.1�[31m" || f.Cores != 2 || f.Before[0].Text != "one\ntwo�" {
		t.Errorf("facts %+v", f)
	}
	trial := upTrial("one", "two", 300*time.Millisecond)
	trial.Timing.WarmupSeconds, trial.Drops = 0.1, model.DropsSeq
	watch := r.Begin(trial.Number, trial.Drops, 3*time.Second)
	trial.Along = []engine.Observation{watch}
	if out, err := c.RunTrial(t.Context(), trial, nil); err != nil || out.Cut != "" {
		t.Fatalf("cut %q, %v", out.Cut, err)
	}
	o := watch.Report()
	if o.Mode != model.DropsSeq || o.Namespace != 7 || len(o.Counters) != 1 || len(o.Unread) > 0 {
		t.Errorf("observed %+v", o)
	}
	told, series := o.Router, o.Series
	if told.Node != "router" || told.Samples != 3 || len(told.Gaps) > 0 || len(series) != 1 || series[0].At != "router" || !math.IsNaN(series[0].Values[1]) {
		t.Errorf("watched %+v, %+v", told, series)
	}
	if err := watch.Close(); err != nil {
		t.Error(err)
	}
	if f := r.Finish(t.Context()); len(f.After) != 1 || f.Source != "pelt://r" {
		t.Errorf("at the end %+v", f)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	want := "open; begin 7 seq 3s; meet up; start; track up [{1000 7359}] true; track up [{2000 7359}] true; start; measure; end lost=true; ended; close"
	got := strings.ReplaceAll(d.noted(), "lost=false", "lost=true") // the fakes lose at will
	if got != want {
		t.Errorf("the router was asked\n%s, want\n%s", got, want)
	}
	if d.tag != end.tag {
		t.Errorf("the router was told of tag %d, an end's host of %d", d.tag, end.tag)
	}
}

// TestObserverLost: a router that goes leaves a gap, and is waited for once. Its connection is closed with the hub, or is
// made anew in vain.
func TestObserverLost(t *testing.T) {
	t.Parallel()
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		d := &fakeRouter{}
		r, h := routerOn(t, d)
		observerLost(t, r, func() { h.Close() }, "connection lost")
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
		if err != nil {
			t.Fatal(err)
		}
		observerLost(t, r, func() {
			path.cancel()
			testenv.Await(t, "the end of the connection", func() bool { return !r.(*farRouter).agent.link.nc.IsConnected() })
		}, "no answer in time")
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

func observerLost(t *testing.T, r Router, lose func(), why string) {
	t.Helper()
	late := heldUp(t)
	name := r.(*farRouter).agent.name
	w := r.Begin(5, model.DropsSeq, time.Second)
	w.Snapshot(model.MomentStart)
	w.Snapshot(model.MomentMeasure)
	lose()
	begun := time.Now()
	w.Settle(t.Context(), true)
	o := w.Report()
	told, series := o.Router, o.Series
	if o.Mode != model.DropsOff || !strings.Contains(o.Why, why) || len(o.Unread) != 1 {
		t.Errorf("observed %+v", o)
	}
	if len(told.Gaps) != 1 || len(series) != 0 || told.Gaps[0] != "not observed from t=0.0 s: "+name+": report: "+why {
		t.Errorf("watched %+v", told)
	}
	next := r.Begin(6, model.DropsSeq, time.Second).Report().Router
	if len(next.Gaps) != 1 || next.Gaps[0] != "not observed from t=0.0 s: begin: "+name+": observe: "+why {
		t.Errorf("the next trial's gaps: %q", next.Gaps)
	}
	if f := r.Finish(t.Context()); f.Cores != 2 || len(f.Untold) != 1 {
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
	ends, err := json.Marshal(goodOrder())
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{verbPrepare, verbConnect, verbArm, verbStart, verbDrain, verbStop, verbRecord} {
		_, err := a.obey(t.Context(), verb, ends)
		var refusal *engine.Refusal
		if !errors.As(err, &refusal) || !strings.Contains(err.Error(), "only observes") {
			t.Errorf("%s: %v, want a refusal", verb, err)
		}
	}
	if i := a.info(netip.Addr{}); !i.Observer || len(i.Engines) != 0 {
		t.Errorf("it introduces itself as %+v", i)
	}
	if _, err := NewController(t.Context(), "1.0", HubAddress{Local: h}); err == nil || !strings.Contains(err.Error(), "no end of a test") {
		t.Errorf("as an end of tests: %v", err)
	}
	if _, err := newAgent(AgentConfig{Router: d.open, Engines: agentOn(newWire(), "x").Engines}); err == nil {
		t.Error("an observer may have engines")
	}
	d.refuse = errors.New("no shell")
	if _, err := WatchRouter(t.Context(), HubAddress{Local: h}, "", "1.0"); err == nil || !strings.Contains(err.Error(), "router: prepare: no shell") {
		t.Errorf("a router that cannot be watched: %v", err)
	}
	if len(a.sessions) != 0 {
		t.Error("its session stays")
	}
}

// TestObserverOrders: what is wrong with an order is said, and the router not asked.
func TestObserverOrders(t *testing.T) {
	t.Parallel()
	d := &fakeRouter{}
	_, a := observingHub(t, d)
	obey := func(verb string, q any) error {
		data, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.obey(t.Context(), verb, data)
		return err
	}
	about := func(n int) sessionOrder { return sessionOrder{aSession[:len(aSession)-1] + fmt.Sprint(n)} }
	for n := range maxWatchers {
		if err := obey(verbPrepare, prepareOrder{sessionOrder: about(n)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := obey(verbObserve, observeOrder{sessionOrder: about(0), Trial: 5, Drops: model.DropsSeq}); err != nil {
		t.Fatal(err)
	}
	before := d.noted()
	ports := []model.Tuple{{From: 1, To: 2}}
	watch := func(f watchedFlow) observeOrder {
		return observeOrder{sessionOrder: about(0), Trial: 5, Flows: []watchedFlow{f}}
	}
	for _, c := range []struct {
		verb  string
		order any
		want  string
	}{
		{verbPrepare, prepareOrder{sessionOrder: sessionOrder{"me"}}, "two names of 32 hex digits"},
		{verbPrepare, prepareOrder{sessionOrder: about(0)}, "open already"},
		{verbPrepare, prepareOrder{sessionOrder: about(9)}, "4 runs watch this router"},
		{verbObserve, observeOrder{sessionOrder: about(9), Trial: 5}, "no such session"},
		{verbObserve, map[string]any{"session": about(0).Session, "run": "sh"}, "unknown field"},
		{verbObserve, observeOrder{Trial: 5}, "two names of 32 hex digits"},
		{verbObserve, observeOrder{sessionOrder: about(0), Trial: 5, Moment: model.MomentStart, IdleNanos: -1}, "idle_ns: want 0 to 2s"},
		{verbObserve, observeOrder{sessionOrder: about(0), Trial: 5, Moment: model.MomentStart, IdleNanos: 1e10}, "idle_ns: want 0 to 2s"},
		{verbObserve, observeOrder{sessionOrder: about(0), Trial: 0x8000}, "trial: want 0 to 32767"},
		{verbObserve, observeOrder{sessionOrder: about(0), Trial: 6, Drops: "all"}, "drops: want seq"},
		{verbObserve, observeOrder{sessionOrder: about(0), Trial: 5, Moment: "noon"}, "want idle, start, measure or end"},
		{verbObserve, watch(watchedFlow{Flow: strings.Repeat("x", 256), Tuples: ports}), "want a short name"},
		{verbObserve, watch(watchedFlow{Flow: "up", Tuples: slices.Repeat(ports, 129)}), "at most 128 streams, not 129"},
		{verbObserve, watch(watchedFlow{Flow: "up", PayloadBytes: -1, Tuples: ports}), "no payload of -1 B"},
		{verbReport, reportOrder{sessionOrder: about(0), Part: 1}, "no part 1"},
		{verbObserve, observeOrder{sessionOrder: about(0), Trial: 6, MeasuredNanos: -1}, "measured_ns: want 0"},
		{verbFacts, reportOrder{sessionOrder: about(0), Part: -1}, "no part -1"},
	} {
		if err := obey(c.verb, c.order); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: %v, want %s", c.verb, c.order, err, c.want)
		}
	}
	if after := d.noted(); after != before {
		t.Errorf("the router was asked: %s", strings.TrimPrefix(after, before))
	}
	a.shutdown("the test ends")
	if calls := d.noted(); strings.Count(calls, "close") != maxWatchers || strings.Count(calls, "ended") != 1 {
		t.Errorf("at the end: %s", calls)
	}
	if err := obey(verbPrepare, prepareOrder{sessionOrder: about(0)}); err == nil {
		t.Error("it takes a session after its end")
	}
}

// TestObserverLease: a session whose heartbeat ends is closed.
func TestObserverLease(t *testing.T) {
	t.Parallel()
	d := &fakeRouter{}
	_, a := observingHub(t, d)
	data, err := json.Marshal(prepareOrder{sessionOrder: sessionOrder{aSession}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.obey(t.Context(), verbPrepare, data); err != nil {
		t.Fatal(err)
	}
	l := a.find(aSession).liveness
	l.mu.Lock()
	l.after = 50 * time.Millisecond
	l.mu.Unlock()
	testenv.Await(t, "the session is closed", func() bool { return d.noted() == "open; close" && a.find(aSession) == nil })
}
