package lab

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"pelt/model"
)

const (
	newTBF     = unix.NLM_F_CREATE | unix.NLM_F_EXCL
	tbfHandle  = 1 << 16           // 1:
	fifoParent = tbfHandle | 1     // 1:1, tbf's only class
	rate32     = uint64(1)<<32 - 1 // struct tc_ratespec holds no more; TCA_TBF_RATE64 does
)

// setTBF puts a token bucket on an interface's egress, or with other flags than newTBF gives
// one that is there other settings: what waits in a queue of the same kind stays. It encodes
// the messages itself because the library's Tbf has neither overhead nor a burst in bytes.
func (s *space) setTBF(name string, p tbfPlan, flags int) error {
	link, err := s.link(name)
	if err != nil {
		return err
	}
	if err := s.setQdisc(link, flags, tbfHandle, netlink.HANDLE_ROOT, "tbf", p.options()); err != nil {
		return missing("tbf, so no rate can be shaped", "CONFIG_NET_SCH_TBF, module sch_tbf",
			fmt.Errorf("set tbf of %s: %w", name, err))
	}
	// tbf hands its limit to whatever fifo it has, in that fifo's own unit
	// (fifo_set_limit, net/sched/sch_fifo.c), so the queue is told its own.
	kind, limit := "bfifo", p.limitBytes
	if p.limitPackets > 0 {
		kind, limit = "pfifo", p.limitPackets
	}
	fifo := nl.NewRtAttr(unix.TCA_OPTIONS, binary.NativeEndian.AppendUint32(nil, limit)) // struct tc_fifo_qopt
	if err := s.setQdisc(link, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, 0, fifoParent, kind, fifo); err != nil {
		return missing(kind, "CONFIG_NET_SCH_FIFO", fmt.Errorf("set the queue of %s: %w", name, err))
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
		parms.Limit = p.burstBytes // replaced by the queue's own
	}
	options.AddRtAttr(nl.TCA_TBF_PARMS, parms.Serialize())
	options.AddRtAttr(nl.TCA_TBF_BURST, nl.Uint32Attr(p.burstBytes))
	if p.bytesPerSecond > rate32 {
		options.AddRtAttr(nl.TCA_TBF_RATE64, nl.Uint64Attr(p.bytesPerSecond))
	}
	return options
}

func (s *space) setQdisc(link netlink.Link, flags int, handle, parent uint32, kind string, options *nl.RtAttr) error {
	req := nl.NewNetlinkRequest(unix.RTM_NEWQDISC, flags|unix.NLM_F_ACK)
	req.AddData(&nl.TcMsg{Family: unix.AF_UNSPEC, Ifindex: int32(link.Attrs().Index), Handle: handle, Parent: parent})
	req.AddData(nl.NewRtAttr(unix.TCA_KIND, nl.ZeroTerminated(kind)))
	req.AddData(options)
	return s.ns.Do(func() error {
		_, err := req.Execute(unix.NETLINK_ROUTE, 0)
		return err
	})
}

// relay passes every frame between two interfaces of the namespace, below its
// network stack. It sends a clone and consumes the original: the clone no
// longer counts against the sending socket's buffer, as on a real wire.
func (s *space) relay(nameA, nameB string) error {
	for _, way := range [][2]string{{nameA, nameB}, {nameB, nameA}} {
		from, err := s.link(way[0])
		if err != nil {
			return err
		}
		to, err := s.link(way[1])
		if err == nil {
			err = s.cloneTo(from, to)
		}
		if err != nil {
			return fmt.Errorf("relay %s to %s: %w", way[0], way[1], err)
		}
	}
	return nil
}

func (s *space) cloneTo(from, to netlink.Link) error {
	ingress := &netlink.Ingress{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: from.Attrs().Index, Parent: netlink.HANDLE_INGRESS, Handle: netlink.MakeHandle(0xffff, 0)}}
	if err := s.rt.QdiscAdd(ingress); err != nil {
		return missing("ingress qdisc", "CONFIG_NET_SCH_INGRESS", fmt.Errorf("add ingress: %w", err))
	}
	mirror := netlink.NewMirredAction(to.Attrs().Index)
	mirror.MirredAction = netlink.TCA_EGRESS_MIRROR
	mirror.Attrs().Action = netlink.TC_ACT_STOLEN
	attrs := netlink.FilterAttrs{LinkIndex: from.Attrs().Index, Parent: netlink.MakeHandle(0xffff, 0), Priority: 1,
		Protocol: unix.ETH_P_ALL}
	err := s.rt.FilterAdd(&netlink.U32{FilterAttrs: attrs, Actions: []netlink.Action{mirror}})
	if err != nil {
		err = s.rt.FilterAdd(&netlink.MatchAll{FilterAttrs: attrs, Actions: []netlink.Action{mirror}})
	}
	if err != nil {
		return missing("mirred action with u32 or matchall", "CONFIG_NET_ACT_MIRRED, CONFIG_NET_CLS_U32",
			fmt.Errorf("add mirror: %w", err))
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

// readTBF is what a direction of a link that tbf shapes did since the lab opened.
func (l *Lab) readTBF(k *Link, d int) (*model.LinkResult, error) {
	at := k.ways[d].shaper
	s, err := openSpace(l.held[at.Space])
	if err != nil {
		return nil, err
	}
	defer s.rt.Close()
	link, err := s.link(at.Iface)
	if err != nil {
		return nil, err
	}
	qdiscs, err := s.rt.QdiscList(link)
	for _, q := range qdiscs {
		if st := q.Attrs().Statistics; q.Type() == "tbf" && st != nil && st.Basic != nil && st.Queue != nil {
			passed, full := uint64(st.Basic.Packets), uint64(st.Queue.Drops)
			return &model.LinkResult{From: k.Ends[d], To: k.Ends[1-d], Backend: ByTBF,
				Frames: passed + full + uint64(st.Queue.Qlen), Passed: &passed, QueueFull: &full}, nil
		}
	}
	return nil, fmt.Errorf("read what shapes %s to %s: %w", k.Ends[d], k.Ends[1-d],
		cmp.Or(err, fmt.Errorf("no tbf on %s", at.Iface)))
}
