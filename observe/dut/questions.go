package dut

// question is a command that is run on the router once before the first trial,
// after the last one, or both. All only read.
type question struct {
	name    string
	when    string // askBefore, askAfter, or both
	lines   int    // at most
	shown   bool   // the answer stands in the report as it is
	needed  bool   // its absence is said
	command string
}

const both = askBefore + " " + askAfter

// questions in the order in which they are asked and shown. The commands' answers
// are taken as they come, for every router has other programs.
var questions = []question{
	{"release", askBefore, 1, false, true, `uname -r`},
	{"machine", askBefore, 1, false, true, `uname -m`},
	{"openwrt", askBefore, 20, false, false, `cat /etc/openwrt_release`},
	{"os", askBefore, 20, false, false, `cat /etc/os-release`},
	{"model", askBefore, 2, false, false, `cat /tmp/sysinfo/model ||
cat /proc/device-tree/model || cat /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name`},
	{"cpuinfo", askBefore, 40, false, true, `cat /proc/cpuinfo`},
	{"memory", askBefore, 1, false, true, `cat /proc/meminfo`},
	{"namespace", askBefore, 1, false, false, `readlink /proc/self/ns/net`},
	{"devices", askBefore, 512, false, false, `for d in /sys/class/net/*/device; do [ -e "$d" ] && echo "$d"; done`},
	{"governor", both, 64, false, false, `cat /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor`},
	{"steering", both, 256, false, false, `grep -H . /sys/class/net/*/queues/rx-*/rps_cpus`},

	{"top", both, 40, true, true, `has top && top -b -n1`},
	{"/proc/interrupts", both, 200, true, true, `cat /proc/interrupts`},
	{"sysctl", both, 20, true, false, `cd /proc/sys/net && grep -H . core/netdev_max_backlog \
core/netdev_budget core/netdev_budget_usecs core/default_qdisc core/rps_sock_flow_entries core/bpf_jit_enable \
ipv4/ip_forward ipv4/tcp_congestion_control \
netfilter/nf_conntrack_max netfilter/nf_conntrack_buckets netfilter/nf_conntrack_acct \
bridge/bridge-nf-call-iptables`},
	{"tc -s qdisc", both, 200, true, true, `has tc && tc -s qdisc show`},
	{"uci", both, 20, true, false, `has uci && for k in \
firewall.@defaults[0].flow_offloading firewall.@defaults[0].flow_offloading_hw \
network.globals.packet_steering network.globals.steering_flows; do v=$(uci -q get "$k") && echo "$k=$v"; done`},
	{"nft list flowtables", both, 60, true, false, `has nft && t=$(nft list flowtables) &&
echo "# nft answers" && echo "$t"`},
	{"ip link, xdp", both, 20, true, false, `has ip && ip link show | grep "[ /]xdp"`},
	// These walk the table of connections, or the switch's; hence once each.
	{"conntrack flags", askAfter, 3, true, false, `[ -r /proc/net/nf_conntrack ] &&
echo "software $(grep -c '\[OFFLOAD\]' /proc/net/nf_conntrack)" &&
echo "hardware $(grep -c '\[HW_OFFLOAD\]' /proc/net/nf_conntrack)"`},
	{"/sys/kernel/debug/ppe0/bind", askAfter, 1, true, false, `[ -r /sys/kernel/debug/ppe0/bind ] &&
grep -c . /sys/kernel/debug/ppe0/bind`},
	{"/sys/kernel/debug/hnat/hnat_entry", askAfter, 1, true, false, `[ -r /sys/kernel/debug/hnat/hnat_entry ] &&
tail -n 1 /sys/kernel/debug/hnat/hnat_entry`},
	{"dmesg", both, 40, true, true, `has dmesg && dmesg | tail -n 40`},
}
