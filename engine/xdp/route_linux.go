//go:build amd64 || arm64

package xdp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/internal/nic"
	"pelt/model"
)

// route is what the kernel would use for packets to a peer.
type route struct {
	index  int
	name   string
	kind   string // of the link: "veth", or "device" for hardware
	space  uint32 // inode of its network namespace
	mtu    int
	source [6]byte // Ethernet addresses
	target [6]byte
}

// findRoute asks the calling thread's namespace for the way to a peer. why says
// that frames cannot go there; without a code they can. Without target it leaves out who
// the next hop is.
func findRoute(from, to netip.Addr, target bool) (w route, why model.Reason, err error) {
	options := &netlink.RouteGetOptions{SrcAddr: from.AsSlice()}
	if zone := to.Zone(); zone != "" {
		if options.OifIndex, err = strconv.Atoi(zone); err != nil {
			options.Oif, options.OifIndex = zone, 0
		}
	}
	routes, err := netlink.RouteGetWithOptions(to.AsSlice(), options)
	if err != nil || len(routes) == 0 {
		return w, why, errors.Join(fmt.Errorf("find the route to %v", to), err)
	}
	way := routes[0]
	link, err := netlink.LinkByIndex(way.LinkIndex)
	if err != nil {
		return w, why, fmt.Errorf("find the interface to %v: %w", to, err)
	}
	a := link.Attrs()
	w = route{index: a.Index, name: a.Name, kind: link.Type(), mtu: a.MTU}
	var space unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &space); err != nil {
		return w, why, fmt.Errorf("identify the network namespace: %w", err)
	}
	w.space = uint32(space.Ino)
	if way.MTU > 0 {
		w.mtu = min(w.mtu, way.MTU)
	}
	switch {
	case a.Flags&net.FlagLoopback != 0:
		return w, model.Reason{Code: model.FramesLoopback}, nil
	case len(a.HardwareAddr) != len(w.source) || a.EncapType != "ether":
		return w, model.Reason{Code: model.NoEthernet, Name: a.Name}, nil
	}
	copy(w.source[:], a.HardwareAddr)
	if !target {
		return w, why, nil
	}
	hop := to.WithZone("")
	if gateway, ok := netip.AddrFromSlice(way.Gw); ok {
		hop = gateway.Unmap()
	} else if via, ok := way.Via.(*netlink.Via); ok {
		if gateway, ok := netip.AddrFromSlice(via.Addr); ok {
			hop = gateway.Unmap()
		}
	}
	family := netlink.FAMILY_V4
	if hop.Is6() {
		family = netlink.FAMILY_V6
	}
	neighbours, err := netlink.NeighList(a.Index, family)
	if err != nil {
		return w, why, fmt.Errorf("find the neighbour %v on %s: %w", hop, a.Name, err)
	}
	const known = unix.NUD_REACHABLE | unix.NUD_STALE | unix.NUD_DELAY | unix.NUD_PROBE | unix.NUD_PERMANENT |
		unix.NUD_NOARP
	i := slices.IndexFunc(neighbours, func(n netlink.Neigh) bool {
		ip, _ := netip.AddrFromSlice(n.IP)
		return ip.Unmap() == hop && n.State&known != 0 && len(n.HardwareAddr) == len(w.target)
	})
	if i < 0 {
		return w, model.Reason{Code: model.FramesNoPeer, Name: a.Name,
			Names: map[string]string{"address": hop.String()}}, nil
	}
	copy(w.target[:], neighbours[i].HardwareAddr)
	return w, why, nil
}

// tooLong is why frames carry no packets of so many bytes, which are longer than the MTU.
func (w route) tooLong(bytes int) model.Reason {
	return model.Reason{Code: model.NeedsFragments, Name: w.name,
		Numbers: map[string]float64{"packet_bytes": float64(bytes), "mtu_bytes": float64(w.mtu)}}
}

// oneRoute is findRoute for several streams, which must all go the same way, out of an interface that the engine may
// use.
func (e *Engine) oneRoute(streams []engine.Stream, target bool) (w route, why model.Reason, err error) {
	type pair struct{ from, to netip.Addr }
	seen := map[pair]bool{}
	for _, a := range streams {
		p := pair{a.Local.Addr(), a.Remote.Addr()}
		if seen[p] {
			continue
		}
		next, why, err := findRoute(p.from, p.to, target)
		switch {
		case err != nil || why.Code != "":
			return route{}, why, err
		case len(seen) > 0 && next != w:
			return route{}, model.Reason{Code: model.FramesApart, Name: w.name, Names: map[string]string{
				"address": streams[0].Local.Addr().String(), "other_address": p.from.String()}}, nil
		}
		w, seen[p] = next, true
	}
	if e.CablesOnly && w.kind != veth {
		return w, model.Reason{Code: model.FramesRealCard, Name: w.name}, nil
	}
	return w, why, nil
}

// bypassed names the queue that packets of a socket would pass on their way out and frames would not; "" for none.
func (w route) bypassed() (string, error) {
	link, err := netlink.LinkByIndex(w.index)
	if err != nil {
		return "", err
	}
	list, err := netlink.QdiscList(link)
	if err != nil {
		return "", fmt.Errorf("list the queue disciplines of %s: %w", w.name, err)
	}
	for _, q := range list {
		switch q.Type() {
		case "noqueue", "mq", "pfifo_fast", "pfifo", "fq_codel", "fq", "ingress":
		default:
			return q.Type(), nil
		}
	}
	return "", nil
}

// What a device can do with XDP, enum netdev_xdp_act of include/uapi/linux/netdev.h.
const (
	netdevCmdDevGet     = 1
	netdevAttrIfindex   = 1
	netdevAttrFeatures  = 3
	netdevXDPActBasic   = 1 << 0
	netdevXDPActNDOXmit = 1 << 2
)

// abilities are what an interface can do with XDP at present. known is false before Linux 6.3.
func abilities(index int) (f uint64, known bool) {
	answers, _ := nic.Netdev(netdevCmdDevGet, 0, netdevAttrIfindex, index) // none with an error
	for _, a := range answers {
		if b := a[netdevAttrFeatures]; len(b) >= 8 {
			return binary.NativeEndian.Uint64(b), true
		}
	}
	return 0, false
}

// Interfaces says what each interface of this host that is up can do with XDP
// now, in their order; loopback and what is not Ethernet are left out.
func Interfaces() ([]Interface, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list the interfaces: %w", err)
	}
	var list []Interface
	for _, l := range links {
		a := l.Attrs()
		if a.Flags&net.FlagUp == 0 || a.Flags&net.FlagLoopback != 0 || a.EncapType != "ether" {
			continue
		}
		f, known := abilities(a.Index)
		i := Interface{Name: a.Name, Known: known, Native: f&netdevXDPActBasic != 0,
			Sends: f&netdevXDPActNDOXmit != 0, Cable: l.Type() == veth}
		i.Taken = a.Xdp != nil && a.Xdp.Attached
		list = append(list, i)
	}
	return list, nil
}
