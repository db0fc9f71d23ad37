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
	"pelt/engine/tcp"
	"pelt/engine/udp"
	"pelt/engine/xdp"
	"pelt/fleet"
	"pelt/lab"
	"pelt/measure"
	"pelt/model"
	"pelt/observe"
)

// path is an opened way from sender to receiver: agents at both ends and the
// controller that commands them.
type path struct {
	controller  *fleet.Controller
	ends        map[string]fleet.AgentInfo      // by node name
	address     map[string]func(int) netip.Addr // of the ends that can listen, by node name and family
	oneClock    bool
	pin         bool               // the ends share this machine's cores
	engine      string             // asked for: see model.Plan
	onSockets   string             // why sockets carry all flows, with auto; "" if they need not
	unready     string             // why no frames are carried by a lab, with auto; "" if they are
	receivers   []string           // of a star; none elsewhere
	mtus        []model.PathMTU    // of the plan's flows, once they are searched
	strayed     map[passage]string // why sockets carry what auto would have frames carry
	lab         *model.LabFacts
	spots       []spot           // in travel order from the sender
	kernel      *observe.Kernel  // watches this machine's drops
	roads       roads            // the links of a lab that are emulated in user space
	kernelLinks []lab.KernelLink // ... and by the kernel
	closers     []func() error
}

func (p *path) onClose(f func() error) { p.closers = append(p.closers, f) }

// Close ends everything in reverse order.
func (p *path) Close() error {
	var errs []error
	for _, f := range slices.Backward(p.closers) {
		errs = append(errs, f())
	}
	p.closers = nil
	return errors.Join(errs...)
}

func openPath(ctx context.Context, p model.Plan, o Options) (*path, error) {
	kind, name, found := strings.Cut(p.Target, ":")
	switch {
	case found && kind == "lab" && name == Loopback:
		return openLoopback(ctx, p, o)
	case found && kind == "lab":
		return openLab(ctx, name, p, o)
	case found && kind == "fleet":
		return nil, &model.FieldError{Field: "target", Want: "this pelt runs no fleets yet; want HOST[:PORT] or lab:NAME"}
	}
	return openHost(ctx, p, o)
}

// Loopback is the lab that needs no rights: both ends in the host's own stack.
const Loopback = "loopback"

// agentConfig is one end: engines bound to the host's namespace. The returned
// function frees them once the agent is closed.
// crew is nil for ends whose streams have threads of their own.
func agentConfig(node string, host engine.Host, version string, port uint16, see engine.Observe, crew *udp.Crew) (config fleet.AgentConfig, frames *xdp.Engine, free func() error) {
	newHistogram := func(parts int) engine.Histogram { return measure.NewHistogram(parts) }
	u := udp.New(udp.Config{
		NewMeter:     func(s, b int, step int64, one bool) engine.Meter { return measure.New(s, b, step, one) },
		NewHistogram: newHistogram,
		Port:         port,
		Crew:         crew,
	})
	t := tcp.New(tcp.Config{Port: port})
	x := xdp.New(xdp.Config{Sockets: u, NewHistogram: newHistogram})
	return fleet.AgentConfig{
		Node: node, Host: host, Version: version,
		Engines: map[string]engine.Engine{u.Name(): u, t.Name(): t, x.Name(): x},
		Facts:   observe.Facts,
		Watch:   func() engine.Watch { return observe.StartWatch() },
		Observe: see,
	}, x, func() error { return errors.Join(x.Close(), u.Close()) }
}

// watchDrops returns the one watch over this machine's drops.
func (p *path) watchDrops() *observe.Kernel {
	if p.kernel == nil {
		p.kernel = &observe.Kernel{}
		p.onClose(p.kernel.Close)
	}
	return p.kernel
}

// endSpots are those of a path whose middle nobody sees.
func endSpots() []spot { return []spot{{name: model.Sender}, {name: model.Receiver}} }

// plainHost is the machine itself.
type plainHost struct{}

