package fleet

import (
	"context"
	"errors"
	"fmt"
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
	agent.events = func(session, text string) {
		if client := h.clientOf(session); client.IsValid() {
			text += fmt.Sprintf(" (client %v)", client.Addr())
		}
		if cfg.Events != nil {
			cfg.Events(text)
		}
	}
	a, err := h.Join(agent)
	if err != nil {
		return err
	}
	if cfg.Ready != nil {
		cfg.Ready(h.Addr())
	}
	return a.stay(ctx)
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
	a.shutdown("pelt serve was stopped there")
	return nil
}
