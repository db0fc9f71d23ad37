package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Serve runs a hub with one agent until ctx ends, then closes both; the error
// is nil then. It ends with an error if the agent falls off the hub, where no
// client would find it. The agent's limits are cfg.Limits.
func Serve(ctx context.Context, cfg ServeConfig) error {
	tell := func(e Event) {
		if cfg.Events != nil {
			cfg.Events(e)
		}
	}
	port := cfg.Port
	if port == 0 && !cfg.AnyPort {
		port = DefaultPort
	}
	h, err := StartHub(HubConfig{Listen: netip.AddrPortFrom(cfg.Listen, port), Code: cfg.Code, Open: cfg.Open, Events: tell, key: cfg.key})
	if err != nil {
		return err
	}
	defer h.Close()
	agent := cfg.Agent
	agent.Limits = cfg.Limits
	agent.clientOf, agent.calls = h.clientOf, cfg.Calls
	agent.events = func(e Event) {
		if e.Session != "" {
			e.Peer = h.clientOf(e.Session)
		}
		e.Text = strings.TrimSpace(e.Text + " " + fromText(e.Peer))
		tell(e)
	}
	a, err := h.Join(agent)
	if err != nil {
		return err
	}
	tell(Event{Kind: EventListening, Peer: h.Addr(), Text: fmt.Sprintf("listening on %v", h.Addr())})
	return a.stay(ctx)
}

// stay returns when ctx ends, once the agent is closed, or when the agent is on its
// hub no more.
func (a *Agent) stay(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-a.link.lost:
		if ctx.Err() == nil {
			return errors.New("the connection between the agent and its hub, both in this process, was lost: start pelt serve again")
		}
	}
	a.shutdown("pelt serve was stopped there")
	return nil
}

func fromText(p netip.AddrPort) string {
	if !p.IsValid() {
		return ""
	}
	return fmt.Sprintf("(client %v)", p.Addr())
}
