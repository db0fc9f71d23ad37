package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"

	"pelt/engine/xdp"
	"pelt/fleet"
	"pelt/model"
	"pelt/observe"
)

// ServeOptions are how this host offers itself as the far end.
type ServeOptions struct {
	Version  string
	Listen   netip.Addr // invalid means every address
	Port     int        // control; data uses Port+1
	Shown    netip.Addr // of this host's addresses the one that clients are told first; its interface is reported
	Code     string
	KeepCode bool           // after wrong guesses, too: it is the user's own
	Open     bool           // ask no code
	XDP      bool           // also on real interfaces
	Observe  bool           // only observe this host, a router: be no end of any test
	Calls    []netip.Prefix // where clients may make it call, as the sender's side; none calls nobody
	Limits   fleet.Limits
	Ready    func()       // called once when clients may come
	Events   func(string) // one sentence each
}

// Serve is the far end, or a router that only observes, until ctx ends.
func Serve(ctx context.Context, o ServeOptions) error {
	kernel, free := &observe.Kernel{}, func() error { return nil }
	describe := reaching(o.Shown)
	agent := fleet.AgentConfig{Node: deviceNode, Version: o.Version}
	if o.Observe {
		agent.Router = openOwn(&observe.Observer{Do: plainHost{}.Do, Kernel: kernel, Interface: func() string {
			i, _ := observe.InterfaceFor(plainHost{}.Do, o.Shown) // unknown is ""
			return i.Name
		}})
		agent.Facts = func() model.Host {
			h := observe.Facts()
			describe(&h)
			return h
		}
	} else {
		if err := dataPortFree(o.Listen, o.Port+1); err != nil {
			return err
		}
		agent.Node, agent.Host, agent.Recording = model.Receiver, plainHost{}, newFarRecording
		var frames *xdp.Engine
		agent, frames, free = endAgent(agent, netip.AddrPortFrom(o.Listen, uint16(o.Port+1)), nil, kernel, describe)
		frames.CablesOnly = !o.XDP
	}
	agent.Limits = o.Limits
	err := fleet.Serve(ctx, fleet.ServeConfig{
		HubConfig: fleet.HubConfig{Listen: netip.AddrPortFrom(o.Listen, uint16(o.Port)), Code: o.Code, KeepCode: o.KeepCode,
			Open: o.Open, Events: o.Events},
		Calls: o.Calls, Agent: agent, Ready: func(netip.AddrPort) { o.Ready() },
	})
	return errors.Join(err, free(), kernel.Close())
}

// dataPortFree checks early that the data port can be opened: the engines open it only while
// a test runs.
func dataPortFree(at netip.Addr, port int) error {
	host := ""
	if at.IsValid() {
		host = at.String()
	}
	address := net.JoinHostPort(host, strconv.Itoa(port))
	busy := func(kind string, err error) error {
		return fmt.Errorf("data port %d/%s cannot be opened: %w; end what uses it, or choose another --port", port,
			kind, err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return busy("tcp", systemWord(err))
	}
	u, err := net.ListenPacket("udp", address)
	if err != nil {
		return errors.Join(busy("udp", systemWord(err)), l.Close())
	}
	return errors.Join(u.Close(), l.Close())
}

// systemWord is the system's own word in a network error.
func systemWord(err error) error {
	var system *os.SyscallError
	if errors.As(err, &system) {
		return system.Err
	}
	return err
}
