// Package counters reads what the kernel of one host counts in one network
// namespace, and how that host is set.
//
// Kernel files, netlink answers and driver statistics come in; a Snapshot of
// all counters that may tell of a loss, and the difference of several as
// []model.Counter, go out. It changes nothing, loads no kernel module, sends no
// packet, and decides nothing: which counter explains a loss is the ledger's
// affair.
//
// Machine.Parse takes the same files as another machine wrote them, so that its
// counters bear the same names and go the same way.
//
// # Names
//
// A counter has the name that the kernel's own file, attribute or tool uses,
// after the place it stands in. The last component never holds a dot, so that an
// interface's name, which may, can be cut out.
//
//	Ip.InDiscards Udp.RcvbufErrors        /proc/net/snmp
//	Ip6.InDiscards Udp6.RcvbufErrors      /proc/net/snmp6
//	TcpExt.IPReversePathFilter            /proc/net/netstat
//	softnet.dropped                       /proc/net/softnet_stat, sum of the processors
//	arp_cache.unresolved_discards         /proc/net/stat/arp_cache of the first namespace
//	dev.eth0.rx_missed_errors             rtnetlink, IFLA_STATS64; of another machine, /proc/net/dev
//	dev.wg0.rx_refused                    of a tunnel, the sum of those that tell of damaged or missed frames
//	dev.eth0.carrier_down                 rtnetlink, IFLA_CARRIER_DOWN_COUNT
//	qdisc.eth0.tbf.1:.drops               rtnetlink, TCA_STATS2: a device's root and its ingress or clsact
//	qdisc.eth0.cake.1:.early_drops        of them, those for which there was room
//	police.1.drops                        rtnetlink: a policer of tc, by its index
//	mirred.1.overlimits                   likewise: packets that a redirect of tc could not hand over
//	nfqueue.5.queue_dropped               /proc/net/netfilter/nfnetlink_queue
//	nfqueue.5.unheard                     packets that rules sent to a queue that no program reads
//	ethtool.eth0.rx_queue_0_xdp_drops     the driver's own; a dot in its name became an underscore
//	conntrack.insert_failed               ctnetlink or /proc/net/stat/nf_conntrack
//	nft.inet.filter.input.5.packets       a rule that drops, by its handle
//	nft.inet.filter.input.policy.packets  a chain that drops what no rule of it decides
//
// After a chain that does not bear the name of the hook from which it is reached,
// that hook follows: nft.ip.filter.ufw-user.input.7.packets. A dot in a table's or
// chain's name became a colon, and one that bears the name of a hook without being
// reached from it is :output.
//
// # Units
//
// Most counters count the kernel's buffers (skb), each of which holds several
// datagrams where segments travel together. Those of hardware count frames.
package counters
