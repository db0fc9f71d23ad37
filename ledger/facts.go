package ledger

import (
	"slices"
	"strconv"
	"strings"

	"pelt/model"
)

// queuedAt are the interfaces whose queues the flow's packets pass at a node: its outputs and, where its input hands
// packets to another device to be queued, that one. Only ifb devices are known to be for that.
func (v *view) queuedAt() []string {
	out := v.Out
	if len(out) == 0 || !v.table.classes(v.In).known {
		return out
	}
	for _, q := range v.Observation.Queues {
		if strings.HasPrefix(q.Interface, "ifb") && !slices.Contains(out, q.Interface) {
			out = append(slices.Clip(out), q.Interface)
		}
	}
	return out
}

// dropper is the queue of a node that dropped packets, if iface is not "" at that interface. One inside of another
// goes before that, which counts the same packets. nil if none is known.
func (v *view) dropper(iface string) (found *model.Queue) {
	at := v.queuedAt()
	switch {
	case iface != "":
		at = []string{iface}
	case len(at) == 0 && v.Observation.Interface != "":
		at = []string{v.Observation.Interface}
	}
	for i := range v.Observation.Queues {
		q := &v.Observation.Queues[i]
		if q.Dropped == 0 || len(at) > 0 && !slices.Contains(at, q.Interface) {
			continue
		}
		if found == nil || q.Inside && !found.Inside || q.Inside == found.Inside && q.Dropped > found.Dropped {
			found = q
		}
	}
	return found
}

// filtered is how many packets filters of tc may have dropped in the queues of q's interface: the outermost has classes
// and counted what none inside of it did. What found the queue of a class full that tells of none may be among them.
func (v *view) filtered(q *model.Queue) uint64 {
	all, inside := uint64(0), uint64(0)
	for _, o := range v.Observation.Queues {
		switch {
		case o.Interface != q.Interface:
		case o.Inside:
			inside = plus(inside, o.Dropped)
		case slices.Contains(model.ClassfulQueues, o.Kind):
			all = o.Dropped
		}
	}
	return minus(all, inside)
}

// neverFits reports whether the flow's packets are longer than the bucket of a queue. How long it is, is known to
// within what passes in a tick of the kernel's.
func (b *book) neverFits(q *model.Queue) bool {
	const tick = 64e-9
	most := float64(q.BurstBytes) + q.RateBPS/8*tick + 1
	return q.Kind == "tbf" && q.BurstBytes > 0 && b.in.Fragments <= 1 && float64(b.in.PacketBytes) > most
}

// Causes that more than their rows name.
const (
	longPacket = "TBF_BURST"
	netemLoss  = "NETEM_LOSS"
	// pastHorizon is the kernel's reason for packets that fq would have to hold longer than it may.
	pastHorizon = "FQ_HORIZON_LIMIT"
	policer     = "POLICER"
	redirect    = "REDIRECT"
	tunnelShut  = "TUNNEL_SHUT"
	// tunnelRefused is what a tunnel's interface did not take.
	tunnelRefused = "TUNNEL_REFUSED"
	// flowLimit is met by the packets of one flow while the backlog has room for others'.
	flowLimit       = "CPU_FLOW_LIMIT"
	fullOrFlowLimit = "CPU_BACKLOG_OR_FLOW_LIMIT"
	// wrongLength is what a card says of frames that are longer than it takes, or too short.
	wrongLength = "frame-length"
)

// inQueue reports whether a loss of this layer and cause is a queue's.
func inQueue(layer, cause string) bool {
	row := Of(layer, cause)
	return row.at == stageQdisc && slices.Contains([]string{longPacket, "QDISC_CONGESTED", "QDISC_DROP"}, row.Name)
}

// refine gives claims the cause that the facts of their host decide, where the verdict or the counter fits several.
func (b *book) refine() {
	for _, c := range b.claims {
		v := b.path.named(c.host)
		switch {
		case c.taken+c.open == 0:
		case v != nil && v.Observation != nil:
			b.refineBy(v, c)
		case b.in.TCP || b.in.Received+b.in.WarmupReceived > 0:
		case c.cause == "QDISC_DROP" && c.layer == model.LayerNetwork:
			c.cause = "QDISC_DROP_ALL" // a packet that fits into the bucket would have come through before it was full
		}
	}
}

