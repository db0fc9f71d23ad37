package fleet

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pelt/internal/testenv"
	"pelt/model"
)

// farHost is an agent as pelt serve makes it: each calls itself the receiver.
func farHost(w *wire, id string) AgentConfig {
	a := agentOn(w, id)
	a.Node = model.Receiver
	return a
}

// hearing has an agent's ends tell what has come.
func hearing(a AgentConfig) AgentConfig {
	a.Engines["udp"].(*fakeEngine).hears = true
	return a
}

// TestTwoServed: the controller of two served hosts, with a code each, names the sides and
// leads both; without a probe flow the agents know of each other by its word alone, for longer
// than the silence that ends a trial.
func TestTwoServed(t *testing.T) {
	t.Parallel()
	w := newWire()
	const lan, wan = "lan-10-lan", "wan-10-wan"
	serveAs := func(id, code, calls string) *served {
		return serve(t, w, func(c *ServeConfig) {
			c.Agent, c.Code = farHost(w, id), code
			var err error
			if c.Agent.Calls, err = ParseCalls(calls); err != nil {
				t.Fatal(err)
			}
		})
	}
	near, far := serveAs("one", lan, "127.0.0.0/8"), serveAs("two", wan, "")
	both := func(near *served, nearCode string, far *served, farCode string) (*Controller, error) {
		return NewController(t.Context(), "1.0", HubAddress{Addr: near.addr, Code: nearCode, Node: model.Sender},
			HubAddress{Addr: far.addr, Code: farCode, Node: model.Receiver})
	}
	c, err := both(near, lan, far, wan)
	testenv.Must(t, err)
	a := c.Agents()
	if len(a) != 2 || a[0].ID != "one" || a[0].Node != model.Sender || a[1].ID != "two" || a[1].Node != model.Receiver {
		t.Fatalf("agents: %+v", a)
	}
	trial := bothTrial("one", "two", 3500*time.Millisecond)
	trial.Probe = false
	seen := map[string]bool{}
	out := measured(t, c, trial, func(p Progress) { seen[p.Agent+" "+string(p.Role)] = p.Packets > 0 })
	for i, f := range out.Flows {
		if f.Send == nil || f.Receive == nil || f.Receive.Receive.Tally.Late != f.Send.Send.Accepted {
			t.Errorf("flow %d: %+v, want both ends' accounts, the receiver told what left the sender", i, f)
		}
	}
	for _, end := range []string{"one send", "one receive", "two send", "two receive"} {
		if !seen[end] {
			t.Errorf("no progress of %s: %v", end, seen)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := both(near, lan, far, lan); !errors.Is(err, ErrWrongCode) ||
		!strings.Contains(err.Error(), far.addr.String()) {
		t.Errorf("the near host's code for the far one: %v, want %v, and where", err, ErrWrongCode)
	}
	if _, err := both(near, lan, near, lan); err == nil || !strings.Contains(err.Error(), "the same pelt serve") {
		t.Errorf("one host twice: %v", err)
	}
	nothingOpen(t, w)
}

// twoServed commands two served hosts, each through a cable.
func twoServed(t *testing.T, w *wire) (*Controller, []*cable) {
	t.Helper()
	var cables []*cable
	var at []HubAddress
	for i, id := range []string{"one", "two"} {
		s := serve(t, w, func(c *ServeConfig) {
			c.Agent = hearing(farHost(w, id))
			c.Agent.Calls, _ = ParseCalls("127.0.0.1")
		})
		cables = append(cables, newCable(t, s.addr))
		at = append(at, HubAddress{Addr: cables[i].addr, Code: testCode,
			Node: []string{model.Sender, model.Receiver}[i]})
	}
	c, err := NewController(t.Context(), "1.0", at...)
	testenv.Must(t, err)
	t.Cleanup(func() { c.Close() })
	return c, cables
}

// TestNearVouches: a flood that leaves no room for control and probe at the far
// host tells there that the near one lives, who hears the controller well. The
// reverse does not hold, or the two could keep each other alive without it.
func TestNearVouches(t *testing.T) {
	t.Parallel()
	const length = 7 * time.Second // 2 s of a silence are forgiven on a busy machine
	for starved, side := range []string{model.Sender, model.Receiver} {
		t.Run("starved "+side, func(t *testing.T) {
			t.Parallel()
			w := newWire()
			c, cables := twoServed(t, w)
			vouched := side == model.Receiver
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			whenSending(w, 2, func() {
				cables[starved].out.Store(true)
				if vouched { // the trial goes on until this ends it, however late it began
					time.Sleep(length)
					cables[starved].out.Store(false)
					close(cables[starved].back)
					interrupt()
				}
			})
			trial := bothTrial("one", "two", time.Minute)
			trial.Probe = false
			out, err := c.RunTrial(ctx, trial, nil)
			if err != nil || (said(out.Cut) == "interrupted") != vouched {
				t.Errorf("cut %q, %v", said(out.Cut), err)
			}
			nothingOpen(t, w)
		})
	}
}
