package run

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"pelt/engine"
	"pelt/engine/tcp"
	"pelt/engine/udp"
	"pelt/engine/xdp"
	"pelt/finding"
	"pelt/fleet"
	"pelt/lab"
	"pelt/model"
	"pelt/observe"
	"pelt/unit"
	"pelt/words"
)

// site is where the trials of a run take place: its nodes, and how links and router are
// set. openLoopback, openLab, openHosts and openFleet make one; no method asks which of them did.
type site struct {
	controller *fleet.Controller
	// connects to the hubs, also anew; nil: they connect by themselves
	dialHubs func(context.Context) (*fleet.Controller, error)
	nodes    []node                                     // in travel order from the sender
	router   *router                                    // under test; nil: none is watched
	set      []func(context.Context, model.Trial) error // make links and router what a trial asks
	change   func(model.TimedChange) error              // during a trial; nil: nothing can change
	urgent   []func(on bool)                            // set the real-time priority of a node's receive thread
	// sets the router up again after the last trial; nil: nothing is left of it
	restore func() error
	closers []func() error
	pairs   *pairs // of a mesh, whose trials are each of one of them; nil: of all nodes

	lab      *lab.Lab // nil without nodes between the ends that this process or another one made
	facts    *model.LabFacts
	oneClock bool            // all nodes read one monotonic clock
	local    bool            // all nodes are on this machine, and known
	pin      bool            // the ends share this machine's cores
	engine   string          // asked for: see model.Plan
	searches bool            // the plan's floods begin searches
	judged   bool            // the plan says how much loss is too much
	floods   unit.Rate       // of these
	noXDP    model.Reason    // why sockets carry all flows, with auto; without a code they need not
	mtus     []model.PathMTU // of the plan's flows, once they are searched
	// unheard is how long ends that meet nobody go on: nothing came through when these were searched; else 0.
	unheard time.Duration
	silent  string          // why the peer answers no probes and reports nothing during a trial; "": it does
	peer    string          // then its node
	kernel  *observe.Kernel // watches this machine's drops; nil until used
}

// node is a host, a network namespace, or an emulated link.
type node struct {
	name      string
	branch    string                      // the receiver of a star that it leads to; "": on every flow's way
	end       bool                        // flows begin and end here
	agent     fleet.AgentInfo             // of an end, once it is met
	address   func(family int) netip.Addr // where an end listens; nil: it does not
	kernel    *observe.Observer           // of its namespace; nil: the observation of an agent covers it
	link      int                         // number of an emulated link in its lab from 1; 0: it is none
	router    bool                        // the router under test, which tells of itself
	namespace uint64                      // network namespace on this machine; 0: unknown or elsewhere
	in, out   []string                    // interfaces toward the sender and toward the receiver, where known
	calls     netip.Addr                  // where it calls the sender, who cannot call it; invalid: the sender calls
}

func openSite(ctx context.Context, p model.Plan, o Options) (*site, error) {
	kind, name, found := strings.Cut(p.Target, ":")
	switch {
	case p.Target == "lab:"+Loopback:
		return openLoopback(ctx, p, o)
	case found && kind == "lab":
		return openLab(ctx, name, p, o)
	case found && kind == "fleet":
		return openFleet(ctx, p, o)
	}
	if server, ok := model.IperfServer(p.Target); ok {
		return openIperf(ctx, server, p, o)
	}
	if o.caller != nil {
		return o.caller.open(ctx, p, o)
	}
	if strings.HasPrefix(p.Target, model.IperfClient) {
		return nil, refuse("target", "only an iperf3 client begins such a test, at pelt serve --iperf3")
	}
	return openHosts(ctx, p, o)
}

func (s *site) onClose(f func() error) { s.closers = append(s.closers, f) }

// Close ends everything in reverse order.
func (s *site) Close() error {
	var errs []error
	for _, f := range slices.Backward(s.closers) {
		errs = append(errs, f())
	}
	s.closers = nil
	return errors.Join(errs...)
}

func (s *site) ends() (list []*node) {
	for i := range s.nodes {
		if s.nodes[i].end {
			list = append(list, &s.nodes[i])
		}
	}
	return list
}

// end returns an end by its name; one without an agent if there is none.
func (s *site) end(name string) *node {
	for i := range s.nodes {
		if s.nodes[i].name == name && s.nodes[i].end {
			return &s.nodes[i]
		}
	}
	return &node{name: name}
}

