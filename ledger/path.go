package ledger

import (
	"cmp"
	"fmt"
	"slices"

	"pelt/model"
)

// view is one node of the path with what was seen of it.
type view struct {
	Node
	place   int // in travel order
	kernel  int // index of path.kernels; -1: not observed
	watched bool
	family  int         // of the flow's packets there; 0 where a tunnel of any family may carry them
	table   table       // of its counters
	route   model.Route // of the flow; its Kind is "" if it is not known
	// what IP counted as given up for one reason or another
	ipErrors reading
}

// kernel is one kernel on the path: nodes that share one share its verdicts.
type kernel struct {
	nodes []*view
	lists []*list
}

// list is what one process learned of one kernel's drops of this flow.
type list struct {
	drops  *model.Drops
	flow   model.FlowDrops
	sites  []int // index of Drops.Sites -> index of path.sites
	listed bool  // it has verdicts by sequence, not only counts
	broken string
	bogus  uint64 // verdicts with a mark that names no site
	beyond uint64 // verdicts that found no room in the list
	from   string // node that reported it
}

// site is one place where a kernel dropped packets of the flow, with the layer it means.
type site struct {
	model.Site
	kernel            int
	at                stage
	layer, host       string
	cause             string
	rank              int    // later places on the path have higher ones
	refuses           bool   // a drop there may come back to send() as ENOBUFS
	seen              uint64 // the highest count of verdicts that one list holds
	packets           uint64 // likewise of the counts, copies included
	unreadable        uint64
	warmup, fragments uint64
	told              []tally // by list
}

// tally counts verdicts of one list about one site.
type tally struct {
	missing uint64 // about sequences that are missing
	copies  uint64 // about sequences that arrived
}

// siteKey is a site of one kernel without its interface and its address, which not every process on it learns.
type siteKey struct {
	kernel int
	model.Site
}

// path is the flow's way with all that was observed along it.
type path struct {
	nodes            []*view
	kernels          []*kernel
	sites            []*site
	bySite           map[siteKey][]int
	lists            []*list
	sender, receiver *view // nil if the path does not hold it
}

func newPath(in Input) *path {
	p := &path{bySite: map[siteKey][]int{}}
	boots := map[string]int{}
	for i, n := range in.Nodes {
		v := &view{Node: n, place: i, kernel: -1}
		p.nodes = append(p.nodes, v)
		if n.Name == in.Sender && p.sender == nil {
			p.sender = v
		}
		if n.Name == in.Receiver {
			p.receiver = v
		}
		o := n.Observation
		if o == nil {
			continue
		}
		end := v == p.sender || v == p.receiver
		var alien func(group, name string) bool
		for _, r := range o.Routes {
			if r.Flow == in.Flow && in.Way != model.WayAnswers {
				v.route = r
			}
			if r.Flow == in.Flow && end && slices.Contains(untunnelled, r.Device) {
				alien = otherFamilies[in.Family]
			}
		}
		if v.family = in.Family; in.intoTunnel(n) || !end && slices.ContainsFunc(in.Nodes, in.intoTunnel) {
			v.family = 0
		}
		v.table = newTable(o.Counters, v.family, in.Way != "", alien)
		k, known := boots[o.Boot]
		if !known || o.Boot == "" {
			k = len(p.kernels)
			boots[o.Boot] = k
			p.kernels = append(p.kernels, &kernel{})
		}
		v.kernel = k
		p.kernels[k].nodes = append(p.kernels[k].nodes, v)
	}
	if p.shared() { // what passes between them passes loopback only, unless the path says otherwise
		for _, v := range []*view{p.sender, p.receiver} {
			if len(v.In) == 0 && len(v.Out) == 0 {
				v.In, v.Out = []string{"lo"}, []string{"lo"}
			}
		}
	}
	for k, one := range p.kernels {
		for _, v := range one.nodes {
			p.addList(in, k, v)
		}
		for _, v := range one.nodes {
			// A program in one namespace of a kernel sees the drops of all.
			v.watched = slices.ContainsFunc(one.lists, func(l *list) bool { return l.drops.SitesLost == 0 })
		}
	}
	for _, s := range p.sites {
		p.describe(s, in)
	}
	return p
}

