package counters

import (
	"cmp"
	"hash/fnv"
	"path"
	"time"
)

// file is a kernel file with counters.
type file struct {
	path  string // under /proc
	read  from
	parse func(c *cache, s *Snapshot, b []byte) error
}

// from says where a file is read.
type from uint8

const (
	local    from = 1 << iota // on this host, from disk
	router                    // on a router, through a shell on it
	module                    // on this host, once the kernel has a module
	first                     // only the first namespace has it, for all together
	optional                  // absent where the kernel lacks the protocol
)

// files are all kernel files with counters. What netlink tells better on this host is read on routers only; a router
// has no sockets of a test.
var files = []file{
	{"net/softnet_stat", local | router, parseSoftnetCounters},
	{"net/dev", router, parseDevCounters},
	{"net/snmp", local | router, func(c *cache, s *Snapshot, b []byte) error { return parsePairs(b, c.add(s)) }},
	{"net/snmp6", local | optional, func(c *cache, s *Snapshot, b []byte) error { return parseSNMP6(b, c.add(s)) }},
	{"net/netstat", local | router, func(c *cache, s *Snapshot, b []byte) error { return parsePairs(b, c.add(s)) }},
	{"net/udp", local, parseSocketCounters("udp")},
	{"net/udp6", local | optional, parseSocketCounters("udp6")},
	{"net/stat/nf_conntrack", router | module, parseStatOf("conntrack")},
	{"net/stat/arp_cache", local | first, parseStatOf("arp_cache")},
	{"net/stat/ndisc_cache", local | first | optional, parseStatOf("ndisc_cache")},
}

// what is the file's name in a line about it.
func (f file) what() string { return path.Base(f.path) }

// RouterFiles are the files that Parse reads, in their order.
func RouterFiles() (list []string) {
	for _, f := range files {
		if f.read&router != 0 {
			list = append(list, "/proc/"+f.path)
		}
	}
	return list
}

// Machine is what must be known of another machine to read its counters.
type Machine struct {
	LongBits int             // the width of its kernel's unsigned long, 32 or 64; 0 is that of this program
	Hardware map[string]bool // interfaces for which a device itself counts, rather than the kernel
}

// Parse makes a Snapshot of another machine's files, which Diff and Moving take like those of a Reader of this one.
// texts has the content of each of RouterFiles; one that the machine has not is empty. What is broken in a file is
// in the Snapshot's Unread, and the rest of that file is read.
//
// Two counters of /proc/net/dev are sums there: rx_dropped holds rx_missed_errors
// too, and rx_frame_errors and tx_carrier_errors hold all errors of their
// kind (net/core/net-procfs.c, dev_seq_printf_stats). On a switch both its ports and
// the trunk that joins it to the processor have a line, so a packet counts in each.
func (m Machine) Parse(taken time.Time, texts map[string][]byte) Snapshot {
	s := Snapshot{Taken: taken, links: map[int]link{}}
	c := newCache(cmp.Or(m.LongBits, longBits))
	c.hardware = m.Hardware
	for _, f := range files {
		if text := texts["/proc/"+f.path]; f.read&router != 0 && len(text) > 0 {
			if err := f.parse(c, &s, text); err != nil {
				s.Unread = append(s.Unread, f.what()+": "+err.Error())
			}
		}
	}
	return s
}

// parseDevCounters adds the interfaces of /proc/net/dev. The file gives interfaces no number, so one is made of the
// name; a link that never carried a packet counts as down.
func parseDevCounters(c *cache, s *Snapshot, b []byte) error {
	return parseDev(b, func(name []byte, values []uint64) {
		h := fnv.New32a()
		_, _ = h.Write(name)
		l := link{index: int(h.Sum32()>>1) + 1, name: string(name), kind: "unknown", stats: values, columns: true}
		l.loopback = l.name == "lo"
		if c.hardware[l.name] {
			l.kind = "" // what has a device behind it
		}
		if other, taken := s.links[l.index]; taken && other.name != l.name {
			return // two names in 2^31 that look alike: better untold than mixed up
		}
		l.up = len(values) > 1 && values[1] > 0 || len(values) > 9 && values[9] > 0 // packets in or out
		s.links[l.index] = l
		c.readLink(s, l)
	})
}

func parseSoftnetCounters(c *cache, s *Snapshot, b []byte) error {
	rows, err := parseSoftnet(b)
	for _, column := range softnetColumns {
		known := c.named["softnet"][column.name]
		for _, row := range rows {
			if column.index < row.given {
				s.readings = append(s.readings, reading{known, row.cpu, uint64(row.values[column.index])})
			}
		}
	}
	return err
}

func parseStatOf(group string) func(*cache, *Snapshot, []byte) error {
	return func(c *cache, s *Snapshot, b []byte) error { return parseStat([]byte(group), b, c.add(s)) }
}

func parseSocketCounters(file string) func(*cache, *Snapshot, []byte) error {
	return func(c *cache, s *Snapshot, b []byte) error {
		return parseSockets(b, func(port uint16, inode, drops uint64) { c.readSocket(s, file, port, inode, drops) })
	}
}

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
