package ledger

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"pelt/model"
)

// reading is one counter, or the sum of like ones, over a trial.
type reading struct {
	name           string
	scope, unit    string
	before, after  uint64
	whole, measure uint64
	idleHz         float64
	known          bool   // at least one such counter was read
	stray          uint64 // so many mean nothing
}

func (r reading) evidence(host, role string) model.Evidence {
	return model.Evidence{Counter: r.name, Host: host, Scope: r.scope, Unit: r.unit, Role: role, Before: r.before,
		After: r.after, Delta: r.whole}
}

// add sums like counters; the name is that of the one that moved most.
func (r reading) add(o reading) reading {
	if !o.known {
		return r
	}
	if !r.known {
		return o
	}
	if o.whole > r.whole {
		r.name, r.scope, r.unit = o.name, o.scope, o.unit
	}
	r.before, r.after = plus(r.before, o.before), plus(r.after, o.after)
	r.whole, r.measure = plus(r.whole, o.whole), plus(r.measure, o.measure)
	r.idleHz += o.idleHz
	return r
}

// less takes away what another counter counts of the same packets.
func (r reading) less(others ...reading) reading {
	for _, o := range others {
		r.whole, r.measure = minus(r.whole, o.whole), minus(r.measure, o.measure)
		r.idleHz = max(0, r.idleHz-o.idleHz)
	}
	return r
}

// capped is r, but no more than o counted.
func (r reading) capped(o reading) reading {
	r.whole, r.measure = min(r.whole, o.whole), min(r.measure, o.measure)
	return r
}

// table finds the counters of one namespace by what they count.
type table struct {
	fields  map[string]reading            // Udp.RcvbufErrors: IPv4 and IPv6 together
	own     map[string]reading            // likewise, of the flow's family alone; nil: not told apart
	devices map[string]map[string]reading // field -> interface
	qdiscs  map[string]reading            // interface -> its queues; one inside another counts the same drop
	late    map[string]reading            // interface -> of these drops, those that were to be sent too late
	inputs  map[string]reading            // interface -> clsact or ingress
	nic     map[string]reading            // interface -> what its driver calls a full ring, the largest
	xdp     map[string]reading            // interface -> dropped by XDP
	rules   reading                       // rules of the packet filter that drop
	outputs reading                       // ... on the way out
	// policers are tc actions that drop what is above a rate.
	policers reading
	// redirects are tc actions that could not hand packets to another interface.
	redirects reading
}

// Names of a driver's own counters of frames that found no room, and of those
// that look alike.
var (
	nicFull  = regexp.MustCompile(`rx.*(miss|no_?buf|nobuf|out_of_buf|no_?desc|discard|fifo|overflow|overrun|drop|no_dma)`)
	nicOther = regexp.MustCompile(`xdp|csum|checksum|vlan|pause|filter|tpa|steer|mru`)
	nicQueue = regexp.MustCompile(`rx_?(queue_?)?[0-9]+_`)
	nicXDP   = regexp.MustCompile(`xdp.*drop`)
)

// families gives counters of both address families, and those that the kernel
// keeps in a second file, one name.
var families = map[string]string{
	"Ip": "Ip", "Ip6": "Ip", "IpExt": "Ip", "Udp": "Udp", "Udp6": "Udp", "TcpExt": "TcpExt", "softnet": "softnet",
	"Icmp": "Icmp", "Icmp6": "Icmp", "arp_cache": "neighbour", "ndisc_cache": "neighbour", "conntrack": "conntrack",
}

// sees reports whether a table of the packet filter sees packets of an address family, 0 for any. The name of a counter
// or setting tells which table it is of: nft.ip6.filter.input.5.packets.
func sees(family int, name string) bool {
	switch tool, rest, _ := strings.Cut(name, "."); {
	case tool == "iptables" || strings.HasPrefix(rest, "ip."):
		return family != 6
	case tool == "ip6tables" || strings.HasPrefix(rest, "ip6."):
		return family != 4
	default:
		return !strings.HasPrefix(rest, "arp.")
	}
}

