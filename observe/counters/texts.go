package counters

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"
)

// Texts are the kernel files of one namespace of another machine, as that machine
// wrote them. A file that it has not is empty.
type Texts struct {
	SNMP      []byte // /proc/net/snmp
	Netstat   []byte // /proc/net/netstat
	Softnet   []byte // /proc/net/softnet_stat
	Dev       []byte // /proc/net/dev
	Conntrack []byte // /proc/net/stat/nf_conntrack

	// LongBits is the width of that kernel's unsigned long, 32 or 64;
	// 0 is that of this program.
	LongBits int
	// Hardware reports whether a device itself counts for the interface, rather
	// than the kernel; nil if none does.
	Hardware func(name string) bool
}

// Parse makes a Snapshot of another machine's files, which Diff and Moving take
// like those of a Reader of this one. What is broken in a file is in the
// Snapshot's Unread, and the rest of that file is read.
//
// Two counters of /proc/net/dev are sums there: rx_dropped holds rx_missed_errors
// too, and rx_frame_errors and tx_carrier_errors hold all errors of their
// kind (net/core/net-procfs.c, dev_seq_printf_stats). On a switch both its ports and
// the trunk that joins it to the processor have a line, so a packet counts in each.
func Parse(taken time.Time, t Texts) Snapshot {
	s := Snapshot{Taken: taken, links: map[int]link{}}
	t.LongBits = cmp.Or(t.LongBits, longBits)
	c := newCacheOf(t.LongBits)
	note := func(what string, err error) {
		if err != nil {
			s.Unread = append(s.Unread, what+": "+err.Error())
		}
	}
	note("snmp", parsePairs(t.SNMP, c.addNamed(&s)))
	note("netstat", parsePairs(t.Netstat, c.addNamed(&s)))
	if len(t.Softnet) > 0 {
		rows, err := parseSoftnet(t.Softnet)
		note("softnet_stat", err)
		c.readSoftnet(&s, rows)
	}
	note("dev", parseDev(t.Dev, func(name []byte, values []uint64) { s.addDev(t, string(name), values) }))
	note("nf_conntrack", parseStat(t.Conntrack, c.addConntrack(&s)))
	return s
}

// devColumns are the columns of /proc/net/dev that have a counter, by index from 0.
var devColumns = []struct {
	index    int
	name     string
	software bool
	role     role
}{
	{1, "rx_packets", false, primary | packets},
	{2, "rx_errors", false, primary | loss},
	{3, "rx_dropped", true, primary | loss},
	{4, "rx_fifo_errors", false, loss},
	{5, "rx_frame_errors", false, loss},
	{9, "tx_packets", false, primary | packets},
	{10, "tx_errors", false, primary | loss},
	{11, "tx_dropped", true, primary | loss},
	{12, "tx_fifo_errors", false, loss},
	{13, "collisions", false, 0},
	{14, "tx_carrier_errors", false, loss},
}

// addDev adds one line of /proc/net/dev. The file gives interfaces no number, so
// one is made of the name; a link that never carried a packet counts as down.
func (s *Snapshot) addDev(t Texts, name string, values []uint64) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	l := link{index: int(h.Sum32()>>1) + 1, name: name, kind: "unknown", loopback: name == "lo", stats: values}
	if t.Hardware != nil && t.Hardware(name) {
		l.kind = "" // what has a device behind it
	}
	if other, taken := s.links[l.index]; taken && other.name != name {
		return // two names in 2^31 that look alike: better untold than mixed up
	}
	at := func(column int) uint64 {
		if column < len(values) {
			return values[column]
		}
		return 0
	}
	l.up = at(1) > 0 || at(9) > 0
	s.links[l.index] = l
	for _, column := range devColumns {
		if column.index >= len(values) {
			continue
		}
		unit := frames(l)
		if column.software {
			unit = skbUnit
		}
		known := &series{name: "dev." + name + "." + column.name, scope: deviceScope, unit: unit, bits: t.LongBits, role: column.role, link: l.index}
		s.readings = append(s.readings, reading{known, 0, values[column.index]})
	}
}

// addNamed adds a value if its name is in the catalogue.
func (c *cache) addNamed(s *Snapshot) func(group, name []byte, value uint64) {
	return func(group, name []byte, value uint64) {
		if known := c.named[string(group)][string(name)]; known != nil {
			s.readings = append(s.readings, reading{known, 0, value})
		}
	}
}

// addConntrack adds the columns of /proc/net/stat/nf_conntrack that are counters.
func (c *cache) addConntrack(s *Snapshot) func(column []byte, row, value uint64) {
	return func(column []byte, row, value uint64) {
		for _, e := range conntrackCounters {
			if string(column) == e.column {
				s.readings = append(s.readings, reading{c.single["conntrack."+e.name], row, value})
			}
		}
	}
}

// maxDevColumns is more than the 16 that /proc/net/dev has.
const maxDevColumns = 32

// parseDev reads /proc/net/dev: two lines of titles, which hold bars, then one for
// each interface. values is valid until the next.
func parseDev(b []byte, emit func(name []byte, values []uint64)) (fault error) {
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		if len(bytes.TrimSpace(line)) == 0 || bytes.IndexByte(line, '|') >= 0 {
			continue
		}
		// A name may hold a colon, as eth0:1 did; no value does.
		colon := bytes.LastIndexByte(line, ':')
		name := bytes.TrimSpace(line[:max(colon, 0)])
		if len(name) == 0 || len(name) > maxDevName {
			fault = cmp.Or(fault, fmt.Errorf("line %.60q names no interface", line))
			continue
		}
		values := make([]uint64, 0, 16)
		for rest := line[colon+1:]; len(values) < maxDevColumns; {
			var field []byte
			field, rest = cutField(rest)
			if len(field) == 0 {
				break
			}
			n, ok := number(field)
			if !ok {
				fault = cmp.Or(fault, fmt.Errorf("%.40s: %.40q is not a number", name, field))
				values = values[:0]
				break
			}
			values = append(values, n)
		}
		if len(values) > 0 {
			emit(name, slices.Clip(values))
		}
	}
	return fault
}

// maxDevName is IFNAMSIZ, a byte of which ends the name.
const maxDevName = 15

// Backlog is what /proc/net/softnet_stat tells of one processor. The counts wrap.
type Backlog struct {
	Core     int
	Dropped  uint32 // packets beyond the backlog
	Squeezed uint32 // times that work was left in net_rx_action
}

// ParseBacklog reads /proc/net/softnet_stat; lines that are broken are left out.
func ParseBacklog(softnet []byte) (out []Backlog) {
	rows, _ := parseSoftnet(softnet) // Parse tells of the fault
	for _, r := range rows {
		if r.given > 2 && r.cpu <= 1<<16 {
			out = append(out, Backlog{int(r.cpu), r.values[1], r.values[2]})
		}
	}
	return out
}
