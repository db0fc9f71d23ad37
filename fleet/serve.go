package fleet

import (
	"context"
	"errors"
	"time"

	"pelt/model"
	"pelt/words"
)

// Serve runs a hub with one agent until ctx ends, then closes both; the error
// is nil then. It ends with an error if the agent falls off the hub, where no
// client would find it.
func Serve(ctx context.Context, cfg ServeConfig) error {
	h, err := StartHub(cfg.HubConfig)
	if err != nil {
		return err
	}
	defer h.Close()
	agent := cfg.Agent
	agent.clientOf = h.clientOf
	agent.events = func(session string, said error) {
		if client := h.clientOf(session); client.IsValid() {
			said = words.Errorf("%w (client %v)", said, client)
		}
		h.admission.events(said)
	}
	a, err := h.Join(agent)
	if err != nil {
		return err
	}
	if cfg.Ready != nil {
		cfg.Ready(h.Addr())
	}
	if cfg.Once {
		once, end := context.WithCancel(ctx)
		defer end()
		go func() {
			a.untilServed(once, h.admission)
			end()
		}()
		ctx = once
	}
	return a.stay(ctx)
}

// goneTime is how long no client and no session must be there until the first client counts as gone: one whose
// connection broke between two trials comes back within that time.
const goneTime = 5 * time.Second

// untilServed returns when ctx ends, or when a client had a session here and is gone.
func (a *Agent) untilServed(ctx context.Context, clients *admission) {
	tick := time.NewTicker(goneTime / 10)
	defer tick.Stop()
	since := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			a.mu.Lock()
			busy := !a.served || len(a.sessions) > 0
			a.mu.Unlock()
			if busy || clients.connected() {
				since = now
			} else if now.Sub(since) >= goneTime {
				return
			}
		}
	}
}

// stay returns when ctx ends, once the agent is closed, or when the agent is on its
// hub no more.
func (a *Agent) stay(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-a.link.lost:
		if ctx.Err() == nil {
			return errors.New("the connection between the agent and its hub, both in this process, was lost: " +
				"start pelt serve again")
		}
	}
	a.shutdown(model.NewReason(model.PeltStopped, "name", "pelt serve"))
	return nil
}
