package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pelt/engine"
	"pelt/model"
)

// fakeObservation notes on a wire what it is asked for.
type fakeObservation struct {
	host string
	wire *wire

	mu     sync.Mutex
	lost   bool
	closed int
}

func (f *fakeObservation) Track(flow model.Flow, tuples []model.Tuple) error {
	f.wire.note(f.host, "track "+flow.Name)
	return nil
}
func (f *fakeObservation) Snapshot(m model.Moment) { f.wire.note(f.host, "snapshot "+string(m)) }
func (f *fakeObservation) Settle(_ context.Context, lost bool) {
	f.wire.note(f.host, "settle")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = lost
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
	cfg.Observe = func(uint16, model.DropMode) (engine.Observation, error) { return o, nil }
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
	_, c := quick(t, a, b)
	trial := upTrial("near", "far", 300*time.Millisecond)
	trial.Timing.WarmupSeconds = 0.1
	trial.Drops, trial.Idle, trial.Along = model.DropsSeq, 20*time.Millisecond, []engine.Observation{between}
	out, err := c.RunTrial(t.Context(), trial, nil)
	if err != nil || out.Cut != "" {
		t.Fatalf("%v, cut %q", err, out.Cut)
	}
	want := "snapshot idle, snapshot start, snapshot measure, settle"
	for _, host := range []string{"near", "far", "router"} {
		if got := strings.Join(sequence(w, host, "snapshot", "settle"), ", "); got != want {
			t.Errorf("%s: got %s\nwant %s", host, got, want)
		}
	}
	if got := strings.Join(sequence(w, "near", "snapshot start", "run send", "settle"), ", "); got != "snapshot start, run send, settle" {
		t.Errorf("the sender began at the wrong moment: %s", got)
	}
	for id, o := range map[string]*fakeObservation{"near": near, "far": far} {
		if out.Observed[id].Boot != id {
			t.Errorf("%s: got %+v", id, out.Observed[id])
		}
		within(t, 4*time.Second, "the observation of "+id+" is closed once", func() bool {
			o.mu.Lock()
			defer o.mu.Unlock()
			return o.closed == 1
		})
	}
	if between.closed != 0 || len(sequence(w, "router", "report")) != 0 {
		t.Error("an observation along the path is the caller's to ask and to close")
	}
}

func TestUnobserved(t *testing.T) {
	t.Parallel()
	w := newWire()
	a, b := agentOn(w, "near"), agentOn(w, "far")
	b.Observe = func(uint16, model.DropMode) (engine.Observation, error) { return nil, errors.New("no rights here") }
	_, c := quick(t, a, b)
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
	_, c := quick(t, a, b)
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

func TestLighten(t *testing.T) {
	marks := func(bytes int, packets uint64) model.Marks {
		return model.Marks{Data: make([]byte, bytes), Packets: packets, Unlisted: 1}
	}
	r := sessionReport{
		Ends:     map[int]engine.Report{1: {Receive: &engine.ReceiveReport{Missing: []model.Marks{marks(listBytes, 100), marks(10, 5)}}}},
		Observed: &model.Observation{Drops: &model.Drops{Flows: []model.FlowDrops{{Streams: []model.Marks{marks(listBytes/2, 7)}}}}},
	}
	lighten(&r)
	missing := r.Ends[1].Receive.Missing
	if missing[0].Packets != 0 || missing[0].Unlisted != 101 || len(missing[0].Data) != 0 {
		t.Errorf("the longest list stayed: %d B, %d packets, %d unlisted", len(missing[0].Data), missing[0].Packets, missing[0].Unlisted)
	}
	if missing[1].Packets != 5 || r.Observed.Drops.Flows[0].Streams[0].Packets != 7 {
		t.Error("a list that fits is gone")
	}
	if data, err := json.Marshal(r); err != nil || len(data) > maxParts*partBytes {
		t.Errorf("%d B, %v", len(data), err)
	}
}

func TestSnapshotOrderIsChecked(t *testing.T) {
	w := newWire()
	a, err := NewAgent(agentOn(w, "near"))
	if err != nil {
		t.Fatal(err)
	}
	s := &session{agent: a, ctx: t.Context()}
	for _, o := range []snapshotOrder{{Moment: "later"}, {Moment: model.MomentStart, IdleNanos: -1}} {
		if err := s.snapshot(t.Context(), o); err == nil {
			t.Errorf("%+v was obeyed", o)
		}
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

// A beat is lost with its connection: what was dropped meanwhile is told again though no
// more is dropped.
func TestCountsToldAgain(t *testing.T) {
	source := &countingObservation{dropped: 3}
	o := observed{watch: source}
	told := []int{}
	for second := range 25 {
		if second == 2 {
			source.dropped = 7
		}
		if c := o.counts(); c != nil {
			told = append(told, second)
		}
	}
	if !slices.Equal(told, []int{0, 2, 12, 22}) {
		t.Errorf("told in the seconds %v", told)
	}
}
