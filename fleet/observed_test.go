package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/model"
)

// fakeWatch notes on a wire what it is asked for.
type fakeWatch struct {
	host    string
	wire    *wire
	during  func(context.Context, engine.Known) // Go
	dropped uint64                              // by now, if above 0

	mu     sync.Mutex
	closed int
	tag    uint16 // of the flow that was named last
}

func (f *fakeWatch) Do(ctx context.Context, s engine.Step, k engine.Known) (l engine.Learned, _ error) {
	what := string(s)
	for _, flow := range k.Flows {
		f.mu.Lock()
		f.tag = flow.Tag
		f.mu.Unlock()
		what += fmt.Sprintf(" %s %d number %d", flow.Name, len(flow.Tuples), flow.Number)
	}
	if k.Window > 0 {
		what += fmt.Sprint(" ", k.Window)
	}
	f.wire.note(f.host, what)
	if s == engine.Go && f.during != nil {
		f.during(ctx, k)
	}
	return l, nil
}

func (f *fakeWatch) Live() (l engine.Live) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dropped > 0 {
		l.Counts = &model.Observation{Drops: &model.Drops{Flows: []model.FlowDrops{{Flow: "up",
			Counts: []model.SiteCount{{Packets: f.dropped}}}}}}
	}
	return l
}
func (f *fakeWatch) Account() engine.Account {
	f.wire.note(f.host, "account")
	return engine.Account{Observed: &model.Observation{Boot: f.host, Mode: model.DropsSeq}}
}
func (f *fakeWatch) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed++
	return nil
}

// observing gives an agent a fake watch.
func observing(cfg *AgentConfig, w *wire) *fakeWatch {
	o := &fakeWatch{host: cfg.ID, wire: w}
	cfg.Watch = func(engine.WatchOrder) []engine.Part { return []engine.Part{o} }
	return o
}

// order of what happened at one host, of the things named.
func sequence(w *wire, host string, about ...string) (out []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.log {
		if e.host == host && slices.ContainsFunc(about, func(a string) bool { return strings.HasPrefix(e.what, a) }) {
			out = append(out, e.what)
		}
	}
	return out
}

// What watches is led through all steps, at the hosts of the ends and between them.
func TestObservation(t *testing.T) {
	t.Parallel()
	w := newWire()
	a, b := agentOn(w, "near"), agentOn(w, "far")
	near, far := observing(&a, w), observing(&b, w)
	between := &fakeWatch{host: "router", wire: w}
	c := quick(t, a, b)
	trial := upTrial("near", "far", 300*time.Millisecond)
	trial.Timing.WarmupSeconds = 0.1
	trial.Drops, trial.Idle, trial.Along = model.DropsSeq, 20*time.Millisecond, []engine.Part{between}
	out := measured(t, c, trial, nil)
	for host, want := range map[string]string{
		"near": "open up 0 number 7, ready up 1 number 7 20ms, go, halt, still",
		"far":  "open up 0 number 7, ready up 1 number 7 20ms, go, still",
		// it is told both sides
		"router": "open up 0 number 7, ready up 1 number 7 up 1 number 7 20ms, go, halt, still",
	} {
		if got := strings.Join(sequence(w, host, "open", "ready", "go", "halt", "still"), ", "); got != want {
			t.Errorf("%s: got %s\nwant %s", host, got, want)
		}
	}
	if near.tag != far.tag || near.tag != between.tag {
		t.Errorf("the flow has tags %d, %d and %d", near.tag, far.tag, between.tag)
	}
	if got := strings.Join(sequence(w, "near", "ready", "run send", "ended send", "still"),
		", "); got != "ready up 1 number 7 20ms, run send, ended send, still" {
		t.Errorf("the sender began at the wrong moment: %s", got)
	}
	for id, o := range map[string]*fakeWatch{"near": near, "far": far} {
		if out.Observed[id].Boot != id {
			t.Errorf("%s: got %+v", id, out.Observed[id])
		}
		testenv.Await(t, "the watch of "+id+" is closed once", func() bool {
			o.mu.Lock()
			defer o.mu.Unlock()
			return o.closed == 1
		})
	}
	if between.closed != 0 || len(sequence(w, "router", "account")) != 0 {
		t.Error("a part along the path is the caller's to ask and to close")
	}
}

