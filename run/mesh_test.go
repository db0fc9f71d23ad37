package run

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pelt/design"
	"pelt/fleet"
	"pelt/model"
)

// TestSlim: a pair that lost packets keeps its evidence, one that lost none keeps what did not hold.
func TestSlim(t *testing.T) {
	for _, lost := range []uint64{0, 3} {
		r := model.Result{Series: make([]model.Series, 2), Counters: make([]model.Counter, 2), Flows: []model.FlowResult{{
			Lost: lost, GapCounts: make([]model.Bucket, 3),
			Ledger: model.Ledger{Checks: []model.Check{{Name: "balance", Held: true}, {Name: "received"}}},
		}}}
		slim(&r)
		counters, checks := 0, 1
		if lost > 0 {
			counters, checks = 2, 2
		}
		f := r.Flows[0]
		if len(r.Series)+len(f.GapCounts) != 0 || len(r.Counters) != counters || len(f.Ledger.Checks) != checks ||
			f.Ledger.Checks[checks-1].Held {
			t.Errorf("%d lost: %+v", lost, r)
		}
	}
}

// TestGone: nobody waits long for a host that takes no orders, and not at all for an error that is of no host.
func TestGone(t *testing.T) {
	p := pairs{failing: map[string]time.Time{}}
	of := fmt.Errorf("trial: %w", &fleet.HostError{Host: "b"})
	cell := model.Cell{"pair": model.Word("a..b")}
	if p.note(cell, of); p.gone(of) {
		t.Error("a host that failed just now is given up")
	}
	p.failing["b"] = time.Now().Add(-2 * pairPatience)
	if p.note(cell, of); !p.gone(of) || !p.gone(errors.New("the plan is wrong")) {
		t.Error("it is waited for without end")
	}
	p.note(cell, nil)
	if p.note(cell, of); p.gone(of) {
		t.Error("a host that came back is given up for what was before")
	}
}

// TestCycles: a mesh that shows its design only what is not over measures the same pairs in the same order.
func TestCycles(t *testing.T) {
	const repeats = 5
	pairs := []model.Value{model.Word("a..b"), model.Word("a..c"), model.Word("b..c")}
	trial, _, _ := watchedFlow()
	p := model.Plan{Flows: trial.Flows, Timing: trial.Timing, Factors: []model.Factor{{Knob: "pair", Levels: pairs}},
		Design: model.Design{Repeats: repeats, Ordered: true}}
	grid, err := design.New(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := &shown{Design: grid}
	c := cycles{Design: d, plan: p, done: []model.Result{{Cell: model.Cell{"pair": pairs[0]}, State: model.Valid}}} // resumed
	var got, want []string
	for n := 0; ; n++ {
		cell, repeat, more := c.next()
		if !more {
			break
		}
		got = append(got, cell.TrialName(repeat))
		made := model.Result{Cell: cell, Repeat: repeat, State: []model.State{model.Valid, model.Invalid}[n%2]}
		c.running = append(c.running, made)
		if n%3 == 2 { // they end together
			c.done, c.running = append(c.done, c.running...), nil
		}
	}
	for repeat := range repeats {
		for _, pair := range pairs {
			want = append(want, model.Cell{"pair": pair}.TrialName(repeat))
		}
	}
	if !slices.Equal(got, want[1:]) {
		t.Errorf("got %q, want %q", got, want[1:])
	}
	if d.most > 3*len(pairs) {
		t.Errorf("the design was shown %d results", d.most)
	}
}

// shown counts what a design is shown.
type shown struct {
	design.Design
	most int
}

func (s *shown) Next(done []model.Result) (model.Cell, int, bool) {
	s.most = max(s.most, len(done))
	return s.Design.Next(done)
}