func (b *book) refineBy(v *view, c *claim) {
	most := func(r reading) bool { return times(r.whole, max(b.in.Segments, 1)) > max(c.taken, c.open)/2 }
	kind := v.route.Kind
	switch {
	case !v.route.Refuses():
	case c.cause == "ROUTE_REFUSED", c.cause == "IP_INNOROUTES" && kind != model.RouteBlackhole: // IPv6 counts both so
		c.cause = "ROUTE_" + strings.ToUpper(string(kind))
	}
	if c.cause == "NO_SOCKET" && c.unbound > 0 && b.path.tunnelled() {
		c.cause = "NO_SOCKET_OR_TUNNEL"
	}
	udp := func(name string) bool { return v.table.field("Udp", name).known }
	if c.cause == "SOCKET_FILTER" && udp("InErrors") && !udp("MemErrors") { // before Linux 5.11
		c.cause = "SOCKET_FILTER_OR_MEMORY"
	}
	full := most(v.table.field("neighbour", "table_fulls"))
	if c.cause == "EINVAL" && full { // so send() said before Linux 6.6
		c.layer, c.cause = model.LayerSenderDevice, "NEIGH_CREATEFAIL"
		c.confidence = LessSure(c.confidence, Bounded) // the count is the whole kernel's
	}
	// Those beyond the flow limit are dropped ones, too: net/core/dev.c, enqueue_to_backlog.
	if limited := v.table.field("softnet", "flow_limit"); c.cause == "CPU_BACKLOG" && most(limited) {
		if c.cause = flowLimit; most(v.table.field("softnet", "dropped").less(limited)) {
			c.cause = fullOrFlowLimit
		}
	}
	if !inQueue(c.layer, c.cause) {
		return
	}
	q := v.dropper(c.iface)
	filtered := func() bool { // and no queue inside dropped as many
		return most(reading{whole: v.filtered(q)}) && !(q.Inside && most(reading{whole: q.Dropped}))
	}
	discards := v.table.field("Ip", "OutDiscards")
	byVerdict := c.order < bySocket && c.evidence.Scope == "packet"
	switch {
	case q == nil && c.cause == "ENOBUFS" && full:
		c.layer, c.cause = model.LayerSenderDevice, "NEIGH_CREATEFAIL"
	case q == nil && c.cause == "ENOBUFS" && b.unqueued(v):
		c.layer = model.LayerSendCall
	case q == nil:
	case (c.cause == "QDISC_DROP" || c.cause == "ENOBUFS") && b.neverFits(q):
		c.cause = longPacket
	case c.cause == "QDISC_DROP" && q.Kind == "netem" &&
		v.setting(q.Interface+"."+q.Handle+".netem_loss") != "":
		c.cause = netemLoss
	case c.cause == "QDISC_DROP" && filtered() && most(v.table.policers.less(v.table.classes(nil))): // inputs have some
		c.cause = policer
	// IP is told of a full queue, unless another interface hands the packets to that one.
	case c.cause == "QDISC_DROP" && filtered() && v == b.path.sender && v.route.Interface == q.Interface && !b.in.TCP &&
		discards.known && !most(discards):
		c.cause = "TC_EGRESS"
	case (c.cause == "QDISC_DROP" || c.cause == "ENOBUFS") && q.Kind == "fq" && most(sum(v.table.late, v.queuedAt())):
		c.cause = pastHorizon
	case (c.cause == "QDISC_DROP" && !byVerdict || c.cause == "NOT_SPECIFIED") && q.EarlyDropped > q.Dropped/2:
		c.cause = "QDISC_CONGESTED"
	}
}

// unqueued reports whether the queues of a node are known, and dropped nothing.
func (b *book) unqueued(v *view) bool {
	queues := v.table.queues(v.queuedAt())
	return queues.known && queues.whole == 0
}

// group returns the control group that bounds a node's socket memory, and its limit in bytes; 0 if none is known to.
func (v *view) group() (name string, limit uint64) {
	for _, k := range v.Observation.Knobs {
		if name, known := strings.CutPrefix(k.Name, model.GroupMemory); known {
			limit, _ = strconv.ParseUint(k.Value, 10, 64) // 0 if it is none
			return name, limit
		}
	}
	return "", 0
}

// buffers is what the flow's receiving sockets may hold, in bytes.
func (b *book) buffers() uint64 { return times(uint64(b.in.BufferBytes), max(len(b.in.Streams), 1)) }

