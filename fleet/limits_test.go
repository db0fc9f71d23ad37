package fleet

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/unit"
	"pelt/words"
)

const (
	home = "192.168.7.2"
	away = "198.51.100.7" // of TEST-NET-2: no interface has it
)

// servedAgent has the limits of a pelt serve without flags, and one client.
func servedAgent(t *testing.T, w *wire, client string) *Agent {
	a := quietAgent(t, w, Limits{MaxRateBPS: 100e6, MaxTimeSeconds: 3600, OwnFree: true, MemoryBytes: 100e6,
		MaxStreams: 182})
	a.cfg.Calls = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}
	a.cfg.clientOf = func(string) netip.Addr {
		from, _ := netip.ParseAddr(client)
		return from.Unmap()
	}
	return a
}

func orderOf(t *testing.T, a *Agent, verb string, q any) error {
	t.Helper()
	data, err := json.Marshal(q)
	testenv.Must(t, err)
	var about sessionOrder
	testenv.Must(t, json.Unmarshal(data, &about))
	client, _, _ := strings.Cut(about.Session, ".")
	_, err = open(a.answer(t.Context(), client, verb, data))
	return err
}

// TestCallerFromAnotherNetwork: a client at home that has a host in another network call this one is refused once that
// calls, and gets nothing by going on.
func TestCallerFromAnotherNetwork(t *testing.T) {
	t.Parallel()
	for peer, want := range map[string]string{home: "",
		away: "that host allows 100 Mbit/s to other networks (--max-rate there)"} {
		w := newWire()
		a := servedAgent(t, w, home)
		e := a.cfg.Engines["udp"].(*fakeEngine)
		e.streams = []engine.Stream{{Remote: netip.AddrPortFrom(netip.MustParseAddr("::ffff:"+peer), 9)}}
		p := goodOrder()
		p.Ends[0].Order.Flow.Rate = unit.Rate{}
		testenv.Must(t, orderOf(t, a, verbMake, p))
		close(w.pair(p.Ends[0].Order.Key).ready)
		if err := orderOf(t, a, verbDo, doOrder{sessionOrder: p.sessionOrder, Step: engine.Meet}); err != nil {
			t.Error(err)
		}
		err := orderOf(t, a, verbDo, doOrder{sessionOrder: p.sessionOrder, Step: engine.Met})
		var refusal *engine.Refusal
		if want == "" && err != nil || want != "" &&
			(!errors.As(err, &refusal) || !strings.Contains(squeeze(err.Error()), want)) {
			t.Errorf("called from %s: %v, want %q", peer, err, want)
		}
		for _, step := range []engine.Step{engine.Ready, engine.Go} {
			if err := orderOf(t, a, verbDo, doOrder{sessionOrder: p.sessionOrder,
				Step: step}); (err == nil) != (want == "") {
				t.Errorf("called from %s: %s: %v", peer, step, err)
			}
		}
		if ran := len(w.events("", "run receive")); (ran > 0) != (want == "") {
			t.Errorf("called from %s: %d ends ran", peer, ran)
		}
		if err := orderOf(t, a, verbRelease, p.sessionOrder); err != nil {
			t.Error(err)
		}
	}
}

// A session whose release overtakes its making is not made: nobody would end it.
func TestReleaseOvertakes(t *testing.T) {
	t.Parallel()
	a := servedAgent(t, newWire(), home)
	p := goodOrder()
	released, made := orderOf(t, a, verbRelease, p.sessionOrder), orderOf(t, a, verbMake, p)
	for _, err := range []error{released, made} {
		if err == nil || err.Error() != errNoSession.Error() {
			t.Errorf("got %v", err)
		}
	}
	if n := len(a.list()); n > 0 {
		t.Errorf("%d sessions are left", n)
	}
}

// A call that was answered costs its host nothing, whatever steps follow.
func TestAnsweredCall(t *testing.T) {
	t.Parallel()
	for _, barred := range []bool{false, true} {
		w := newWire()
		if barred {
			w.barred = map[string][]int{"up": {0}}
		}
		a := servedAgent(t, w, home)
		p := goodOrder()
		o := &p.Ends[0].Order
		o.Role, o.Listen, o.Peer = engine.Send, false, netip.MustParseAddr(home)
		ports := map[int]engine.Known{1: {Ports: []uint16{9}}}
		testenv.Must(t, orderOf(t, a, verbMake, p))
		for _, step := range []engine.Step{engine.Open, engine.Meet, engine.Met} {
			if err := orderOf(t, a, verbDo, doOrder{sessionOrder: p.sessionOrder, Step: step,
				Ends: ports}); err != nil {
				t.Errorf("%s: %v", step, err)
			}
		}
		if a.mu.Lock(); a.calls.used > 0 != barred {
			t.Errorf("barred %t: it counts %v vain calls", barred, a.calls.used)
		}
		a.mu.Unlock()
		if err := orderOf(t, a, verbRelease, p.sessionOrder); err != nil {
			t.Error(err)
		}
	}
}

// The rate that serve prints to paste is its limit, not a bit more.
func TestRateFlag(t *testing.T) {
	t.Parallel()
	for limits, want := range map[Limits]string{
		{MaxRateBPS: 1e9}:          " --rate 1gbit",
		{MaxRateBPS: 10e9}:         " --rate 10gbit",
		{MaxRatePPS: 1999 - 1e-12}: " --rate 1.999kpps",
		{}:                         "",
	} {
		if got := limits.RateFlag(netip.MustParseAddr(away)); got != want {
			t.Errorf("%+v: %q, want %q", limits, got, want)
		}
	}
}

// What serve tells a client in its introduction is what it holds it to.
func TestHelloTellsLimits(t *testing.T) {
	t.Parallel()
	for client, want := range map[string]float64{home: 0, away: 100e6, "": 100e6} {
		a := servedAgent(t, newWire(), client)
		got, err := a.hello(t.Context(), "", []byte(inboxPrefix+"0123.4"))
		if info, ok := got.(AgentInfo); err != nil || !ok || info.Limits.MaxRateBPS != want ||
			info.Limits.MaxTimeSeconds != 3600 ||
			info.Limits.Trials(words.English) != a.cfg.Limits.Trials(words.English) { // as its owner is told

			t.Errorf("%q: %+v, %v", client, got, err)
		}
	}
}

// TestVainCalls: calls that get no answer are few, whoever orders them; answered ones do not count.
func TestVainCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Agent{cfg: AgentConfig{clientOf: func(string) netip.Addr { return netip.Addr{} }}}
		call := func(answered bool) error {
			return a.call(&sessionEnd{}, func() (bool, error) { return answered, nil })
		}
		for i := range 3 * vainCalls {
			err := call(i%2 == 0 && i < 2*vainCalls)
			var refusal *engine.Refusal
			if over := i >= 2*vainCalls; over != errors.As(err, &refusal) || !over && err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
		}
		time.Sleep(vainAgain)
		if err := call(false); err != nil {
			t.Errorf("%v later: %v", vainAgain, err)
		}
		if err := a.call(&sessionEnd{order: endOrder{Order: engine.Order{Listen: true}}},
			func() (bool, error) { return false, nil }); err != nil {
			t.Errorf("an end that listens: %v", err)
		}
	})
}
