package counters

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// cache keeps the series of what comes and goes, so that reading again makes no
// new names.
type cache struct {
	links   map[linkKey][]*series
	qdiscs  map[qdiscKey][3]*series
	queues  map[qdiscKey]*series
	sockets map[socketKey]*series
	drivers map[linkKey]driverSeries
	named   map[string]map[string]*series // proc files
	single  map[string]*series
}

type linkKey struct {
	index int
	name  string
}

type qdiscKey struct {
	linkKey
	kind   string
	handle uint32
}

type socketKey struct {
	file string
	port uint16
}

// driverSeries are the wanted statistics of one driver.
type driverSeries struct {
	names  int // statistics it had when they were chosen
	wanted map[string]*series
}

// maxCached is how many entries of one sort are kept before all are made anew.
const maxCached = 10000

func newCache() *cache { return newCacheOf(longBits) }

// newCacheOf is for a kernel whose unsigned long has so many bits.
func newCacheOf(longBits int) *cache {
	c := &cache{named: map[string]map[string]*series{}, single: map[string]*series{}}
	c.forget()
	for group, entries := range catalogue {
		bits := longBits
		if group == "Ip" || group == "Ip6" || group == "IpExt" {
			bits = 64 // snmp_fold_field64
		}
		c.named[group] = map[string]*series{}
		for name, e := range entries {
			c.named[group][name] = &series{name: group + "." + name, scope: namespaceScope, unit: e.unit, bits: bits, role: e.role}
		}
	}
	for _, column := range softnetColumns {
		name := "softnet." + column.name
		c.single[name] = &series{name: name, scope: hostScope, unit: column.unit, bits: 32, modulo: true, role: column.role}
	}
	for _, table := range []string{"arp_cache", "ndisc_cache"} {
		name := table + ".unresolved_discards"
		c.single[name] = &series{name: name, scope: hostScope, unit: skbUnit, bits: longBits, role: primary | loss}
	}
	for _, e := range conntrackCounters {
		name := "conntrack." + e.name
		c.single[name] = &series{name: name, scope: namespaceScope, unit: e.unit, bits: 32, role: e.role}
	}
	return c
}

// forget drops what belongs to things that come and go.
func (c *cache) forget() {
	c.links = map[linkKey][]*series{}
	c.qdiscs = map[qdiscKey][3]*series{}
	c.queues = map[qdiscKey]*series{}
	c.sockets = map[socketKey]*series{}
	c.drivers = map[linkKey]driverSeries{}
}

// trim bounds the cache on hosts whose interfaces or sockets come and go for ever.
func (c *cache) trim() {
	if len(c.links) > maxCached || len(c.qdiscs) > maxCached || len(c.sockets) > maxCached || len(c.drivers) > maxCached {
		c.forget()
	}
}

func frames(l link) string {
	if l.hardware() {
		return frameUnit
	}
	return skbUnit
}

// readLink adds the statistics of an interface.
func (c *cache) readLink(s *Snapshot, l link) {
	key := linkKey{l.index, l.name}
	known := c.links[key]
	if known == nil {
		known = make([]*series, len(linkCounters))
		for i, e := range linkCounters {
			if e.name == "" {
				continue
			}
			unit := frames(l)
			if e.software {
				unit = skbUnit
			}
			known[i] = &series{name: "dev." + l.name + "." + e.name, scope: deviceScope, unit: unit, bits: longBits, role: e.role, link: l.index}
		}
		c.links[key] = known
	}
	for i, v := range l.stats {
		if known[i] != nil {
			s.readings = append(s.readings, reading{known[i], 0, v})
		}
	}
}

// readQdisc adds the statistics of a device's root or ingress qdisc.
func (c *cache) readQdisc(s *Snapshot, q qdisc) {
	l, ok := s.links[q.link]
	if !ok || q.kind == "noqueue" {
		return
	}
	key := qdiscKey{linkKey{l.index, l.name}, q.kind, q.handle}
	known, ok := c.qdiscs[key]
	if !ok {
		prefix := "qdisc." + l.name + "." + q.name() + "."
		for i, e := range []struct {
			name, unit string
			role       role
		}{{"drops", skbUnit, primary | loss}, {"overlimits", eventUnit, 0}, {"requeues", eventUnit, 0}} {
			known[i] = &series{name: prefix + e.name, scope: deviceScope, unit: e.unit, bits: 32, role: e.role, link: l.index}
		}
		c.qdiscs[key] = known
		c.queues[key] = &series{name: prefix + "qlen", scope: deviceScope, unit: skbUnit, bits: 32, role: gauge, link: l.index}
	}
	for i, v := range []uint32{q.drops, q.overlimits, q.requeues} {
		s.readings = append(s.readings, reading{known[i], 0, uint64(v)})
	}
	s.readings = append(s.readings, reading{c.queues[key], 0, uint64(q.queued)})
}

// readSocket adds the drops of a socket, by the port it is bound to.
func (c *cache) readSocket(s *Snapshot, file string, port uint16, inode, drops uint64) {
	key := socketKey{file, port}
	known := c.sockets[key]
	if known == nil {
		known = &series{name: file + "." + decimal(uint64(port)) + ".drops", scope: socketScope, unit: skbUnit, bits: 32, fresh: true, role: loss}
		c.sockets[key] = known
	}
	s.readings = append(s.readings, reading{known, inode, drops})
}

// readSoftnet adds the rows of /proc/net/softnet_stat.
func (c *cache) readSoftnet(s *Snapshot, rows []softnetRow) {
	for _, column := range softnetColumns {
		known := c.single["softnet."+column.name]
		for _, row := range rows {
			if column.index < row.given {
				s.readings = append(s.readings, reading{known, row.cpu, uint64(row.values[column.index])})
			}
		}
	}
}

// readDriver adds the statistics of a driver that tell of losses.
func (c *cache) readDriver(s *Snapshot, l link, all map[string]uint64) {
	key := linkKey{l.index, l.name}
	known, ok := c.drivers[key]
	if !ok || known.names != len(all) {
		known = driverSeries{len(all), map[string]*series{}}
		names := make([]string, 0, len(all))
		for name := range all {
			names = append(names, name)
		}
		for _, name := range driverLosses(names) {
			known.wanted[name] = &series{name: "ethtool." + l.name + "." + component(name), scope: deviceScope, unit: frames(l), bits: 64, role: loss, link: l.index}
		}
		c.drivers[key] = known
	}
	for name, series := range known.wanted {
		s.readings = append(s.readings, reading{series, 0, all[name]})
	}
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

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

// readConntrack adds one processor's answer of IPCTNL_MSG_CT_GET_STATS_CPU.
func (c *cache) readConntrack(s *Snapshot, b []byte) {
	if len(b) < nfHeader {
		return
	}
	processor := uint64(binary.BigEndian.Uint16(b[2:])) // the resource of struct nfgenmsg
	for kind, v := range attributes(b[nfHeader:]) {
		for _, e := range conntrackCounters {
			if e.attribute == kind && len(v) >= 4 {
				s.readings = append(s.readings, reading{c.single["conntrack."+e.name], processor, uint64(big32(v))})
			}
		}
	}
}
