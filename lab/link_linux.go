package lab

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// buildLink joins two nodes, through a relay where the plan needs one, and
// shapes the directions.
func (b *builder) buildLink(link int, ports [2]port) error {
	k := b.lab.links[link]
	var relay *space
	var inner [2]string // interfaces of the relay, toward the link's a and b
	for d, p := range ports {
		k.ways[d].node, k.ways[d].iface = b.lab.nodes[p.node], b.spec.ifaceName(link, p.node)
		if k.plan.shaped(d) && !b.spec.atRouter(link, d) && relay == nil {
			var err error
			if relay, err = b.relaySpace(link); err != nil {
				return err
			}
			inner[0], inner[1] = b.spec.relayNames(link)
		}
	}
	var err error
	switch {
	case k.emulated:
		err = b.emulate(k, ports)
	case relay != nil:
		err = b.splice(k, ports, relay, inner)
	default:
		err = b.veth(k.plan.MTU, b.end(k, ports, 0), b.end(k, ports, 1))
	}
	if err != nil {
		return err
	}
	for d, asked := range k.plan.Toward {
		if !k.plan.shaped(d) {
			continue
		}
		at, name := relay, inner[1-d]
		if b.spec.atRouter(link, d) {
			at, name = b.spaces[ports[d].node], k.ways[d].iface
		}
		if err := at.setTBF(name, tbfOf(asked, k.plan.MTU), newTBF); err != nil {
			return err
		}
		k.ways[d].shaper = shaper{slices.Index(b.spaces, at), name}
	}
	for _, p := range ports {
		if err := b.equip(p, k.plan.MTU); err != nil {
			return err
		}
	}
	return nil
}

// splice joins two nodes by a relay between them.
func (b *builder) splice(k *Link, ports [2]port, relay *space, inner [2]string) error {
	for d := range ports {
		if err := b.veth(k.plan.MTU, b.end(k, ports, d), vethEnd{s: relay, name: inner[d]}); err != nil {
			return err
		}
	}
	return relay.relay(inner[0], inner[1])
}

// end is the interface of a node on a link.
func (b *builder) end(k *Link, ports [2]port, d int) vethEnd {
	e := vethEnd{s: b.spaces[ports[d].node], name: k.ways[d].iface}
	if ports[d].host > 0 {
		e.mac = ports[d].mac()
	}
	return e
}

// veth makes a pair of interfaces and brings both up.
func (b *builder) veth(mtu int, one, other vethEnd) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = one.name, mtu, one.mac
	pair := netlink.NewVeth(attrs)
	pair.PeerName, pair.PeerMTU, pair.PeerHardwareAddr = other.name, uint32(mtu), other.mac
	pair.PeerNamespace = netlink.NsFd(int(other.s.ns.File().Fd()))
	if err := one.s.rt.LinkAdd(pair); err != nil {
		return missing("veth", "CONFIG_VETH", fmt.Errorf("add veth %s: %w", one.name, err))
	}
	b.cables = append(b.cables, [2]vethEnd{one, other})
	for _, e := range []vethEnd{one, other} {
		b.ends = append(b.ends, e)
		if err := b.raise(e.s, e.name, mtu); err != nil {
			return err
		}
	}
	return nil
}

// equip gives a node's new interface its addresses, or makes it a bridge's port.
func (b *builder) equip(p port, mtu int) error {
	s := b.spaces[p.node]
	link, err := s.link(b.spec.ifaceName(p.link, p.node))
	if err != nil {
		return err
	}
	l := b.spec.links[p.link]
	iface := Interface{Name: link.Attrs().Name, Peer: b.spec.nodes[l.a+l.b-p.node].name, MTU: mtu}
	if p.host == 0 {
		master, err := s.link(bridgeName)
		if err != nil {
			return err
		}
		if err := s.rt.LinkSetMaster(link, master); err != nil {
			return fmt.Errorf("make %s a port of the bridge: %w", iface.Name, err)
		}
		if b.spec.many() {
			if err := b.announce(p, link); err != nil {
				return err
			}
		}
	} else {
		own := p.prefixes()
		if iface.Addr4 = own[0]; b.ipv6 && mtu >= minMTU6 {
			iface.Addr6 = own[1]
		}
	}
	blocks, many := b.spec.blocks(p)
	for i, a := range iface.prefixes() {
		if !a.IsValid() {
			continue
		}
		addr := &netlink.Addr{IPNet: ipNet(a)}
		if a.Addr().Is6() {
			addr.Flags = unix.IFA_F_NODAD
		}
		if err := s.rt.AddrAdd(link, addr); err != nil {
			return fmt.Errorf("give %s the address %v: %w", iface.Name, a, err)
		}
		if !many {
			continue
		}
		// To the kernel all of a local route's addresses are its own.
		route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(blocks[i]), Type: unix.RTN_LOCAL,
			Table: unix.RT_TABLE_LOCAL, Scope: unix.RT_SCOPE_HOST}
		if err := s.rt.RouteAdd(route); err != nil {
			return fmt.Errorf("give %s the addresses %v: %w", iface.Name, blocks[i], err)
		}
	}
	b.ends = append(b.ends, vethEnd{s: s, name: iface.Name, addr6: iface.Addr6.Addr()})
	n := b.lab.nodes[p.node]
	n.info.Interfaces = append(n.info.Interfaces, iface)
	return nil
}

