package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/finding"
	"pelt/internal/netns"
	"pelt/model"
)

// Open makes a lab. Errors: *UsageError for a request that can never work,
// and others, which say what the user can do about them. On error, and when ctx ends first, nothing is left behind.
func Open(ctx context.Context, topology string, links []model.Link) (*Lab, error) {
	t, err := findTopology(topology)
	if err != nil {
		return nil, err
	}
	plans, err := planLinks(t, links)
	if err != nil {
		return nil, err
	}
	b := &builder{spec: t, ipv6: kernelHasIPv6()}
	// JSON's numbers hold that seed
	b.lab = &Lab{spec: t, seed: rand.Uint64()>>11 | 1, facts: model.LabFacts{Topology: t.name, Nodes: t.nodeNames()}}
	for i, p := range plans {
		from, to := t.ends(i, 0)
		b.lab.links = append(b.lab.links, &Link{Ends: [2]string{from, to}, number: i, made: p, plan: p,
			emulated: p.emulated()})
	}
	err = b.build(ctx)
	for _, s := range b.spaces {
		s.rt.Close()
	}
	if err != nil {
		return nil, errors.Join(explain("open lab "+topology, err), b.lab.Close())
	}
	b.lab.facts.Links = b.lab.shapes()
	return b.lab, nil
}

func kernelHasIPv6() bool {
	_, err := os.Stat("/proc/sys/net/ipv6")
	return err == nil
}

// space is a namespace under construction: rt speaks rtnetlink inside it.
type space struct {
	ns *netns.Handle
	rt *netlink.Handle
}

type builder struct {
	spec   topologySpec
	ipv6   bool
	lab    *Lab
	spaces []*space // the nodes' first, in their order, then hidden ones
	ends   []vethEnd
	cables [][2]vethEnd // virtual ones, both ends of each
}

func (b *builder) build(ctx context.Context) error {
	for _, n := range b.spec.nodes {
		s, err := b.newSpace()
		if err != nil {
			return err
		}
		b.lab.nodes = append(b.lab.nodes, &Node{ns: s.ns, info: nodeInfo{Name: n.name}})
		if err := b.prepareNode(s, n); err != nil {
			return fmt.Errorf("node %s: %w", n.name, err)
		}
	}
	ports := b.spec.ports()
	for i := range b.spec.links {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := b.buildLink(i, [2]port(ports[2*i:])); err != nil {
			return fmt.Errorf("link %s: %w", b.spec.linkName(i), err)
		}
	}
	for _, p := range ports {
		if err := b.introduce(p, ports); err != nil {
			return fmt.Errorf("node %s: %w", b.spec.nodes[p.node].name, err)
		}
	}
	if b.spec.fast {
		if err := b.openFast(); err != nil {
			return err
		}
	}
	return b.settle(ctx)
}

const (
	settleTime = 5 * time.Second // linkwatch may hold back for 1 s, net/core/link_watch.c
	settleStep = 500 * time.Microsecond
)

// settle waits for what the kernel does in its own time after it has said yes:
// interfaces become operational, and IPv6 addresses receive.
func (b *builder) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for _, e := range b.ends {
		for ready := false; !ready; {
			var err error
			if ready, err = e.ready(); err != nil {
				return err
			}
			if ready {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("interface %s is not operational: %w", e.name, ctx.Err())
			case <-time.After(settleStep):
			}
		}
	}
	return nil
}

// vethEnd is an interface that Open waits for.
type vethEnd struct {
	s     *space
	name  string
	mac   net.HardwareAddr // nil: the kernel's choice
	addr6 netip.Addr       // if valid, its address
}

func (e vethEnd) ready() (bool, error) {
	link, err := e.s.link(e.name)
	if err != nil {
		return false, err
	}
	if state := link.Attrs().OperState; state != netlink.OperUp &&
		(state != netlink.OperUnknown || link.Type() != "tuntap") {
		return false, nil
	}
	if !e.addr6.IsValid() {
		return true, nil
	}
	routes, err := e.s.rt.RouteGet(e.addr6.AsSlice())
	return err == nil && len(routes) > 0 && routes[0].Type == unix.RTN_LOCAL, nil
}

// newSpace makes a namespace that b.lab will close, with its loopback up.
func (b *builder) newSpace() (*space, error) {
	ns, err := netns.New()
	if err != nil {
		return nil, err
	}
	b.lab.held = append(b.lab.held, ns)
	s, err := openSpace(ns)
	if err != nil {
		return nil, err
	}
	b.spaces = append(b.spaces, s)
	if err := s.up("lo"); err != nil {
		return nil, err
	}
	return s, nil
}