// addList takes over a node's account of its kernel's drops.
func (p *path) addList(in Input, k int, v *view) {
	o := v.Observation
	if o.Drops == nil || o.Mode == model.DropsOff {
		return
	}
	l := &list{drops: o.Drops, from: v.Name}
	for _, f := range o.Drops.Flows {
		if f.Flow == in.Flow && f.Way == in.Way {
			l.flow = f
			break
		}
	}
	if slices.ContainsFunc(p.kernels[k].lists, func(other *list) bool { return sameList(l, other) }) {
		return // two ends of one process
	}
	l.listed = o.Mode != model.DropsCount && in.Way == "" && !in.TCP
	p.kernels[k].lists = append(p.kernels[k].lists, l)
	p.lists = append(p.lists, l)
	for _, s := range o.Drops.Sites {
		l.sites = append(l.sites, p.siteOf(k, s, l.sites))
	}
	for _, s := range p.sites {
		for len(s.told) < len(p.lists) {
			s.told = append(s.told, tally{})
		}
	}
	for _, m := range l.flow.Streams {
		l.beyond = plus(l.beyond, m.Unlisted)
	}
	sums := map[int]model.SiteCount{}
	for _, c := range l.flow.Counts {
		if c.Site < 0 || c.Site >= len(l.sites) {
			l.bogus = plus(l.bogus, c.Packets)
			continue
		}
		n := sums[l.sites[c.Site]]
		n.Packets, n.Unreadable = plus(n.Packets, c.Packets), plus(n.Unreadable, min(c.Unreadable, c.Packets))
		n.Warmup, n.Fragments = plus(n.Warmup, c.Warmup), plus(n.Fragments, c.Fragments)
		sums[l.sites[c.Site]] = n
	}
	for i, n := range sums { // two lists of one kernel tell of the same packets
		s := p.sites[i]
		s.packets, s.unreadable = max(s.packets, n.Packets), max(s.unreadable, n.Unreadable)
		s.warmup, s.fragments = max(s.warmup, n.Warmup), max(s.fragments, n.Fragments)
	}
}

// sameList compares what two lists say of the flow, cheap parts first.
func sameList(a, b *list) bool {
	return len(a.flow.Streams) == len(b.flow.Streams) &&
		a.drops.Overwritten == b.drops.Overwritten && a.drops.SitesLost == b.drops.SitesLost &&
		slices.Equal(a.drops.Sites, b.drops.Sites) && slices.Equal(a.flow.Counts, b.flow.Counts) &&
		slices.EqualFunc(a.flow.Streams, b.flow.Streams, func(x, y model.Marks) bool {
			return x.Packets == y.Packets && x.Unlisted == y.Unlisted && string(x.Data) == string(y.Data)
		})
}

// siteOf finds or makes the site of one kernel. listed are those of the same list so far.
func (p *path) siteOf(k int, m model.Site, listed []int) int {
	key := siteKey{k, m}
	key.Interface, key.Address = "", ""
	for _, i := range p.bySite[key] {
		s := p.sites[i]
		if s.Interface == m.Interface || (s.Interface == "" || m.Interface == "") && !slices.Contains(listed, i) {
			s.Interface, s.Address = cmp.Or(s.Interface, m.Interface), cmp.Or(s.Address, m.Address)
			return i
		}
	}
	i := len(p.sites)
	p.bySite[key] = append(p.bySite[key], i)
	p.sites = append(p.sites, &site{Site: m, kernel: k})
	return i
}

// describe says what a site means. Where the kernel lumps several causes, what is known of the host decides.
func (p *path) describe(s *site, in Input) {
	position, name, side := p.locate(s)
	s.at, s.layer, s.cause = classify(s.Reason, s.Function, side, s.Received)
	s.host = name
	end := cmp.Compare(layerPlace(s.layer), layerPlace(model.LayerNetwork))
	switch {
	case s.layer == "":
	case end < 0:
		s.host, position = p.name(p.sender, "sender"), 0
	case end > 0:
		s.host, position = p.name(p.receiver, "receiver"), len(p.nodes)-1
	}
	known := facts{passing: end == 0, device: s.Interface, packets: s.packets}
	if v := p.named(s.host); v != nil && v.Observation != nil {
		known.host = v
		known.read = func(names string) uint64 { return (&book{in: in, path: p}).counters(v, names).whole }
	}
	c, cause := find(s.Reason, s.Function, known)
	if s.cause = cause; c.at != s.at && end != 0 {
		s.at, s.layer = c.at, layerOf(c.at, []Side{SideSender, SideReceiver}[(end+1)/2], end > 0)
	}
	s.rank = 2*position*len(order) + layerPlace(s.layer)
	if s.layer == model.LayerNetwork && side != SideOther {
		s.rank += len(order) // past this end, on the way
	}
	s.refuses = slices.Contains([]stage{stageQdisc, stageClassifier, stageBacklog, stageRing, stageDevice}, s.at)
}

