package run

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
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
	codes, err := codesOf(o.Code, p)
	if err != nil {
		return nil, err
	}
	way := &path{spots: endSpots(), engine: p.Engine, address: map[string]func(int) netip.Addr{
		model.Receiver: func(int) netip.Addr { return far.Addr() },
	}}
	if p.Near == "" {
		err = way.callFromHere(ctx, far, codes.far, o)
	} else {
		err = way.callFromNear(ctx, p.Near, far, codes, o)
	}
	if err == nil {
		err = way.meet()
	}
	if err == nil {
		err = way.watchDevice(ctx, p, nil, codes.router, o.Version)
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
func (p *path) callFromHere(ctx context.Context, far netip.AddrPort, code string, o Options) error {
	config, _, free := agentConfig(model.Sender, plainHost{}, o.Version, 0, endObserver(plainHost{}, p.watchDrops(), func() string {
		i, _ := observe.InterfaceFor(plainHost{}.Do, far.Addr()) // unknown is ""
		return i.Name
	}), nil)
	p.onClose(free)
	config.Recording = o.records.agent()
	config.Facts = func() model.Host {
		h := observe.Facts()
		h.TCPSettings = observe.TCPSettings()
		if i, err := observe.InterfaceFor(plainHost{}.Do, far.Addr()); err == nil {
			i.Describe(&h)
		}
		return h
	}
	c, err := fleet.Dial(ctx, far, code, config)
	if err != nil {
		return err
	}
	p.controller = c
	p.onClose(c.Close)
	return nil
}

// callFromNear makes another host the sender; this one commands both.
func (p *path) callFromNear(ctx context.Context, at string, far netip.AddrPort, codes hostCodes, o Options) error {
	near, err := servedAt(ctx, at, 0) // control may be of another IP version than data
	if err != nil {
		return err
	}
	if err := meantThere(near.Addr(), far.Addr()); err != nil {
		return err
	}
	c, err := fleet.DialTwo(ctx, fleet.HubAddress{Addr: near, Code: codes.near}, fleet.HubAddress{Addr: far, Code: codes.far}, o.Version)
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

// hostCodes are those of the pelt serves that a plan needs.
type hostCodes struct{ near, far, router string }

// codesOf reads them: one text for all, or one each with commas between, in the
// order near, far, router.
func codesOf(text string, p model.Plan) (codes hostCodes, err error) {
	into, names := []*string{&codes.far}, []string{"FAR"}
	if p.Near != "" {
		into, names = slices.Insert(into, 0, &codes.near), slices.Insert(names, 0, "NEAR")
	}
	if strings.HasPrefix(p.DUT, model.AgentDUT) {
		into, names = append(into, &codes.router), append(names, "ROUTER")
	}
	words := strings.Split(text, ",")
	switch {
	case len(words) == 1:
		words = slices.Repeat(words, len(into))
	case len(into) == 1:
		return codes, &model.FieldError{Field: "--code", Want: "want one code: one host alone asks for it"}
	case len(words) != len(into):
		hosts := "both hosts, or two"
		if len(into) > 2 {
			hosts = "all hosts, or three"
		}
		return codes, &model.FieldError{Field: "--code", Want: fmt.Sprintf("want one code for %s as %s", hosts, strings.Join(names, ","))}
	}
	for i, word := range words {
		*into[i] = strings.TrimSpace(word)
	}
	return codes, nil
}
