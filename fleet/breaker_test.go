package fleet

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

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
