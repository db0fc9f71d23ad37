package run

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"pelt/fleet"
	"pelt/model"
	"pelt/observe"
)

// openHost is a path from this host, or from the plan's near one, to the target.
func openHost(ctx context.Context, p model.Plan, o Options) (*path, error) {
	if p.Receivers > 0 {
		return nil, &model.FieldError{Field: "receivers", Want: "are for lab:star"}
	}
	far, err := servedAt(ctx, p.Target, p.Flows[0].Family)
	if err != nil {
		return nil, err
	}
	way := &path{spots: endSpots(), engine: p.Engine, address: map[string]func(int) netip.Addr{
		model.Receiver: func(int) netip.Addr { return far.Addr() },
	}}
	if p.Near == "" {
		err = way.callFromHere(ctx, far, o)
	} else {
		err = way.callFromNear(ctx, p.Near, far, o)
	}
	if err == nil {
		err = way.meet()
	}
	if err == nil {
		err = way.watchDevice(ctx, p, nil)
	}
	if err != nil {
		return nil, errors.Join(err, way.Close())
	}
	way.setup = setup{variants: p.Variants}
	near, there := way.ends[model.Sender].Host, way.ends[model.Receiver].Host
	way.oneClock = near.Boot != "" && near.Boot == there.Boot
	return way, nil
}

// servedAt is the control port of a pelt serve.
func servedAt(ctx context.Context, text string, family int) (netip.AddrPort, error) {
	host, port, err := model.HostPort(text)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if port == 0 {
		port = fleet.DefaultPort
	}
	a, err := fleet.Resolve(ctx, host, family)
	return netip.AddrPortFrom(a, port), err
}

// callFromHere makes this host the sender.
func (p *path) callFromHere(ctx context.Context, far netip.AddrPort, o Options) error {
	config, _, free := agentConfig(model.Sender, plainHost{}, o.Version, 0, endObserver(plainHost{}, p.watchDrops(), func() string {
		i, _ := observe.InterfaceFor(plainHost{}.Do, far.Addr()) // unknown is ""
		return i.Name
	}), nil)
	p.onClose(free)
	config.Facts = func() model.Host {
		h := observe.Facts()
		if i, err := observe.InterfaceFor(plainHost{}.Do, far.Addr()); err == nil {
			i.Describe(&h)
		}
		return h
	}
	c, err := fleet.Dial(ctx, far, o.Code, config)
	if err != nil {
		return err
	}
	p.controller = c
	p.onClose(c.Close)
	return nil
}

// callFromNear makes another host the sender; this one commands both.
func (p *path) callFromNear(ctx context.Context, at string, far netip.AddrPort, o Options) error {
	near, err := servedAt(ctx, at, 0) // control may be of another IP version than data
	if err != nil {
		return err
	}
	if err := meantThere(near.Addr(), far.Addr()); err != nil {
		return err
	}
	codes, err := twoCodes(o.Code)
	if err != nil {
		return err
	}
	c, err := fleet.DialTwo(ctx, fleet.HubAddress{Addr: near, Code: codes[0]}, fleet.HubAddress{Addr: far, Code: codes[1]}, o.Version)
	if err != nil {
		return err
	}
	p.controller = c
	p.onClose(c.Close)
	return nil
}

// meantThere refuses a far address that means another host to the near one, which
// calls it, than to this one.
func meantThere(near, far netip.Addr) error {
	switch {
	case far.IsLoopback() && !near.IsLoopback():
		return &model.FieldError{Field: "target", Want: fmt.Sprintf("the near host calls it by this address, and %v is each host itself; want one that the near host reaches", far)}
	case far.IsLinkLocalUnicast():
		return &model.FieldError{Field: "target", Want: fmt.Sprintf("the near host calls it by this address, and %v is of one link of this host; want one that the near host reaches", far)}
	}
	return nil
}

// twoCodes are those of the near and the far host: one text for both, or two with
// a comma between.
func twoCodes(text string) (codes [2]string, err error) {
	near, far, two := strings.Cut(text, ",")
	if !two {
		return [2]string{text, text}, nil
	}
	if strings.Contains(far, ",") {
		return codes, &model.FieldError{Field: "--code", Want: "want one code for both hosts, or two as NEAR,FAR"}
	}
	return [2]string{strings.TrimSpace(near), strings.TrimSpace(far)}, nil
}
