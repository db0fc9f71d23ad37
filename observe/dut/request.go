package dut

import (
	"fmt"
	"strings"

	"pelt/model"
	"pelt/observe/counters"
)

const linuxSystem = "Linux" // as uname -s has it

// divider is the content of divideBy, and no line of any file of samplePaths. It
// lets one cat, one process, print all of them told apart.
const (
	divider  = linuxSystem
	divideBy = "/proc/sys/kernel/ostype"
)

// What a router is asked for.
const (
	askSystem = "uname -s"
	askSample = "sample"
	askMoment = "moment" // the sample of a moment, with what no file tells of
	askRoute  = "route"  // to addresses
	askFacts  = "facts"
)

// momentTexts are told at each moment of a trial beside the files of a sample, divided like those. A rule set may be
// long: its end is left out, and the lines of that are counted; at the begin of the measured part, when the router is
// busy, it is not asked for. Neither are counters that another file adds up: they would have gone on since that was read.
// iptables-save would list what nft has listed, and load a module where none is.
var momentTexts = [...]struct{ name, command string }{
	{counters.RouterLinks, `[ "$1" = measure ] ||
{ ip -d -s -s link show || ip link show; } | awk 'NR <= 2000 { print substr($0, 1, 800) }'`},
	{counters.RouterQueues, `has tc && queues=$(tc -s qdisc show | head -n 1000) && echo "$queues"`},
	{counters.RouterActions, `case $queues in *clsact*|*ingress*|*"qdisc ` +
		strings.Join(model.ClassfulQueues, ` "*|*"qdisc `) + ` "*)
for kind in police mirred; do tc -s actions list action $kind; done | head -n 500;; esac`},
	{counters.RouterMoment, "grep -sH . " + strings.Join(counters.MomentFiles(), " ") +
		`; [ "$1" = measure ] || grep -sHE '^([0-9]|DEVTYPE=)' ` + strings.Join(counters.RouterDevices(), " ")},
	{counters.RouterRules, `[ "$1" = measure ] || { has nft && nft -a -t list ruleset; } | some ||
if [ -e /proc/net/ip_tables_names ] || grep -q '^nf_tables ' /proc/modules
then { has iptables-save && iptables-save -c; has ip6tables-save && ip6tables-save -c; } | some; fi`},
	{counters.RouterRoute, `[ "$1" = end ] && [ "$2" ] && ( shift; ` + askRoute + ` "$@" )`},
}

// routeCommand tells the routes to its arguments, as counters.RouterRoute has it.
const routeCommand = `{ for to do echo "to $to"; for i in 1 2 3 4
do route=$(ip route get "$to" 2>&1); echo "$route"; dev=${route##* dev }
link=$(ip -d link show dev "${dev%% *}"); to=${link##* remote }; to=${to%% *}
case $link in *" remote "*);; *) break;; esac
done; done; ip neigh show | grep -E 'FAILED|INCOMPLETE'; } | some`

// setup has a function for each request: one process, cat, prints all files of a sample, told apart by the divider;
// questions are told apart by the marker.
func (m marker) setup() string {
	var b strings.Builder
	fmt.Fprintf(&b, `export LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin:/usr/bin:/bin
cd /
clocks=$(echo /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq)
zones=$(echo /sys/class/thermal/thermal_zone*/temp)
%s() { cat %s; }
some() { awk 'NR <= 1000 { print substr($0, 1, 400) } END { if (NR > 1000) print "cut " NR - 1000; exit !NR }'; }
section() { echo; echo '%s S '"$1"; }
has() { command -v "$1" >/dev/null; }
%s() {
`, askSample, strings.Join(samplePaths, " "+divideBy+" "), m, askFacts)
	for _, q := range questions {
		fmt.Fprintf(&b, "section '%s'; { %s; } | head -n %d\n", q.name, q.command, q.lines)
	}
	fmt.Fprintf(&b, "}\n%s() {\n%s\n}\n%s() {\n%s\n", askRoute, routeCommand, askMoment, askSample)
	for _, text := range momentTexts {
		fmt.Fprintf(&b, "cat %s\n%s\n", divideBy, text.command)
	}
	return b.String() + "}\n"
}

// request asks. The command's input is not the shell's, so that it takes no request for its own.
func (m marker) request(number int, what string) string {
	const format = "echo '%s'; %s </dev/null 2>/dev/null; echo; echo '%s'\n"
	return fmt.Sprintf(format, m.line("B", number), what, m.line("E", number))
}

// question is a command that is run on the router before the first trial and after the last one. All only read.
type question struct {
	name    string
	lines   int  // at most
	shown   bool // the answer stands in the report as it is
	needed  bool // its absence is said
	command string
}

// questions in the order in which they are asked and shown. The commands' answers
// are taken as they come, for every router has other programs.
var questions = []question{
	{"release", 1, false, true, `uname -r`},
	{"machine", 1, false, true, `uname -m`},
	{"openwrt", 20, false, false, `cat /etc/openwrt_release`},
	{"os", 20, false, false, `cat /etc/os-release`},
	{"model", 2, false, false, `cat /tmp/sysinfo/model ||
cat /proc/device-tree/model || cat /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name`},
	{"cpuinfo", 40, false, true, `cat /proc/cpuinfo`},
	{"memory", 1, false, true, `cat /proc/meminfo`},
	{"namespace", 1, false, false, `readlink /proc/self/ns/net`},
	{"devices", 512, false, false, `for d in /sys/class/net/*/device; do [ -e "$d" ] && echo "$d"; done`},
	{"governor", 64, false, false, `cat /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor`},
	{"steering", 256, false, false, `grep -H . /sys/class/net/*/queues/rx-*/rps_cpus`},

	{"top", 40, true, true, `has top && top -b -n1`},
	{"/proc/interrupts", 200, true, true, `cat /proc/interrupts`},
	{"sysctl", 20, true, false, `cd /proc/sys/net && grep -H . core/netdev_max_backlog \
core/netdev_budget core/netdev_budget_usecs core/default_qdisc core/rps_sock_flow_entries core/bpf_jit_enable \
ipv4/ip_forward ipv4/tcp_congestion_control \
netfilter/nf_conntrack_max netfilter/nf_conntrack_buckets netfilter/nf_conntrack_acct \
bridge/bridge-nf-call-iptables`},
	{"tc -s qdisc", 200, true, true, `has tc && tc -s qdisc show`},
	{"uci", 20, true, false, `has uci && for k in \
firewall.@defaults[0].flow_offloading firewall.@defaults[0].flow_offloading_hw \
network.globals.packet_steering network.globals.steering_flows; do v=$(uci -q get "$k") && echo "$k=$v"; done`},
	{"nft list flowtables", 60, true, false, `has nft && t=$(nft list flowtables) &&
echo "# nft answers" && echo "$t"`},
	{"ip link, xdp", 20, true, false, `has ip && ip link show | grep "[ /]xdp"`},
	// This walks the table of connections.
	{"conntrack flags", 3, true, false, `[ -r /proc/net/nf_conntrack ] &&
echo "software $(grep -c '\[OFFLOAD\]' /proc/net/nf_conntrack)" &&
echo "hardware $(grep -c '\[HW_OFFLOAD\]' /proc/net/nf_conntrack)"`},
	{"dmesg", 40, true, true, `has dmesg && dmesg | tail -n 40`},
}
