package lab

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"pelt/lab/gauge"
	"pelt/lab/netem"
)

// here is what this machine can make links of. Each probe leaves nothing.
func here() machine {
	return machine{user: hasTUN, kernel: hasNetem}
}

func hasTUN() error {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0) // a node may be there without its module
	if err == nil {
		return unix.Close(fd)
	}
	return missing("TAP interfaces", "CONFIG_TUN, module tun", fmt.Errorf("open /dev/net/tun: %w", err))
}

// hasNetem tries netem in a namespace of its own, with a seed: a kernel that does
// not know seeds passes over it in silence, and does not tell one.
func hasNetem() (seeds bool, err error) {
	b := &builder{lab: &Lab{}}
	defer func() { err = errors.Join(err, b.lab.Close()) }()
	s, err := b.newSpace()
	if err != nil {
		return false, explain("make a network namespace", err)
	}
	defer s.rt.Close()
	if err := s.addNetem("lo", netem.Options{LimitPackets: 1, Seed: 7, Seeded: true}); err != nil {
		return false, err
	}
	return s.seeded("lo")
}

func (s *space) addNetem(name string, o netem.Options) error {
	link, err := s.link(name)
	if err != nil {
		return err
	}
	if err := s.addQdisc(link, tbfHandle, netlink.HANDLE_ROOT, "netem", nl.NewRtAttr(unix.TCA_OPTIONS, o.Append(nil))); err != nil {
		return missing("netem", "CONFIG_NET_SCH_NETEM, module sch_netem", fmt.Errorf("add netem to %s: %w", name, err))
	}
	return nil
}

// seeded reports whether the kernel tells a seed of the netem at an interface.
func (s *space) seeded(name string) (ok bool, err error) {
	link, err := s.link(name)
	if err != nil {
		return false, err
	}
	req := nl.NewNetlinkRequest(unix.RTM_GETQDISC, unix.NLM_F_DUMP)
	req.AddData(&nl.TcMsg{Family: unix.AF_UNSPEC, Ifindex: int32(link.Attrs().Index)})
	var answers [][]byte
	err = s.ns.Do(func() (err error) {
		answers, err = req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWQDISC)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("list the queueing disciplines of %s: %w", name, err)
	}
	for _, m := range answers {
		attrs, err := nl.ParseRouteAttr(m[nl.SizeofTcMsg:])
		if err != nil {
			return false, err
		}
		for _, a := range attrs {
			if a.Attr.Type == unix.TCA_OPTIONS {
				if _, found := netem.Seed(a.Value); found {
					ok = true
				}
			}
		}
	}
	return ok, nil
}

// emulateInKernel joins two nodes by a relay of its own, in which each direction
// passes its stages.
func (b *builder) emulateInKernel(link int, pa, pb port, c choice) error {
	k := b.lab.links[link]
	relay, err := b.newSpace()
	if err != nil {
		return err
	}
	space := slices.Index(b.spaces, relay)
	names := [2]string{b.spec.ifaceName(link, pa.node), b.spec.ifaceName(link, pb.node)}
	var inner [2]string // the relay's, toward a and b
	inner[0], inner[1] = b.spec.relayNames(link)
	ports := [2]port{pa, pb}
	for i, p := range ports {
		if err := b.veth(k.plan.mtu, b.spaces[p.node], names[i], b.macOf(p), relay, inner[i], nil); err != nil {
			return err
		}
	}
	k.relay = relay.ns
	for direction, s := range k.plan.toward {
		from := ports[direction].node
		w := kernelWay{From: b.spec.nodes[from].name, To: b.spec.nodes[ports[1-direction].node].name, Reason: c.reason,
			Node: from, Out: names[direction], Space: space}
		if err := b.way(relay, &w, link, direction, s, c, inner, ports[1-direction]); err != nil {
			return fmt.Errorf("%s: %w", b.spec.wayName(link, direction), err)
		}
		k.kernel = append(k.kernel, w)
	}
	return nil
}

// way makes one direction: from one of the relay's outer interfaces to the other.
func (b *builder) way(relay *space, w *kernelWay, link, direction int, s shape, c choice, inner [2]string, to port) error {
	plan := b.lab.links[link].plan
	set := s.settings()
	if set.Seed == 0 {
		set.Seed = b.lab.seed
	}
	asked := set.Seed
	set.Seed = seedOf(asked, link, direction)
	w.Asked, w.Corrupts = set.LossRatio(), set.Corrupt.Ratio > 0
	list := s.stages(set, c, plan.mtu)
	if c.seeds {
		w.Seed = asked
	}
	if s.acts() && s.frameByFrame(set) {
		if err := b.singly(b.spaces[w.Node], w.Out); err != nil {
			return err
		}
	}
	entry := inner[direction]
	for i, st := range list {
		out, next := inner[1-direction], ""
		if i < len(list)-1 {
			out, next = fmt.Sprintf("%s-%d", st.name, direction), fmt.Sprintf("%s-%d-in", st.name, direction)
			if err := b.veth(plan.mtu, relay, out, nil, relay, next, nil); err != nil {
				return err
			}
		}
		kind := "netem"
		var err error
		if st.tbf != nil {
			kind = "tbf"
			err = relay.addTBF(out, *st.tbf)
		} else {
			err = relay.addNetem(out, *st.netem)
		}
		if err != nil {
			return err
		}
		if err := relay.feed(entry, out); err != nil {
			return err
		}
		w.Entries = append(w.Entries, entry)
		w.Stages = append(w.Stages, kernelStage{Iface: out, Kind: kind, Loses: st.loses, Adds: st.adds, Limit: st.limit})
		entry = next
	}
	if len(list) == 0 {
		if err := relay.feed(entry, inner[1-direction]); err != nil {
			return err
		}
		w.Entries = []string{entry}
	}
	if s.acts() {
		seeded := "no seed"
		if w.Seed != 0 {
			seeded = fmt.Sprintf("seed %d", w.Seed)
		}
		w.text = told(set, fmt.Sprintf("%s, %s; %s", doers(list), seeded, c.reason))
		burst := 0
		if i := slices.IndexFunc(list, func(st stage) bool { return st.tbf != nil }); i >= 0 {
			burst = int(list[i].tbf.burstBytes)
		}
		w.gauged = &gauge.Way{From: w.From, To: w.To, Settings: set, Words: w.text, MTU: plan.mtu, Burst: burst,
			In: gauge.Port{Do: b.spaces[w.Node].ns.Do, Name: w.Out}, Out: gauge.Port{Do: b.spaces[to.node].ns.Do, Name: b.spec.ifaceName(link, to.node)}}
		w.anew = func() error { return relay.beginAnew(w.Stages, list) }
	}
	return nil
}

