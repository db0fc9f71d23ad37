package lab

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

type role int

const (
	end     role = iota // sends or receives; has one link
	bridge              // forwards frames; has no address
	forward             // forwards IP packets
	nat                 // forward, and hides its first link's side behind its address on the others
)

type nodeSpec struct {
	name string
	role role
}

// linkSpec joins two nodes by their place in topologySpec.nodes.
type linkSpec struct{ a, b int }

type topologySpec struct {
	name  string
	nodes []nodeSpec // in travel order
	links []linkSpec // in travel order
	fast  bool       // its router has a fast path
}

// topologySpecs is the one table of topologies, in display order.
func topologySpecs() []topologySpec {
	chain := []linkSpec{{0, 1}, {1, 2}}
	via := func(name string, r role) []nodeSpec {
		return []nodeSpec{{"sender", end}, {name, r}, {"receiver", end}}
	}
	return []topologySpec{
		{"direct", []nodeSpec{{"sender", end}, {"receiver", end}}, []linkSpec{{0, 1}}, false},
		{"switch", via("switch", bridge), chain, false},
		{"router", via("router", forward), chain, false},
		{"nat", via("router", nat), chain, false},
		{"fast", via("router", nat), chain, true},
		star(usualReceivers),
	}
}

// Star is the topology of one sender and many receivers. As star:100 it says how many.
const Star = "star"

const (
	usualReceivers = 10
	// MaxReceivers of a star are what its switch has ports for: 1024 with the
	// sender's (BR_MAX_PORTS, net/bridge/br_private.h).
	MaxReceivers = 1000
)

func star(receivers int) topologySpec {
	t := topologySpec{name: fmt.Sprintf("%s:%d", Star, receivers),
		nodes: []nodeSpec{{"sender", end}, {"switch", bridge}}, links: []linkSpec{{0, 1}}}
	for i := range receivers {
		t.nodes = append(t.nodes, nodeSpec{fmt.Sprintf("%s%d", oneOfMany, i+1), end})
		t.links = append(t.links, linkSpec{1, 2 + i})
	}
	return t
}

// oneOfMany begins the names of a star's receivers.
const oneOfMany = "receiver-"

// many reports whether the topology is a star.
func (t topologySpec) many() bool { return strings.HasPrefix(t.name, Star+":") }

// is reports whether a node goes by a name: each of a star's receivers is a receiver, too.
func (t topologySpec) is(node int, name string) bool {
	own := t.nodes[node].name
	return own == name || t.many() && name == strings.TrimSuffix(oneOfMany, "-") && strings.HasPrefix(own, oneOfMany)
}

// Topologies lists the names of what Open can make, in display order.
func Topologies() (names []string) {
	for _, t := range topologySpecs() {
		name, _, _ := strings.Cut(t.name, ":")
		names = append(names, name)
	}
	return names
}

// IsTopology reports whether Open knows the name, without a number of receivers.
func IsTopology(name string) bool { return slices.Contains(Topologies(), name) }

// noLab says that nobody holds a lab of that name, and which topology may have been meant.
func noLab(name string) error {
	for _, t := range Topologies() {
		if alike(name, t, 1+len(t)/6) {
			return usagef("no lab named %q; did you mean lab:%s?", name, t)
		}
	}
	return usagef("no lab named %q; lab list shows those that are up, lab up makes one", name)
}

// alike reports whether so many letters at most make one word another, if each may be left out, put in or replaced.
func alike(a, b string, changes int) bool {
	switch {
	case changes < 0:
		return false
	case a == "" || b == "":
		return len(a)+len(b) <= changes
	case a[0] == b[0]:
		return alike(a[1:], b[1:], changes)
	}
	return alike(a[1:], b, changes-1) || alike(a, b[1:], changes-1) || alike(a[1:], b[1:], changes-1)
}

func findTopology(name string) (topologySpec, error) {
	base, count, counted := strings.Cut(name, ":")
	if base == Star && counted {
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 || n > MaxReceivers {
			return topologySpec{}, usagef("lab %q: want 1 to %d receivers", name, MaxReceivers)
		}
		return star(n), nil
	}
	i := slices.Index(Topologies(), name)
	if i < 0 {
		return topologySpec{}, usagef("lab %q: no such topology; there are %s", name,
			strings.Join(Topologies(), ", "))
	}
	return topologySpecs()[i], nil
}

// index is the first node that goes by a name, -1 if none does.
func (t topologySpec) index(name string) int {
	for i := range t.nodes {
		if t.is(i, name) {
			return i
		}
	}
	return -1
}

func (t topologySpec) nodeNames() []string {
	var names []string
	for _, n := range t.nodes {
		names = append(names, n.name)
	}
	return names
}

