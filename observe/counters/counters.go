package counters

import (
	"cmp"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"pelt/model"
)

// Snapshot is what the counters of one namespace showed at one moment. The zero
// value is one that was not taken. It is not changed after it was taken, so it
// may be shared.
type Snapshot struct {
	Taken  time.Time
	Unread model.Reasons // what could not be read

	machine  Machine
	readings []reading
	links    map[int]link // by interface index
	queues   []qdisc      // at the outputs of interfaces
	inner    []qdisc      // inside of those
	policers []action
	heard    []uint64                     // numbers of the filter's queues that programs read
	levels   map[string]uint64            // what was in use, or may be, by name
	routes   map[netip.Addr]model.Route   // of a router
	added    map[string]map[string]uint64 // of a router's interfaces: see link
}

// Route is the route that a router has to an address; Kind is "" if it is not known.
func (s Snapshot) Route(to netip.Addr) model.Route {
	r := s.routes[to]
	for l := range maps.Values(s.links) {
		if l.name != r.Interface {
			continue
		}
		r.NoCarrier, r.MTU = r.NoCarrier || l.silent, l.mtu
		if l.kind != unknownKind {
			r.Device = l.kind
		}
	}
	return r
}

// settings are what is set at interfaces and keeps packets from passing, and what limits their rate.
func (s Snapshot) settings() (list []model.HostSetting) {
	add := func(l link, name, value string) {
		list = append(list, model.HostSetting{Name: l.name + "." + name, Value: value})
	}
	for _, i := range slices.Sorted(maps.Keys(s.links)) {
		l := s.links[i]
		if l.xdp != "" {
			add(l, "xdp", l.xdp)
		}
		if l.port != "" && l.port != portForwards {
			add(l, "bridge_state", l.port)
		}
		if l.isolated {
			add(l, "bridge_isolated", "on")
		}
		if l.port != "" && l.mtu > 0 { // a bridge drops what is longer, and counts it nowhere
			add(l, "bridge_mtu", decimal(uint64(l.mtu)))
		}
	}
	for _, q := range slices.Concat(s.queues, s.inner) {
		if q.loses {
			add(s.links[q.link], q.number()+".netem_loss", "on")
		}
	}
	for _, p := range s.policers {
		list = append(list, model.HostSetting{Name: p.name() + ".rate_bps", Value: decimal(8 * p.rate)},
			model.HostSetting{Name: p.name() + ".burst_bytes", Value: decimal(p.burst)})
	}
	return list
}

// portForwards is the state of a bridge's port that packets pass.
const portForwards = "forwarding"

// Machine is what must be known of a machine to read its counters.
type Machine struct {
	LongBits int             // the width of its kernel's unsigned long, 32 or 64; 0 is that of this program
	Hardware map[string]bool // interfaces of another machine for which a device itself counts, rather than the kernel
}

// hardwareRefresh is how old the statistics of a network card may be: drivers
// fetch them from the hardware periodically and answer with their copy
// (Documentation/networking/statistics.rst); every second or two is usual.
const hardwareRefresh = 2 * time.Second

// Settling returns how long after the last packet the statistics of the named
// interfaces may still change; without names, of all that are up. It is 0 where
// the kernel itself counts, as in virtual devices.
func (s Snapshot) Settling(interfaces ...string) time.Duration {
	for l := range maps.Values(s.links) {
		asked := slices.Contains(interfaces, l.name) || len(interfaces) == 0 && l.up
		if asked && l.hardware() {
			return hardwareRefresh
		}
	}
	return 0
}

// unknownKind is that of an interface of another machine, which has no device behind it.
const unknownKind = "unknown"

type link struct {
	index    int
	name     string
	kind     string // as ip link add type calls it; "" of hardware and of what hypervisors give
	driver   string // known only where kind does not tell
	up       bool
	loopback bool
	txQueue  uint32
	mtu      int      // 0 unknown
	master   int      // index of the interface that it is a port of, or 0
	address  string   // as it came
	xdp      string   // mode and number of an attached XDP program
	silent   bool     // it is up and has no carrier
	downs    *uint32  // how often it lost its carrier, or was set down; nil unknown
	port     string   // of a bridge: its state, as ip link calls it; "" of no port
	isolated bool     // as a port of a bridge
	stats    []uint64 // fields as in linkCounters
	columns  bool     // stats are the columns of /proc/net/dev instead
	// Of hardware of another machine: counters that those columns add to one of damaged frames. nil: it does not tell.
	added map[string]uint64
}

// cardErrors are counters of frames that never became a packet.
var cardErrors = []string{"rx_length_errors", "rx_over_errors", "rx_crc_errors", "rx_frame_errors", "rx_fifo_errors",
	"rx_missed_errors"}

// tunnels are kinds of interfaces that count the packets they refuse under these names: a source that WireGuard does
// not allow its peer is a frame error.
var tunnels = []string{"wireguard", "vxlan", "geneve", "bareudp", "gre", "gretap", "erspan", "ip6gre", "ip6gretap",
	"ip6erspan", "ipip", "sit", "ip6tnl", "vti", "vti6", "xfrm"}

// bond is a kind of interface whose counters are the sums of its ports' (drivers/net/bonding/bond_main.c,
// bond_get_stats).
const bond = "bond"

// countsApart reports whether an interface of that kind counts something else than a card's errors under their names.
func countsApart(kind string) bool { return kind == bond || slices.Contains(tunnels, kind) }

// ofKind gives a reading the name that it has by the kind of its interface. A router tells of kinds at some moments
// only, so this snapshot may be a later one. ok is false if the reading tells what others do.
func (s *Snapshot) ofKind(r reading) (named reading, ok bool) {
	l := s.links[r.link]
	dev := "dev." + l.name + "."
	i := slices.Index(cardErrors, strings.TrimPrefix(r.name, dev))
	if i >= 0 && slices.Contains(tunnels, l.kind) {
		r.name, r.part = dev+"rx_refused", uint64(i)
	}
	return r, i < 0 || l.kind != bond
}

