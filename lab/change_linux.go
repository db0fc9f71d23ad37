package lab

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"pelt/lab/userlink"
	"pelt/model"
)

// SetLinks changes settings of links while they run, all of them or none, and
// returns the directions that it reached, in travel order. What is on its way
// stays as it was meant. A lab that another process holds is changed there.
// The error is a *UsageError for what the links cannot become.
func (l *Lab) SetLinks(changes []model.LinkChange, o SetOptions) ([]LinkChanged, error) {
	if l.holder != nil {
		return l.holder.set(request{Changes: changes, Dry: o.Dry, Lent: o.Lent})
	}
	list, _, err := l.setLinks(changes, o.Dry)
	return list, err
}

// setLinks also returns what the links were before.
func (l *Lab) setLinks(changes []model.LinkChange, dry bool) (list []LinkChanged, before map[[2]int]shape, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	made, plans := l.plans()
	next, reached, err := changed(l.spec, made, plans, changes)
	if err != nil {
		return nil, nil, err
	}
	for i := range next {
		if next[i] != plans[i] && l.links[i].Kernel() {
			return nil, nil, &UsageError{fmt.Sprintf("link %s: its backend is %s, whose settings stay as they were made; take the lab down, and up with --link backend=user", l.spec.linkName(i), model.BackendKernel)}
		}
	}
	list, before = []LinkChanged{}, map[[2]int]shape{}
	for i, ways := range reached {
		for direction, one := range ways {
			if one {
				from, to := l.spec.ends(i, direction)
				before[[2]int{i, direction}] = plans[i].toward[direction]
				list = append(list, LinkChanged{from, to, plans[i].toward[direction].link(), next[i].toward[direction].link()})
			}
		}
	}
	if dry {
		return list, before, nil
	}
	return list, before, l.become(next)
}

// putBack makes directions of links what they were before.
func (l *Lab) putBack(before map[[2]int]shape) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, next := l.plans()
	for at, s := range before {
		next[at[0]].toward[at[1]] = s
	}
	return l.become(next)
}

// become makes the links what the plans say, or leaves them as they are.
func (l *Lab) become(next []linkPlan) (err error) {
	var undo []func() error
	defer func() {
		if err != nil {
			for _, f := range slices.Backward(undo) {
				err = errors.Join(err, f())
			}
		}
		l.facts.Backends = l.sentences()
	}()
	for i, k := range l.links {
		before := k.plan
		for direction := range 2 {
			if next[i].toward[direction] == before.toward[direction] {
				continue
			}
			if err := l.setWay(k, direction, next[i].toward[direction]); err != nil {
				return fmt.Errorf("change link %s: %w", l.spec.wayName(i, direction), err)
			}
			undo = append(undo, func() error { return l.setWay(k, direction, before.toward[direction]) })
		}
	}
	return nil
}

// setWay makes one direction of a link another.
func (l *Lab) setWay(k *Link, direction int, s shape) error {
	if k.cable == nil {
		place := l.tbfOf(k.number, direction)
		if place == nil {
			return errors.New("no tbf is there")
		}
		err := l.held[place.Space].Do(func() error { return changeTBF(place.Iface, s.tbf(k.plan.mtu)) })
		if err == nil {
			k.plan.toward[direction] = s
		}
		return err
	}
	set := s.settings()
	seed := cmp.Or(set.Seed, l.seed)
	if k.times[direction]++; k.seeds[direction] != seed {
		k.seeds[direction], k.times[direction] = seed, 0 // a link made with that seed draws the same
	}
	set.Seed = seedOf(seed, k.number, direction)
	if n := k.times[direction]; n > 0 { // or each change would bring the first draws again
		set.Seed = split(set.Seed, n)
	}
	k.cable.Set(direction, set)
	k.settings[direction], k.plan.toward[direction] = set, s
	return nil
}

// tbfOf is where a direction of a link is shaped by the kernel; nil if it is not.
func (l *Lab) tbfOf(link, direction int) *tbfPlace {
	from, to := l.spec.ends(link, direction)
	for i, p := range l.tbfs {
		if p.From == from && p.To == to {
			return &l.tbfs[i]
		}
	}
	return nil
}

// changeTBF gives a token bucket that is there other settings. What waits in a
// queue of the same kind stays.
func changeTBF(name string, p tbfPlan) error {
	rt, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer rt.Close()
	link, err := rt.LinkByName(name)
	if err != nil {
		return err
	}
	execute := func(flags int, handle, parent uint32, kind string, options *nl.RtAttr) error {
		req := nl.NewNetlinkRequest(unix.RTM_NEWQDISC, flags|unix.NLM_F_ACK)
		req.AddData(&nl.TcMsg{Family: unix.AF_UNSPEC, Ifindex: int32(link.Attrs().Index), Handle: handle, Parent: parent})
		req.AddData(nl.NewRtAttr(unix.TCA_KIND, nl.ZeroTerminated(kind)))
		req.AddData(options)
		_, err := req.Execute(unix.NETLINK_ROUTE, 0)
		return err
	}
	if err := execute(0, tbfHandle, netlink.HANDLE_ROOT, "tbf", p.options()); err != nil {
		return fmt.Errorf("change tbf on %s: %w", name, err)
	}
	// tbf hands its limit to whatever fifo it has, in that fifo's own unit
	// (fifo_set_limit, net/sched/sch_fifo.c), so the queue is told its own.
	kind, limit := "bfifo", p.limitBytes
	if p.limitPackets > 0 {
		kind, limit = "pfifo", p.limitPackets
	}
	fifo := nl.NewRtAttr(unix.TCA_OPTIONS, binary.NativeEndian.AppendUint32(nil, limit)) // struct tc_fifo_qopt
	if err := execute(unix.NLM_F_CREATE|unix.NLM_F_REPLACE, 0, fifoParent, kind, fifo); err != nil {
		return fmt.Errorf("change the queue on %s: %w", name, err)
	}
	return nil
}

// Links lists the directions of the lab's links as they are now, in travel order.
func (l *Lab) Links() ([]LinkWay, error) {
	if l.holder != nil {
		return l.holder.links()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	list := []LinkWay{}
	for i, k := range l.links {
		var overrun [2]uint64
		var err error
		if k.cable != nil {
			if overrun, err = k.overrun(); err != nil {
				return nil, err
			}
		}
		for direction, s := range k.plan.toward {
			w := LinkWay{Backend: ByCable, From: k.Ends[direction], To: k.Ends[1-direction], Settings: s.link()}
			if k.plan.mtu != defaultMTU {
				w.Settings.MTU = k.plan.mtu
			}
			place := l.tbfOf(i, direction)
			switch {
			case k.cable != nil:
				w.Backend, w.Seed, w.Done = ByUser, cmp.Or(s.asked.Seed, l.seed), done(k.cable.Counts(direction), overrun[direction])
			case k.Kernel():
				w.Backend = model.BackendKernel
			case place != nil:
				w.Backend = ByTBF
				if w.Done, err = l.doneBy(place); err != nil {
					return nil, err
				}
			}
			list = append(list, w)
		}
	}
	return list, nil
}

func done(c userlink.Counts, overrun uint64) *LinkDone {
	d := &LinkDone{Frames: c.Frames, Passed: c.Passed, Lost: c.Lost, QueueFull: c.QueueFull, Duplicated: c.Duplicated, Corrupted: c.Corrupted,
		Refused: c.Refused, Overrun: overrun}
	if c.Left > 0 {
		late := c.Lateness(userlink.Counts{})
		d.Late = &LinkLate{P50: late.P50, P99: late.P99, Max: c.LatestNS}
	}
	return d
}
