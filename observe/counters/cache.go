package counters

import (
	"fmt"
	"strings"
)

// cache keeps the series of counters, so that reading again makes no new names.
type cache struct {
	longBits int                           // of the kernel's unsigned long
	named    map[string]map[string]*series // by group and name, as in the catalogue
	owned    map[owner][]*series
	hardware map[string]bool // see Machine
}

// owner has counters and may come and go: an interface, a qdisc, a driver or a port.
type owner struct {
	link   int
	name   string // of the interface, or of the file that lists the ports
	kind   string
	number uint32 // handle, port, or how many statistics the driver has
}

// maxCached is how many owners are kept before all are made anew.
const maxCached = 40000

// newCache is for a kernel whose unsigned long has so many bits.
func newCache(longBits int) *cache {
	c := &cache{longBits: longBits, named: map[string]map[string]*series{}, owned: map[owner][]*series{}}
	for group, entries := range catalogue {
		c.named[group] = map[string]*series{}
		for name, e := range entries {
			c.named[group][name] = c.newSeries(group, name, e)
		}
	}
	c.named["conntrack"] = map[string]*series{}
	for _, e := range conntrackCounters {
		c.named["conntrack"][e.column] = c.newSeries("conntrack", e.name, entry{e.unit, e.role})
	}
	return c
}

// trim bounds the cache on hosts whose interfaces or sockets come and go for ever.
func (c *cache) trim() {
	if len(c.owned) > maxCached {
		clear(c.owned)
	}
}

// newSeries makes the series of a counter of a group.
func (c *cache) newSeries(group, name string, e entry) *series {
	t := groupTraits[group]
	if t.scope == "" {
		t.scope = namespaceScope
	}
	if t.bits == 0 {
		t.bits = c.longBits
	}
	name = group + "." + name
	return &series{name: name, scope: t.scope, unit: e.unit, bits: t.bits, modulo: t.modulo, role: e.role}
}

// add adds a value of a kernel file if its name is in the catalogue.
func (c *cache) add(s *Snapshot) func(group, name []byte, part, value uint64) {
	return func(group, name []byte, part, value uint64) {
		if known := c.named[string(group)][string(name)]; known != nil {
			s.readings = append(s.readings, reading{known, part, value})
		}
	}
}

// of returns the series of an owner; make is called if it was not seen before.
func (c *cache) of(o owner, make func() []*series) []*series {
	known, ok := c.owned[o]
	if !ok {
		known = make()
		c.owned[o] = known
	}
	return known
}

func frames(l link) string {
	if l.hardware() {
		return frameUnit
	}
	return skbUnit
}

// readLink adds the statistics of an interface.
func (c *cache) readLink(s *Snapshot, l link) {
	known := c.of(owner{link: l.index, name: l.name}, func() []*series {
		made := make([]*series, len(linkCounters))
		for i, e := range linkCounters {
			unit := frames(l)
			if e.software {
				unit = skbUnit
			}
			name := "dev." + l.name + "." + e.name
			made[i] = &series{
				name: name, scope: deviceScope, unit: unit, bits: c.longBits, role: e.role, link: l.index,
			}
		}
		return made
	})
	for i, e := range linkCounters {
		at := i
		if l.columns {
			at = e.column
		}
		if e.name != "" && at < len(l.stats) && (at > 0 || !l.columns) {
			s.readings = append(s.readings, reading{known[i], 0, l.stats[at]})
		}
	}
}

// readQdisc adds the statistics of a device's root or ingress qdisc.
func (c *cache) readQdisc(s *Snapshot, q qdisc) {
	l, ok := s.links[q.link]
	if !ok || q.kind == "noqueue" {
		return
	}
	if q.parent == rootHandle {
		s.queues = append(s.queues, q)
	}
	known := c.of(owner{l.index, l.name, q.kind, q.handle}, func() (made []*series) {
		for _, e := range []struct {
			name string
			entry
		}{
			{"drops", entry{skbUnit, primary | loss}}, {"overlimits", entry{eventUnit, 0}},
			{"requeues", entry{eventUnit, 0}}, {"qlen", entry{skbUnit, gauge}},
		} {
			name := "qdisc." + l.name + "." + q.name() + "." + e.name
			s := &series{name: name, scope: deviceScope, unit: e.unit, bits: 32, role: e.role, link: l.index}
			made = append(made, s)
		}
		return made
	})
	for i, v := range []uint32{q.drops, q.overlimits, q.requeues, q.queued} {
		s.readings = append(s.readings, reading{known[i], 0, uint64(v)})
	}
}

// readSocket adds the drops of a socket, by the port it is bound to.
func (c *cache) readSocket(s *Snapshot, file string, port uint16, inode, drops uint64) {
	known := c.of(owner{name: file, number: uint32(port)}, func() []*series {
		name := fmt.Sprintf("%s.%d.drops", file, port)
		return []*series{{name: name, scope: socketScope, unit: skbUnit, bits: 32, fresh: true, role: loss}}
	})
	s.readings = append(s.readings, reading{known[0], inode, drops})
}

// readDriver adds the statistics of a driver that tell of losses.
func (c *cache) readDriver(s *Snapshot, l link, all map[string]uint64) {
	known := c.of(owner{l.index, l.name, "driver", uint32(len(all))}, func() (made []*series) {
		names := make([]string, 0, len(all))
		for name := range all {
			names = append(names, name)
		}
		for _, name := range driverLosses(names) {
			made = append(made, &series{
				name: "ethtool." + l.name + "." + component(name), driver: name,
				scope: deviceScope, unit: frames(l), bits: 64, role: loss, link: l.index,
			})
		}
		return made
	})
	for _, series := range known {
		s.readings = append(s.readings, reading{series, 0, all[series.driver]})
	}
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
