package counters

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pelt/model"
	"pelt/test/golden"
)

// What an OpenWrt router of the 5.15 series writes: a DSA switch with its trunk
// eth0, and fewer columns than this kernel's.
const devRouter = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:  108544    1256    0    0    0     0          0         0   108544    1256    0    0    0     0       0          0
  eth0:4294967295 4294967290    0    7    0     0          0         0 5000  600    0    0    0     0       0          0
  lan1:    9000     100    0    0    0     0          0         0     3000      30    0    2    0     0       0          0
  wan: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16
br-lan.7:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
`

func routerTexts(forwarded, nets uint32) map[string]string {
	return map[string]string{
		"/proc/net/snmp": fmt.Sprintf("Ip: Forwarding DefaultTTL InReceives ForwDatagrams\nIp: 1 64 %d %d\nUdp: InErrors\nUdp: 4294967295\n",
			uint64(forwarded)+10, forwarded),
		"/proc/net/netstat":           "TcpExt: IPReversePathFilter Other\nTcpExt: 3 4\n",
		"/proc/net/softnet_stat":      softnetLine(nets, nets, 1) + softnetLine(5, 0xffffffff, 0),
		"/proc/net/dev":               devRouter,
		"/proc/net/stat/nf_conntrack": conntrackStat,
	}
}

// mips is a router with a word of 32 bits.
var mips = Machine{32, map[string]bool{"eth0": true, "lan1": true, "wan": true}}

// TestRouters: what moved from one reading of a router to the next, and what was made anew, stands in the golden file.
func TestRouters(t *testing.T) {
	var out strings.Builder
	tell := func(name string, m Machine, from, to map[string]string) {
		a, b := m.Parse(time.Unix(1000, 0), from), m.Parse(time.Unix(1001, 0), to)
		moved, reset := map[string]uint64{}, []string(nil)
		for _, c := range Diff(Snapshot{}, a, Snapshot{}, b, 0) {
			if c.Reset {
				reset = append(reset, c.Name)
			} else if c.Whole > 0 {
				moved[c.Name] = c.Whole
			}
		}
		fmt.Fprintf(&out, "%s:\n\tmoved %v\n\tanew %v\n\tunread %v %v\n", name, moved, reset, a.Unread, b.Unread)
		type plain model.Queue // without its short form
		for _, q := range Queues(a, b, b) {
			fmt.Fprintf(&out, "\t%+v\n", plain(q))
		}
		var both Snapshots
		both.Take(model.MomentStart, a)
		both.Take(model.MomentEnd, b)
		o := model.Observation{}
		both.Describe(&o)
		for _, k := range o.Knobs {
			fmt.Fprintf(&out, "\t%s = %s\n", k.Name, k.Value)
		}
	}
	before, after := routerTexts(1000, 0xfffffffe), routerTexts(3500, 2)
	// Udp.InErrors wraps at 32 bits
	after["/proc/net/snmp"] = strings.ReplaceAll(after["/proc/net/snmp"], "4294967295", "4")
	after["/proc/net/dev"] = strings.NewReplacer("4294967295 4294967290", "0 10", "30    0    2",
		"30    0    6").Replace(devRouter)
	after["/proc/net/stat/nf_conntrack"] = strings.Replace(conntrackStat, "00000003", "00000009", 1)
	wide := Machine{64, mips.Hardware}
	tell("32 bits", mips, before, after)
	tell("64 bits, where the same is a counter made anew", wide, before, after)
	tell("no files", mips, nil, nil)
	tell("a fault", mips, nil, map[string]string{"/proc/net/softnet_stat": "cat: no\n"})

	// The queues at an interface's root and its ingress are read; those below the root count the same packets.
	const tc = `qdisc noqueue 0: dev lo root refcnt 2
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
qdisc htb 1: dev lan1 root refcnt 2 r2q 10 default 0x1 direct_packets_stat 0 direct_qlen 1000
 Sent 4200 bytes 100 pkt (dropped %[1]d, overlimits %[2]d requeues 2)
 backlog 15Kb 7p requeues 2
qdisc pfifo 8001: dev lan1 parent 1:1 limit 20p
 Sent 4200 bytes 100 pkt (dropped %[3]d, overlimits 0 requeues 0)
 backlog 15Kb 7p requeues 0
