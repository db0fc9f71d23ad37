package counters

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

// Snapshot is what the counters of one namespace showed at one moment. The zero
// value is one that was not taken. It is not changed after it was taken, so it
// may be shared.
type Snapshot struct {
	Taken  time.Time
	Unread []string // what could not be read, one line each

	readings []reading
	links    map[int]link // by interface index
	queues   []qdisc      // at the outputs of interfaces
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

// link is one network interface.
type link struct {
	index    int
	name     string
	kind     string // as ip link add type calls it; "" of hardware and of what hypervisors give
	driver   string // known only where kind does not tell
	up       bool
	loopback bool
	mtu      uint32
	txQueue  uint32
	address  string   // as it came
	xdp      string   // mode and number of an attached XDP program
	stats    []uint64 // fields as in linkCounters
	columns  bool     // stats are the columns of /proc/net/dev instead
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
	bits              int  // width, where it wraps; 64 does not
	modulo            bool // it wraps and is never made anew
	fresh             bool // its parts begin at zero, so one that appears has counted from there
	role              role
	link              int    // index of the interface it belongs to, or 0. Another one has other counters
	driver            string // the driver's own name for it
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// reading is the value of a series, or of one part of it: a processor, a socket.
type reading struct {
	*series
	part  uint64
	value uint64
}
