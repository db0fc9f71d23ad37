package run

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"pelt/finding"
	"pelt/fleet"
	"pelt/model"
)

// Hub is where the hosts of a fleet are met.
type Hub struct {
	Address string // HOST[:PORT] of a pelt hub; "" is one of this host
	// NATS are servers of the user's own in place of a hub, Credentials the file that lets a user in.
	NATS, Credentials string
}

func (h Hub) at(ctx context.Context, code string) (a fleet.HubAddress, err error) {
	a = fleet.HubAddress{Code: code, NATS: h.NATS, Credentials: h.Credentials}
	if h.NATS == "" {
		a.Addr, a.More, err = controlAddresses(ctx, cmp.Or(h.Address, "127.0.0.1"), 0)
	}
	for _, server := range h.servers() {
		if x, _ := netip.ParseAddr(server); x.Is6() && x.IsLinkLocalUnicast() && x.Zone() == "" {
			err = refuse("nats", "%v is link-local, so say on which interface: nats://[%v%%25eth0]", x, x)
		}
	}
	return a, err
}

// servers are the hosts of the user's NATS servers.
func (h Hub) servers() (hosts []string) {
	for text := range strings.SplitSeq(h.NATS, ",") {
		if !strings.Contains(text, "://") {
			text = "nats://" + text
		}
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			hosts = append(hosts, u.Hostname())
		}
	}
	return hosts
}

// reached returns the address of a hub, or of the first of the user's servers; invalid if it is not known.
func (h Hub) reached(ctx context.Context, at fleet.HubAddress) netip.Addr {
	if servers := h.servers(); len(servers) > 0 {
		if found, err := fleet.Resolve(ctx, servers[0], 0); err == nil {
			return found[0]
		}
		return netip.Addr{}
	}
	return at.Addr.Addr()
}

// Hosts asks a hub who is there, by name. unfit says which hosts cannot be used.
func Hosts(ctx context.Context, version string, h Hub, code string) (hosts []fleet.AgentInfo, unfit []error,
	err error) {
	at, err := h.at(ctx, code)
	if err != nil {
		return nil, nil, err
	}
	c, err := fleet.NewFleetController(ctx, version, at)
	if err != nil {
		return nil, nil, err
	}
	hosts = append([]fleet.AgentInfo{}, c.Agents()...)
	slices.SortFunc(hosts, func(a, b fleet.AgentInfo) int { return cmp.Compare(a.ID, b.ID) })
	return hosts, c.Unfit(), c.Close()
}

// openFleet makes a site of hosts that joined a hub: a path of two, one sender and many receivers, or for a mesh
// all of them.
func openFleet(ctx context.Context, p model.Plan, o Options) (_ *site, err error) {
	if p.DUT != "" || p.Near != "" {
		return nil, refuse("target", "a fleet has no router to watch; want LAN..WAN of two pelt serve")
	}
	names := p.Hosts
	if len(names) == 0 {
		if names, _, err = model.FleetHosts(p.Target); err != nil {
			return nil, err
		}
	}
	if len(names) < 2 {
		return nil, refuse("target", "want two hosts at least, as fleet:FROM..TO")
	}
	if !isMesh(p) && len(names) > 2 {
		if err := oneReceiver(p, len(names)-1); err != nil {
			return nil, err
		}
	}
	at, err := o.Hub.at(ctx, o.Code)
	if err != nil {
		return nil, err
	}
	s := &site{engine: p.Engine, noXDP: o.records.needsSockets()}
	must := names
	if isMesh(p) && o.Again {
		must = nil
	}
	if s.controller, err = fleet.NewFleetController(ctx, o.Version, at, must...); err != nil {
		return nil, err
	}
	s.onClose(s.controller.Close)
	if isMesh(p) {
		s.pairs = &pairs{failing: map[string]time.Time{}}
		for _, name := range names {
			if a := s.agent(name); a.ID != "" {
				s.nodes = append(s.nodes, node{name: name, end: true, agent: a})
			}
		}
		if len(s.nodes) < 2 {
			return nil, errors.Join(finding.NewFault(model.MeshSmall), s.Close())
		}
		return s, nil
	}
	if err = s.connect(names); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// ofFamily returns a if it is an address of an IP version (0: any), else the zero address.
func ofFamily(a netip.Addr, family int) netip.Addr {
	if family != 0 && a.Is4() != (family == 4) {
		return netip.Addr{}
	}
	return a
}

// agent is what a fleet's host told of itself last. It is called by its name in the fleet.
func (s *site) agent(name string) (found fleet.AgentInfo) {
	for _, a := range s.controller.Agents() {
		if a.ID == name {
			found = a
			found.Host.Name = name
		}
	}
	return found
}

// connect makes the nodes of a path from the first host to the others.
func (s *site) connect(names []string) error {
	from := s.agent(names[0])
	s.nodes = []node{{name: model.Sender, end: true, agent: from}}
	s.oneClock = from.Host.Boot != ""
	for _, name := range names[1:] {
		to := s.agent(name)
		n := node{name: model.Receiver, end: true, agent: to}
		if len(names) > 2 {
			n.name += "-" + name
			n.branch = n.name
		}
		address := from.Calls(to)
		n.address = func(family int) netip.Addr { return ofFamily(address, family) }
		if !address.IsValid() {
			if n.calls = to.Calls(from); !n.calls.IsValid() {
				return finding.NewFault(model.BothBehindNAT, "host", names[0], "other_host", name)
			}
		}
		s.oneClock = s.oneClock && from.Host.Boot == to.Host.Boot
		s.nodes = append(s.nodes, n)
	}
	return nil
}
