package run

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"pelt/advice"
	"pelt/engine"
	"pelt/fleet"
	"pelt/lab"
	"pelt/ledger"
	"pelt/model"
	"pelt/observe"
)

// spot is one node of the path. The path lists them from the sender to the
// receiver, with the wires hidden in a lab's links.
type spot struct {
	name     string
	observer *observe.Observer // of a node between the ends; the ends' agents have their own
	before   []string          // its interfaces toward the sender, where known
	after    []string          // ... and toward the receiver
	many     bool              // one of a star's receivers, or its link
	inode    uint64            // of a star's node: its network namespace
	road     int               // 1 + number of the link in user space that it is; 0: it is none
	rails    int               // likewise of a link that the kernel emulates
	device   bool              // the router under test, which tells of itself
}

// idleSeconds is how long the first trial of a run watches the quiet path, for
// the rate of foreign traffic. Later trials use what it found.
const idleSeconds = 0.5

func (p *path) isEnd(name string) bool { return name == model.Sender || name == model.Receiver }

// labSpots lists the nodes of a lab and the wires between them.
func labSpots(l *lab.Lab) []spot {
	nodes, wires := l.Nodes(), l.Wires()
	var spots []spot
	add := func(n *lab.Node, before, after string) {
		s := spot{name: n.Name(), observer: &observe.Observer{Do: n.Do}}
		for _, i := range n.Interfaces() {
			switch i.Peer {
			case before:
				s.before = append(s.before, i.Name)
			case after:
				s.after = append(s.after, i.Name)
			}
		}
		spots = append(spots, s)
	}
	name := func(i int) string {
		if i < 0 || i >= len(nodes) {
			return ""
		}
		return nodes[i].Name()
	}
	for i, n := range nodes {
		add(n, name(i-1), name(i+1))
		for _, w := range wires {
			if i+1 < len(nodes) && w.Name() == "link "+n.Name()+"-"+nodes[i+1].Name() {
				add(w, n.Name(), name(i+1))
			}
		}
		for k, e := range l.KernelLinks() {
			if e.Ends[0] == n.Name() && spots[len(spots)-1].name == roadName(e.Ends) {
				wire := &spots[len(spots)-1] // what Wires has put there
				wire.rails = k + 1
				wire.before, wire.after = withStages(wire.before, e, 1), withStages(wire.after, e, 0)
			}
		}
		for k, e := range l.Emulated() {
			if e.Ends[0] == n.Name() {
				spots = append(spots, spot{name: roadName(e.Ends), road: k + 1})
			}
		}
	}
	return spots
}

// withStages adds the interfaces that a link's frames leave by within it.
func withStages(interfaces []string, l lab.KernelLink, direction int) []string {
	inner, _ := l.Stages(direction, model.LinkResult{})
	for _, name := range inner {
		if !slices.Contains(interfaces, name) {
			interfaces = append(interfaces, name)
		}
	}
	return interfaces
}

// endObserver makes the observations of the host an agent sits on.
func endObserver(host engine.Host, kernel *observe.Kernel, iface func() string) engine.Observe {
	o := &observe.Observer{Do: host.Do, Kernel: kernel, Interface: iface}
	return func(trial uint16, mode model.DropMode) (engine.Observation, error) {
		w, err := o.Begin(trial, mode)
		if err != nil {
			return nil, err
		}
		return w, nil
	}
}

// seen is what became known of one spot in a trial.
type seen struct {
	spot
	observation *model.Observation
	why         string             // there is none
	links       []model.LinkResult // of an emulated link
	queues      map[string]string  // of a link that the kernel emulates: what its drops are called, by interface
	programs    map[string]string  // likewise those ahead of the queues
	doubt       string             // that it did what was asked
	unobserved  bool               // nobody was to watch its packets
}

