package fleet

import (
	"context"
	"errors"
	"fmt"
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

// fakeObservation notes on a wire what it is asked for.
type fakeObservation struct {
	host string
	wire *wire

	mu     sync.Mutex
	lost   bool
	closed int
	tag    uint16 // of the flow that met last
}

func (f *fakeObservation) Meet(flow model.Flow, tag uint16) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tag = tag
	f.wire.note(f.host, "meet "+flow.Name)
	return nil
}
func (f *fakeObservation) Track(flow model.Flow, tuples []model.Tuple, alone bool) error {
	f.wire.note(f.host, fmt.Sprintf("track %s, alone %t", flow.Name, alone))
	return nil
}
func (f *fakeObservation) Snapshot(m model.Moment) { f.wire.note(f.host, "snapshot "+string(m)) }
func (f *fakeObservation) Settle(_ context.Context, lost bool) {
	f.wire.note(f.host, "settle")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = lost
}
func (f *fakeObservation) Counts() (model.Observation, error) {
	return model.Observation{}, errors.ErrUnsupported
}

func (f *fakeObservation) Report() model.Observation {
	f.wire.note(f.host, "report observation")
	return model.Observation{Boot: f.host, Mode: model.DropsSeq}
}
func (f *fakeObservation) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed++
	return nil
}

