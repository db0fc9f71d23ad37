package lab

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

const (
	tbfHandle  = 1 << 16           // 1:
	fifoParent = tbfHandle | 1     // 1:1, tbf's only class
	rate32     = uint64(1)<<32 - 1 // struct tc_ratespec holds no more; TCA_TBF_RATE64 does
)

// addTBF puts a token bucket on an interface's egress. The message is encoded
// here because the library's Tbf has neither overhead nor a burst in bytes.
func (s *space) addTBF(name string, p tbfPlan) error {
	link, err := s.link(name)
	if err != nil {
		return err
	}
	if err := s.addQdisc(link, tbfHandle, netlink.HANDLE_ROOT, "tbf", p.options()); err != nil {
		return missing("tbf, so no rate can be shaped", "CONFIG_NET_SCH_TBF, module sch_tbf", fmt.Errorf("add tbf to %s: %w", name, err))
	}
	if p.limitPackets == 0 {
		return nil
	}
	// tbf itself counts bytes; a child that counts packets takes its queue's place.
	fifo := nl.NewRtAttr(unix.TCA_OPTIONS, binary.NativeEndian.AppendUint32(nil, p.limitPackets)) // struct tc_fifo_qopt
	if err := s.addQdisc(link, 0, fifoParent, "pfifo", fifo); err != nil {
		return missing("pfifo, so no queue can be counted in packets", "CONFIG_NET_SCH_FIFO", fmt.Errorf("add pfifo to %s: %w", name, err))
	}
	return nil
}

// options are the plan as the kernel reads it.
func (p tbfPlan) options() *nl.RtAttr {
	options := nl.NewRtAttr(unix.TCA_OPTIONS, nil)
	parms := nl.TcTbfQopt{Limit: p.limitBytes}
	parms.Rate.Rate = uint32(min(p.bytesPerSecond, rate32))
	parms.Rate.Overhead, parms.Rate.Mpu = p.overhead, p.leastBytes
	parms.Rate.Linklayer = nl.LINKLAYER_ETHERNET
	if p.limitPackets > 0 {
		parms.Limit = p.burstBytes // replaced below
	}
	options.AddRtAttr(nl.TCA_TBF_PARMS, parms.Serialize())
	options.AddRtAttr(nl.TCA_TBF_BURST, nl.Uint32Attr(p.burstBytes))
	if p.bytesPerSecond > rate32 {
		options.AddRtAttr(nl.TCA_TBF_RATE64, nl.Uint64Attr(p.bytesPerSecond))
	}
	return options
}

func (s *space) addQdisc(link netlink.Link, handle, parent uint32, kind string, options *nl.RtAttr) error {
	req := nl.NewNetlinkRequest(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	req.AddData(&nl.TcMsg{Family: unix.AF_UNSPEC, Ifindex: int32(link.Attrs().Index), Handle: handle, Parent: parent})
	req.AddData(nl.NewRtAttr(unix.TCA_KIND, nl.ZeroTerminated(kind)))
	if options != nil {
		req.AddData(options)
	}
	return s.ns.Do(func() error {
		_, err := req.Execute(unix.NETLINK_ROUTE, 0)
		return err
	})
}

// relay passes every frame between two interfaces of the namespace, below its
// network stack. It sends a clone and consumes the original: the clone no
// longer counts against the sending socket's buffer, as on a real wire.
func (s *space) relay(nameA, nameB string) error {
	a, err := s.link(nameA)
	if err != nil {
		return err
	}
	b, err := s.link(nameB)
	if err != nil {
		return err
	}
	for _, way := range [][2]netlink.Link{{a, b}, {b, a}} {
		if err := s.cloneTo(way[0], way[1]); err != nil {
			return fmt.Errorf("relay %s to %s: %w", way[0].Attrs().Name, way[1].Attrs().Name, err)
		}
	}
	return nil
}

func (s *space) addIngress(link netlink.Link) error {
	ingress := &netlink.Ingress{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: link.Attrs().Index, Parent: netlink.HANDLE_INGRESS, Handle: netlink.MakeHandle(0xffff, 0)}}
	if err := s.rt.QdiscAdd(ingress); err != nil {
		return missing("ingress qdisc", "CONFIG_NET_SCH_INGRESS", fmt.Errorf("add ingress: %w", err))
	}
	return nil
}

func (s *space) cloneTo(from, to netlink.Link) error {
	if err := s.addIngress(from); err != nil {
		return err
	}
	mirror := netlink.NewMirredAction(to.Attrs().Index)
	mirror.MirredAction = netlink.TCA_EGRESS_MIRROR
	mirror.Attrs().Action = netlink.TC_ACT_STOLEN
	attrs := netlink.FilterAttrs{LinkIndex: from.Attrs().Index, Parent: netlink.MakeHandle(0xffff, 0), Priority: 1, Protocol: unix.ETH_P_ALL}
	err := s.rt.FilterAdd(&netlink.U32{FilterAttrs: attrs, Actions: []netlink.Action{mirror}})
	if err != nil {
		err = s.rt.FilterAdd(&netlink.MatchAll{FilterAttrs: attrs, Actions: []netlink.Action{mirror}})
	}
	if err != nil {
		return missing("mirred action with u32 or matchall", "CONFIG_NET_ACT_MIRRED, CONFIG_NET_CLS_U32", fmt.Errorf("add mirror: %w", err))
	}
	return nil
}

// relaySpace is the namespace a relay on the link lives in.
func (b *builder) relaySpace(link int) (*space, error) {
	if owner := b.spec.relayOwner(link); owner >= 0 {
		return b.spaces[owner], nil
	}
	return b.newSpace()
}

// doneBy is what a shaped direction of a link has done since the lab opened.
func (l *Lab) doneBy(p *tbfPlace) (done *LinkDone, err error) {
	err = l.held[p.Space].Do(func() error {
		rt, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer rt.Close()
		link, err := rt.LinkByName(p.Iface)
		if err != nil {
			return err
		}
		qdiscs, err := rt.QdiscList(link)
		for _, q := range qdiscs {
			if st := q.Attrs().Statistics; q.Type() == "tbf" && st != nil && st.Basic != nil && st.Queue != nil {
				packets, dropped := uint64(st.Basic.Packets), uint64(st.Queue.Drops)
				done = &LinkDone{Frames: packets + dropped + uint64(st.Queue.Qlen), Passed: packets, QueueFull: dropped}
				return nil
			}
		}
		return cmp.Or(err, fmt.Errorf("no tbf on %s", p.Iface))
	})
	if err != nil {
		return nil, fmt.Errorf("read what shapes %s to %s: %w", p.From, p.To, err)
	}
	return done, nil
}