// ofSeeker reports whether counters of the whole kernel's neighbours speak for a node. A meeting has so few packets
// that those of others would hide them, and control has found the neighbour.
func ofSeeker(b *book, v *view) bool { return v == b.seeker(v.kernel) && b.in.Way == "" }

// uncounted is the setting that tells how many rules of a chain may have dropped the flow's packets at a node and count
// none; "" if no chain has such rules, or several have.
func (b *book) uncounted(v *view) (found string) {
	hooks := "input output" // that the packets do not pass
	switch {
	case b.path.shared():
		hooks = ""
	case v == b.path.receiver:
		hooks = "forward output postrouting"
	case v == b.path.sender:
		hooks = "prerouting input forward"
	}
	for _, k := range v.Observation.Knobs {
		chain, is := strings.CutSuffix(k.Name, model.UncountedRules)
		if !is || !sees(v.family, k.Name) ||
			slices.Contains(strings.Fields(hooks), chain[strings.LastIndexByte(chain, '.')+1:]) {
			continue
		}
		if found != "" {
			return ""
		}
		found = k.Name
	}
	return found
}

// facts are the settings and levels of a line's host that decided its cause, or that limit it.
func (b *book) facts(l model.Line) (list []model.Evidence) {
	v := b.path.named(l.Host)
	if v == nil || v.Observation == nil {
		return nil
	}
	add := func(name, unit string, value uint64) *model.Evidence {
		list = append(list, model.Evidence{Counter: name, Host: v.Name, Unit: unit, Role: model.RoleFact, After: value})
		return &list[len(list)-1]
	}
	// level adds what the host tells as a setting, if it does.
	level := func(name, unit string) {
		if n, err := strconv.ParseUint(v.setting(name), 10, 64); err == nil {
			add(name, unit, n)
		}
	}
	switch {
	case l.Cause == "PROTO_MEM":
		if group, limit := v.group(); limit > 0 && limit < b.buffers() { // it may be the one that was met
			add("socket_memory_limit", "B", limit).Of = group
		}
	case l.Cause == "CONNTRACK_FULL" || l.Cause == "NETFILTER_HOOK":
		level("net.netfilter.nf_conntrack_count", "connection")
		level("net.netfilter.nf_conntrack_max", "connection")
	case l.Cause == "NEIGH_CREATEFAIL":
		cache, family := "arp_cache", "ipv4"
		if v.table.field("neighbour", "table_fulls").name == "ndisc_cache.table_fulls" {
			cache, family = "ndisc_cache", "ipv6"
		}
		level(cache+".entries", "neighbour")
		level("net."+family+".neigh.default.gc_thresh3", "neighbour")
	case l.Cause == policer:
		name := strings.TrimSuffix(v.table.policers.name, ".drops")
		level(name+".rate_bps", "bit/s")
		level(name+".burst_bytes", "B")
	case l.Cause == "NETFILTER_DROP" && b.counters(v, "nft").whole == 0:
		if rules := b.uncounted(v); rules != "" {
			level(rules, "rule")
		}
	case l.Cause == "PKT_TOO_BIG" && v.route.MTU > 0:
		add("dev."+v.route.Interface+".mtu", "B", uint64(v.route.MTU))
	case l.Cause == "NFQUEUE_UNHEARD" || l.Cause == "NFQUEUE_FULL":
		if r := b.counters(v, Of(l.Layer, l.Cause).counts); r.known {
			add(r.name, "skb", r.whole).Of = strings.Split(r.name, ".")[1]
		}
	case inQueue(l.Layer, l.Cause):
		q := v.dropper(l.Interface)
		if q == nil {
			break
		}
		var e *model.Evidence
		switch {
		case l.Cause == longPacket:
			e = add(q.Counter("burst"), "B", q.BurstBytes)
		case l.Cause == "QDISC_CONGESTED" && q.EarlyDropped > 0:
			e = add(q.Counter("early_drops"), "skb", q.EarlyDropped)
		case q.LimitBytes > 0:
			e = add(q.Counter("limit"), "B", q.LimitBytes)
		case q.LimitPackets > 0:
			e = add(q.Counter("limit"), "skb", q.LimitPackets)
		default:
			e = add(q.Counter("drops"), "skb", q.Dropped)
		}
		if e.Of, e.Interface = q.Kind, q.Interface; l.Cause == longPacket {
			add("packet", "B", uint64(b.in.PacketBytes))
		}
	}
	return list
}
