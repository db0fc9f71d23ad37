package run

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"pelt/engine"
	"pelt/fleet"
	"pelt/model"
)

// TestLeast: of the surveys of one flow the smallest counts, in the flow's own
// direction, and one that is unknown makes the flow's unknown.
func TestLeast(t *testing.T) {
	var trial fleet.Trial
	var out fleet.Outcome
	for _, n := range []struct {
		to        string
		out, back int
	}{{"receiver-1", 1500, 1500}, {"receiver-2", 1400, 1300}, {"receiver-3", 0, 1500}} {
		trial.Flows = append(trial.Flows, fleet.PlacedFlow{Flow: model.Flow{From: model.Sender, To: n.to}})
		p := &engine.ProbeReport{Out: &model.PathMTU{Bytes: n.out, Probes: 2, Found: model.MTUTold},
			Back: &model.PathMTU{Bytes: n.back, Probes: 5, Found: model.MTUSearch}}
		if n.out == 0 {
			p.Out.Found, p.Out.Why = "", nothingWhole
		}
		out.Flows = append(out.Flows, fleet.FlowOutcome{Send: &engine.Report{Probe: p}})
	}
	trial.Flows = append(trial.Flows, fleet.PlacedFlow{}) // without an outcome
	up := model.PathMTU{Flow: "up", From: model.Sender, To: model.Receiver, Family: 4}
	down := model.PathMTU{Flow: "down", From: model.Receiver, To: model.Sender, Family: 6}
	for _, c := range []struct {
		name  string
		flow  model.PathMTU
		asked []int
		want  model.PathMTU
	}{
		{"one", up, []int{0}, model.PathMTU{Flow: "up", From: "sender", To: "receiver-1", Family: 4, Bytes: 1500,
			PayloadBytes: 1472, Found: model.MTUTold, Probes: 2}},
		{"least", up, []int{0, 1}, model.PathMTU{Flow: "up", From: "sender", To: "receiver-2", Family: 4, Bytes: 1400,
			PayloadBytes: 1372, Found: model.MTUTold, Probes: 4}},
		{"back", down, []int{0, 1, 2}, model.PathMTU{Flow: "down", From: "receiver-2", To: "sender", Family: 6,
			Bytes: 1300, PayloadBytes: 1252, Found: model.MTUSearch, Probes: 15}},
		{"unknown", up, []int{0, 2, 1}, model.PathMTU{Flow: "up", From: "sender", To: "receiver-3", Family: 4,
			Probes: 2, Why: nothingWhole}},
		{"lost", up, []int{3}, model.PathMTU{Flow: "up", From: "sender", To: "receiver", Family: 4,
			Why: model.Doubts{{Code: model.MTUCut}}}},
	} {
		if got := leastMTU(c.flow, trial, c.asked, out, nil); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", c.name, got, c.want)
		}
	}
	got := leastMTU(up, fleet.Trial{}, nil, fleet.Outcome{}, nothingWhole)
	if !reflect.DeepEqual(got.Why, nothingWhole) || got.Bytes != 0 {
		t.Errorf("without an outcome: %+v", got)
	}
}

var nothingWhole = model.Doubts{{Code: model.MTUNothing}}

// TestWholePayload: the payload that stands for mtu, and what it rests on.
func TestWholePayload(t *testing.T) {
	known := twoEnds()
	known.nodes[0].agent.Host.MTUBytes, known.nodes[1].agent.Host.MTUBytes = 1500, 1400
	unknown := twoEnds()
	up, down := model.PathMTU{Flow: "up", Family: 4, Bytes: 1500, PayloadBytes: 1472}, model.PathMTU{Flow: "down",
		Family: 4, Bytes: 1400, PayloadBytes: 1372}
	silent := model.PathMTU{Flow: "up", Family: 4, Why: nothingWhole}
	bound := model.PathMTU{Flow: "up", Family: 4, Bytes: 1200, PayloadBytes: 1172, AtLeast: true,
		Why: model.Doubts{{Code: model.MTUUnfinished, Numbers: map[string]float64{"after_s": 1}}}}
	for _, c := range []struct {
		name    string
		path    *site
		mtus    []model.PathMTU
		payload int
		said    model.Reasons
	}{
		{"one", known, []model.PathMTU{up}, 1472, nil},
		{"the least of two", known, []model.PathMTU{up, down}, 1372, nil},
		{"a bound", known, []model.PathMTU{bound}, 1172, model.Reasons{{Code: model.PayloadLeast, Flow: "up",
			Numbers: map[string]float64{"payload_bytes": 1172}}}},
		{"by the interfaces", known, []model.PathMTU{silent}, 1372, model.Reasons{{Code: model.PayloadGuess,
			Numbers: map[string]float64{"payload_bytes": 1372}}}},
	} {
		payload, said, err := c.path.wholePayload(c.mtus)
		if err != nil || payload != c.payload || !reflect.DeepEqual(said, c.said) {
			t.Errorf("%s: %d, %v, %v; want %d, %v", c.name, payload, said, err, c.payload, c.said)
		}
	}
	var field *model.FieldError
	if _, _, err := unknown.wholePayload([]model.PathMTU{silent}); !errors.As(err, &field) ||
		!strings.Contains(err.Error(), "no packet of any size came through whole; give the size as a number") {
		t.Errorf("with nothing known: %v", err)
	}
}
