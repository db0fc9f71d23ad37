package run

import (
	"context"
	"errors"
	"net/netip"

	"pelt/fleet"
	"pelt/model"
	"pelt/observe"
)

func openHost(ctx context.Context, p model.Plan, o Options) (_ *path, err error) {
	host, port, err := model.HostPort(p.Target)
	if err != nil {
		return nil, err
	}
	if port == 0 {
		port = fleet.DefaultPort
	}
	if p.Receivers > 0 {
		return nil, &model.FieldError{Field: "receivers", Want: "are for lab:star"}
	}
	way := &path{spots: endSpots(), engine: p.Engine}
	defer func() {
		if err != nil {
			err = errors.Join(err, way.Close())
		}
	}()
	far, err := fleet.Resolve(ctx, host, p.Flows[0].Family)
	if err != nil {
		return nil, err
	}
	config, _, free := agentConfig(model.Sender, plainHost{}, o.Version, 0, endObserver(plainHost{}, way.watchDrops(), func() string {
		i, _ := observe.InterfaceFor(plainHost{}.Do, far) // unknown is ""
		return i.Name
	}), nil)
	way.onClose(free)
	config.Facts = func() model.Host {
		h := observe.Facts()
		if i, err := observe.InterfaceFor(plainHost{}.Do, far); err == nil {
			i.Describe(&h)
		}
		return h
	}
	way.controller, err = fleet.Dial(ctx, netip.AddrPortFrom(far, port), o.Code, config)
	if err != nil {
		return nil, err
	}
	way.onClose(way.controller.Close)
	way.address = map[string]func(int) netip.Addr{model.Receiver: func(int) netip.Addr { return far }}
	if err := way.meet(); err != nil {
		return nil, err
	}
	near, there := way.ends[model.Sender].Host, way.ends[model.Receiver].Host
	way.oneClock = near.Boot != "" && near.Boot == there.Boot
	return way, nil
}