// unit is what the device's counters count.
func (l link) unit() string {
	if l.hardware() {
		return frameUnit
	}
	return skbUnit
}

// hardware reports whether the device itself counts, rather than the kernel.
func (l link) hardware() bool {
	switch {
	case l.kind == "dsa" || l.kind == "wwan" || l.kind == "can":
		return true // made by rtnetlink kinds, and yet of hardware
	case l.kind != "" || l.loopback:
		return false
	}
	return !slices.Contains(softwareDrivers, l.driver)
}

// softwareDrivers have no kind, but count in the kernel or answer at once:
// those of hypervisors, and of virtual devices on kernels that do not tell their kind.
var softwareDrivers = []string{
	"virtio_net", "vif", "hv_netvsc", "vmxnet3", "ibmveth", "tun", "veth", "bridge", "dummy", "bonding",
}

// role says what a counter is for.
type role uint8

const (
	primary   role = 1 << iota // returned even if it did not move
	loss                       // moves only if a packet is lost
	datagrams                  // moves with the test's datagrams, and seldom else
	packets                    // moves with any packet, TCP's as well
	gauge                      // a level: not returned
	hidden                     // only for Moving: not returned
)

// series is one counter; a counter kept in parts has a reading for each.
type series struct {
	name, scope, unit string
	bits              int  // width, where it wraps; 64 does not; 0: that of the kernel's unsigned long
	fresh             bool // its parts begin at zero, so one that appears has counted from there
	role              role
	link              int // index of the interface it belongs to, or 0. Another one has other counters
}

// reading is the value of a series, or of one part of it: a processor, a queue of the filter.
type reading struct {
	series
	part  uint64
	value uint64
}

func (s *Snapshot) add(c series, part, value uint64) {
	if c.bits == 0 {
		c.bits = cmp.Or(s.machine.LongBits, strconv.IntSize)
	}
	s.readings = append(s.readings, reading{c, part, value})
}

var errChanging = errors.New("the list kept changing while it was read")

func (s *Snapshot) lacks(what string, err error) {
	why := model.Reason{Code: model.Unread, Name: what, Text: model.SystemSaid(err)}
	switch {
	case errors.Is(err, errChanging):
		why.Of = model.Reasons{{Code: model.KeptChanging}}
	case why.Text == "": // what was read is strange
		why.Of = model.Reasons{{Code: model.NotUnderstood}}
	}
	s.Unread = append(s.Unread, why)
}

// addNamed adds a counter of a kernel file if it is in the catalogue.
func (s *Snapshot) addNamed(group, name string, part, value uint64) {
	if c, known := catalogue[group+"."+name]; known {
		s.add(c, part, value)
	}
}

func (s *Snapshot) addLink(l link) {
	s.links[l.index] = l
	for i, e := range linkCounters {
		at := i
		if l.columns {
			at = e.column
		}
		if e.name == "" || at >= len(l.stats) || l.columns && at == 0 {
			continue
		}
		name, unit, value := e.name, l.unit(), l.stats[at]
		if e.software {
			unit = skbUnit
		}
		if name == "rx_frame_errors" && l.columns && l.hardware() {
			if name = "rx_frame_sum"; len(l.added) == len(addedErrors) {
				name = e.name
				for n := range maps.Values(l.added) {
					value -= min(value, n)
				}
			}
		}
		s.add(series{name: "dev." + l.name + "." + name, scope: deviceScope, unit: unit, role: e.role,
			link: l.index}, 0, value)
	}
	for _, name := range addedErrors {
		if n, known := l.added[name]; known {
			s.add(series{name: "dev." + l.name + "." + name, scope: deviceScope, unit: l.unit(), role: loss,
				link: l.index}, 0, n)
		}
	}
	if l.downs != nil {
		s.add(series{name: "dev." + l.name + "." + model.CarrierDown, scope: deviceScope, unit: eventUnit, bits: 32,
			role: primary, link: l.index}, 0, uint64(*l.downs))
	}
}

// addQdisc adds the statistics of a device's root or ingress qdisc.
func (s *Snapshot) addQdisc(q qdisc) {
	l, ok := s.links[q.link]
	if !ok || q.kind == "noqueue" {
		return
	}
	if q.parent == rootHandle {
		s.queues = append(s.queues, q)
	}
	for _, e := range []struct {
		name, unit string
		role       role
		value      uint32
	}{
		{"drops", skbUnit, primary | loss, q.drops}, {"early_drops", skbUnit, 0, q.early},
		{"horizon_drops", skbUnit, 0, q.late}, {"overlimits", eventUnit, 0, q.overlimits},
		{"requeues", eventUnit, 0, q.requeues}, {"qlen", skbUnit, gauge, q.queued},
	} {
		name := "qdisc." + l.name + "." + q.name() + "." + e.name
		s.add(series{name: name, scope: deviceScope, unit: e.unit, bits: 32, role: e.role, link: l.index}, 0,
			uint64(e.value))
	}
}

// addDriver adds a statistic of an interface's driver; what its name has that a counter's may not is left out.
func (s *Snapshot) addDriver(l link, name string, value uint64) {
	name = "ethtool." + l.name + "." + component(name)
	s.add(series{name: name, scope: deviceScope, unit: l.unit(), bits: 64, role: loss, link: l.index}, 0, value)
}

// component makes a driver's name one component of a counter's name.
func component(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '.' || r == ' ':
			return '_'
		case r < '!' || r > '~':
			return -1
		}
		return r
	}, name)
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }
