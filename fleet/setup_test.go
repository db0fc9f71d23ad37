package fleet

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"pelt/engine"
)

// Nobody waits for a host that dies while a trial is set up, whatever reconnect window the trial has.
func TestHostDiesInSetUp(t *testing.T) {
	t.Parallel()
	w := newWire()
	var path *cable
	s := serve(t, w, func(c *ServeConfig) {
		c.Agent.Engines["udp"].(*fakeEngine).before = func() { path.cancel(); time.Sleep(time.Second) }
	})
	path = newCable(t, s.addr)
	diesInSetUp(t, dial(t, path.addr, agentOn(w, "near")), "near", "far", "lost", 5*time.Second)
}

// diesInSetUp runs a trial in which a host dies before it begins.
func diesInSetUp(t *testing.T, c *Controller, from, to, want string, within time.Duration) {
	t.Helper()
	late := heldUp(t)
	trial := upTrial(from, to, time.Minute)
	trial.Timing.PatienceSeconds = 60
	began := time.Now()
	_, err := c.RunTrial(t.Context(), trial, nil)
	if took := time.Since(began); err == nil || !strings.Contains(err.Error(), want) ||
		took > within+8*late() {
		t.Errorf("after %v: %v, want %s", took, err, want)
	}
	if of := (&HostError{}); errors.As(err, &of) && of.Host != to {
		t.Errorf("%v is of %s", err, of.Host)
	}
}

// joinWith joins an agent to a hub of many hosts that obeys as the test says.
func joinWith(t *testing.T, hub HubAddress, cfg AgentConfig, obey func(b *Agent, m *nats.Msg, client, verb string)) {
	t.Helper()
	b, err := newAgent(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if b.link, err = hub.dial(t.Context(), cfg.ID, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.link.close)
	b.alone = true
	for subject, f := range map[string]func(*nats.Msg){
		helloSubject: func(m *nats.Msg) { _ = m.Respond(b.answer(t.Context(), "", verbHello, []byte(m.Reply))) },
		orderSubject(cfg.ID, "*", "*"): func(m *nats.Msg) {
			token := strings.Split(m.Subject, ".")
			obey(b, m, token[4], token[3])
		},
	} {
		if _, err := b.link.subscribe(subject, f); err != nil {
			t.Fatal(err)
		}
	}
}

// A trial that is interrupted while a host has not yet answered the order to begin has begun all the same.
func TestInterruptedAtTheGate(t *testing.T) {
	t.Parallel()
	w, hub := newWire(), openHub(t)
	joinAs(t, hub, agentOn(w, "a"))
	ctx, interrupt := context.WithCancel(t.Context())
	joinWith(t, hub, agentOn(w, "b"), func(b *Agent, m *nats.Msg, client, verb string) {
		answer := b.answer(t.Context(), client, verb, m.Data)
		if o, err := decode[doOrder](m.Data); verb == verbDo && err == nil && o.Step == engine.Go {
			for w.delivered() == 0 {
				time.Sleep(time.Millisecond)
			}
			interrupt()
			return
		}
		_ = m.Respond(answer)
	})
	out, err := commander(t, hub, "a", "b").RunTrial(ctx, upTrial("a", "b", time.Minute), nil)
	if err != nil || said(out.Cut) != "interrupted" || out.Flows[0].Send == nil || out.Flows[0].Receive == nil ||
		out.Flows[0].Receive.Receive.Tally.Late != out.Flows[0].Send.Send.Accepted {
		t.Errorf("%+v, %v; want both accounts of a trial that was cut, the receiver told what left the sender", out,
			err)
	}
	nothingOpen(t, w)
}
