package test

import (
	"slices"
	"testing"
	"time"

	"pelt/finding"
	"pelt/internal/peltproc"
	"pelt/model"
)

// mesh is one of all hosts.
const mesh = "mesh fleet: --drops off --rate 500pps --warmup 100ms --json - --time "

// ends waits for the end of a mesh that measured, and returns its document. A busy machine may spoil trials.
func (f *fleet) ends(p *peltproc.Process) model.Document {
	f.t.Helper()
	if err := orInvalid(p.Wait()); err != nil {
		f.t.Errorf("%v: %v:\n%s", p.Cmd.Args, err, p.Err)
	}
	return told(f.t, p)
}

// TestFleetHubDies: what was measured until the hub was killed is kept, and once it is back all is measured.
func TestFleetHubDies(t *testing.T) {
	t.Parallel()
	f := onFleet(t, 2)
	p := f.control("mesh", mesh+"7s")
	f.untilSending(p, f.names...)
	time.Sleep(2 * time.Second) // until samples of some seconds are told
	f.server.Kill()
	f.untilSilent(f.names...)
	f.serve()
	d := f.ends(p)
	f.whole(d, nil)
	cut := slices.DeleteFunc(d.Results, func(r model.Result) bool { return !r.Why.Has(model.PairUnmeasured) })
	if len(cut) != 1 {
		t.Errorf("%d trials were cut, want the one that ran when the hub was killed:\n%s", len(cut), p.Err)
	}
	for _, r := range cut {
		if !slices.ContainsFunc(r.Flows, func(x model.FlowResult) bool { return x.Attempted > 0 }) {
			t.Errorf("%s was cut (%s), and what was measured before is gone", pair(r), finding.Why(r.Why))
		}
	}
}

// TestFleetDeaths: agents are killed before and in the measured part of a trial and come back: all is measured. A
// controller is killed, and the hosts stop and take the orders of the next. Package fleet has deaths after the measured
// part, partitions, and controllers that want one host at a time.
func TestFleetDeaths(t *testing.T) {
	t.Parallel()
	f := onFleet(t, 2)
	p := f.control("mesh", mesh+"1s")
	again := func(name string) {
		f.agents[name].Kill()
		f.startJoin(name)
	}
	f.agents["h1"].Await("trial started")
	again("h1")
	f.untilSending(p, "h2")
	again("h2")
	f.whole(f.ends(p), nil)

	p = f.control("killed", mesh+"5s")
	f.untilSending(p, "h1", "h2")
	p.Kill()
	f.untilSilent(f.names...)
	f.whole(f.ends(f.control("next", mesh+"300ms")), nil)
}