qdisc fq_codel 8003: dev lan1 parent 1:2 limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms memory_limit 4Mb ecn drop_batch 64
 Sent 4200 bytes 100 pkt (dropped %[3]d, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
  maxpacket 1442 drop_overlimit 1 new_flow_count 3 ecn_mark 0
  new_flows_len 0 old_flows_len 1
qdisc fq 8006: dev lan1 parent 1:3 limit 10000p flow_limit 100p buckets 1024 orphan_mask 1023 quantum 3028b horizon 10s horizon_drop
 Sent 4200 bytes 100 pkt (dropped %[3]d, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
  flows 2 (inactive 1 throttled 1)
  gc 0 throttled 9 latency 7.5us horizon_drops %[3]d  horizon_caps 4
qdisc cake 8004: dev wan root refcnt 2 bandwidth 50Mbit diffserv3 triple-isolate nonat nowash no-ack-filter split-gso rtt 100ms raw overhead 0
 Sent 4200 bytes 100 pkt (dropped %[3]d, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
 memory used: 128Kb of 4Mb
qdisc tbf 8005: dev eth0 root refcnt 2 rate 20Mbit burst 16Kb lat 10ms
 Sent 4200 bytes 100 pkt (dropped %[3]d, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
qdisc clsact ffff: dev wan parent ffff:fff1
 Sent 0 bytes 0 pkt (dropped %[4]d, overlimits 0 requeues 0)
qdisc tbf 8002: dev gone root refcnt 2 rate 50Kbit burst 1500b lat 400ms
 Sent 0 bytes 0 pkt (dropped 5, overlimits 0 requeues 0)
qdisc
`
	queues := func(dropped int) map[string]string {
		return map[string]string{"/proc/net/dev": devRouter,
			RouterQueues: fmt.Sprintf(tc, dropped, 2*dropped, dropped, 3*dropped)}
	}
	tell("queues", mips, queues(1), queues(11))

	const actions = `total acts 2

	action order 0:  police 0x1 rate 20Mbit burst 16Kb mtu 2Kb action drop overhead 0b
	ref 1 bind 1  installed 9 sec used 1 sec

	Action statistics:
	Sent 123 bytes 9 pkt (dropped %d, overlimits %[1]d requeues 0)
	backlog 0b 0p requeues 0

	action order 1:  police 0x2 pkts_rate 1000 pkts_burst 8 mtu 2Kb action drop overhead 0b
	Sent 123 bytes 9 pkt (dropped 9, overlimits 9 requeues 0)
total acts 2

	action order 0: mirred (Egress Redirect to device ifb0) stolen
	index 3 ref 1 bind 1 installed 9 sec used 1 sec
	Action statistics:
	Sent 123 bytes 9 pkt (dropped 0, overlimits %[1]d requeues 0)

	action order 1: mirred (Egress Mirror to device ifb1) pipe
	index 4 ref 1 bind 1 installed 9 sec used 1 sec
	Action statistics:
	Sent 123 bytes 9 pkt (dropped 0, overlimits %[1]d requeues 0)
`
	tell("a policer and a redirect", mips, map[string]string{RouterActions: fmt.Sprintf(actions, 2)},
		map[string]string{RouterActions: fmt.Sprintf(actions, 9)})

	levels := func(count, dropped int) map[string]string {
		return map[string]string{
			"/proc/sys/net/netfilter/nf_conntrack_count": fmt.Sprint(count, "\n"),
			"/proc/sys/net/netfilter/nf_conntrack_max":   "16384\n",
			RouterMoment: fmt.Sprintf(`/proc/net/netfilter/nfnetlink_queue:    5  12345     0 2 65531     %d     1        9  1
/proc/sys/net/ipv4/neigh/default/gc_thresh3:1024
/proc/sys/net/ipv6/neigh/default/gc_thresh3:none
/proc/sys/net/ipv6/conf/all/forwarding:%d
`, dropped, dropped%2),
			RouterRules: fmt.Sprintf(`table ip t {
 chain forward {
  type filter hook forward priority filter; policy accept;
  udp dport 5 counter packets %d bytes 9 queue to 5 # handle 2
  udp dport 6 counter packets %[1]d bytes 9 queue num 6 # handle 3
  udp dport 7 counter packets %[1]d bytes 9 queue flags bypass to 7 # handle 4
 }
}
# Generated by iptables-save v1.8.7 on Thu Nov 26 10:00:00 2026
*filter
[%[1]d:90] -A FORWARD -p udp -j NFQUEUE --queue-num 8
[%[1]d:90] -A FORWARD -p udp -j NFQUEUE --queue-num 9 --queue-bypass
`, dropped),
		}
	}
	tell("levels, and queues of the filter", mips, levels(16384, 2), levels(9, 7))

	// Older routers have iptables, whose rules and policies all count.
	const rules = `# Generated by iptables-save v1.8.7 on Thu Nov 26 10:00:00 2026
*filter
:INPUT ACCEPT [5:500]
:FORWARD DROP [%d:500]
:zone - [0:0]
[9:90] -A FORWARD -m comment --comment "not \" -j DROP" -j zone
[9:90] -A zone -p udp -m udp --dport 53 -j ACCEPT
[%d:80] -A zone -p udp -m udp --dport 7359 -m comment --comment !fw3 -j REJECT --reject-with icmp-port-unreachable
COMMIT
# Generated by ip6tables-save v1.8.7 on Thu Nov 26 10:00:00 2026
*raw
:PREROUTING ACCEPT [9:90]
[%d:80] -A PREROUTING -s fd00::/8 -j DROP
COMMIT
cut 7
`
	firewall := func(a, b, c int) map[string]string {
		return map[string]string{RouterRules: fmt.Sprintf(rules, a, b, c)}
	}
	tell("an older firewall", mips, firewall(1, 2, 3), firewall(11, 22, 33))
	// Frames that found no room, or are too long, are no damaged ones. Where a machine does not tell of these, nobody
	// knows which they are.
	errors := func(all int, added string) map[string]string {
		return map[string]string{"/proc/net/dev": fmt.Sprintf("  eth0: 0 0 %d 0 0 %[1]d 0 0 0 0 0 0 0 0 0 0\n", all),
			RouterMoment: added}
	}
	const of = "/sys/class/net/eth0/statistics/"
	tell("damaged frames and others", mips, errors(10, of+"rx_over_errors:4\n"+of+"rx_length_errors:1\n"),
		errors(110, of+"rx_over_errors:64\n"+of+"rx_length_errors:31\n"))
	tell("either", mips, errors(10, of+"rx_over_errors:4\n"), errors(110, of+"rx_over_errors:94\n"))
	const others = of + "rx_over_errors:4\n" + of + "rx_length_errors:1\n"
	at := func(second int64, texts map[string]string) Snapshot { return mips.Parse(time.Unix(second, 0), texts) }
	for _, c := range Diff(Snapshot{}, at(1, errors(10, others)), at(2, errors(30, "")), at(9, errors(110, others)), 0) {
		if c.Whole != 100 || c.Measure != 80 {
			t.Errorf("not asked for while packets pass: %+v", c)
		}
	}

	// A rule that comes first gives all others of its chain the next place.
	const bans = "# Generated by iptables-save v1.8.7\n*filter\n%s[900:9] -A bans -s 192.0.2.1/32 -j REJECT\n" +
		"[3:9] -A bans -s 192.0.2.2/32 -j REJECT\nCOMMIT\n"
	tell("an older firewall that gets a rule", mips, map[string]string{RouterRules: fmt.Sprintf(bans, "")},
		map[string]string{RouterRules: fmt.Sprintf(bans, "[0:0] -A bans -s 192.0.2.3/32 -j REJECT\n")})
	golden.File(t, "testdata/routers.txt", out.String())

	if s := wide.Parse(time.Unix(1, 0), before); s.Settling("eth0") == 0 || s.Settling("br-lan.7") != 0 ||
		s.Settling("lo") != 0 {
		t.Error("what has a device behind it is not told from what has none")
	}
}

// Of two readings the later one counts, unless only the earlier one tells why packets get no further.
func TestSurer(t *testing.T) {
	usable := model.Route{Kind: model.RouteUsable}
	blackhole := model.Route{Kind: model.RouteBlackhole}
	silent, gone := usable, usable
	silent.NoAnswer, gone.NoCarrier = true, true
	for _, c := range []struct{ earlier, later, want model.Route }{
		{silent, usable, silent}, {usable, silent, silent}, {silent, gone, gone}, {silent, model.Route{}, silent},
		{model.Route{}, usable, usable}, {blackhole, usable, blackhole},
	} {
		if got := Surer(c.earlier, c.later); got != c.want {
			t.Errorf("%+v, then %+v: got %+v", c.earlier, c.later, got)
		}
	}
}

// What is set at a router's interfaces is told where it keeps packets from passing.
func TestParseLinks(t *testing.T) {
	const text = `1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00 promiscuity 0
2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 xdpgeneric/id:17 qdisc noqueue state UP mode DEFAULT
    link/ether 7e:a4:ea:c6:43:59 brd ff:ff:ff:ff:ff:ff promiscuity 0  allmulti 0 minmtu 68 maxmtu 65535
    RX:  bytes packets errors dropped  missed   mcast
             9       9      9       9       9       9
    RX errors:  length    crc   frame    fifo overrun otherhost
                     1      2       3       4       5       312
3: lan1@eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 xdp qdisc noqueue master br-lan state UP mode DEFAULT
    bridge_slave state disabled priority 32 cost 2 hairpin off locked off isolated on locked off
    RX errors:  length    crc   frame    fifo overrun
                     1      2       3       4       5
4: wan: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT group default qlen 1000
    bridge_slave state forwarding priority 32 isolated off
9: nonesuch: <UP> mtu 1500 xdp qdisc noqueue
`
	before := strings.NewReplacer(" otherhost", "", "       312", "").Replace(text)
	var all Snapshots
	for m, text := range map[model.Moment]string{model.MomentStart: before, model.MomentEnd: text} {
		all.Take(m, mips.Parse(time.Unix(int64(len(m)), 0),
			map[string]string{RouterLinks: text, "/proc/net/dev": devRouter}))
	}
	o := model.Observation{Knobs: []model.HostSetting{{Name: "eth0.xdp", Value: "known"}}}
	if !all.Describe(&o) {
		t.Fatal("not described")
	}
	want := []model.HostSetting{{Name: "eth0.xdp", Value: "known"}, {Name: "lan1.xdp", Value: "native"},
		{Name: "lan1.bridge_state", Value: "disabled"}, {Name: "lan1.bridge_isolated", Value: "on"},
		{Name: "lan1.bridge_mtu", Value: "1500"}, {Name: "wan.bridge_mtu", Value: "1500"}}
	if !slices.Equal(o.Knobs, want) {
		t.Errorf("settings are %+v, want %+v", o.Knobs, want)
	}
	moved := map[string]uint64{}
	for _, c := range o.Counters {
		if strings.HasSuffix(c.Name, "otherhost_dropped") {
			moved[c.Name] = c.Whole
		}
	}
	if !maps.Equal(moved, map[string]uint64{"dev.eth0.rx_otherhost_dropped": 312}) {
		t.Errorf("moved: %v", moved)
	}
}

// A router tells of the kinds of its interfaces beside their counters, and not when the measured part begins. What a
// tunnel refuses is no damaged frame, and what a bond counts so is its ports'; of packets that were dropped it adds them.
func TestRouterKinds(t *testing.T) {
	const links = `2: eth0: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> mtu 1500 qdisc fq_codel master bond0 state UP
    link/ether 7e:a4:ea:c6:43:59 brd ff:ff:ff:ff:ff:ff promiscuity 0 minmtu 68 maxmtu 65535
    bond_slave state ACTIVE mii_status UP link_failure_count 0 perm_hwaddr 7e:a4:ea:c6:43:59 queue_id 0
3: bond0: <BROADCAST,MULTICAST,MASTER,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT group default qlen 1000
    link/ether 7e:a4:ea:c6:43:59 brd ff:ff:ff:ff:ff:ff promiscuity 0 minmtu 68 maxmtu 65535
    bond mode active-backup active_slave eth0 miimon 100 updelay 0 downdelay 0 numtxqueues 16 numrxqueues 16
4: wg0: <POINTOPOINT,NOARP,UP,LOWER_UP> mtu 1420 qdisc noqueue state UNKNOWN mode DEFAULT group default qlen 1000
    link/none  promiscuity 0 minmtu 0 maxmtu 2147483552
    wireguard addrgenmode eui64 numtxqueues 1 numrxqueues 1 gso_max_size 65536 gso_max_segs 65535
5: gre4-site@bond0: <POINTOPOINT,NOARP,UP,LOWER_UP> mtu 1476 qdisc noqueue state UNKNOWN mode DEFAULT group default
    link/gre 192.0.2.1 peer 192.0.2.2 promiscuity 0 minmtu 0 maxmtu 0
    gre remote 192.0.2.2 local 192.0.2.1 dev bond0 ttl 64 tos inherit
6: br-lan: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT group default qlen 1000
    link/ether 7e:a4:ea:c6:43:60 brd ff:ff:ff:ff:ff:ff promiscuity 0 minmtu 68 maxmtu 65535
    bridge forward_delay 0 hello_time 200 max_age 2000 ageing_time 30000 stp_state 0 priority 32767
`
	const ofBusyBox = `2: eth0: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> mtu 1500 qdisc fq_codel master bond0 qlen 1000
    link/ether 7e:a4:ea:c6:43:59 brd ff:ff:ff:ff:ff:ff
4: wg0: <POINTOPOINT,NOARP,UP,LOWER_UP> mtu 1420 qdisc noqueue qlen 1000
    link/[65534]
`
	event := func(name, kind string) string {
		return fmt.Sprintf("/sys/class/net/%s/uevent:DEVTYPE=%s\n/sys/class/net/%[1]s/uevent:INTERFACE=%[1]s\n", name, kind)
	}
	events := "/sys/class/net/eth0/uevent:INTERFACE=eth0\n" + event("bond0", "bond") + event("wg0", "wireguard") +
		event("br-lan", "bridge")
	moment := func(second int64, n int, links, moment string) Snapshot {
		dev := ""
		for _, name := range []string{"eth0", "bond0", "wg0", "gre4-site", "br-lan"} {
			dropped := map[string]int{"eth0": 50 + n, "bond0": 3 * n}[name]
			dev += fmt.Sprintf("%s: 0 9 %d %d %d %d 0 0 0 9 0 0 0 0 0 0\n", name, 3*n, dropped, n, 2*n)
		}
		return mips.Parse(time.Unix(second, 0), map[string]string{"/proc/net/dev": dev, RouterLinks: links,
			RouterMoment: moment})
	}
	check := func(links, events string, want map[string][2]uint64) {
		got := map[string][2]uint64{}
		for _, c := range Diff(Snapshot{}, moment(1, 10, links, events), moment(2, 30, "", ""),
			moment(9, 100, links, events), 0) {
			if c.Whole > 0 && !strings.HasSuffix(c.Name, ".rx_errors") {
				got[c.Name] = [2]uint64{c.Whole, c.Measure}
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("moved: %v, want %v", got, want)
		}
	}
	want := map[string][2]uint64{"dev.eth0.rx_dropped": {90, 70}, "dev.bond0.rx_dropped": {180, 140},
		"dev.eth0.rx_fifo_errors": {90, 70}, "dev.eth0.rx_frame_sum": {180, 140},
		"dev.wg0.rx_refused": {270, 210}, "dev.gre4-site.rx_refused": {270, 210},
		"dev.br-lan.rx_fifo_errors": {90, 70}, "dev.br-lan.rx_frame_errors": {180, 140}}
	check(links, "", want)
	delete(want, "dev.gre4-site.rx_refused") // its file does not tell its kind
	want["dev.gre4-site.rx_fifo_errors"], want["dev.gre4-site.rx_frame_errors"] = [2]uint64{90, 70}, [2]uint64{180, 140}
	check(ofBusyBox, events, want)
}

// Each file is read by its parser, whatever stands in it.
func FuzzFiles(f *testing.F) {
	for _, text := range []string{devRouter, "eth0:1: 1 2\n", snmpNow, snmpOld, "Ip: A\nIp: 1 2\n",
		"Ip6InReceives \t7\nUdp6RcvbufErrors \t3\n",
		softnetLine(1, 2, 3, 0, 0, 0, 0, 0, 0, 10, 11, 12, 0, 14, 15), conntrackStat, udpFile, udp6File} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := Snapshot{Taken: time.Unix(1, 0), machine: mips, links: map[int]link{}}
		for _, one := range files {
			s.parseQueues(text)
			if err := one.parse(&s, text); err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: error of several lines: %v", one.path, err)
			}
		}
		if most := (strings.Count(text, "\n") + 1) * len(files) * max(len(linkCounters),
			strings.Count(text, " ")+1); len(s.readings) > most {
			t.Errorf("%d readings of %q", len(s.readings), text)
		}
		for _, r := range s.readings {
			if group, _, _ := strings.Cut(r.name, "."); group != "dev" && strings.ContainsAny(r.name, " \t\n") {
				t.Errorf("a name with white space: %q", r.name)
			}
		}
		for _, c := range Diff(Snapshot{}, s, Snapshot{}, s, 0) {
			if c.Whole != 0 {
				t.Errorf("%+v moved between twice the same", c)
			}
		}
	})
}

// A netem that is set to lose packets is told of.
func TestNetemLoses(t *testing.T) {
	for options, want := range map[string]int{"limit 1000 loss 30%": 1, "limit 1000 loss gemodel p 1% r 9%": 1,
		"limit 1000 delay 5ms": 0} {
		s := Snapshot{links: map[int]link{7: {index: 7, name: "eth0"}}}
		s.parseQueues("qdisc netem 1: dev eth0 root refcnt 2 " + options + "\n")
		got := s.settings()
		if len(got) != want || want > 0 && got[0] != (model.HostSetting{Name: "eth0.1:.netem_loss", Value: "on"}) {
			t.Errorf("%s: %+v", options, got)
		}
	}
}
