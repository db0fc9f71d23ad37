package run

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pelt/fleet"
	"pelt/model"
)

// TestSlim: a pair that lost packets keeps its evidence, one that lost none keeps what did not hold.
func TestSlim(t *testing.T) {
	for _, lost := range []uint64{0, 3} {
		r := model.Result{Series: make([]model.Series, 2), Counters: make([]model.Counter, 2),
			Flows: []model.FlowResult{{
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