// beginAnew makes netem's queueing disciplines again, which then draw from their beginning.
func (s *space) beginAnew(made []kernelStage, list []stage) error {
	again, err := openSpace(s.ns)
	if err != nil {
		return err
	}
	defer again.rt.Close()
	for i, st := range list {
		if st.netem == nil {
			continue
		}
		link, err := again.link(made[i].Iface)
		if err != nil {
			return err
		}
		old := &netlink.GenericQdisc{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: tbfHandle, Parent: netlink.HANDLE_ROOT}, QdiscType: "netem"}
		if err := again.rt.QdiscDel(old); err != nil {
			return fmt.Errorf("take netem off %s: %w", made[i].Iface, err)
		}
		if err := again.addNetem(made[i].Iface, *st.netem); err != nil {
			return err
		}
	}
	return nil
}

// singly makes an interface send frames one by one, whatever buffers it is given.
func (b *builder) singly(s *space, name string) error {
	link, err := s.link(name)
	if err != nil {
		return err
	}
	if err := s.rt.LinkSetGSOMaxSegs(link, 1); err != nil {
		return fmt.Errorf("take segmentation offload off %s: %w", name, err)
	}
	return nil
}

// feed passes every frame from one interface of the namespace on to another.
func (s *space) feed(from, to string) error {
	in, err := s.link(from)
	if err != nil {
		return err
	}
	out, err := s.link(to)
	if err != nil {
		return err
	}
	if err := s.cloneTo(in, out); err != nil {
		return fmt.Errorf("relay %s to %s: %w", from, to, err)
	}
	return nil
}

// readWay reads all that the kernel counts of a direction.
func (l *Lab) readWay(w kernelWay) (r wayReading, err error) {
	err = l.nodes[w.Node].ns.Do(func() error {
		link, err := netlink.LinkByName(w.Out)
		if err == nil && link.Attrs().Statistics != nil {
			r.missed = link.Attrs().Statistics.TxDropped
		}
		return err
	})
	if err != nil {
		return r, fmt.Errorf("read the counters of %s of %s: %w", w.Out, w.From, err)
	}
	err = l.held[w.Space].Do(func() error {
		for i, entry := range w.Entries {
			var h hopReading
			if err := h.readFeed(entry); err != nil {
				return fmt.Errorf("%s: %w", entry, err)
			}
			if i < len(w.Stages) {
				missed, err := h.readStage(w.Stages[i])
				if err != nil {
					return fmt.Errorf("%s: %w", w.Stages[i].Iface, err)
				}
				if i < len(w.Stages)-1 {
					r.missed += missed
				}
			}
			r.hops = append(r.hops, h)
		}
		return nil
	})
	return r, err
}

// readFeed reads what was passed on from an interface: the mirror counts as over
// its limit what the queueing discipline refused (tcf_mirred_act,
// net/sched/act_mirred.c).
func (h *hopReading) readFeed(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	filters, err := netlink.FilterList(link, netlink.MakeHandle(0xffff, 0))
	if err != nil {
		return err
	}
	for _, f := range filters {
		var actions []netlink.Action
		switch f := f.(type) {
		case *netlink.U32:
			actions = f.Actions
		case *netlink.MatchAll:
			actions = f.Actions
		}
		for _, a := range actions {
			if s := a.Attrs().Statistics; s != nil && s.Basic != nil && s.Queue != nil {
				h.in, h.refused = s.Basic.Packets, s.Queue.Overlimits
				return nil
			}
		}
	}
	return errNoCounter
}

// readStage reads a queueing discipline, and how many of the frames that it let
// go found no room behind it.
func (h *hopReading) readStage(s kernelStage) (missed uint64, err error) {
	link, err := netlink.LinkByName(s.Iface)
	if err != nil {
		return 0, err
	}
	if st := link.Attrs().Statistics; st != nil {
		missed = st.TxDropped
	}
	qdiscs, err := netlink.QdiscList(link)
	if err != nil {
		return 0, err
	}
	for _, q := range qdiscs {
		st := q.Attrs().Statistics
		if q.Type() == s.Kind && st != nil && st.Basic != nil && st.Queue != nil {
			h.out, h.dropped, h.waiting = st.Basic.Packets, st.Queue.Drops, st.Queue.Qlen
			return missed, nil
		}
	}
	return 0, errNoCounter
}