func (plainHost) Do(f func() error) error { return f() }

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
	if err := canVary(l, groups); err != nil {
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

// oneByOne are cells in which each level of each factor stands once.
func oneByOne(p model.Plan) []model.Cell {
	cells := []model.Cell{{}}
	for _, f := range p.Factors {
		for _, v := range f.Levels {
			cells = append(cells, model.Cell{f.Knob: v})
		}
	}
	return cells
}

// makeReady makes an interface take frames, and gives them a thread of their own
// where they come from a sender: what a frame meets first shall not be the
// sending thread's work, or it could never offer more than that node can carry.
func makeReady(x *xdp.Engine, n *lab.Node, i lab.Interface, thread bool, core int) error {
	if err := x.Ready(n, i.Name); err != nil {
		return fmt.Errorf("%s: %w", n.Name(), err)
	}
	if thread && runtime.NumCPU() > 1 {
		return n.OwnThread(i.Name, core)
	}
	return nil
}

// end is one place where an agent of this process sits.
type end struct {
	node     string
	host     engine.Host
	describe func(*model.Host)
	blind    bool                    // nobody observes it: another end's watch covers its kernel
	ready    func(*xdp.Engine) error // makes it ready for frames; nil: nothing is to be done before a trial
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

func openLoopback(ctx context.Context, p model.Plan, o Options) (*path, error) {
	if _, names, err := varied(p); err != nil || len(p.Links)+len(names) > 0 {
		return nil, cmp.Or(err, error(&model.FieldError{Field: "links", Want: "lab:loopback has no links to shape"}))
	}
	loop := func(family int) netip.Addr {
		if family == 6 {
			return netip.IPv6Loopback()
		}
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	way := &path{
		oneClock: true, pin: true, engine: p.Engine,
		address: map[string]func(int) netip.Addr{model.Sender: loop, model.Receiver: loop},
		lab:     &model.LabFacts{Topology: Loopback, Nodes: []string{model.Sender, model.Receiver}, Backends: []string{}},
	}
	way.spots = endSpots()
	describe := func(h *model.Host) { h.Interface, h.Driver, h.Address = "lo", "loopback", loop(4).String() }
	return way.join(ctx, []end{{node: model.Sender, host: plainHost{}, describe: describe}, {node: model.Receiver, host: plainHost{}, describe: describe}}, o)
}

// join puts agents on a hub of this process that nothing outside can reach.
func (p *path) join(ctx context.Context, ends []end, o Options) (_ *path, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	var configs []fleet.AgentConfig
	var crew *udp.Crew
	if p.star() {
		crew = udp.NewCrew()
	}
	for _, e := range ends {
		config, frames, free := agentConfig(e.node, e.host, o.Version, 0, p.roads.told(endObserver(e.host, p.watchDrops(), func() string {
			var h model.Host
			e.describe(&h)
			return h.Interface
		})), crew)
		p.onClose(free)
		if e.ready != nil {
			if err := e.ready(frames); err != nil {
				return nil, err
			}
		}
		if e.blind {
			config.Observe = nil
		}
		config.Facts = func() model.Host {
			h := observe.Facts()
			e.describe(&h)
			return h
		}
		configs = append(configs, config)
	}
	hub, err := fleet.StartHub(fleet.HubConfig{DontListen: true})
	if err != nil {
		return nil, err
	}
	p.onClose(hub.Close)
	for _, c := range configs {
		if _, err := hub.Join(c); err != nil {
			return nil, err
		}
	}
	p.controller, err = fleet.NewController(ctx, hub, o.Version)
	if err != nil {
		return nil, err
	}
	p.onClose(p.controller.Close)
	return p, p.meet()
}

// meet learns who sits at the ends.
func (p *path) meet() error {
	p.ends = map[string]fleet.AgentInfo{}
	for _, a := range p.controller.Agents() { // this host first: no other takes its place
		if _, taken := p.ends[a.Node]; !taken {
			p.ends[a.Node] = a
		}
	}
	for _, node := range p.endNames() {
		if _, ok := p.ends[node]; !ok {
			return fmt.Errorf("no agent answers for the %s", node)
		}
	}
	return nil
}

func openHost(ctx context.Context, p model.Plan, o Options) (_ *path, err error) {
	host, port, err := model.HostPort(p.Target)
	if err != nil {
		return nil, err
	}
	if port == 0 {
		port = fleet.DefaultPort
	}
	if p.Receivers > 0 {
		return nil, &model.FieldError{Field: "receivers", Want: "are for lab:star"}
	}
	way := &path{spots: endSpots(), engine: p.Engine}
	defer func() {
		if err != nil {
			err = errors.Join(err, way.Close())
		}
	}()
	far, err := fleet.Resolve(ctx, host, p.Flows[0].Family)
	if err != nil {
		return nil, err
	}
	config, _, free := agentConfig(model.Sender, plainHost{}, o.Version, 0, endObserver(plainHost{}, way.watchDrops(), func() string {
		i, _ := observe.InterfaceFor(plainHost{}.Do, far) // unknown is ""
		return i.Name
	}), nil)
	way.onClose(free)
	config.Facts = func() model.Host {
		h := observe.Facts()
		if i, err := observe.InterfaceFor(plainHost{}.Do, far); err == nil {
			i.Describe(&h)
		}
		return h
	}
	way.controller, err = fleet.Dial(ctx, netip.AddrPortFrom(far, port), o.Code, config)
	if err != nil {
		return nil, err
	}
	way.onClose(way.controller.Close)
	way.address = map[string]func(int) netip.Addr{model.Receiver: func(int) netip.Addr { return far }}
	if err := way.meet(); err != nil {
		return nil, err
	}
	near, there := way.ends[model.Sender].Host, way.ends[model.Receiver].Host
	way.oneClock = near.Boot != "" && near.Boot == there.Boot
	return way, nil
}

func (p *path) hosts() []model.Host {
	var hosts []model.Host
	for _, node := range p.endNames()[:2] { // a star's receivers are alike
		h := p.ends[node].Host
		h.Node = plural(node)
		hosts = append(hosts, h)
	}
	return hosts
}

// admits finds out before anything is sent or stored whether every host on the
// path takes the plan's trials.
func (p *path) admits(plan model.Plan) error {
	for _, cell := range oneByOne(plan) {
		t, err := plan.Trial(cell, 0)
		if err != nil {
			return err
		}
		if _, _, err := p.place(t); err != nil {
			return err
		}
		for _, node := range p.endNames()[:2] {
			if err := p.ends[node].Limits.Admit(t.Flows, t.Timing); err != nil {
				return fmt.Errorf("%s %s: %w", node, p.ends[node].Host.Name, err)
			}
		}
	}
	return nil
}

// settle gives flows whose size is asked as a frame the IP version they will
// have: a header's length depends on it.
func (p *path) settle(plan model.Plan) []model.Flow {
	flows := slices.Clone(plan.Flows)
	if !slices.ContainsFunc(plan.Factors, func(f model.Factor) bool { return f.Knob == "frame_bytes" }) {
		return flows
	}
	for i := range flows {
		if flows[i].Family == 0 {
			flows[i].Family = 4
			if a := p.address[p.endNames()[1]](0); a.IsValid() && a.Is6() && !a.Is4In6() {
				flows[i].Family = 6
			}
		}
	}
	return flows
}

func differentHosts(before, now []model.Host) string {
	for i := range min(len(before), len(now)) {
		a, b := before[i], now[i]
		if a.Name != b.Name || a.Kernel != b.Kernel || a.CPU != b.CPU {
			return fmt.Sprintf("the %s was %s (%s, %s), now it is %s (%s, %s)", a.Node, a.Name, a.Kernel, a.CPU, b.Name, b.Kernel, b.CPU)
		}
	}
	return ""
}