// observing gives an agent a fake observation.
func observing(cfg *AgentConfig, w *wire) *fakeObservation {
	o := &fakeObservation{host: cfg.ID, wire: w}
	cfg.Observe = func(uint16, model.DropMode) (engine.EndObservation, error) { return o, nil }
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

func TestObservation(t *testing.T) {
	t.Parallel()
	w := newWire()
	a, b := agentOn(w, "near"), agentOn(w, "far")
	near, far := observing(&a, w), observing(&b, w)
	between := &fakeObservation{host: "router", wire: w}
	c := quick(t, a, b)
	trial := upTrial("near", "far", 300*time.Millisecond)
	trial.Timing.WarmupSeconds = 0.1
	trial.Drops, trial.Idle, trial.Along = model.DropsSeq, 20*time.Millisecond, []engine.Observation{between}
	out, err := c.RunTrial(t.Context(), trial, nil)
	if err != nil || out.Cut != "" {
		t.Fatalf("%v, cut %q", err, out.Cut)
	}
	want := "meet up, snapshot start, snapshot idle, snapshot start, snapshot measure, settle"
	for _, host := range []string{"near", "far", "router"} {
		if got := strings.Join(sequence(w, host, "meet", "snapshot", "settle"), ", "); got != want {
			t.Errorf("%s: got %s\nwant %s", host, got, want)
		}
	}
	if near.tag != far.tag || near.tag != between.tag {
		t.Errorf("the flow has tags %d, %d and %d", near.tag, far.tag, between.tag)
	}
	for host, times := range map[string]int{"near": 1, "far": 1, "router": 2} { // a router is told both sides
		if got := sequence(w, host, "track"); !slices.Equal(got, slices.Repeat([]string{"track up, alone true"}, times)) {
			t.Errorf("%s: got %v", host, got)
		}
	}
	if got := strings.Join(sequence(w, "near", "snapshot start", "run send", "settle"), ", "); got != "snapshot start, snapshot start, run send, settle" {
		t.Errorf("the sender began at the wrong moment: %s", got)
	}
	for id, o := range map[string]*fakeObservation{"near": near, "far": far} {
		if out.Observed[id].Boot != id {
			t.Errorf("%s: got %+v", id, out.Observed[id])
		}
		testenv.Await(t, "the observation of "+id+" is closed once", func() bool {
			o.mu.Lock()
			defer o.mu.Unlock()
			return o.closed == 1
		})
	}
	if between.closed != 0 || len(sequence(w, "router", "report")) != 0 {
		t.Error("an observation along the path is the caller's to ask and to close")
	}
}

// A flow of UDP is alone if the others of the trial are of TCP.
func TestAlone(t *testing.T) {
	t.Parallel()
	w := newWire()
	c := quick(t, agentOn(w, "near"), agentOn(w, "far"))
	for _, other := range []model.Protocol{model.UDP, model.TCP} {
		trial := bothTrial("near", "far", time.Second)
		trial.Flows[1].Flow.Protocol, trial.Probe = other, true
		placed, err := c.place(trial)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range placed.ends[:2] {
			if e.Order.Alone != (other == model.TCP) {
				t.Errorf("beside %s: %s of %s: alone %t", other, e.Order.Role, e.Order.Flow.Name, e.Order.Alone)
			}
		}
	}
}

// slowObservation takes a while to read its counters when the measured part begins, and a trial is stopped meanwhile.
type slowObservation struct {
	fakeObservation
	stop    func()
	reading atomic.Bool
}

func (f *slowObservation) Snapshot(m model.Moment) {
	if m == model.MomentMeasure {
		f.reading.Store(true)
		f.stop()
		time.Sleep(2 * time.Second)
		f.reading.Store(false)
	}
}

// The caller of a trial closes its observations when the trial returns: none of them may be read then.
func TestNoObservationIsReadAfterATrial(t *testing.T) {
	t.Parallel()
	w := newWire()
	a, b := agentOn(w, "near"), agentOn(w, "far")
	ctx, stop := context.WithCancel(t.Context())
	o := &slowObservation{fakeObservation: fakeObservation{host: "router", wire: w}, stop: stop}
	trial := upTrial("near", "far", 300*time.Millisecond)
	trial.Timing.WarmupSeconds, trial.Along = 0.1, []engine.Observation{o}
	out, err := quick(t, a, b).RunTrial(ctx, trial, nil)
	if err != nil || out.Cut == "" {
		t.Errorf("%v, cut %q; want a trial that was stopped", err, out.Cut)
	}
	if o.reading.Load() {
		t.Error("the trial returned while an observation was read")
	}
}

func TestUnobserved(t *testing.T) {
	t.Parallel()
	w := newWire()
	a, b := agentOn(w, "near"), agentOn(w, "far")
	b.Observe = func(uint16, model.DropMode) (engine.EndObservation, error) { return nil, errors.New("no rights here") }
	c := quick(t, a, b)
	trial := upTrial("near", "far", 100*time.Millisecond)
	trial.Drops = model.DropsSeq
	out, err := c.RunTrial(t.Context(), trial, nil)
	if err != nil || out.Cut != "" {
		t.Fatalf("%v, cut %q", err, out.Cut)
	}
	if _, ok := out.Observed["near"]; ok {
		t.Errorf("an agent that observes nothing said %+v", out.Observed["near"])
	}
	if got := out.Observed["far"]; got.Mode != model.DropsOff || got.Why != "no rights here" {
		t.Errorf("got %+v", got)
	}
}

// TestObservationOfACutTrial ends the far agent in the middle: the near one's
// account comes all the same, the far one's is missing rather than zero.
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
	if got := sequence(w, "near", "snapshot end", "settle"); !slices.Equal(got, []string{"snapshot end"}) {
		t.Errorf("got %v, want one last look without waiting", got)
	}
}

// countingObservation has dropped so many packets by now.
type countingObservation struct {
	fakeObservation
	dropped uint64
}

func (c *countingObservation) Counts() (model.Observation, error) {
	return model.Observation{Drops: &model.Drops{Flows: []model.FlowDrops{{Flow: "up", Counts: []model.SiteCount{{Packets: c.dropped}}}}}}, nil
}

// What was dropped so far is told until the counters are read for the last time.
func TestCountsWhileItRuns(t *testing.T) {
	source := &countingObservation{dropped: 3}
	o := observed{live: source.Counts}
	for _, want := range []uint64{3, 7} {
		source.dropped = want
		if c := o.liveCounts(); c == nil || c.Drops.Flows[0].Counts[0].Packets != want {
			t.Errorf("told %+v, want %d packets", c, want)
		}
	}
	if o.settled = true; o.liveCounts() != nil {
		t.Error("told beside the report")
	}
}
