package test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// Of each pair of four hosts: a mesh that is over soon, one whose trials end soon after a test does something in their
// midst, and one whose trials go on for longer than anybody may send alone.
const (
	shortMesh  = "mesh fleet:h1,h2,h3,h4 --rate 500pps --time 300ms --warmup 100ms --json -"
	middleMesh = "mesh fleet:h1,h2,h3,h4 --rate 500pps --time 1500ms --warmup 100ms --json -"
	longMesh   = "mesh fleet:h1,h2,h3,h4 --rate 500pps --time 5s --warmup 100ms --json -"
)

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
	onFleet(t, 2, func(f *fleet) {
		p := f.control("mesh", "mesh fleet:h1,h2 --rate 500pps --time 7s --warmup 100ms --json -")
		f.untilSending(p, f.names...)
		time.Sleep(2 * time.Second) // until samples of some seconds are told
		for _, s := range f.servers {
			s.Kill()
		}
		f.untilSilent(f.names...)
		f.serve()
		d := f.ends(p)
		f.whole(d, nil)
		cut := slices.DeleteFunc(d.Results, func(r model.Result) bool { return !r.Why.Has(model.PairUnmeasured) })
		if len(cut) != 1 {
			f.t.Errorf("%d trials were cut, want the one that ran when the hub was killed:\n%s", len(cut), p.Err)
		}
		for _, r := range cut {
			if !slices.ContainsFunc(r.Flows, func(x model.FlowResult) bool { return x.Attempted > 0 }) {
				f.t.Errorf("%s was cut (%s), and what was measured before is gone", pair(r), r.Why)
			}
		}
	})
}

// TestFleetAgentsDie: agents are killed before, in and after the measured part of a trial and come back: all is measured.
func TestFleetAgentsDie(t *testing.T) {
	t.Parallel()
	onFleet(t, 4, func(f *fleet) {
		p := f.control("mesh", middleMesh)
		again := func(name string) {
			f.agents[name].Kill()
			f.startJoin(name)
		}
		f.agents["h1"].Await("trial started")
		again("h1")
		f.untilSending(p, "h2")
		again("h2")
		f.untilSending(p, "h3")
		testenv.Await(f.t, "h3 to be silent", func() bool { return !slices.Contains(f.sending(), "h3") })
		again("h3")
		f.whole(f.ends(p), nil)
	})
}

// TestNightlyFleetAgentStaysAway: the others' pairs do not wait for it.
func TestNightlyFleetAgentStaysAway(t *testing.T) {
	testenv.Nightly(t)
	onFleet(t, 4, func(f *fleet) {
		p := f.control("mesh", middleMesh)
		f.untilSending(p, "h4")
		f.agents["h4"].Kill()
		if code := p.Code(); code != invalid {
			f.t.Errorf("exit code %d, want %d:\n%s", code, invalid, p.Err)
		}
		d := told(f.t, p)
		missing := unmeasured(d)
		if len(missing) == 0 {
			f.t.Errorf("nobody misses h4:\n%s", p.Err)
		}
		for name, why := range missing {
			if !strings.Contains(name, "h4") || !strings.Contains(why, "h4") {
				f.t.Errorf("%s is unmeasured: %s", name, why)
			}
		}
		f.whole(d, missing)
	})
}

// TestFleetTwoControllers: whoever comes second waits for each host, and none is in two tests at a time.
func TestFleetTwoControllers(t *testing.T) {
	t.Parallel()
	onFleet(t, 4, func(f *fleet) {
		first, second := f.control("first", shortMesh), f.control("second", shortMesh)
		f.whole(f.ends(first), nil)
		f.whole(f.ends(second), nil)
		for _, name := range f.names {
			open, trials := 0, 0
			for line := range strings.Lines(f.agents[name].Err.String()) {
				switch {
				case strings.Contains(line, "trial started"):
					open, trials = open+1, trials+1
				case strings.Contains(line, "trial ended"):
					open--
				}
				if open > 1 {
					f.t.Fatalf("%s takes part in two trials at a time:\n%s", name, f.agents[name].Err)
				}
			}
			if least := 2 * (len(f.names) - 1); trials < least {
				f.t.Errorf("%s took part in %d trials, want %d", name, trials, least)
			}
		}
	})
}

// TestNightlyFleetPartition: a host that nobody reaches for 5 s stops by itself, as does who was measured with it; the others
// go on. It is measured when it is back.
func TestNightlyFleetPartition(t *testing.T) {
	testenv.Nightly(t)
	onFleet(t, 4, func(f *fleet) {
		p := f.control("mesh", longMesh)
		f.untilSending(p, f.names...)
		f.plug("h2", false)
		cut := time.Now()
		f.untilSilent("h2", "h3")
		if now := f.sending(); !slices.Equal(now, []string{"h1", "h4"}) {
			f.t.Errorf("%v send, want h1 and h4, whom the fault does not touch", now)
		}
		time.Sleep(time.Until(cut.Add(5 * time.Second)))
		f.plug("h2", true)
		f.whole(f.ends(p), nil)
	})
}

// plug puts a host's port into the switch or takes it out. Its cable stays.
func (f *fleet) plug(name string, in bool) {
	f.t.Helper()
	f.hub.Master(name, map[bool]string{true: "switch"}[in])
}

// TestFleetControllerKilled: agents stop when a controller is gone, and take the orders of the next.
func TestFleetControllerKilled(t *testing.T) {
	t.Parallel()
	onFleet(t, 4, func(f *fleet) {
		p := f.control("killed", longMesh)
		f.untilSending(p, f.names...)
		p.Kill()
		f.untilSilent(f.names...)
		f.whole(f.ends(f.control("next", shortMesh)), nil)
	})
}
