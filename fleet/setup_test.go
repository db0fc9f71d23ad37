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
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), want) ||
			took > 5*time.Second+8*late() {
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
	for verb, c := range map[string]struct {
		name, want string
		dies       func(a *Agent)
	}{
		verbMake: {"of a fleet", "b left the hub before the test began", func(a *Agent) { go a.link.close() }},
		verbDo: {"of a fleet, and comes back", "b takes no more part in the test", func(a *Agent) {
			_ = each(a.list(), func(s *session) error { return s.close("") })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, hub := newWire(), openHub(t)
			joinAs(t, hub, agentOn(w, "a"))
			b, err := newAgent(agentOn(w, "b"))
			if err != nil {
				t.Fatal(err)
			}
			if b.link, err = dialFleet(t.Context(), hub, "b"); err != nil {
				t.Fatal(err)
			}
			defer b.link.close()
			b.alone = true
			obey := func(m *nats.Msg) {
				switch words := strings.Split(m.Subject, "."); {
				case m.Subject == helloSubject:
					_ = m.Respond(b.answer(t.Context(), verbHello, []byte(m.Reply)))
				case words[3] == verb:
					c.dies(b)
				default:
					_ = m.Respond(b.answer(t.Context(), words[3], m.Data))
				}
			}
			for _, subject := range []string{helloSubject, orderSubject("b", "*", "*")} {
				if _, err := b.link.subscribe(subject, obey); err != nil {
					t.Fatal(err)
				}
			}
			dies(t, commander(t, hub, "a", "b"), "a", "b", c.want)
			nothingOpen(t, w)
		})
	}
}
