package fleet

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// Nobody waits for a host that dies while a trial is set up, whatever reconnect window the trial has.
func TestHostDiesInSetUp(t *testing.T) {
	t.Parallel()
	dies := func(t *testing.T, c *Controller, from, to, want string) {
		late := heldUp(t)
		trial := upTrial(from, to, time.Minute)
		trial.Timing.PatienceSeconds = 60
		began := time.Now()
		_, err := c.RunTrial(t.Context(), trial, nil)
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), want) || took > 5*time.Second+8*late() {
			t.Errorf("after %v: %v, want %s", took, err, want)
		}
		if of := (&HostError{}); errors.As(err, &of) && of.Host != to {
			t.Errorf("%v is of %s", err, of.Host)
		}
	}
	t.Run("that serves", func(t *testing.T) {
		t.Parallel()
		w := newWire()
		var path *cable
		s := serve(t, w, func(c *ServeConfig) {
			c.Agent.Engines["udp"].(*fakeEngine).before = func() { path.cancel(); time.Sleep(time.Second) }
		})
		path = newCable(t, s.addr)
		dies(t, dial(t, path.addr, agentOn(w, "near")), "near", "far", "lost")
	})
	t.Run("of a fleet", func(t *testing.T) {
		t.Parallel()
		w, hub := newWire(), openHub(t, "127.0.0.1:0")
		joinAs(t, hub, agentOn(w, "a"))
		b, err := dialFleet(t.Context(), hub, "b")
		if err != nil {
			t.Fatal(err)
		}
		obey := func(m *nats.Msg) {
			if strings.Contains(m.Subject, verbPrepare) {
				go b.close()
				return
			}
			far, err := newAgent(agentOn(w, "b"))
			if err != nil {
				t.Error(err)
				return
			}
			far.alone, far.link = true, b
			_ = m.Respond(far.answer(t.Context(), verbHello, []byte(m.Reply)))
		}
		for _, subject := range []string{helloSubject, orderSubject("b", "*", "*")} {
			if _, err := b.subscribe(subject, obey); err != nil {
				t.Fatal(err)
			}
		}
		dies(t, commander(t, hub, "a", "b"), "a", "b", "b left the hub before the test began")
		nothingOpen(t, w)
	})
}
