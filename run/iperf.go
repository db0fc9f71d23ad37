package run

import (
	"cmp"
	"context"
	"errors"
	"net/netip"

	"pelt/engine"
	"pelt/engine/udp"
	"pelt/fleet"
	"pelt/iperf3"
	"pelt/model"
	"pelt/observe"
)

// openIperf makes a site of this host and an iperf3 server.
func openIperf(ctx context.Context, server string, p model.Plan, o Options) (*site, error) {
	host, port, err := model.HostPort(server)
	if err != nil {
		return nil, err
	}
	if o.Record != "" {
		return nil, refuse("--record", "packets are recorded where they arrive, and an iperf3 server records none")
	}
	if err := checkDevice(p.Device); err != nil {
		return nil, err
	}
	all, err := fleet.Resolve(ctx, host, p.Flows[0].Family)
	if err != nil {
		return nil, err
	}
	far := netip.AddrPortFrom(all[0], cmp.Or(port, iperf3.DefaultPort))
	if !fleet.Private(far.Addr()) && p.Flows[0].Rate.IsMax() {
		return nil, refuse("--rate", "%v is a public address, and an iperf3 server cannot say that a path is "+
			"overloaded; want a rate that the path carries", far.Addr())
	}
	s := &site{engine: p.Engine, noXDP: model.Reason{Code: model.FramesIperf}}
	s.nodes = []node{{name: model.Sender, end: true},
		{name: model.Receiver, end: true, address: func(int) netip.Addr { return far.Addr() }}}
	client := iperf3.NewClient(far, p.Device)
	return s, s.joinIperf(ctx, o, iperfPeer{model.Receiver, far.Addr(), far.String(), p.Device},
		map[string]engine.Engine{"udp": client.Near(model.UDP), "tcp": client.Near(model.TCP)},
		map[string]engine.Engine{"udp": client.Far(model.UDP), "tcp": client.Far(model.TCP)})
}

// iperfPeer is the end of a site that runs iperf3.
type iperfPeer struct {
	node    string
	address netip.Addr
	shown   string
	device  string // over which this host calls it; "": routes choose
}

// joinIperf joins this host, and the node of a peer that runs iperf3. The agent of that node is in this process, too:
// it has no sockets, and reports what the peer says when a trial is over. After an error the site is closed.
func (s *site) joinIperf(ctx context.Context, o Options, peer iperfPeer, near, far map[string]engine.Engine) error {
	s.silent, s.peer = "it runs iperf3 and not pelt", peer.node
	here, way := model.Sender, reaching(peer.address, peer.device)
	if peer.node == here {
		here = model.Receiver
	}
	own, _ := s.agentHere(here, engine.ThisHost{}, o, udp.Config{}, way)
	own.Watch = watchOf(observe.Observer{Do: engine.ThisHost{}.Do, Kernel: s.kernelOfThisMachine(), Iperf: true,
		Device: peer.device}, way)
	own.Engines = near
	there := fleet.AgentConfig{Node: peer.node, Host: engine.ThisHost{}, Version: o.Version, Engines: far,
		Facts: func() model.Host { return model.Host{Name: "iperf3", Address: peer.shown} }}
	if fleet.IsOwn(peer.address) {
		there.Watch = own.Watch // the peer's kernel is this one
	}
	if err := s.join(ctx, o, []fleet.AgentConfig{own, there}); err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}
