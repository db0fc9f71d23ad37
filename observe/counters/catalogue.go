package counters

import "strings"

// Units and scopes as model.Counter has them.
const (
	namespaceScope = "namespace"
	deviceScope    = "device"
	hostScope      = "host"

	skbUnit      = "skb"
	frameUnit    = "frame"
	fragmentUnit = "fragment"
	datagramUnit = "datagram"
	eventUnit    = "event"
)

// groupTraits are what the counters of a group share, if they are not of the namespace or not as wide as the
// kernel's unsigned long.
var groupTraits = map[string]series{
	"Ip": {bits: 64}, "Ip6": {bits: 64}, "IpExt": {bits: 64}, // snmp_fold_field64
	"conntrack":   {bits: 32},
	"softnet":     {scope: hostScope, bits: 32},
	"arp_cache":   {scope: hostScope},
	"ndisc_cache": {scope: hostScope},
}

// counterRow lists counters of one or more groups, with spaces between.
type counterRow struct {
	groups, unit string
	role         role
	names        string
}

// catalogue has the counters of kernel files that may tell of a lost datagram, by group and name. InReceives counts
// buffers, and fragments singly; InDatagrams counts once for what one recvmsg took, OutDatagrams once for what one
// sendmsg gave. Kernels without OutTransmits (6.1 has none, 6.12 has) count in OutRequests only what the output hook
// let pass.
var catalogue = indexed([]counterRow{
	{"Ip Ip6", skbUnit, primary | packets, "InReceives InDelivers OutRequests OutTransmits"},
	{"Ip", skbUnit, primary | packets, "ForwDatagrams"},
	{"Ip6", skbUnit, primary | packets, "OutForwDatagrams"},
	{"Ip6", skbUnit, packets, "InMcastPkts"}, // also of groups that nobody here is in: these are not delivered
	{"Ip Ip6", skbUnit, packets, "FragOKs"},
	{"Ip Ip6", skbUnit, primary | loss,
		"InHdrErrors InAddrErrors InUnknownProtos InDiscards OutDiscards OutNoRoutes FragFails"},
	{"Ip6 IpExt", skbUnit, primary | loss, "InNoRoutes"},
	{"Ip6", skbUnit, loss, "InTooBigErrors"},
	{"Ip6 IpExt", skbUnit, loss, "InTruncatedPkts"},
	{"IpExt", skbUnit, loss, "InCsumErrors"},
	{"IpExt", eventUnit, loss, "ReasmOverlaps"},
	{"Ip Ip6", fragmentUnit, primary | packets, "ReasmReqds FragCreates"},
	{"Ip Ip6", datagramUnit, primary | packets, "ReasmOKs"},
	{"Ip Ip6", datagramUnit, primary | loss, "ReasmTimeout"},
	{"Ip Ip6", eventUnit, primary | loss, "ReasmFails"}, // once for each reassembly given up, and each bad fragment
	{"Udp Udp6", skbUnit, primary | datagrams, "InDatagrams OutDatagrams"},
	// MemErrors came with newer kernels, and does not move on 6.18.
	{"Udp Udp6", skbUnit, primary | loss, "NoPorts InErrors RcvbufErrors SndbufErrors InCsumErrors MemErrors"},
	{"Udp Udp6", skbUnit, loss, "IgnoredMulti"},
	{"Icmp Icmp6", skbUnit, 0, "InDestUnreachs OutDestUnreachs InTimeExcds OutTimeExcds InPktTooBigs OutErrors"},
	{"Icmp Icmp6", eventUnit, 0, "OutRateLimitGlobal OutRateLimitHost"},
	{"TcpExt", skbUnit, primary | loss, "IPReversePathFilter"},
	{"TcpExt", skbUnit, loss, "ArpFilter PFMemallocDrop"},
	{"TcpExt", eventUnit, 0, "ListenOverflows ListenDrops"}, // of calls that come again
	{"Tcp", eventUnit, hidden, "InSegs OutSegs RetransSegs"},
	{"softnet", skbUnit, primary | loss, "dropped"},
	{"softnet", skbUnit, loss, "flow_limit"}, // also counted as dropped
	{"softnet", eventUnit, 0, "time_squeeze received_rps"},
	{"arp_cache ndisc_cache", skbUnit, primary | loss, "unresolved_discards"},
	{"arp_cache ndisc_cache", eventUnit, loss, "table_fulls"},
	{"conntrack", skbUnit, 0, "invalid error chaintoolong"},
	{"conntrack", skbUnit, loss, "insert_failed drop"},
	{"conntrack", eventUnit, loss, "early_drop"},
})

func indexed(rows []counterRow) map[string]series {
	all := map[string]series{}
	for _, row := range rows {
		for group := range strings.FieldsSeq(row.groups) {
			for name := range strings.FieldsSeq(row.names) {
				c := groupTraits[group]
				c.name, c.unit, c.role = group+"."+name, row.unit, row.role
				if c.scope == "" {
					c.scope = namespaceScope
				}
				all[c.name] = c
			}
		}
	}
	return all
}

// linkCounter is one field of struct rtnl_link_stats64 (include/uapi/linux/if_link.h).
type linkCounter struct {
	name     string // "" if it tells of no loss
	software bool   // the kernel's receive path counts it, in buffers, whatever the device
	role     role
	column   int // of /proc/net/dev, from 0; 0 if that file does not have it
}

// linkCounters are the fields in their order; older kernels have fewer.
var linkCounters = []linkCounter{
	{"rx_packets", false, primary | packets, 1},
	{"tx_packets", false, primary | packets, 9},
	{}, {}, // bytes
	{"rx_errors", false, primary | loss, 2},
	{"tx_errors", false, primary | loss, 10},
	{"rx_dropped", true, primary | loss, 3},
	{"tx_dropped", true, primary | loss, 11},
	{}, // multicast
	{"collisions", false, 0, 13},
	{"rx_length_errors", false, loss, 0},
	{"rx_over_errors", false, loss, 0},
	{"rx_crc_errors", false, loss, 0},
	{"rx_frame_errors", false, loss, 5},
	{"rx_fifo_errors", false, loss, 4},
	{"rx_missed_errors", false, primary | loss, 0},
	{"tx_aborted_errors", false, loss, 0},
	{"tx_carrier_errors", false, loss, 14},
	{"tx_fifo_errors", false, loss, 12},
	{"tx_heartbeat_errors", false, loss, 0},
	{"tx_window_errors", false, loss, 0},
	{}, {}, // compressed
	{"rx_nohandler", true, loss, 0},         // Linux 4.6 and later
	{"rx_otherhost_dropped", true, loss, 0}, // Linux 5.19 and later
}

// softnetColumns are the columns of /proc/net/softnet_stat that are counters,
// by index from 0 (net/core/net-procfs.c, softnet_seq_show).
var softnetColumns = []struct {
	index int
	name  string
}{{1, "dropped"}, {2, "time_squeeze"}, {9, "received_rps"}, {10, "flow_limit"}}

// conntrackCounters have the name that conntrack -S prints, the column of /proc/net/stat/nf_conntrack, and the
// attribute of enum ctattr_stats_cpu (nfnetlink_conntrack.h). The last came with Linux 5.15, in the file in the place
// of delete_list (nf_conntrack_standalone.c, ct_cpu_seq_show).
var conntrackCounters = []struct {
	name, column string
	attribute    uint16
}{
	{"invalid", "invalid", 4},
	{"insert_failed", "insert_failed", 9},
	{"drop", "drop", 10},
	{"early_drop", "early_drop", 11},
	{"error", "icmp_error", 12},
	{"chaintoolong", "chainlength", 15},
}
