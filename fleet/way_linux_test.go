package fleet

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"pelt/internal/netbed"
)

// TestNoWay: a connection that does not come about names the place that refuses it, or does not answer.
func TestNoWay(t *testing.T) {
	t.Parallel()
	const server, server6 = "10.77.1.2", "fd77:0:0:1::2"
	reject := func(n *netbed.Node, hook *nftables.ChainHook, code byte) {
		n.Rule(hook, netbed.Of(unix.IPPROTO_TCP, &expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: code})...)
	}
	tunnel := func(n *netbed.Node, far string) { // the server is at its other end
		n.Must(func() error {
			return netlink.LinkAdd(&netlink.Vxlan{LinkAttrs: netlink.LinkAttrs{Name: "tun0"}, VxlanId: 7,
				Group: net.ParseIP(far), Port: 4789})
		})
		n.Link("tun0", netlink.LinkSetUp)
		n.Link("tun0", func(l netlink.Link) error {
			return netlink.RouteReplace(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: netlink.NewIPNet(net.ParseIP(server))})
		})
	}
	defaultRoute := &netlink.Route{Dst: &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}}
	for _, c := range []struct {
		name, to string
		fault    func(client, router, server *netbed.Node)
		want     string
	}{
		{"refused", server, nil, "connection refused: is `pelt serve` running there, on that port?"},
		{"no such host", "10.77.1.9", nil,
			"the router 10.77.0.2 cannot reach that host: it is down, has another address, or a rule there refuses it"},
		{"no such host, IPv6", "fd77:0:0:1::9", nil,
			"the router fd77::2 cannot reach that host: it is down, has another address, or a rule there refuses it"},
		{"no such neighbour", "10.77.0.9", nil,
			"that host does not answer on eth0: it is down, or has another address"},
		{"no such neighbour, IPv6", "fd77::9", nil,
			"that host does not answer on eth0: it is down, or has another address"},
		{"wrong gateway", server, func(client, _, _ *netbed.Node) {
			client.Must(func() error { return netlink.RouteDel(defaultRoute) })
			client.Route(netip.MustParsePrefix("0.0.0.0/0"), netip.MustParseAddr("10.77.0.99"))
		}, "the gateway 10.77.0.99 does not answer on eth0: check the gateway's address in this host's routes, and whether it is up"},
		{"wrong gateway of the other family", server, func(client, _, _ *netbed.Node) {
			client.Link("eth0", func(l netlink.Link) error {
				return netlink.RouteReplace(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: netlink.NewIPNet(net.ParseIP(server)),
					Via: &netlink.Via{AddrFamily: unix.AF_INET6, Addr: net.ParseIP("fd77::99")}})
			})
		}, "the gateway fd77::99 does not answer on eth0: check the gateway's address in this host's routes, and whether it is up"},
		{"far end of a tunnel", server, func(client, _, _ *netbed.Node) {
			tunnel(client, "10.77.0.99")
		}, "10.77.0.99, the far end of this host's tunnel tun0, does not answer on eth0: it is down, or has another address"},
		{"gateway below a tunnel", server, func(client, _, _ *netbed.Node) {
			client.Route(netip.MustParsePrefix("192.0.2.0/24"), netip.MustParseAddr("10.77.0.99"))
			tunnel(client, "192.0.2.1")
		}, "the gateway 10.77.0.99 does not answer on eth0: check the gateway's address in this host's routes, and whether it is up"},
		{"no carrier below a tunnel", server, func(client, router, _ *netbed.Node) {
			tunnel(client, "10.77.0.99")
			router.Link("to-client", netlink.LinkSetDown)
		}, "eth0 of this host has no link: check its cable, and the device at the other end"},
		{"no default route", server, func(client, _, _ *netbed.Node) {
			client.Must(func() error { return netlink.RouteDel(defaultRoute) })
		}, "this host has no route there: add one, or a default route (ip route add default via GATEWAY)"},
		{"interface down", server, func(client, _, _ *netbed.Node) {
			client.Link("eth0", netlink.LinkSetDown)
		}, "this host has no route there, and its interface eth0 is down: ip link set eth0 up"},
		{"no carrier", server, func(_, router, _ *netbed.Node) {
			router.Link("to-client", netlink.LinkSetDown)
		}, "eth0 of this host has no link: check its cable, and the device at the other end"},
		{"route of this host", server, func(client, _, _ *netbed.Node) {
			client.Refuse(netip.MustParseAddr(server), unix.RTN_UNREACHABLE)
		}, "a route of this host refuses that address: see `ip route get 10.77.1.2`"},
		{"no route at the router", "192.0.2.1", nil,
			"the router 10.77.0.2 has no route to that host: check the address, and the routes there"},
		{"prohibit", server, func(_, router, _ *netbed.Node) {
			router.Refuse(netip.MustParseAddr(server), unix.RTN_PROHIBIT)
		}, "a firewall or router at 10.77.0.2 refuses the connection (administratively prohibited): let TCP port 9 through there"},
		{"prohibit, IPv6", server6, func(_, router, _ *netbed.Node) {
			router.Refuse(netip.MustParseAddr(server6), unix.RTN_PROHIBIT)
		}, "a firewall or router at fd77::2 refuses the connection (administratively prohibited): let TCP port 9 through there"},
		{"rejected on the way", server, func(_, router, _ *netbed.Node) {
			reject(router, nftables.ChainHookForward, unix.NFT_REJECT_ICMPX_PORT_UNREACH)
		}, "a firewall or router at 10.77.0.2 refuses the connection (port unreachable): let TCP port 9 through there"},
		{"rejected there", server, func(_, _, server *netbed.Node) {
			reject(server, nftables.ChainHookInput, unix.NFT_REJECT_ICMPX_ADMIN_PROHIBITED)
		}, "its own firewall refuses the connection (administratively prohibited): let TCP port 9 in there"},
		{"rejected there as by who forwards", server, func(_, _, server *netbed.Node) {
			reject(server, nftables.ChainHookInput, unix.NFT_REJECT_ICMPX_HOST_UNREACH)
		}, "TCP port 9 is forwarded there to a host that it cannot reach, or its own firewall refuses the connection " +
			"(host unreachable)"},
		{"rejected here", server, func(client, _, _ *netbed.Node) {
			reject(client, nftables.ChainHookOutput, unix.NFT_REJECT_ICMPX_PORT_UNREACH)
		}, "this host's own firewall refuses the connection (port unreachable): let TCP port 9 out"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			nodes := netbed.Chain(t, "client", "router", "server")
			if c.fault != nil {
				c.fault(nodes[0], nodes[1], nodes[2])
			}
			addr := netip.AddrPortFrom(netip.MustParseAddr(c.to), 9)
			nodes[0].Must(func() error {
				a := newLink().attempt(t.Context(), addr, []byte(testCode), false, make(chan struct{}, 1))
				if a.err == nil || strings.TrimPrefix(a.err.Error(), addr.String()+": ") != c.want {
					t.Errorf("got  %v\nwant %v: %s", a.err, addr, c.want)
				}
				return nil
			})
		})
	}
}
