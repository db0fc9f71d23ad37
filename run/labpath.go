package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"

	"pelt/engine"
	"pelt/engine/xdp"
	"pelt/lab"
	"pelt/model"
	"pelt/observe"
)

func openLab(ctx context.Context, name string, p model.Plan, o Options) (*path, error) {
	if p.Receivers > 0 && name != lab.Star && isTopology(name) {
		return nil, &model.FieldError{Field: "receivers", Want: "lab:" + name + " has one receiver; lab:star has many"}
	}
	links, groups, names, err := planned(p)
	if err != nil {
		return nil, err
	}
	l, err := labOf(ctx, starOf(name, p), links)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(canVary(l, groups), canChange(l, starOf(name, p), p.Timed)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if len(groups) > 0 && isTopology(name) { // what is measured, and told of the lab, is the first combination
		if _, err := l.SetLinks(groups[0], lab.SetOptions{}); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	way := &path{oneClock: true, pin: true, engine: p.Engine, address: map[string]func(int) netip.Addr{}, receivers: receiversOf(l)}
	way.onClose(l.Close)
	if n := len(way.receivers); p.Receivers > n {
		return nil, errors.Join(&model.FieldError{Field: "receivers", Want: fmt.Sprintf("lab %s has %d, not %d", name, max(n, 1), p.Receivers)}, way.Close())
	} else if p.Receivers > 0 { // a lab that is held may have more
		way.receivers = way.receivers[:p.Receivers]
	}
	if err := oneReceiver(p, len(way.receivers)); err != nil {
		return nil, errors.Join(err, way.Close())
	}
	facts := l.Facts()
	if blocked := l.Blocked(); blocked != "" {
		return nil, errors.Join(&model.FieldError{Field: "links", Want: blocked + ", the two ends' consent before a test as well; want less than 100 %"}, way.Close())
	}
	if isTopology(name) && !o.Uncalibrated {
		if facts.Links, err = calibrate(ctx, l, o); err != nil {
			return nil, errors.Join(err, way.Close())
		}
	}
	tellVaried(&facts, names)
	if n := p.Design.SideBySide; n > 1 {
		facts.Backends = append(slices.Clone(facts.Backends), fmt.Sprintf("%d such labs: so many trials side by side", n))
	}
	way.lab, way.spots = &facts, labSpots(l)
	way.roads.lab, way.roads.links, way.kernelLinks = l, l.Emulated(), l.KernelLinks()
	if err := way.watchDevice(ctx, p, l, "", o.Version); err != nil {
		return nil, errors.Join(err, way.Close())
	}
	way.setup = setup{variants: p.Variants, lab: l}
	if len(p.Variants) > 0 && !isTopology(name) {
		return nil, errors.Join(errNoVariants, way.Close())
	}
	if way.star() {
		way.spots, way.pin = starSpots(l), false
	}
	send, receive, err := wantsFrames(p, l)
	if p.Design.SideBySide > 1 { // checked: sockets may carry it
		way.onSockets, way.pin, send, receive = "trials run side by side", false, false, false
	}
	if err == nil && l.Moved() {
		if p.Engine != auto && (send || receive) {
			err = &model.FieldError{Field: "engine", Want: "links with delay, loss and the like are emulated in user space, which no XDP frames reach; want auto or udp"}
		}
		way.onSockets, send, receive = cmp.Or(way.onSockets, "the lab's links are emulated in user space"), false, false
	}
	if err == nil && way.star() {
		if p.Engine != auto && (send || receive) {
			err = &model.FieldError{Field: "engine", Want: "a star's flows are carried by sockets; want auto or udp"}
		}
		way.onSockets, send, receive = cmp.Or(way.onSockets, "a star's flows are many"), false, false
	}
	if o.records != nil && p.Engine == auto { // its receivers need sockets
		way.onSockets, send, receive = cmp.Or(way.onSockets, recordsSockets), false, false
	}
	if err == nil && send {
		if err = way.takeFrames(l, isTopology(name)); err != nil && p.Engine == auto {
			way.unready, receive, err = err.Error(), false, nil
		}
	}
	if err != nil {
		return nil, errors.Join(err, way.Close())
	}
	var ends []end
	for _, node := range way.endNames() {
		n, err := l.Node(node)
		if err != nil {
			return nil, errors.Join(err, way.Close())
		}
		one := end{node: node, host: n, blind: way.star() && node != model.Sender, describe: func(h *model.Host) {
			i := n.Interface()
			h.Interface, h.MTUBytes, h.Driver, h.Address = i.Name, i.MTU, "veth", i.Addr4.Addr().String()
			if way.star() {
				return // which transfers nothing by TCP that is compared
			}
			_ = n.Do(func() error { // its own; the host's are others
				h.TCPSettings = observe.TCPSettings()
				return nil
			})
		}}
		if receive && len(l.Nodes()) == 2 {
			one.ready = func(x *xdp.Engine) error {
				if err := makeReady(x, n, n.Interface(), isTopology(name), coreAcross(n.Interface().Peer)); err != nil && p.Engine != auto {
					return err
				}
				return nil
			}
		}
		if isTopology(name) && joins(p, node) {
			if err := n.JoinPackets(n.Interface().Name); err != nil {
				return nil, errors.Join(err, way.Close())
			}
		}
		ends = append(ends, one)
		way.address[node] = n.Addr
	}
	return way.join(ctx, ends, o)
}

// takeFrames makes the nodes between the ends take XDP frames; the ends' own
// engines do it there. Of a lab that is held by another process no setting is
// changed, own says that it is not.
func (p *path) takeFrames(l *lab.Lab, own bool) error {
	var all []*xdp.Engine
	closeAll := func() (err error) {
		for _, x := range all {
			err = errors.Join(err, x.Close())
		}
		return err
	}
	for _, n := range append(l.Nodes(), l.Wires()...) {
		if p.isEnd(n.Name()) {
			continue
		}
		x := xdp.New(xdp.Config{})
		all = append(all, x)
		for _, i := range n.Interfaces() {
			if err := makeReady(x, n, i, own && p.isEnd(i.Peer), coreAcross(i.Peer)); err != nil {
				return errors.Join(err, closeAll())
			}
		}
	}
	p.onClose(closeAll)
	return nil
}

// wantsFrames tells whether frames may carry any trial of a plan, and whether a
// program may receive any. Where none may, the lab is left as sockets know it.
func wantsFrames(p model.Plan, l *lab.Lab) (send, receive bool, err error) {
	from, to := choices(p.Engine)
	sender, err := l.Node(model.Sender)
	if err != nil {
		return false, false, err
	}
	mtu := sender.Interface().MTU
	if p.AsksPathMTU() { // it is no more than this
		p, _ = p.WithPayload(model.WholePayload(p.Flows[0].Family, mtu))
	}
	for _, cell := range oneByOne(p) {
		t, err := p.Trial(cell, 0)
		if err != nil {
			return false, false, err
		}
		for _, f := range t.Flows {
			udp := f.Protocol == model.UDP
			send = send || udp && from.Engine == "xdp" && xdp.Fits(engine.Send, f, mtu)
			receive = receive || udp && to.Engine == "xdp" && !to.Sockets && xdp.Fits(engine.Receive, f, mtu)
		}
	}
	return send, receive, nil
}

// joins tells whether a node receives packets that its kernel shall join.
func joins(p model.Plan, node string) bool {
	return slices.ContainsFunc(p.Flows, func(f model.Flow) bool { return f.Joined && f.To == node })
}

// makeReady makes an interface take frames, and gives them a thread of their own
// where they come from a sender: what a frame meets first shall not be the
// sending thread's work, or it could never offer more than that node can carry.
func makeReady(x *xdp.Engine, n *lab.Node, i lab.Interface, thread bool, core int) error {
	if !n.TakesFrames() {
		if err := x.Ready(n, i.Name); err != nil {
			return fmt.Errorf("%s: %w", n.Name(), err)
		}
	}
	if thread && runtime.NumCPU() > 1 {
		return n.OwnThread(i.Name, core)
	}
	return nil
}

func labOf(ctx context.Context, name string, links []model.Link) (*lab.Lab, error) {
	if kind, _, _ := strings.Cut(name, ":"); isTopology(kind) {
		return lab.Open(ctx, name, links)
	}
	if len(links) > 0 {
		return nil, &model.FieldError{Field: "links", Want: "lab " + name + " runs already and its links are set; give --link to pelt lab up"}
	}
	return lab.Attach(name)
}

// isTopology tells a lab to be made from one that runs.
func isTopology(name string) bool {
	return slices.ContainsFunc(lab.Topologies(), func(t lab.Topology) bool { return t.Name == name })
}
