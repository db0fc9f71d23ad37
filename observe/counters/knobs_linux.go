package counters

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"pelt/internal/netns"
	"pelt/internal/nic"
	"pelt/internal/spare"
	"pelt/model"
)

// hostSysctls are the settings of the whole namespace that advice or the ledger asks for. Those that exist only in
// the first namespace hold for all (Documentation/admin-guide/sysctl/net.rst).
var hostSysctls = []string{
	"net.core.rmem_max",
	"net.core.wmem_max",
	"net.core.netdev_max_backlog",
	"net.core.netdev_budget",
	"net.core.default_qdisc",
	"net.ipv4.udp_mem", // in pages
	"net.ipv4.conf.all.rp_filter",
	"net.ipv4.ipfrag_high_thresh",
	"net.ipv6.ip6frag_high_thresh",
	"net.netfilter.nf_conntrack_max",
	"net.netfilter.nf_conntrack_count",
	"net.ipv4.neigh.default.gc_thresh3",
	"net.ipv6.neigh.default.gc_thresh3",
	model.KernelRelease,
}

// interfaceSysctls are settings of one interface, IF. The kernel obeys the
// greater of its rp_filter and all's.
var interfaceSysctls = []string{
	"net.ipv4.conf.IF.rp_filter",
	"net.ipv4.neigh.IF.unres_qlen_bytes",
	"net.ipv6.neigh.IF.unres_qlen_bytes",
}

type knobs struct {
	list []model.HostSetting
}

func (k *knobs) add(name, value string) {
	if value != "" {
		k.list = append(k.list, model.HostSetting{Name: name, Value: value})
	}
}

func (k *knobs) number(name string, n uint32) { k.add(name, decimal(uint64(n))) }

// Knobs reads the settings of the host and of one interface in the namespace
// that do runs functions in; iface may be "". What the kernel or the driver does
// not have, or does not show to this user, is left out. Sysctls bear the names
// of sysctl(8), settings of the interface come after its name: eth0.rx_ring in
// descriptors, eth0.txqueuelen in packets.
func Knobs(do func(func() error) error, iface string) []model.HostSetting {
	k := &knobs{}
	_ = do(func() error { // a namespace that cannot be entered has none
		k.sysctls(hostSysctls)
		if iface != "" {
			for _, pattern := range interfaceSysctls {
				k.sysctls([]string{sysctlName(pattern, iface)})
			}
			k.device(iface)
		}
		return nil
	})
	k.number("page_size_bytes", uint32(os.Getpagesize())) // the unit of udp_mem
	k.sysctls(hostSysctls)
	k.firstNamespace()
	k.add("cpu.governor", governor())
	if group, bytes := spare.SocketMemory(); group != "" {
		k.add(model.GroupMemory+group, decimal(bytes))
	}
	return k.list
}

// sysctls adds those that the calling thread's namespace has and that are not known yet.
func (k *knobs) sysctls(names []string) {
	for _, name := range names {
		known := slices.ContainsFunc(k.list, func(k model.HostSetting) bool { return k.Name == name })
		if b, err := os.ReadFile(sysctlPath(name)); err == nil && !known {
			k.add(name, oneLine(b))
		}
	}
}

// firstNamespace adds the sysctls that only the first namespace has.
func (k *knobs) firstNamespace() {
	first, err := netns.Open("/proc/1/ns/net")
	if err != nil {
		return // without the right to, they stay unknown
	}
	defer first.Close()
	_ = first.Do(func() error { // as above
		k.sysctls(hostSysctls)
		return nil
	})
}

// device adds what rtnetlink, the driver and sysfs tell of an interface.
func (k *knobs) device(iface string) {
	routes, err := dial(unix.NETLINK_ROUTE)
	if err != nil {
		return
	}
	defer routes.Close()
	links, _ := listLinks(routes) // empty if it fails
	i := slices.IndexFunc(links, func(l link) bool { return l.name == iface })
	if i < 0 {
		return
	}
	l := links[i]
	k.number(iface+".txqueuelen", l.txQueue)
	k.add(iface+".xdp", l.xdp)
	qdiscs, _ := listQdiscs(routes)
	for _, q := range qdiscs {
		if q.link != l.index || q.parent != rootHandle {
			continue
		}
		k.add(iface+".qdisc", q.kind)
		if q.kind == "pfifo_fast" { // it has no limit of its own (net/sched/sch_generic.c, pfifo_fast_init)
			q.limitPackets = l.txQueue
		}
		if q.limitPackets > 0 {
			k.number(iface+".qdisc_limit_packets", q.limitPackets)
		}
		if q.limitFlow > 0 {
			k.number(iface+".qdisc_flow_limit_packets", q.limitFlow)
		}
	}
	if h, err := nic.Open(); err == nil {
		for _, s := range h.Settings(iface) {
			k.add(iface+"."+s.Name, s.Value)
			if s.Max > 0 {
				k.number(iface+"."+s.Name+"_max", s.Max)
			}
		}
		h.Close()
	}
	k.add(iface+".threaded", threaded(l))
}

// threaded tells whether a thread empties the interface's ring. /sys shows the namespace it was mounted in, which may
// have another interface of that name.
func threaded(l link) string {
	file := func(name string) string {
		b, _ := os.ReadFile("/sys/class/net/" + l.name + "/" + name) // "" if it cannot be read
		return oneLine(b)
	}
	if !sameDevice(l, file("ifindex"), file("address")) {
		return ""
	}
	return file("threaded")
}

// sameDevice reports whether an index and a link address as sysfs writes them are
// the interface's. A loopback's say nothing: all have the same.
func sameDevice(l link, index, address string) bool {
	return !l.loopback && index == decimal(uint64(l.index)) && address == net.HardwareAddr(l.address).String()
}

// governor returns the processors' frequency governor, each if they differ.
func governor() string {
	var found []string
	for cpu := range runtime.NumCPU() {
		b, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", cpu))
		if err == nil && !slices.Contains(found, oneLine(b)) {
			found = append(found, oneLine(b))
		}
	}
	return strings.Join(found, " ")
}

// sysctlName is a setting's name for an interface as sysctl(8) writes it: a dot
// in the interface's name becomes a slash.
func sysctlName(pattern, iface string) string {
	return strings.Replace(pattern, "IF", strings.ReplaceAll(iface, ".", "/"), 1)
}

// sysctlPath is where a setting lies.
func sysctlPath(name string) string {
	return "/proc/sys/" + strings.NewReplacer(".", "/", "/", ".").Replace(name)
}

// oneLine is a kernel file's text with its words one space apart.
func oneLine(b []byte) string { return strings.Join(strings.Fields(string(b)), " ") }
