package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"pelt/engine"
	"pelt/engine/tcp"
	"pelt/engine/udp"
	"pelt/engine/xdp"
	"pelt/fleet"
	"pelt/internal/awake"
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
	device      *device          // the router under test; nil: none is watched
	setup       setup            // how it is set up
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
	case found && kind == "lab":
		way, err := openAwake(ctx, name, p, o)
		return way.recordedOnSockets(o), err
	case found && kind == "fleet":
		return nil, &model.FieldError{Field: "target", Want: "this pelt runs no fleets yet; want HOST[:PORT] or lab:NAME"}
	}
	way, err := openHost(ctx, p, o)
	return way.recordedOnSockets(o), err
}

func (p *path) recordedOnSockets(o Options) *path {
	if p != nil && o.records != nil {
		p.onSockets = cmp.Or(p.onSockets, recordsSockets)
	}
	return p
}

// openAwake opens a path within this machine, which does not sleep meanwhile if it
// may be told so: its nodes and links would be late for no fault of the path.
func openAwake(ctx context.Context, name string, p model.Plan, o Options) (way *path, err error) {
	sleep, cannot := awake.Hold()
	if name == Loopback {
		way, err = openLoopback(ctx, p, o)
	} else {
		way, err = openLab(ctx, name, p, o)
	}
	if cannot != nil {
		return way, err
	}
	if err != nil {
		return nil, errors.Join(err, sleep())
	}
	way.onClose(sleep)
	if way.lab != nil {
		way.lab.KeptAwake = true
	}
	return way, nil
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
	t := tcp.New(tcp.Config{Port: port, NewHistogram: newHistogram})
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

// oneByOne are cells in which each level of each factor stands once, or all of a list.
func oneByOne(p model.Plan) []model.Cell {
	cells := []model.Cell{{}}
	for _, f := range p.Factors {
		for _, v := range f.Levels {
			cells = append(cells, model.Cell{f.Knob: v})
		}
	}
	return append(cells, p.Design.Cells...)
}

// end is one place where an agent of this process sits.
type end struct {
	node     string
	host     engine.Host
	describe func(*model.Host)
	blind    bool                    // nobody observes it: another end's watch covers its kernel
	ready    func(*xdp.Engine) error // makes it ready for frames; nil: nothing is to be done before a trial
}

func openLoopback(ctx context.Context, p model.Plan, o Options) (*path, error) {
	if _, names, err := varied(p); err != nil || len(p.Links)+len(names) > 0 {
		return nil, cmp.Or(err, error(&model.FieldError{Field: "links", Want: "lab:loopback has no links to shape"}))
	}
	if p.Receivers > 0 {
		return nil, &model.FieldError{Field: "receivers", Want: "lab:loopback has one receiver; lab:star has many"}
	}
	if len(p.Timed) > 0 {
		return nil, &model.FieldError{Field: "--at", Want: "lab:loopback has no link and no router that could change; want another lab, as lab:router"}
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
	describe := func(h *model.Host) {
		h.Interface, h.Driver, h.Address, h.TCPSettings = "lo", "loopback", loop(4).String(), observe.TCPSettings()
	}
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
		config.Recording = o.records.agent()
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
	listed := slices.ContainsFunc(plan.Design.Cells, func(c model.Cell) bool { _, sized := c["frame_bytes"]; return sized })
	if !listed && !slices.ContainsFunc(plan.Factors, func(f model.Factor) bool { return f.Knob == "frame_bytes" }) {
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