// along observes the nodes between the ends for one trial. The function tells
// what was seen of all spots, or what emulated links did where no packets are to be
// watched, and must be called once.
func (p *path) along(trial uint16, mode model.DropMode) ([]engine.Observation, func(fleet.Outcome) ([]seen, error)) {
	if mode == "" {
		return nil, p.linksAlone(trial)
	}
	watches := map[string]*observe.Observation{}
	failed := map[string]string{}
	rails := map[string]*rails{}
	var links *lab.LinkWatch
	var unwatched string // why there is none
	var list []engine.Observation
	p.roads.begin()
	if len(p.roads.links) > 0 {
		var err error
		if links, err = p.roads.lab.WatchLinks(trial, Identify); err != nil {
			unwatched = err.Error()
		}
		p.roads.mu.Lock()
		p.roads.watch = links
		p.roads.mu.Unlock()
	}
	for _, s := range p.spots {
		if s.rails > 0 {
			r, err := startRails(p.kernelLinks[s.rails-1])
			if err != nil {
				failed[s.name] = err.Error()
				continue
			}
			rails[s.name] = r
		}
		if p.isEnd(s.name) || s.observer == nil { // a link's too
			continue
		}
		// The verdicts of a lab's one kernel are in the ends' accounts.
		w, err := s.observer.Begin(trial, model.DropsOff)
		if err != nil {
			failed[s.name] = err.Error()
			continue
		}
		watches[s.name] = w
		list = append(list, w)
	}
	return list, func(out fleet.Outcome) ([]seen, error) {
		var all []seen
		var errs []error
		var accounts []lab.LinkAccount
		if links != nil {
			var err error
			if accounts, err = links.Collect(); err != nil {
				unwatched = err.Error()
			}
		}
		for _, s := range p.spots {
			one := seen{spot: s, why: failed[s.name]}
			if r := rails[s.name]; r != nil {
				one.links, one.queues, one.programs, one.doubt = r.results()
			}
			if s.road > 0 && s.road <= len(accounts) {
				a := accounts[s.road-1]
				one.observation, one.links, one.doubt = p.roads.observation(s.road, a), a.Results[:], a.Doubt
			} else if s.road > 0 {
				one.why = cmp.Or(unwatched, "the lab's holder has no account of it")
			} else if s.device {
				o := p.device.now.Report()
				one.observation = &o
			} else if w := watches[s.name]; w != nil {
				o := w.Report()
				o.Mode, o.Why = model.DropsOff, ""
				for _, end := range []string{model.Sender, model.Receiver} {
					// Their verdicts cover every namespace of their kernel.
					if seen, ok := out.Observed[p.ends[end].ID]; ok && seen.Boot == o.Boot && seen.Mode != model.DropsOff {
						o.Mode = seen.Mode
					}
				}
				one.observation = &o
				errs = append(errs, w.Close())
			} else if o, ok := out.Observed[p.ends[s.name].ID]; ok {
				one.observation = &o
			} else if o, ok := out.Observed[p.ends[model.Sender].ID]; ok && s.inode != 0 {
				// The sender's watch covers its kernel, and each has one clock and one kernel.
				one.observation = &model.Observation{Boot: o.Boot, Namespace: s.inode, Mode: o.Mode, Why: o.Why}
			} else if one.why == "" {
				one.why = "its account of the trial is missing"
				if out.Cut != "" {
					one.why = out.Cut
				}
			}
			all = append(all, one)
		}
		return all, errors.Join(errs...)
	}
}

// background keeps the rates of foreign traffic that the first trial found.
type background map[string]map[string]float64

// fill learns the idle rates of a trial that measured them, and gives them to
// one that did not.
func (b background) fill(all []seen) {
	for _, s := range all {
		if s.observation == nil {
			continue
		}
		if b[s.name] == nil {
			b[s.name] = map[string]float64{}
		}
		for i := range s.observation.Counters {
			c := &s.observation.Counters[i]
			if s.observation.IdleS > 0 {
				b[s.name][c.Name] = c.IdleHz
			} else {
				c.IdleHz = b[s.name][c.Name]
			}
		}
	}
}

// nodesOf lists the path's nodes as a flow passes them.
func nodesOf(f model.Flow, all []seen) []ledger.Node {
	var nodes []ledger.Node
	for _, s := range all {
		if !s.of(f) {
			continue
		}
		nodes = append(nodes, ledger.Node{Name: s.name, Why: s.why, Observation: s.observation, In: s.before, Out: s.after,
			Queues: s.queues, Programs: s.programs})
	}
	if f.From != model.Sender {
		slices.Reverse(nodes)
		for i := range nodes {
			nodes[i].In, nodes[i].Out = nodes[i].Out, nodes[i].In
		}
	}
	return nodes
}

