package run

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"

	"pelt/engine"
	"pelt/fleet"
	"pelt/iperf3"
	"pelt/model"
	"pelt/observe"
)

// openIperf makes a site of this host and an iperf3 server. The agent of the server's node is in this process, too: it
// has no sockets, and reports what the server says when a trial is over.
func openIperf(ctx context.Context, server string, p model.Plan, o Options) (_ *site, err error) {
	host, port, err := model.HostPort(server)
	if err != nil {
		return nil, err
	}
	if o.Record != "" {
		return nil, refuse("--record", "packets are recorded where they arrive, and an iperf3 server records none")
	}
	all, err := fleet.Resolve(ctx, host, p.Flows[0].Family)
	if err != nil {
		return nil, err
	}
	far := netip.AddrPortFrom(all[0], cmp.Or(port, iperf3.DefaultPort))
	if !fleet.Private(far.Addr()) && p.Flows[0].Rate.IsMax() {
		return nil, refuse("--rate", "%v is a public address, and an iperf3 server cannot say that a path is overloaded; "+
			"want a rate that the path carries", far.Addr())
	}
	s := &site{engine: p.Engine, noXDP: "an iperf3 server takes what sockets send", silent: "it runs iperf3 and not pelt"}
	s.nodes = []node{{name: model.Sender, end: true},
		{name: model.Receiver, end: true, address: func(int) netip.Addr { return far.Addr() }}}
	client := iperf3.NewClient(far)
	s.onClose(client.Close)
	way := reaching(far.Addr())
	near, _ := s.agentHere(model.Sender, plainHost{}, o, nil, way)
	near.Watch = watchOf(observe.Observer{Do: plainHost{}.Do, Kernel: s.kernelOfThisMachine(), Iperf: true}, way)
	near.Engines = map[string]engine.Engine{"udp": client.Near(model.UDP), "tcp": client.Near(model.TCP)}
	there := fleet.AgentConfig{Node: model.Receiver, Host: plainHost{}, Version: o.Version,
		Engines: map[string]engine.Engine{"udp": client.Far(model.UDP), "tcp": client.Far(model.TCP)},
		Facts:   func() model.Host { return model.Host{Name: "iperf3", Address: far.String()} }}
	if isOwn(far.Addr()) {
		there.Watch = near.Watch // the server's kernel is this one
	}
	if err := s.join(ctx, o, []fleet.AgentConfig{near, there}); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// isOwn reports whether an address is one of this host's.
func isOwn(a netip.Addr) bool {
	all, _ := net.InterfaceAddrs() // none that are not known
	return slices.ContainsFunc(all, func(one net.Addr) bool {
		p, err := netip.ParsePrefix(one.String())
		return a.IsLoopback() || err == nil && p.Addr() == a.Unmap().WithZone("")
	})
}
