package run

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"strconv"
	"sync"

	"pelt/engine"
	"pelt/engine/udp"
	"pelt/fleet"
	"pelt/model"
	"pelt/observe"
	"pelt/words"
)

// ServeOptions are how this host offers itself as the far end.
type ServeOptions struct {
	EndOptions
	Port    int        // control; data uses Port+1
	OnePort bool       // data uses Port, too, by UDP only
	Shown   netip.Addr // of this host's addresses the one that clients are told first; its interface is reported
	Code    string
	Once    bool          // end once the first client that had a trial here is gone
	Observe bool          // only observe this host, a router: be no end of any test
	Iperf   *IperfOptions // nil: iperf3 clients are not served
	Ready   func()        // called once when clients may come
}

// EndOptions are what this host lets others do with it as an end of tests.
type EndOptions struct {
	Version string
	Listen  netip.Addr     // for data; invalid means every address
	XDP     bool           // also on real interfaces
	Calls   []netip.Prefix // where clients may make it call, as the sender's side; none calls nobody
	Limits  fleet.Limits
	Events  func(error) // one sentence each
}

// agent makes this host an end, reached at a data port; free ends its engines once it is closed.
func (o EndOptions) agent(node string, port int, kernel *observe.Kernel, describe func(*model.Host),
) (_ fleet.AgentConfig, free func() error, err error) {
	if err := dataPortFree(o.Listen, port); err != nil {
		return fleet.AgentConfig{}, nil, err
	}
	brakeMemory(o.Limits.MemoryBytes)
	agent := fleet.AgentConfig{Node: node, Version: o.Version, Host: engine.ThisHost{}, Recording: newFarRecording,
		Limits: o.Limits, Calls: o.Calls}
	agent, frames := endAgent(agent, udp.Config{Listen: netip.AddrPortFrom(o.Listen, uint16(port))}, kernel,
		describe)
	frames.CablesOnly = !o.XDP
	return agent, frames.Close, nil
}

// JoinOptions are how this host joins a fleet.
type JoinOptions struct {
	EndOptions
	Hub     Hub
	Code    string
	Name    string
	Port    int        // for data
	Address netip.Addr // where other hosts call this one; invalid: what the hub sees decides
	Ready   func(fleet.AgentInfo)
}

// OneHost reports whether an address can be that of one host; an invalid one can.
func OneHost(a netip.Addr) bool {
	return !a.IsMulticast() && !a.IsUnspecified() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// Join is a host of a fleet until ctx ends.
func Join(ctx context.Context, o JoinOptions) error {
	hub, err := o.Hub.at(ctx, o.Code)
	if err != nil {
		return err
	}
	reached := o.Hub.reached(ctx, hub)
	if a := cmp.Or(o.Address, reached); a.Is6() && a.IsLinkLocalUnicast() {
		return refuse("address",
			"want one at which other hosts can call this one; %v is link-local, so only one link knows it", a)
	}
	if !OneHost(o.Address) {
		return refuse("address", "%v is not the address of one host", o.Address)
	}
	kernel := &observe.Kernel{}
	agent, free, err := o.agent(o.Name, o.Port, kernel, reaching(reached, ""))
	if err != nil {
		return err
	}
	agent.ID, agent.Address, agent.Events = o.Name, o.Address, o.Events
	return errors.Join(fleet.Join(ctx, hub, agent, o.Ready), free(), kernel.Close())
}

// Serve is the far end, or a router that only observes, until ctx ends.
func Serve(ctx context.Context, o ServeOptions) error {
	option := "--iperf3"
	if o.OnePort {
		option = "--one-port"
	}
	if !udp.OnePort && (o.OnePort || o.Iperf != nil) {
		return refuse(option, "only Linux lets all flows share one UDP port")
	}
	kernel, free := &observe.Kernel{}, func() error { return nil }
	describe := reaching(o.Shown, "")
	agent := fleet.AgentConfig{Node: deviceNode, Version: o.Version}
	if o.Observe {
		agent.Router = openOwn(&observe.Observer{Do: engine.ThisHost{}.Do, Kernel: kernel, Interface: func() string {
			i, _ := observe.InterfaceFor(engine.ThisHost{}.Do, o.Shown, "") // unknown is ""
			return i.Name
		}})
		agent.Facts = func() model.Host {
			h := observe.Facts()
			describe(&h)
			return h
		}
		agent.Limits = o.Limits
	} else {
		var err error
		if agent, free, err = o.agent(model.Receiver, o.dataPort(), kernel, describe); err != nil {
			return err
		}
		if o.OnePort { // TCP there is the control connection's
			delete(agent.Engines, string(model.TCP))
		}
	}
	var serving sync.WaitGroup
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if o.Iperf != nil {
		s, err := serveIperf(o, kernel)
		if err != nil {
			return errors.Join(err, free(), kernel.Close())
		}
		serving.Go(func() { s.server.Serve(ctx) })
	}
	err := fleet.Serve(ctx, fleet.ServeConfig{
		HubConfig: fleet.HubConfig{Listen: netip.AddrPortFrom(o.Listen, uint16(o.Port)), Code: o.Code,
			Events: o.Events},
		Agent: agent, Once: o.Once, Ready: func(netip.AddrPort) { o.Ready() },
	})
	stop()
	serving.Wait()
	return errors.Join(err, free(), kernel.Close())
}

func (o ServeOptions) dataPort() int {
	if o.OnePort {
		return o.Port
	}
	return o.Port + 1
}

// DataPorts names the ports at which data reaches this host.
func (o ServeOptions) DataPorts(l words.Language) string {
	if o.OnePort {
		return strconv.Itoa(o.Port) + "/udp"
	}
	return DataPorts(l, o.dataPort())
}

// DataPorts names the ports at which data reaches a host that listens at port.
func DataPorts(l words.Language, port int) string { return dataPorts(l, port, udp.OnePort) }

func dataPorts(l words.Language, port int, one bool) string {
	if one {
		return l.Sayf("%d/udp and %d/tcp", port, port)
	}
	return l.Sayf("%d/tcp and any UDP port (only on Linux do all flows share one)", port)
}

// brakeMemory has the collector of garbage work harder before clients have taken half of what this host has left.
func brakeMemory(clients float64) {
	const least = 64 << 20 // this program alone takes half of it
	if limit := int64(2 * clients); limit > least && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
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
		if why := fleet.MayNotListen(netip.AddrPortFrom(at, uint16(port)), err); why != nil {
			return why
		}
		if system, ok := errors.AsType[*os.SyscallError](err); ok {
			err = system.Err
		}
		return words.Errorf("data port %d/%s cannot be opened: %w; end what uses it, or choose another --port", port,
			kind, err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return busy("tcp", err)
	}
	u, err := net.ListenPacket("udp", address)
	if err != nil {
		return errors.Join(busy("udp", err), l.Close())
	}
	return errors.Join(u.Close(), l.Close())
}
