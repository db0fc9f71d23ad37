package run

import (
	"strings"
	"testing"

	"pelt/internal/testenv"
	"pelt/lab"
	"pelt/model"
	"pelt/plan"
	"pelt/unit"
)

// transferPlan is one of pelt cc over a lab's links.
func transferPlan(t *testing.T, settings ...string) model.Plan {
	t.Helper()
	p, err := plan.Control.Of("lab:direct", settings...)
	testenv.Must(t, err)
	return p
}

func TestTransfersGoToOneReceiver(t *testing.T) {
	p := transferPlan(t)
	if err := oneReceiver(p, 0); err != nil {
		t.Error(err)
	}
	if err := oneReceiver(p, 10); err == nil || !strings.HasPrefix(err.Error(), "target: a star has many receivers") {
		t.Error(err)
	}
	for _, c := range []struct {
		settings []string
		wrong    string
	}{{nil, ""}, {[]string{"proto=tcp"}, "TCP is measured to one"}, {[]string{"loss-free=true"},
		"a search is of a path to one"}} {
		curve, err := plan.Curve.Of("lab:star", c.settings...)
		testenv.Must(t, err)
		if err := oneReceiver(curve, 10); (err != nil) != (c.wrong != "") || err != nil &&
			!strings.Contains(err.Error(), c.wrong) {
			t.Errorf("curve %v over a star: %v", c.settings, err)
		}
	}
}

// Answers may come by a slower way than data go.
func TestSlowestWay(t *testing.T) {
	way := func(from, to string, rate unit.BitRate) lab.LinkWay {
		return lab.LinkWay{From: from, To: to, Settings: model.Link{Rate: rate}}
	}
	ways := []lab.LinkWay{way("sender", "router", 50e6), way("router", "sender", 1e6),
		way("router", "receiver", 20e6), way("receiver", "router", 0)}
	nodes := []string{"sender", "router", "receiver"}
	if least := slowestWays(ways, nodes); least != [2]float64{20e6, 1e6} {
		t.Errorf("%v bit/s up and down, want 20e6 and 1e6", least)
	}
}
