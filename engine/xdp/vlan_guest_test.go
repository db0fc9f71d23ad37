//go:build guest && amd64

package xdp

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"pelt/internal/netbed"
	"pelt/model"
)

// A VLAN's interface carries sockets as any other. It sends no XDP frames, and that is
// said, or left to sockets. The host's own kernel may have no VLANs, a guest's has.
func TestVLAN(t *testing.T) {
	b := newBed(t)
	for i, h := range []*netbed.Node{b.near, b.far} {
		name := []string{"va", "vb"}[i]
		h.Must(func() error {
			below, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			attrs := netlink.NewLinkAttrs()
			attrs.Name, attrs.ParentIndex = name+".7", below.Attrs().Index
			if err := netlink.LinkAdd(&netlink.Vlan{LinkAttrs: attrs, VlanId: 7,
				VlanProtocol: netlink.VLAN_PROTOCOL_8021Q}); err != nil {
				return err
			}
			link, err := netlink.LinkByName(attrs.Name)
			if err != nil {
				return err
			}
			return netlink.LinkSetUp(link)
		})
		h.Give(name+".7", netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, 7, byte(i + 1)}), 24))
	}
	c := trial{measure: 100 * time.Millisecond,
		flow: model.Flow{PayloadBytes: 1472, Streams: 2, Rate: mustRate(t, "10kpps")},
		peer: netip.MustParseAddr("10.77.7.2")}
	for _, engines := range [][2]string{{"udp", "udp"}, {"udp", "xdp"}, {"xdp", "udp"}, {"xdp", "xdp"}} {
		c.engines, c.fallback = engines, false
		if engines[0] == "xdp" {
			if _, err := b.run(t, c); err == nil || !strings.Contains(err.Error(), "frames-unsent: va.7") {
				t.Errorf("%v: %v", engines, err)
			}
		}
		c.fallback = true
		out, err := b.run(t, c)
		if err != nil {
			t.Fatalf("%v: %v", engines, err)
		}
		if out.send.Engine == "xdp" || out.send.Send.Attempted == 0 ||
			out.receive.Receive.Tally.Received != out.send.Send.Attempted {
			t.Errorf("%v: by %s (%s), %d sent, %+v", engines, out.send.Engine, out.send.Why, out.send.Send.Attempted,
				out.receive.Receive)
		}
	}
}