// hostOf is the node of an agent, or the machine that all nodes are on.
func (s *site) hostOf(agent string) string {
	for _, n := range s.ends() {
		if n.agent.ID == agent && !s.oneClock {
			return n.name
		}
	}
	return Machine
}

func (s *site) meet() error {
	for _, n := range s.ends() {
		for _, a := range s.controller.Agents() { // this host first: no other takes its place
			if a.Node == n.name && n.agent.ID == "" {
				n.agent = a
			}
		}
		if n.agent.ID == "" {
			return finding.NewFault(model.NobodyServes, "node", n.name)
		}
	}
	return nil
}

// join connects agents to a hub inside this process, which nothing outside can reach, and
// controls them together with the agents of far hubs.
func (s *site) join(ctx context.Context, o Options, agents []fleet.AgentConfig, far ...fleet.HubAddress) error {
	hub, err := fleet.StartHub(fleet.HubConfig{DontListen: true})
	if err != nil {
		return err
	}
	s.onClose(hub.Close)
	for _, c := range agents {
		if _, err := hub.Join(c); err != nil {
			return err
		}
	}
	return s.command(ctx, o, append([]fleet.HubAddress{{Local: hub}}, far...)...)
}

// command takes command of the agents on some hubs.
func (s *site) command(ctx context.Context, o Options, hubs ...fleet.HubAddress) (err error) {
	s.dialHubs = func(ctx context.Context) (*fleet.Controller, error) {
		return fleet.NewController(ctx, o.Version, hubs...)
	}
	if s.controller, err = s.dialHubs(ctx); err != nil {
		return err
	}
	s.onClose(func() error { return s.controller.Close() })
	return s.meet()
}

// reconnect takes command of the agents anew. What was begun over the connections before is lost.
func (s *site) reconnect(ctx context.Context) error {
	if s.dialHubs == nil {
		return nil
	}
	c, err := s.dialHubs(ctx)
	if err != nil {
		return err
	}
	err = s.controller.Close()
	s.controller = c
	for _, n := range s.ends() {
		n.agent = fleet.AgentInfo{}
	}
	return errors.Join(err, s.meet())
}

// endAgent makes config the agent of an end, with engines that are bound to its host's
// namespace; frames is closed after the agent. describe adds to what the host tells
// of itself. sockets say where the ends are reached, and how they call.
func endAgent(config fleet.AgentConfig, sockets udp.Config, kernel *observe.Kernel,
	describe func(*model.Host)) (_ fleet.AgentConfig, frames *xdp.Engine) {
	u, t := udp.New(sockets), tcp.New(tcp.Config{Listen: sockets.Listen, Loaded: sockets.Listen.Port() != 0,
		Device: sockets.Device})
	x := xdp.New(u)
	config.Engines = map[string]engine.Engine{u.Name(): u, t.Name(): t, x.Name(): x}
	config.Facts = func() model.Host {
		h := observe.Facts()
		describe(&h)
		return h
	}
	config.Watch = watchOf(observe.Observer{Do: config.Host.Do, Kernel: kernel, Device: sockets.Device}, describe)
	return config, x
}

// watchOf returns what makes the parts that watch a host.
func watchOf(o observe.Observer, describe func(*model.Host)) func(engine.WatchOrder) []engine.Part {
	o.Interface = func() string {
		var h model.Host
		describe(&h)
		return h.Interface
	}
	return func(order engine.WatchOrder) []engine.Part {
		parts := []engine.Part{watchProcessors(order)}
		if order.Drops != "" {
			parts = append(parts, watchKernel(&o, order))
		}
		return parts
	}
}

// reaching describes a host by the interface that leads to an address, or has it. Its sockets may be bound to device.
func reaching(a netip.Addr, device string) func(*model.Host) {
	return func(h *model.Host) {
		h.TCPSettings = observe.TCPSettings()
		if i, err := observe.InterfaceFor(engine.ThisHost{}.Do, a, device); err == nil {
			i.Describe(h)
		}
	}
}

// kernelOfThisMachine returns the one watch over this machine's drops.
func (s *site) kernelOfThisMachine() *observe.Kernel {
	if s.kernel == nil {
		s.kernel = &observe.Kernel{}
		s.onClose(s.kernel.Close)
	}
	return s.kernel
}