// openSpace is a namespace as what is made in it needs it. Its rt must be closed.
func openSpace(ns *netns.Handle) (*space, error) {
	s := &space{ns: ns}
	err := ns.Do(func() (err error) {
		s.rt, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open rtnetlink: %w", err)
	}
	return s, nil
}

func (s *space) up(name string) error {
	link, err := s.link(name)
	if err != nil {
		return err
	}
	if err := s.rt.LinkSetUp(link); err != nil {
		return fmt.Errorf("bring up %s: %w", name, err)
	}
	return nil
}

func (s *space) link(name string) (netlink.Link, error) {
	link, err := s.rt.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("find interface %s: %w", name, err)
	}
	return link, nil
}

// tcpBuffers let TCP fill an emulated link: 256 MiB are in flight at 25 Gbit/s and
// a round trip of 80 ms. The kernel's usual 6 MiB are full at 1.2 Gbit/s and 40 ms.
const tcpBuffers = "4096 131072 268435456"

const bridgeName = "bridge"

// prepareNode does what must be there before the node's links.
func (b *builder) prepareNode(s *space, n nodeSpec) error {
	forwarding := "0"
	if n.role == forward || n.role == nat {
		forwarding = "1"
	}
	// A new namespace takes some of these from the host, so each is set.
	settings := [][2]string{
		{"net/ipv4/ip_forward", forwarding},
		{"net/ipv4/conf/all/rp_filter", "0"},
		{"net/ipv4/conf/default/rp_filter", "0"},
		{"net/ipv4/tcp_no_metrics_save", "1"}, // else one trial's ssthresh spoils the next
	}
	if b.ipv6 {
		settings = append(settings, [2]string{"net/ipv6/conf/all/forwarding", forwarding})
	}
	if n.role == end && len(b.lab.Emulated()) > 0 {
		settings = append(settings, [][2]string{{"net/ipv4/tcp_rmem", tcpBuffers},
			{"net/ipv4/tcp_wmem", tcpBuffers}}...)
	}
	if b.ipv6 && n.role == end { // IPv6 binds to no address of a local route else
		settings = append(settings, [2]string{"net/ipv6/ip_nonlocal_bind", "1"})
	}
	err := s.ns.Do(func() error {
		// Where a host lets its packet filter see what bridges pass (br_netfilter),
		// every new namespace does; a switch filters nothing, and it costs a quarter
		// of a packet's time.
		for _, name := range []string{"iptables", "ip6tables", "arptables"} {
			if name = "net/bridge/bridge-nf-call-" + name; n.role == bridge && readSetting(name) != "" {
				settings = append(settings, [2]string{name, "0"})
			}
		}
		return writeSettings(settings)
	})
	if err != nil {
		return err
	}
	if n.role != bridge {
		return nil
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = bridgeName
	snooping := false
	if err := s.rt.LinkAdd(&netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: &snooping}); err != nil {
		return missing("bridge", "CONFIG_BRIDGE", fmt.Errorf("add bridge: %w", err))
	}
	return b.raise(s, bridgeName, defaultMTU)
}

// writeSettings writes sysctls of the calling thread's network namespace.
func writeSettings(settings [][2]string) error {
	for _, kv := range settings {
		if err := os.WriteFile("/proc/sys/"+kv[0], []byte(kv[1]), 0); err != nil {
			return fmt.Errorf("set sysctl of the node (in a container, /proc/sys must be writable): %w", err)
		}
	}
	return nil
}

// raise brings an interface up that shall not speak IPv6 of its own accord:
// no link-local address, so no duplicate detection and no router solicitation.
func (b *builder) raise(s *space, name string, mtu int) error {
	link, err := s.link(name)
	if err != nil {
		return err
	}
	if b.ipv6 && mtu >= minMTU6 {
		if err := s.rt.LinkSetIP6AddrGenMode(link, addrGenNone); err != nil {
			return fmt.Errorf("silence IPv6 on %s: %w", name, err)
		}
	}
	if err := s.rt.LinkSetUp(link); err != nil {
		return fmt.Errorf("bring up %s: %w", name, err)
	}
	return nil
}

const (
	minMTU6     = 1280 // RFC 8200 section 5; the kernel has no IPv6 on an interface below it
	addrGenNone = 1    // IN6_ADDR_GEN_MODE_NONE, include/uapi/linux/if_link.h
)

// explain turns what the kernel said into what the user can do about it.
func explain(doing string, err error) error {
	switch {
	case errors.As(err, new(*finding.Fault)):
		return err
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		return lacksRights(model.LabRights, doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// missing recognises what the kernel answers when it lacks a facility.
func missing(facility, config string, err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) ||
		errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EPROTONOSUPPORT) {
		return kernelLacks(facility, config, err)
	}
	return err
}

func readSetting(name string) string {
	b, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		return "" // this kernel has no such setting
	}
	return strings.TrimSpace(string(b))
}
