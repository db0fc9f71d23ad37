package run

import (
	"context"
	"errors"
	"net/netip"

	"pelt/fleet"
	"pelt/model"
)

// ServeOptions are how this host offers itself as the far end.
type ServeOptions struct {
	Version string
	Listen  netip.Addr // invalid means every address
	Port    int        // control; data uses Port+1
	Code    string
	Open    bool // ask no code
	Limits  fleet.Limits
	Ready   func()       // called once when clients may come
	Events  func(string) // one sentence each
}

// Serve is the far end until ctx ends.
func Serve(ctx context.Context, o ServeOptions) error {
	agent, free := agentConfig(model.Receiver, plainHost{}, o.Version, uint16(o.Port+1))
	err := fleet.Serve(ctx, fleet.ServeConfig{
		Listen: o.Listen, Port: uint16(o.Port), Code: o.Code, Open: o.Open, Limits: o.Limits, Agent: agent,
		Events: func(e fleet.Event) {
			if e.Kind == fleet.EventListening {
				o.Ready()
				return
			}
			o.Events(e.Text)
		},
	})
	return errors.Join(err, free())
}