// otherFamilies are counters that packets of a family do not move. Linux counts what it finds wrong while a program
// waits for its socket as of IPv4 (net/ipv4/udp.c, __first_packet_length), among the errors, too.
var otherFamilies = map[int]func(group, name string) bool{
	4: func(group, _ string) bool { return group == "Ip6" || group == "Udp6" },
	6: func(group, name string) bool {
		return group == "Ip" || group == "IpExt" || group == "Udp" && name != "InCsumErrors"
	},
}

// newTable takes counters over the measured part, or over the whole time where nothing was measured. Rules are of packets
// of a family, 0 for any. alien are counters that the flow's packets do not move; nil: none is known to be.
func newTable(counters []model.Counter, family int, whole bool, alien func(group, name string) bool) table {
	t := table{
		fields: map[string]reading{}, devices: map[string]map[string]reading{}, qdiscs: map[string]reading{},
		late: map[string]reading{}, inputs: map[string]reading{}, nic: map[string]reading{}, xdp: map[string]reading{},
	}
	if alien != nil {
		t.own = map[string]reading{}
	}
	queues := map[string]reading{} // per-queue counters, worth something only without a total
	for _, c := range counters {
		if c.Reset {
			continue
		}
		r := reading{
			name: c.Name, scope: c.Scope, unit: c.Unit, before: c.Before, after: c.After,
			whole: c.Whole, measure: c.Measure, idleHz: c.IdleHz, known: true,
		}
		if whole {
			r.measure = r.whole
		}
		kind, rest, _ := strings.Cut(c.Name, ".")
		last := strings.LastIndexByte(rest, '.')
		switch kind {
		case "dev":
			if last > 0 {
				t.addDevice(rest[:last], rest[last+1:], r)
			}
		case "qdisc":
			t.addQdisc(rest, r)
		case "ethtool":
			if last < 0 {
				continue
			}
			dev, field := rest[:last], strings.ToLower(rest[last+1:])
			switch {
			case nicXDP.MatchString(field):
				t.xdp[dev] = t.xdp[dev].add(r)
			case !nicFull.MatchString(field) || nicOther.MatchString(field):
			case nicQueue.MatchString(field):
				queues[dev] = queues[dev].add(r)
			case !t.nic[dev].known || r.whole > t.nic[dev].whole:
				t.nic[dev] = r
			}
		case "nft", "iptables", "ip6tables":
			if !strings.HasSuffix(rest, ".packets") || !sees(family, c.Name) {
				continue
			}
			if strings.Contains(rest, ".output.") || strings.Contains(rest, ".postrouting.") {
				t.outputs = t.outputs.add(r)
			} else {
				t.rules = t.rules.add(r)
			}
		case "nfqueue": // of a queue's number
			if last >= 0 {
				key := kind + rest[last:]
				t.fields[key] = t.fields[key].add(r)
			}
		case "police":
			t.policers = t.policers.add(r)
		case "mirred":
			t.redirects = t.redirects.add(r)
		default:
			if family, ok := families[kind]; ok {
				if rest == "OutForwDatagrams" { // as IPv6 calls it
					rest = "ForwDatagrams"
				}
				key := family + "." + rest
				t.fields[key] = t.fields[key].add(r)
				if alien != nil && !alien(kind, rest) {
					t.own[key] = t.own[key].add(r)
					if rest == "InCsumErrors" && alien(kind, "InErrors") {
						t.own["Udp.InErrors"] = t.own["Udp.InErrors"].add(r)
					}
				}
			}
		}
	}
	for dev, r := range queues {
		if !t.nic[dev].known {
			t.nic[dev] = r
		}
	}
	return t
}

func (t *table) addDevice(dev, field string, r reading) {
	if t.devices[field] == nil {
		t.devices[field] = map[string]reading{}
	}
	t.devices[field][dev] = t.devices[field][dev].add(r)
}