func (t topologySpec) linkName(link int) string {
	l := t.links[link]
	return t.nodes[l.a].name + "-" + t.nodes[l.b].name
}

// wayName is one direction of a link, in words.
func (t topologySpec) wayName(link, direction int) string {
	from, to := t.ends(link, direction)
	return from + " to " + to
}

// from is the node that one direction of a link leaves.
func (t topologySpec) from(link, direction int) int {
	if direction == 1 {
		return t.links[link].b
	}
	return t.links[link].a
}

// ends are the nodes that one direction of a link leads from and to.
func (t topologySpec) ends(link, direction int) (from, to string) {
	return t.nodes[t.from(link, direction)].name, t.nodes[t.from(link, 1-direction)].name
}

// isLink reports whether a link goes by a name: that of its two nodes, either first.
func (t topologySpec) isLink(l linkSpec, name string) bool {
	a, b := t.nodes[l.a].name, t.nodes[l.b].name
	return name == a+"-"+b || name == b+"-"+a
}

// beyond reports whether node lies on the b side of a link: in a chain all that come after it
// in travel order, in a star the link's receiver alone.
func (t topologySpec) beyond(link, node int) bool {
	if t.many() && link > 0 {
		return node == t.links[link].b
	}
	return node >= t.links[link].b
}

// ifaceName is the interface of a node on a link: an end has one, eth0; a
// middle node's are named after the neighbour.
func (t topologySpec) ifaceName(link, node int) string {
	if t.nodes[node].role == end {
		return "eth0"
	}
	l := t.links[link]
	return "to-" + short(t.nodes[l.a+l.b-node].name)
}

// short is a node's name in those of interfaces, which have at most 15 letters.
func short(node string) string {
	if n, many := strings.CutPrefix(node, oneOfMany); many {
		return "rx-" + n
	}
	return node
}

// listed names nodes in a message.
func listed(names []string) string {
	if len(names) > 6 {
		names = append(slices.Clone(names[:4]), "...", names[len(names)-1])
	}
	return strings.Join(names, ", ")
}

// port is one node's place on one link, and its addresses there.
type port struct {
	link, node int
	segment    int
	host       int // 1-based within the segment; 0 for a bridge
}

// ports lists every end of every link, link by link, with addresses dealt out:
// routers part the links into segments, and hosts count from 1 in travel order.
func (t topologySpec) ports() (list []port) {
	segment, hosts := 0, 0
	for i, l := range t.links {
		if r := t.nodes[l.a].role; r == forward || r == nat {
			segment, hosts = segment+1, 0
		}
		for _, n := range []int{l.a, l.b} {
			p := port{link: i, node: n, segment: segment}
			if t.nodes[n].role != bridge {
				hosts++
				p.host = hosts
			}
			list = append(list, p)
		}
	}
	return list
}

// prefixes are a port's own addresses. IPv4 comes from 198.18.0.0/15 (RFC 2544 appendix
// C.2.2: 198.18 on the first side of the device under test, 198.19 on the second), IPv6 from
// 2001:2::/48 (RFC 5180 section 8), one /64 a segment.
func (p port) prefixes() [2]netip.Prefix {
	four := netip.AddrFrom4([4]byte{198, byte(18 + p.segment), byte(p.host >> 8), byte(p.host)})
	return [2]netip.Prefix{netip.PrefixFrom(four, 16), netip.PrefixFrom(p.addr6(0, uint16(p.host)), 64)}
}

// blocks are addresses that an end has beside its own, for streams from several:
// 198.18.129.0/24 and 2001:2::1:0/112 of the first one in the first segment. Only the first 126
// hosts of a segment have some, and other nodes have none: ok is false.
func (t topologySpec) blocks(p port) (list [2]netip.Prefix, ok bool) {
	four := netip.AddrFrom4([4]byte{198, byte(18 + p.segment), byte(128 + p.host), 0})
	return [2]netip.Prefix{netip.PrefixFrom(four, 24), netip.PrefixFrom(p.addr6(uint16(p.host), 0), 112)},
		t.nodes[p.node].role == end && p.host < 127
}

func (p port) addr6(high, low uint16) netip.Addr {
	a := netip.MustParseAddr("2001:2::").As16()
	a[7] = byte(p.segment)
	binary.BigEndian.PutUint16(a[12:], high)
	binary.BigEndian.PutUint16(a[14:], low)
	return netip.AddrFrom16(a)
}

// mac is a locally administered unicast address, fixed so that neighbours can
// be told instead of asked. Bridge ports take what the kernel gives.
func (p port) mac() []byte {
	return []byte{0x02, 0x70, 0x65, byte(p.segment), byte(p.host >> 8), byte(p.host)}
}
