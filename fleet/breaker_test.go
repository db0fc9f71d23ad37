package fleet

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestBreaker(t *testing.T) {
	t.Parallel()
	type second struct{ sent, came, reach uint64 } // in this second
	for name, c := range map[string]struct {
		seconds []second
		breaks  int // the second in which it does, from 1; 0: never
	}{
		"no loss": {[]second{{1000, 1000, 1000}, {1000, 1000, 1000}, {1000, 1000, 1000},
			{1000, 1000, 1000}}, 0},
		"a fifth": {[]second{{1000, 800, 1000}, {1000, 800, 1000}, {1000, 800, 1000}, {1000, 800, 1000}},
			0},
		"more than a fifth": {[]second{{1000, 799, 1000}, {1000, 799, 1000}, {1000, 799, 1000}}, 3},
		"not in succession": {[]second{{1000, 0, 0}, {1000, 0, 0}, {1000, 990, 1000}, {1000, 0, 0}, {1000, 0, 0}}, 0},
		"nothing comes":     {[]second{{1000, 1000, 1000}, {1000, 0, 0}, {1000, 0, 0}, {1000, 0, 0}}, 4},
		"nothing ever came": {[]second{{1000, 0, 0}, {1000, 0, 0}, {1000, 0, 0}}, 3},
		"nothing is sent":   {[]second{{1000, 1000, 1000}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}}, 0},
		"few packets":       {[]second{{50, 0, 0}, {50, 0, 0}, {50, 0, 0}, {50, 0, 0}}, 0},
		"long round trip":   {[]second{{1000, 0, 0}, {1000, 600, 600}, {1000, 1000, 1000}, {1000, 1000, 1000}}, 0},
		"reach is not told": {[]second{{1000, 300, 0}, {1000, 300, 0}, {1000, 300, 0}, {1000, 300, 0}}, 0},
		"a pause between": {[]second{{1000, 500, 1000}, {0, 0, 0}, {1000, 500, 1000}, {0, 0, 0},
			{1000, 500, 1000}}, 5},
		"late ones come back": {[]second{{1000, 500, 1000}, {1000, 1500, 1000}, {1000, 500, 1000}, {1000, 500, 1000}},
			0},
	} {
		var b breaker
		var packets, reach uint64
		breaks := 0
		for i, s := range c.seconds {
			b.sent += s.sent
			packets, reach = packets+s.came, reach+s.reach
			if b.period(packets, reach) && breaks == 0 {
				breaks = i + 1
			}
		}
		if silent := strings.HasPrefix(name, "nothing") && c.breaks > 0; silent != (b.silent >= breakPeriods) {
			t.Errorf("%s: nothing came in %d seconds", name, b.silent)
		}
		if breaks != c.breaks {
			t.Errorf("%s: breaks in second %d, want %d", name, breaks, c.breaks)
		}
	}
}

// A path that carries nothing cuts the trial long before its end, and says why.
func TestBreakerCutsTrial(t *testing.T) {
	t.Parallel()
	w := newWire()
	w.cut.Store(true)
	trial := upTrial("near", "far", time.Minute)
	trial.Flows[0].Listen, trial.Flows[0].Breaker = netip.MustParseAddr(away), true
	out, err := quick(t, agentOn(w, "near"), agentOn(w, "far")).RunTrial(t.Context(), trial, nil)
	if want := "flow up lost over 20 % of its packets in each of 3 seconds"; err != nil ||
		!strings.HasPrefix(said(out.Cut), want) {
		t.Errorf("cut %q, %v; want %q", said(out.Cut), err, want)
	}
	if out.Flows[0].Send == nil {
		t.Error("the sender's report is missing")
	}
	nothingOpen(t, w)
}
