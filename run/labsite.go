package run

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"runtime"
	"slices"
	"strings"

	"pelt/engine"
	"pelt/engine/udp"
	"pelt/engine/xdp"
	"pelt/finding"
	"pelt/fleet"
	"pelt/internal/awake"
	"pelt/lab"
	"pelt/model"
	"pelt/observe"
)

// Loopback is the lab that needs no rights: both ends in the host's own stack.
const Loopback = "loopback"

// newLocal makes a site within this machine. It keeps the processors from sleeping, if it
// may: nodes and links would be late otherwise.
func newLocal(p model.Plan, o Options, facts model.LabFacts) *site {
	s := &site{local: true, oneClock: true, pin: true, engine: p.Engine, noXDP: o.records.needsSockets(),
		facts: &facts}
	if sleep, err := awake.Hold(); err == nil {
		s.onClose(sleep)
		s.facts.KeptAwake = true
	}
	return s
}

func openLoopback(ctx context.Context, p model.Plan, o Options) (*site, error) {
	if _, names, err := linkFactors(p); err != nil || len(p.Links)+len(names) > 0 {
		return nil, cmp.Or(err, refuse("links", "lab:loopback has no links to shape"))
	}
	if p.Receivers > 0 {
		return nil, refuse("receivers", "lab:loopback has one receiver; lab:star has many")
	}
	if len(p.Timed) > 0 {
		return nil, refuse("--at",
			"lab:loopback has no link and no router that could change; want another lab, as lab:router")
	}
	loop := func(family int) netip.Addr {
		if family == 6 {
			return netip.IPv6Loopback()
		}
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	s := newLocal(p, o, model.LabFacts{Topology: Loopback, Nodes: []string{model.Sender, model.Receiver}})
	s.noXDP = model.FirstReason(s.noXDP, model.Reason{Code: model.FramesLoopback})
	var agents []fleet.AgentConfig
	for _, name := range s.facts.Nodes {
		s.nodes = append(s.nodes, node{name: name, end: true, address: loop})
		agent, _ := s.agentHere(name, engine.ThisHost{}, o, udp.Config{}, func(h *model.Host) {
			h.Interface, h.Driver, h.Address, h.TCPSettings = "lo", "loopback", loop(4).String(),
				observe.TCPSettings()
		})
		agents = append(agents, agent)
	}
	if err := s.join(ctx, o, agents); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// agentHere is an end within this process.
func (s *site) agentHere(name string, host engine.Host, o Options, sockets udp.Config,
	describe func(*model.Host)) (fleet.AgentConfig, *xdp.Engine) {
	config := fleet.AgentConfig{Node: name, Host: host, Version: o.Version, Recording: o.records.agent()}
	config, frames := endAgent(config, sockets, s.kernelOfThisMachine(), describe)
	s.onClose(frames.Close)
	return config, frames
}

func openLab(ctx context.Context, name string, p model.Plan, o Options) (_ *site, err error) {
	own := lab.IsTopology(name) // else another process holds it
	if p.Receivers > 0 && name != lab.Star && own {
		return nil, refuse("receivers", "lab:%s has one receiver; lab:star has many", name)
	}
	links, groups, names, err := linksToOpen(p)
	if err != nil {
		return nil, err
	}
	s := newLocal(p, o, model.LabFacts{})
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	l, err := labOf(ctx, starOf(name, p), links)
	if err != nil {
		return nil, err
	}
	s.onClose(l.Close)
	if !own {
		if err := canChange(l, groups, p.Timed); err != nil {
			return nil, err
		}
	} else if len(groups) > 0 { // what is measured, and told of the lab, is the first combination
		if _, err := l.SetLinks(groups[0], lab.SetOptions{}); err != nil {
			return nil, err
		}
	}
	receivers := receiversOf(l)
	if n := len(receivers); p.Receivers > n {
		return nil, refuse("receivers", "lab %s has %d, not %d", name, max(n, 1), p.Receivers)
	} else if p.Receivers > 0 { // a lab that is held may have more
		receivers = receivers[:p.Receivers]
	}
	star := len(receivers) > 0
	if err := oneReceiver(p, len(receivers)); err != nil {
		return nil, err
	}
	if blocked := l.Blocked(); blocked != "" {
		return nil, refuse("links", "%s; want less than 100 %%, or no test can begin", blocked)
	}
	kept := s.facts.KeptAwake
	*s.facts = l.Facts()
	s.facts.KeptAwake, s.facts.Varied = kept, names
	s.lab, s.nodes = l, labNodes(l, receivers)
	if err := s.watchRouter(ctx, p, "", o.Version); err != nil {
		return nil, err
	}
	if len(p.Variants) > 0 && !own {
		return nil, errors.New("a lab of pelt lab up keeps its router as it is; want no --variant")
	}
	s.setLinks(l)
	s.setVariants(p.Variants, func(ctx context.Context, v model.Variant) error { return setLabRouter(ctx, l, v) })
	s.pin = !star
	frames, err := s.readyFrames(p, own)
	if err != nil {
		return nil, err
	}
	agents, err := s.labAgents(p, o, own, frames)
	if err != nil {
		return nil, err
	}
	return s, s.join(ctx, o, agents)
}

// labAgents configures the agents at the ends of a lab. frames: XDP programs receive there.
func (s *site) labAgents(p model.Plan, o Options, own, frames bool) (agents []fleet.AgentConfig, err error) {
	var sockets udp.Config
	if s.star() {
		sockets.Workers = udp.NewWorkers()
	}
	for _, e := range s.ends() {
		n, err := s.lab.Node(e.name)
		if err != nil {
			return nil, err
		}
		e.address = n.Addr
		agent, x := s.agentHere(e.name, n, o, sockets, func(h *model.Host) {
			i := n.Interface()
			h.Interface, h.MTUBytes, h.Driver, h.Address = i.Name, i.MTU, "veth", i.Addr4.Addr().String()
			if s.star() {
				return // which transfers nothing by TCP that is compared
			}
			_ = n.Do(func() error { // its own; the host's are others
				h.TCPSettings = observe.TCPSettings()
				return nil
			})
		})
		if e.branch != "" { // the sender's observation covers its kernel
			agent.Watch = func(o engine.WatchOrder) []engine.Part { return []engine.Part{watchProcessors(o)} }
		}
		if frames && len(s.lab.Nodes()) == 2 {
			if err := makeReady(x, n, n.Interface(), own, coreAcross(n.Interface().Peer)); err != nil &&
				p.Engine != model.EngineAuto {
				return nil, err
			}
		}
		joined := func(f model.Flow) bool { return f.Joined && f.To == e.name } // by the receiver's kernel (GRO)
		if own && slices.ContainsFunc(p.Flows, joined) {
			if err := n.JoinPackets(n.Interface().Name); err != nil {
				return nil, err
			}
		}
		agents = append(agents, agent)
	}
	return agents, nil
}

// labNodes lists the nodes of a lab and the links between them in travel order; of a star
// the given receivers, each with its link behind the switch.
func labNodes(l *lab.Lab, receivers []string) (list []node) {
	star := len(receivers) > 0
	nodes, before := l.Nodes(), ""
	for i, n := range nodes {
		one := node{name: n.Name(), end: n.Name() == model.Sender || n.Name() == model.Receiver}
		one.namespace, _ = n.NamespaceInode() // 0 is unknown
		if star && strings.HasPrefix(one.name, model.Receiver+"-") {
			if !slices.Contains(receivers, one.name) {
				continue
			}
			one.branch, one.end = one.name, true
		}
		list = append(list, labLinks(l, before, one, star)...)
		if !star { // else each kernel has one observation, the sender's
			after := ""
			if i+1 < len(nodes) {
				after = nodes[i+1].Name()
			}
			one.in, one.out = interfacesTo(n, before), interfacesTo(n, after)
			if !one.end {
				one.kernel = &observe.Observer{Do: n.Do}
			}
		}
		if list = append(list, one); one.branch == "" {
			before = one.name
		}
	}
	return list
}

// labLinks lists what lies between a node and the one before it: hidden wires and emulated links.
func labLinks(l *lab.Lab, before string, to node, star bool) (list []node) {
	ends := [2]string{before, to.name}
	name := "link " + before + "-" + to.name
	for _, w := range l.Wires() {
		if w.Name() == name && !star {
			wire := node{name: name, kernel: &observe.Observer{Do: w.Do}, in: interfacesTo(w, before),
				out: interfacesTo(w, to.name)}
			wire.namespace, _ = w.NamespaceInode()
			list = append(list, wire)
		}
	}
	for i, k := range l.Emulated() {
		if k.Ends == ends {
			list = append(list, node{name: name, branch: to.branch, link: i + 1})
		}
	}
	return list
}

// interfacesTo lists a node's interfaces whose cable leads to a peer.
func interfacesTo(n *lab.Node, peer string) (names []string) {
	for _, i := range n.Interfaces() {
		if i.Peer == peer {
			names = append(names, i.Name)
		}
	}
	return names
}

// readyFrames makes the lab carry XDP frames, if the plan may send any. It reports whether
// programs receive them at the ends.
func (s *site) readyFrames(p model.Plan, own bool) (receive bool, err error) {
	var unreached model.Reason // why no frames reach the receiver
	switch {
	case len(s.lab.Emulated()) > 0:
		unreached.Code = model.FramesUserLinks
	case s.star():
		unreached.Code = model.FramesStar
	}
	s.noXDP = model.FirstReason(unreached, s.noXDP)
	send, receive, err := wantsFrames(p, s.lab, s.noXDP)
	if err == nil && unreached.Code != "" && (send || receive) {
		err = refuse("engine", "want auto or udp: no XDP frames can be used, because %v",
			&finding.Fault{Reason: unreached})
	}
	if err != nil || !send {
		return receive, err
	}
	if err = s.takeFrames(s.lab, own); err != nil && p.Engine == model.EngineAuto {
		s.noXDP = finding.ReasonOf(err)
		return false, nil
	}
	return receive, err
}

// takeFrames makes the nodes between the ends take XDP frames; the engines of the ends do
// it there. own: the lab is this process's, so that its settings may change.
func (s *site) takeFrames(l *lab.Lab, own bool) error {
	var all []*xdp.Engine
	closeAll := func() (err error) {
		for _, x := range all {
			err = errors.Join(err, x.Close())
		}
		return err
	}
	for _, n := range append(l.Nodes(), l.Wires()...) {
		if s.end(n.Name()).end {
			continue
		}
		x := xdp.New(nil)
		all = append(all, x)
		for _, i := range n.Interfaces() {
			fromEnd := own && s.end(i.Peer).end
			if err := makeReady(x, n, i, fromEnd, coreAcross(i.Peer)); err != nil {
				return errors.Join(err, closeAll())
			}
			if fromEnd {
				s.urgent = append(s.urgent, func(on bool) { n.Urgent(i.Name, on) })
			}
		}
	}
	s.onClose(closeAll)
	return nil
}

// wantsFrames reports whether any trial of a plan may send XDP frames, and whether any may
// receive them by a program.
func wantsFrames(p model.Plan, l *lab.Lab, noFrames model.Reason) (send, receive bool, err error) {
	sender, err := l.Node(model.Sender)
	if err != nil {
		return false, false, err
	}
	mtu := sender.Interface().MTU
	if p.AsksPathMTU() { // it is no more than this
		p, _ = p.WithPayload(model.WholePayload(p.Flows[0].Family, mtu))
	}
	for _, cell := range p.Cells() {
		t, err := p.Trial(cell, 0)
		if err != nil {
			return false, false, err
		}
		for _, f := range t.Flows {
			from, to, _ := carriersOf(p.Engine, f, noFrames)
			whole := f.PayloadBytes <= model.WholePayload(f.Family, mtu)
			send = send || whole && from.Engine == "xdp" && xdp.Unfit(engine.Send, f).Code == ""
			receive = receive || whole && to.Engine == "xdp" && !to.Sockets && xdp.Unfit(engine.Receive, f).Code == ""
		}
	}
	return send, receive, nil
}

// makeReady lets an interface take frames. Frames that come from a sender get a thread of
// their own, so that the sending thread does not do the next node's work.
func makeReady(x *xdp.Engine, n *lab.Node, i lab.Interface, thread bool, core int) error {
	if !n.TakesFrames() {
		if err := x.Ready(n, i.Name); err != nil {
			return &finding.Fault{Reason: model.Reason{Code: model.FramesUnready, Node: n.Name(), Name: i.Name,
				Of: model.Reasons{finding.ReasonOf(err)}}}
		}
	}
	if thread && runtime.NumCPU() > 1 {
		return n.OwnThread(i.Name, core)
	}
	return nil
}

func labOf(ctx context.Context, name string, links []model.Link) (*lab.Lab, error) {
	if kind, _, _ := strings.Cut(name, ":"); lab.IsTopology(kind) {
		return lab.Open(ctx, name, links)
	}
	l, err := lab.Attach(name)
	if err == nil && len(links) > 0 {
		err = refuse("links", "lab %s runs already and its links are set; give --link to pelt lab up", name)
		return nil, errors.Join(err, l.Close())
	}
	return l, err
}
