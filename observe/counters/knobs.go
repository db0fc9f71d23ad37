package counters

import (
	"net"
	"strings"
)

// hostSysctls are settings of the whole namespace. Those that exist only in the
// first namespace hold for all (Documentation/admin-guide/sysctl/net.rst).
var hostSysctls = []string{
	"net.core.rmem_max",
	"net.core.wmem_max",
	"net.core.rmem_default",
	"net.core.wmem_default",
	"net.core.netdev_max_backlog",
	"net.core.netdev_budget",
	"net.core.netdev_budget_usecs",
	"net.core.dev_weight",
	"net.core.busy_poll",
	"net.core.busy_read",
	"net.core.rps_sock_flow_entries",
	"net.core.default_qdisc",
	"net.ipv4.udp_mem", // in pages
	"net.ipv4.udp_rmem_min",
	"net.ipv4.udp_wmem_min",
	"net.ipv4.ipfrag_time",
	"net.ipv4.ipfrag_high_thresh",
	"net.ipv6.ip6frag_time",
	"net.ipv6.ip6frag_high_thresh",
	"net.ipv4.conf.all.rp_filter",
	"net.ipv4.ip_forward",
	"net.ipv6.conf.all.forwarding",
	"net.netfilter.nf_conntrack_max",
	"net.netfilter.nf_conntrack_count",
}

// interfaceSysctls are settings of one interface, IF. The kernel obeys the
// greater of its rp_filter and all's.
var interfaceSysctls = []string{
	"net.ipv4.conf.IF.rp_filter",
	"net.ipv4.neigh.IF.unres_qlen_bytes",
	"net.ipv6.neigh.IF.unres_qlen_bytes",
}

// features are the offloads that change what a packet is on its way, by the
// names that the kernel gives them (net/ethtool/common.c, netdev_features_strings).
var features = []string{
	"rx-gro", "rx-gro-hw", "rx-gro-list", "rx-udp-gro-forwarding", "rx-lro", "rx-checksum", "rx-hashing", "rx-ntuple-filter",
	"tx-udp-segmentation", "tx-generic-segmentation", "tx-gso-partial", "tx-checksum-ip-generic", "tx-checksum-ipv4", "tx-checksum-ipv6",
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

// validInterface reports whether a name can be an interface's, and a path's
// component (net/core/dev.c, dev_valid_name).
func validInterface(name string) bool {
	return name != "" && len(name) < 16 && name != "." && name != ".." && !strings.ContainsAny(name, "/: \t\n\x00")
}

// sameOrEach is the value that all queues have, or each queue's.
func sameOrEach(names, values []string) string {
	each := make([]string, len(names))
	same := true
	for i, name := range names {
		each[i] = name + "=" + values[i]
		same = same && values[i] == values[0]
	}
	switch {
	case len(values) == 0:
		return ""
	case same:
		return values[0]
	}
	return strings.Join(each, " ")
}

// sameDevice reports whether an index and a link address as sysfs writes them are
// the interface's. A loopback's say nothing: all have the same.
func sameDevice(l link, index, address string) bool {
	return !l.loopback && index == decimal(uint64(l.index)) && address == net.HardwareAddr(l.address).String()
}