// addQdisc takes qdisc.DEVICE.KIND.HANDLE.drops and .horizon_drops; a device's name may hold dots.
func (t *table) addQdisc(rest string, r reading) {
	parts := strings.Split(rest, ".")
	if len(parts) < 4 {
		return
	}
	dev, kind := strings.Join(parts[:len(parts)-3], "."), parts[len(parts)-3]
	switch what, old := parts[len(parts)-1], t.qdiscs[dev]; {
	case what == "horizon_drops":
		t.late[dev] = t.late[dev].add(r)
	case what != "drops":
	case kind == "clsact" || kind == "ingress":
		t.inputs[dev] = t.inputs[dev].add(r)
	case !old.known || r.whole > old.whole:
		t.qdiscs[dev] = r
	}
}

// field reads one of the namespace's counters: "Udp", "RcvbufErrors".
func (t *table) field(family, name string) reading { return t.fields[family+"."+name] }

// moved is what the flow's packets may have moved one of these by.
func (t *table) moved(family, name string) reading {
	if t.own == nil || family == "nfqueue" {
		return t.field(family, name)
	}
	return t.own[family+"."+name]
}

// device sums a field over the given interfaces; over all but loopback, if there
// are others, where none are known.
func (t *table) device(interfaces []string, field string) reading {
	return sum(t.devices[field], interfaces)
}

// unsent is what devices failed to send. A tunnel may count a packet as an error and as dropped, too: the larger counts
// (net/ipv6/ip6_tunnel.c, ip6_tnl_start_xmit).
func (t *table) unsent(interfaces []string) reading {
	larger := map[string]reading{}
	for _, field := range []string{"tx_dropped", "tx_errors"} {
		for dev, r := range t.devices[field] {
			if old := larger[dev]; !old.known || r.whole > old.whole {
				larger[dev] = r
			}
		}
	}
	return sum(larger, interfaces)
}

func (t *table) queues(interfaces []string) reading   { return sum(t.qdiscs, interfaces) }
func (t *table) classes(interfaces []string) reading  { return sum(t.inputs, interfaces) }
func (t *table) xdpDrops(interfaces []string) reading { return sum(t.xdp, interfaces) }

// ring says how many frames found no room in the receive rings. A driver tells
// the same loss under several names: the largest counts.
func (t *table) ring(interfaces []string) reading {
	var all reading
	for _, dev := range t.names(interfaces) {
		one := t.devices["rx_missed_errors"][dev]
		if one.whole == 0 {
			for _, o := range []reading{t.devices["rx_fifo_errors"][dev], t.devices["rx_over_errors"][dev],
				t.nic[dev]} {
				if o.known && o.whole > one.whole {
					one = o
				}
			}
		}
		all = all.add(one)
	}
	return all
}

// names lists the interfaces that have a receive counter, or the given ones.
func (t *table) names(interfaces []string) []string {
	if len(interfaces) > 0 {
		return interfaces
	}
	var all []string
	for _, of := range []map[string]reading{t.devices["rx_missed_errors"], t.devices["rx_fifo_errors"],
		t.devices["rx_over_errors"], t.nic} {
		for dev := range of {
			all = append(all, dev)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func sum(of map[string]reading, interfaces []string) reading {
	var all reading
	if len(interfaces) > 0 {
		for _, dev := range interfaces {
			all = all.add(of[dev])
		}
		return all
	}
	var names []string
	for dev := range of {
		if dev != "lo" {
			names = append(names, dev)
		}
	}
	slices.Sort(names) // the sum's name must not hang on the map's order
	if len(names) == 0 {
		names = append(names, "lo")
	}
	for _, dev := range names {
		all = all.add(of[dev])
	}
	return all
}

// Counters come from other hosts, which may say anything: sums stop at the top,
// differences at zero.
func plus(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

func minus(a, b uint64) uint64 { return a - min(a, b) }

func times(a uint64, by int) uint64 {
	b := uint64(max(by, 1))
	if a > math.MaxUint64/b {
		return math.MaxUint64
	}
	return a * b
}

// count turns a float into a count.
func count(f float64) uint64 {
	switch {
	case !(f > 0):
		return 0
	case f >= 1<<63:
		return 1 << 63
	}
	return uint64(f)
}