// addObserved says in the result how closely each node was watched, and which
// of its counters moved.
func addObserved(r *model.Result, all []seen) {
	told := map[string]bool{} // a kernel's counters of the whole host, which each of its namespaces shows
	for _, s := range all {
		if s.unobserved {
			continue
		}
		o := model.Observed{Node: s.name, Why: s.why}
		if w := s.observation; w != nil {
			o.Mode, o.Why, o.IdleS, o.Unread, o.Unsettled = w.Mode, w.Why, w.IdleS, w.Unread, w.Unsettled
			if d := w.Drops; d != nil {
				o.Unreadable, o.Overwritten, o.SitesLost, o.Missed = d.Unreadable, d.Overwritten, d.SitesLost, d.Missed
			}
			for _, c := range w.Counters {
				shared := w.Boot + " " + c.Name
				if c.Scope == "host" && w.Boot != "" && told[shared] {
					continue
				}
				if c.Whole > 0 || c.Reset {
					told[shared] = c.Scope == "host"
					c.Host = s.name
					r.Counters = append(r.Counters, c)
				}
			}
		}
		r.Observed = append(r.Observed, o)
	}
}

// advise adds to each line of a flow's ledger what would address it.
func advise(r *model.FlowResult, f model.Flow, in engine.ReceiveReport, all []seen) {
	for i := range r.Ledger.Lines {
		line := &r.Ledger.Lines[i]
		c := advice.Context{
			Host: line.Host, RatePPS: r.SendPPS, Streams: max(f.Streams, 1), PayloadBytes: f.PayloadBytes,
			BufferBytes: in.BufferBytes, TruesizeBytes: in.TruesizeBytes,
		}
		for _, s := range all {
			if s.name == line.Host && s.observation != nil {
				c.Knobs = s.observation.Knobs
			}
		}
		line.Advice = advice.For(*line, c)
	}
}

// Bounds of what one host may say of its kernel.
const (
	maxCounters = 16384
	maxKnobs    = 1024
	maxSites    = 1 << 16
	maxText     = 255
	maxUnread   = 64
)

// credible bounds an observation: the host may run another's program.
func credible(o model.Observation, flows []fleet.PlacedFlow) model.Observation {
	o.Counters = slices.Clone(o.Counters[:min(len(o.Counters), maxCounters)])
	o.Counters = slices.DeleteFunc(o.Counters, func(c model.Counter) bool {
		return len(c.Name) > maxText || len(c.Scope) > maxText || len(c.Unit) > maxText || c.Name == ""
	})
	for i := range o.Counters {
		c := &o.Counters[i]
		if !(c.IdleHz >= 0) || math.IsInf(c.IdleHz, 0) {
			c.IdleHz = 0
		}
		c.Host, c.Measure = "", min(c.Measure, c.Whole)
	}
	o.Knobs = slices.DeleteFunc(slices.Clone(o.Knobs[:min(len(o.Knobs), maxKnobs)]), func(k model.Knob) bool {
		return len(k.Name) > maxText || len(k.Value) > maxText
	})
	o.Unread = slices.Clone(o.Unread[:min(len(o.Unread), maxUnread)])
	for i := range o.Unread {
		o.Unread[i] = o.Unread[i][:min(len(o.Unread[i]), maxText)]
	}
	o.Why, o.Boot = o.Why[:min(len(o.Why), maxText)], o.Boot[:min(len(o.Boot), maxText)]
	if !(o.IdleS >= 0) || math.IsInf(o.IdleS, 0) {
		o.IdleS = 0
	}
	if o.Mode != model.DropsSeq && o.Mode != model.DropsCount {
		o.Mode = model.DropsOff
	}
	if o.Drops != nil {
		o.Drops = credibleDrops(*o.Drops, flows)
	}
	return o
}

func credibleDrops(d model.Drops, flows []fleet.PlacedFlow) *model.Drops {
	if len(d.Sites) > maxSites || slices.ContainsFunc(d.Sites, func(s model.Site) bool {
		return len(s.Reason) > maxText || len(s.Function) > maxText || len(s.Interface) > maxText
	}) {
		return nil
	}
	d.Flows = slices.DeleteFunc(slices.Clone(d.Flows), func(fd model.FlowDrops) bool {
		return !slices.ContainsFunc(flows, func(f fleet.PlacedFlow) bool {
			return f.Flow.Name == fd.Flow && len(fd.Streams) <= f.Flow.Streams && len(fd.Counts) <= maxSites
		})
	})
	return &d
}