// moved reports whether the counters of a row say that most of the packets were lost so.
func (f facts) moved(c *Cause) bool { return f.read != nil && f.read(c.counts) > f.packets/2 }

func (f facts) always() bool { return true }

// passes reports whether packets only pass through the host.
func (f facts) passes() bool { return f.passing }

// forwards reports whether packets only pass through the host, which forwarded IPv6 all the time.
func (f facts) forwards() bool {
	return f.passing && f.host != nil && f.host.setting(model.Forwarding6Off) == "0"
}

// refuses reports whether the route is why send() failed, or why a host on the way dropped.
func (f facts) refuses() bool {
	return f.errno == "" && (f.passing || f.host == nil) || f.host != nil && f.host.route.Refuses()
}

func (f facts) wireguard() bool {
	return f.errno == "" || f.host != nil && f.host.route.Device == wireguard
}

// uncounted reports whether the output dropped packets that no queue of it counted: by noop, which a device has while
// it is down, without carrier, or while its queue is changed (net/sched/sch_generic.c, dev_deactivate).
func (f facts) uncounted() bool {
	if f.host == nil {
		return false
	}
	t, out := &f.host.table, f.outputs()
	lost := t.device(out, "tx_dropped") // as not all kernels count
	silent := f.host.down() || lost.whole/2 > t.field("Ip", "OutDiscards").whole
	return silent && t.queues(out).whole == 0
}

// changed reports whether what a queue dropped was lost for a change of the queue: none that is there counted it, the
// output had a carrier all the time, and IP was not told, as it is of a full queue, which may be gone by now.
func (f facts) changed() bool {
	if f.host == nil || f.host.down() || !f.host.table.device(f.outputs(), model.CarrierDown).known {
		return false
	}
	untold := !f.passing && f.host.table.field("Ip", "OutDiscards").whole <= f.packets/2
	return f.host.table.queues(nil).whole == 0 && (untold || f.uncounted())
}

func (f facts) outputs() []string {
	if len(f.host.Out) == 0 {
		return []string{f.device}
	}
	return f.host.Out
}

// untunnelled are the kinds of interfaces whose packets travel as they are, so that those of one family move no counter
// of the other's.
var untunnelled = []string{"device", "veth", "bridge", "vlan", "bond", "team", "macvlan", "ipvlan"}

// intoTunnel reports whether a node's route leads the flow into a tunnel, as far as is known.
func (in Input) intoTunnel(n Node) bool {
	return n.Observation != nil && slices.ContainsFunc(n.Observation.Routes, func(r model.Route) bool {
		return r.Flow == in.Flow && r.Device != "" && !slices.Contains(untunnelled, r.Device)
	})
}

// tunnels are the kinds of interfaces whose packets travel inside of UDP ones.
var tunnels = []string{"vxlan", "geneve"}

// tunnelled reports whether the sender sends through such an interface.
func (p *path) tunnelled() bool {
	return p.sender != nil && slices.Contains(tunnels, p.sender.route.Device)
}

// outside reports whether a packet came to the receiver by another interface than its tunnel's.
func (f facts) outside() bool {
	return f.host != nil && !f.passing && f.device != "" && slices.Contains(tunnels, f.host.route.Device) &&
		f.device != f.host.route.Interface
}

// untaken reports whether no protocol took the packets: the kernel adds such packets to the card's own count of dropped
// ones, and no filter of tc counted them.
func (f facts) untaken() bool {
	return f.read != nil && f.read("rx_dropped") > f.packets/2 && f.read("tc-input") <= f.packets/2
}

// countersRead reports whether IP's counters of the host are known.
func (f facts) countersRead() bool {
	return f.host != nil && f.host.table.field("Ip", "InReceives").known
}

// unread reports whether the host's counters were not read.
func (f facts) unread() bool { return f.read == nil }