// Each flow has a number of its own: its packets are known by it.
func TestFlowsHaveNumbers(t *testing.T) {
	t.Parallel()
	w := newWire()
	c := quick(t, agentOn(w, "near"), agentOn(w, "far"))
	for _, first := range []uint16{77, engine.WarmupBit - 2} {
		trial := bothTrial("near", "far", time.Second)
		trial.Number, trial.Probe = first, true
		placed, err := c.place(trial)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint16
		for _, e := range placed.ends {
			got = append(got, e.Order.Trial)
		}
		second := first + 1
		third := second%(engine.WarmupBit-1) + 1
		if want := []uint16{first, first, second, second, third, third}; !slices.Equal(got, want) {
			t.Errorf("ends have the numbers %v, want %v", got, want)
		}
	}
}

// What watches along the path is told where a flow goes, also to the host that calls.
func TestWhereFlowsGo(t *testing.T) {
	t.Parallel()
	w := newWire()
	c := quick(t, agentOn(w, "near"), agentOn(w, "far"))
	trial := bothTrial("near", "far", time.Second)
	near, far := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.1.2")
	trial.Flows[0].Flow.Address, trial.Flows[1].Flow.Address = far, netip.Addr{}
	placed, err := c.place(trial)
	if err != nil {
		t.Fatal(err)
	}
	for i := range placed.ends {
		e := &placed.ends[i]
		here := far
		if !e.Order.Listen {
			here = near
		}
		told := answerOf(engine.Meeting{Streams: []engine.MetStream{{Met: true,
			Stream: engine.Stream{Local: netip.AddrPortFrom(here, 7), Remote: netip.AddrPortFrom(here, 8)}}}})
		if e.met, err = told.meeting(1); err != nil {
			t.Fatal(err)
		}
	}
	for met, want := range map[bool][]netip.Addr{false: {far, {}}, true: {far, far, near, near}} {
		var got []netip.Addr
		for _, f := range placed.flowsToWatch(met) {
			got = append(got, f.To)
		}
		if !slices.Equal(got, want) {
			t.Errorf("met %v: flows go to %v, want %v", met, got, want)
		}
	}
}

// The caller of a trial closes its parts when the trial returns: none of them may be at work then.
func TestNoPartIsLedAfterATrial(t *testing.T) {
	t.Parallel()
	w := newWire()
	a, b := agentOn(w, "near"), agentOn(w, "far")
	ctx, stop := context.WithCancel(t.Context())
	var reading atomic.Bool
	running := make(chan struct{})
	o := &fakeWatch{host: "router", wire: w, during: func(ctx context.Context, _ engine.Known) {
		<-running
		reading.Store(true)
		stop()
		<-ctx.Done()
		time.Sleep(time.Second)
		reading.Store(false)
	}}
	trial := upTrial("near", "far", time.Minute)
	trial.Along = []engine.Part{o}
	begun := sync.OnceFunc(func() { close(running) })
	out, err := quick(t, a, b).RunTrial(ctx, trial, func(Progress) { begun() })
	if err != nil || out.Cut == "" {
		t.Errorf("%v, cut %q; want a trial that was stopped", err, out.Cut)
	}
	if reading.Load() {
		t.Error("the trial returned while a part was at work")
	}
}

// A host that is cut in the midst tells nothing of itself, rather than zero.
func TestObservationOfACutTrial(t *testing.T) {
	t.Parallel()
	w := newWire()
	a := agentOn(w, "near")
	observing(&a, w)
	b := agentOn(w, "far")
	b.Engines["udp"].(*fakeEngine).runErr = errors.New("broke")
	c := quick(t, a, b)
	trial := bothTrial("near", "far", 2*time.Second)
	trial.Drops = model.DropsSeq
	out, err := c.RunTrial(t.Context(), trial, nil)
	if err != nil || !strings.Contains(out.Cut, "broke") {
		t.Fatalf("%v, cut %q", err, out.Cut)
	}
	if _, ok := out.Observed["far"]; ok || out.Observed["near"].Boot != "near" {
		t.Errorf("got %+v", out.Observed)
	}
	if got := sequence(w, "near", "still", "account"); !slices.Equal(got, []string{"account"}) {
		t.Errorf("got %v, want an account without waiting", got)
	}
}

// What was dropped so far is told until the counters are read for the last time.
func TestCountsWhileItRuns(t *testing.T) {
	source := &fakeWatch{dropped: 3}
	s := &session{watches: []engine.Part{source}}
	for _, want := range []uint64{3, 7} {
		source.dropped = want
		if c, _ := s.liveFigures(1); c == nil || c.Drops.Flows[0].Counts[0].Packets != want {
			t.Errorf("told %+v, want %d packets", c, want)
		}
	}
	if s.step = slices.Index(engine.Steps, engine.Still); s.step > 0 {
		if c, _ := s.liveFigures(1); c != nil {
			t.Error("told beside the report")
		}
	}
}