// prefixes are the IPv4 and the IPv6 one; an invalid one is not there.
func (i Interface) prefixes() [2]netip.Prefix { return [2]netip.Prefix{i.Addr4, i.Addr6} }

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// introduce tells the node at p its neighbours, so that no ARP or neighbour
// discovery disturbs a test, and an end its way to the other segments.
func (b *builder) introduce(p port, ports []port) error {
	if p.host == 0 {
		return nil
	}
	s := b.spaces[p.node]
	link, err := s.link(b.spec.ifaceName(p.link, p.node))
	if err != nil {
		return err
	}
	own := b.ifaceOf(p)
	for _, q := range ports {
		if q.segment != p.segment || q.host == 0 || q == p {
			continue
		}
		if b.spec.many() && p.host > 1 && q.host > 1 {
			continue // receivers of a star ask for each other, should they want to
		}
		theirs := b.ifaceOf(q).prefixes()
		blocks, many := b.spec.blocks(q)
		for i, mine := range own.prefixes() {
			if !mine.IsValid() || !theirs[i].IsValid() {
				continue
			}
			peer := theirs[i].Addr().AsSlice()
			if err := s.rt.NeighSet(&netlink.Neigh{LinkIndex: link.Attrs().Index, State: netlink.NUD_PERMANENT,
				IP: peer, HardwareAddr: q.mac()}); err != nil {
				return fmt.Errorf("introduce %v: %w", theirs[i].Addr(), err)
			}
			var behind []netip.Prefix
			if b.leads(p, q) {
				all, _ := theirs[i].Addr().Prefix(0)
				behind = append(behind, all)
			}
			if many {
				behind = append(behind, blocks[i])
			}
			for _, to := range behind {
				if err := s.rt.RouteAdd(&netlink.Route{Dst: ipNet(to), Gw: peer}); err != nil {
					return fmt.Errorf("route to %v: %w", to, err)
				}
			}
		}
	}
	if b.spec.nodes[p.node].role == nat && p.link == 0 {
		return s.ns.Do(func() error { return addMasquerade(own.Name) })
	}
	return nil
}

func (b *builder) ifaceOf(p port) Interface {
	name := b.spec.ifaceName(p.link, p.node)
	for _, i := range b.lab.nodes[p.node].info.Interfaces {
		if i.Name == name {
			return i
		}
	}
	return Interface{}
}

// leads reports whether the router at q is the default way of the end at p. What lies outside
// of a masquerading router has no way in: it does not know the inside exists.
func (b *builder) leads(p, q port) bool {
	r := b.spec.nodes[q.node].role
	return b.spec.nodes[p.node].role == end && (r == forward || r == nat && q.link == 0)
}

// announce tells a star's switch who is behind a port: what it does not know yet
// would go to all.
func (b *builder) announce(p port, link netlink.Link) error {
	for _, q := range b.spec.ports() {
		if q.link != p.link || q.host == 0 {
			continue
		}
		err := b.spaces[p.node].rt.NeighSet(&netlink.Neigh{LinkIndex: link.Attrs().Index, Family: unix.AF_BRIDGE,
			Flags: netlink.NTF_MASTER,
			State: netlink.NUD_NOARP, HardwareAddr: q.mac()})
		if err != nil {
			return fmt.Errorf("tell the switch of %s: %w", b.spec.nodes[q.node].name, err)
		}
	}
	return nil
}