// ruleOrTracking reports whether connection tracking and a rule look alike: neither counter was read, or both moved. Of
// hosts that tell their kernel only rules of nft are read, which drop elsewhere since Linux 6.7.
func (f facts) ruleOrTracking() bool {
	switch {
	case f.unread():
		return f.errno == ""
	case f.errno == "" && f.host != nil && f.host.runs(6, 7):
		return false
	}
	// A clash of two connections moves both: net/netfilter/nf_conntrack_core.c, nf_ct_resolve_clash.
	tracking := max(f.read("conntrack.drop"), f.read("conntrack.insert_failed"))
	return f.read("nft") > f.packets/2 && tracking > f.packets/2
}

func (f facts) isolated() bool { return f.host != nil && f.host.portFault() == "BRIDGE_ISOLATED" }
func (f facts) portShut() bool {
	return f.host != nil && f.host.portFault() == "BRIDGE_INGRESS_STP_STATE"
}

// setting is one of the node; "" if it is not known.
func (v *view) setting(name string) string {
	for _, k := range v.Observation.Knobs {
		if k.Name == name {
			return k.Value
		}
	}
	return ""
}

// runs reports whether the node's kernel is known to be of a version or newer.
func (v *view) runs(major, minor int) bool {
	var is [2]int
	_, err := fmt.Sscanf(v.setting(model.KernelRelease), "%d.%d", &is[0], &is[1])
	return err == nil && slices.Compare(is[:], []int{major, minor}) >= 0
}

// have reports whether all of the interfaces, one at least, have a setting.
func (v *view) have(interfaces []string, name string) bool {
	without := func(i string) bool { return v.setting(i+"."+name) == "" }
	return len(interfaces) > 0 && !slices.ContainsFunc(interfaces, without)
}

// portFault is what keeps packets from passing the node's bridge; "" if nothing is known to.
func (v *view) portFault() string {
	switch {
	case v.have(v.In, "bridge_isolated") && v.have(v.Out, "bridge_isolated"):
		return "BRIDGE_ISOLATED"
	case v.have(v.In, "bridge_state") || v.have(v.Out, "bridge_state"): // told of ports that do not forward
		return "BRIDGE_INGRESS_STP_STATE"
	}
	return ""
}

// named returns the node with a name; nil without.
func (p *path) named(host string) *view {
	for _, v := range p.nodes {
		if v.Name == host {
			return v
		}
	}
	return nil
}

// locate returns the node and the side that a site's namespace belongs to. One that is no node is called by its
// address.
func (p *path) locate(s *site) (place int, name string, side Side) {
	nodes, namespace := p.kernels[s.kernel].nodes, s.Namespace
	var of []*view
	for _, v := range nodes {
		own := v.Observation.Namespace
		if own == namespace && own != 0 || len(nodes) == 1 && (own == 0 || namespace == 0) {
			of = append(of, v)
		}
	}
	sends, receives := slices.Contains(of, p.sender), slices.Contains(of, p.receiver)
	switch {
	case sends && receives:
		return p.receiver.place, p.receiver.Name, SideBoth
	case sends:
		return p.sender.place, p.sender.Name, SideSender
	case receives:
		return p.receiver.place, p.receiver.Name, SideReceiver
	case len(of) > 0:
		return of[0].place, of[0].Name, SideOther
	case namespace == 0:
		return nodes[0].place, "", SideUnknown
	}
	switch {
	case s.Address != "":
		name = s.Address
	case slices.Contains(nodes, p.sender) && slices.Contains(nodes, p.receiver): // one name for both directions
		name = model.AnotherNamespace
	default:
		name = model.AnotherNamespace + " of " + nodes[0].Name
	}
	return nodes[0].place, name, SideOther
}

func (p *path) name(v *view, otherwise string) string {
	if v == nil {
		return otherwise
	}
	return v.Name
}

// shared reports whether the two ends live in one namespace.
func (p *path) shared() bool {
	s, r := p.sender, p.receiver
	return s != nil && r != nil && s.kernel >= 0 && s.kernel == r.kernel &&
		s.Observation.Namespace == r.Observation.Namespace && s.Observation.Namespace != 0
}

// cabled reports whether a cable is known to lead from one node to the next. Between hosts there may be others.
func cabled(v, next *view) bool { return len(v.Out) > 0 && len(next.In) > 0 }

// next returns the observed node behind v that shares its kernel, or nil.
func (p *path) next(v *view) *view {
	if i := v.place + 1; v.kernel >= 0 && i < len(p.nodes) && p.nodes[i].kernel == v.kernel {
		return p.nodes[i]
	}
	return nil
}