// hosts describes the ends. The receivers of a lab's star are one host.
func (s *site) hosts() (hosts []model.Host) {
	for _, n := range s.ends() {
		h := n.agent.Host
		h.Node = model.NodeGroup(n.name)
		if !slices.ContainsFunc(hosts, func(o model.Host) bool { return o.Node == h.Node && o.Name == h.Name }) {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// check checks before anything is sent or stored that every host allows all trials, and can
// use the congestion controls that they compare.
func (s *site) check(ctx context.Context, plan model.Plan) error {
	s.searches, s.judged, s.floods = plan.Design.Search != nil, plan.MaxLossRatio != nil, plan.Flows[0].Rate
	var trials []model.Trial
	for _, cell := range plan.Cells() {
		t, err := plan.Trial(cell, 0)
		if err != nil {
			return err
		}
		trials = append(trials, t)
	}
	// What the hosts allow the most flows, they allow all of them.
	slices.SortStableFunc(trials, func(a, b model.Trial) int { return len(b.Flows) - len(a.Flows) })
	rehearsed := map[model.Value]bool{}
	limited := s.limited()
	for _, t := range trials {
		asked := t.Flows
		if plan.AtOnce { // of each host, with all others
			asked = slices.Repeat(asked, len(plan.Hosts)-1)
		}
		for _, n := range limited {
			if err := n.agent.Limits.Admit(asked, t.Timing); err != nil {
				return (&finding.Fault{Reason: model.Reason{Code: model.AtHost, Node: n.name, Name: n.agent.Host.Name,
					Of: model.Reasons{finding.ReasonOf(err)}}}).From(err)
			}
		}
		if s.pairs != nil {
			continue
		}
		placed, _, err := s.place(t)
		if err != nil {
			return err
		}
		control, compared := t.Cell["control"]
		if !compared || rehearsed[control] {
			continue
		}
		placed.Number, rehearsed[control] = 1, true // no packet carries the number
		if err := s.controller.Rehearse(ctx, placed); err != nil {
			return words.Errorf("before the first trial: %w", err)
		}
	}
	return nil
}

// limited are ends enough to know every limit: of ends with the same limits it has one.
func (s *site) limited() (list []*node) {
	known := map[fleet.Limits]bool{}
	for _, n := range s.ends() {
		if !known[n.agent.Limits] {
			known[n.agent.Limits] = true
			list = append(list, n)
		}
	}
	return list
}

// withFamilies sets the IP version of flows whose size is given as a frame: the length of
// the header depends on it.
func (s *site) withFamilies(plan model.Plan) []model.Flow {
	flows := slices.Clone(plan.Flows)
	ofFrame := func(c model.Cell) bool { _, sized := c["frame_bytes"]; return sized }
	if !slices.ContainsFunc(plan.Cells(), ofFrame) {
		return flows
	}
	for i := range flows {
		if flows[i].Family == 0 {
			flows[i].Family = 4
			far := s.ends()[1]
			a := far.calls // the sender's address, if the receiver calls it
			if !a.IsValid() {
				a, _ = far.at(0)
			}
			if a.Is6() && !a.Is4In6() {
				flows[i].Family = 6
			}
		}
	}
	return flows
}

// setUrgent gives the receive threads of a lab's nodes real-time priority if all flows are XDP frames in one
// direction. Frames of both directions share a core, and sockets are read by normal threads: there such a thread
// could starve others.
func (s *site) setUrgent(placed fleet.Trial) {
	one := func(f fleet.PlacedFlow) bool {
		return f.From == placed.Flows[0].From && f.Receive.Engine == "xdp" && !f.Receive.Sockets
	}
	alone := !slices.ContainsFunc(placed.Flows, func(f fleet.PlacedFlow) bool { return !one(f) })
	for _, set := range s.urgent {
		set(alone)
	}
}

func differentHosts(before, now []model.Host) (why model.Reason) {
	for i := range min(len(before), len(now)) {
		a, b := before[i], now[i]
		if a.Name != b.Name || a.Kernel != b.Kernel || a.CPU != b.CPU {
			return model.NewReason(model.OtherHosts, "node", a.Node, "was", a.Name, "was_kernel", a.Kernel,
				"was_cpu", a.CPU, "is", b.Name, "is_kernel", b.Kernel, "is_cpu", b.CPU)
		}
	}
	return why
}
