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
	next, reached, err := changed(l.spec, l.made, l.plans, changes)
	if err != nil {
		return nil, nil, err
	}
	for i := range next {
		if c := l.choices[i]; next[i] != l.plans[i] && l.made[i].emulated() && c.backend != model.BackendUser {
			return nil, nil, &UsageError{fmt.Sprintf("link %s: its backend is %s, whose settings stay as they were made; take the lab down, and up with --link backend=user", l.spec.linkName(i), c.backend)}
		}
	}
	list, before = []LinkChanged{}, map[[2]int]shape{}
	for i, ways := range reached {
		for direction, one := range ways {
			if one {
				from, to := l.spec.ends(i, direction)
				before[[2]int{i, direction}] = l.plans[i].toward[direction]
				list = append(list, LinkChanged{from, to, l.plans[i].toward[direction].link(), next[i].toward[direction].link()})
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
	next := slices.Clone(l.plans)
	for at, s := range before {
		next[at[0]].toward[at[1]] = s
	}
	return l.become(next)
}

// become makes the links what the plans say, or leaves them as they are.
func (l *Lab) become(next []linkPlan) (err error) {
	before := l.plans
	var undo []func() error
	defer func() {
		if err == nil {
			l.plans = next
			l.facts.Backends = l.sentences()
			return
		}
		for _, f := range slices.Backward(undo) {
			err = errors.Join(err, f())
		}
	}()
	for i := range next {
		for direction := range 2 {
			if next[i].toward[direction] == before[i].toward[direction] {
				continue
			}
			if err := l.setWay(i, direction, next[i]); err != nil {
				return fmt.Errorf("change link %s: %w", l.spec.wayName(i, direction), err)
			}
			undo = append(undo, func() error { return l.setWay(i, direction, before[i]) })
		}
	}
	return nil
}

// setWay makes one direction of a link what its plan says.
func (l *Lab) setWay(link, direction int, plan linkPlan) error {
	if l.made[link].emulated() {
		k := slices.IndexFunc(l.links, func(e EmulatedLink) bool { return e.link == link })
		if k < 0 {
			return errors.New("nobody moves its frames")
		}
		e := &l.links[k]
		set := plan.toward[direction].settings()
		if set.Seed == 0 {
			set.Seed = l.seed
		}
		other := e.Seeds[direction] != set.Seed
		e.Seeds[direction] = set.Seed
		set.Seed = seedOf(set, link, direction)
		if e.times[direction]++; other {
			e.times[direction] = 0 // a link made with that seed draws the same
		} else if set.Mode != "netem" { // or each change would bring the first draws again
			set.Seed = split(set.Seed, e.times[direction])
		}
		e.Cable.Set(direction, set)
		e.Ways[direction] = set
		return nil
	}
	place := l.tbfOf(link, direction)
	if place == nil {
		return errors.New("no tbf is there")
	}
	return l.held[place.Space].Do(func() error { return changeTBF(place.Iface, plan.toward[direction].tbf(plan.mtu)) })
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

// sentences say what the links are now, as when the lab was opened.
func (l *Lab) sentences() []string {
	b := builder{spec: l.spec}
	for i, p := range l.plans {
		homes := l.spec.homes(i, l.made[i])
		for direction, s := range p.toward {
			switch {
			case l.made[i].emulated() && l.choices[i].backend != model.BackendUser:
				if text, acts := l.fixed[[2]int{i, direction}]; acts {
					b.tell(i, direction, text)
				}
			case l.made[i].emulated():
				set := s.settings()
				if set.Seed == 0 {
					set.Seed = l.seed
				}
				b.tell(i, direction, told(set, l.choices[i].inUserSpace(set)))
			case homes[direction] != nowhere:
				b.tell(i, direction, l.spec.sentence(i, direction, s, s.tbf(p.mtu), homes[direction]))
			}
		}
	}
	return b.sentences()
}

// Links lists the directions of the lab's links as they are now, in travel order.
func (l *Lab) Links() ([]LinkWay, error) {
	if l.holder != nil {
		return l.holder.links()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	shapers, err := l.Shapers()
	if err != nil {
		return nil, err
	}
	byPlan := map[int]EmulatedLink{}
	for _, e := range l.links {
		byPlan[e.link] = e
	}
	list := []LinkWay{}
	for i, p := range l.plans {
		e, moved := byPlan[i]
		var overrun [2]uint64
		if moved {
			if overrun, err = e.Overrun(); err != nil {
				return nil, err
			}
		}
		for direction, s := range p.toward {
			w := LinkWay{Backend: l.made[i].by(direction, l.choices[i]), Settings: s.link()}
			w.From, w.To = l.spec.ends(i, direction)
			w.Settings.MTU = 0
			if p.mtu != defaultMTU {
				w.Settings.MTU = p.mtu
			}
			if moved {
				w.Mode, w.Seed = cmp.Or(s.asked.Mode, "exact"), s.asked.Seed
				if w.Seed == 0 {
					w.Seed = l.seed
				}
				w.Done = done(e.Cable.Counts(direction), overrun[direction])
			}
			for _, t := range shapers {
				if t.From == w.From && t.To == w.To {
					w.Done = &LinkDone{Frames: t.Packets + t.Dropped + t.QueuePackets, Passed: t.Packets, QueueFull: t.Dropped}
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
