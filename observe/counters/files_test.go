package counters

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
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

// shown is what moved from one reading of a router to the next.
func shown(t *testing.T, m Machine, from, to map[string]string) (moved map[string]uint64, reset []string) {
	t.Helper()
	at := time.Unix(1000, 0)
	a, b := m.Parse(at, from), m.Parse(at.Add(time.Second), to)
	if all := slices.Concat(a.Unread, b.Unread); len(all) > 0 {
		t.Errorf("unread: %q", all)
	}
	moved = map[string]uint64{}
	for _, c := range Diff(Snapshot{}, a, Snapshot{}, b, 0) {
		if c.Reset {
			reset = append(reset, c.Name)
		} else if c.Whole > 0 {
			moved[c.Name] = c.Whole
		}
	}
	return moved, reset
}

func TestParseAnotherMachinesFiles(t *testing.T) {
	before, after := routerTexts(1000, 0xfffffffe), routerTexts(3500, 2)
	after["/proc/net/snmp"] = strings.ReplaceAll(after["/proc/net/snmp"], "4294967295", "4") // Udp.InErrors wraps at 32 bits
	after["/proc/net/dev"] = strings.NewReplacer("4294967295 4294967290", "0 10", "30    0    2", "30    0    6").Replace(devRouter)
	after["/proc/net/stat/nf_conntrack"] = strings.Replace(conntrackStat, "00000003", "00000009", 1)
	moved, reset := shown(t, mips, before, after)
	want := map[string]uint64{
		"Ip.InReceives": 2500, "Ip.ForwDatagrams": 2500, "Udp.InErrors": 5, "softnet.dropped": 4,
		"dev.eth0.rx_packets": 16, "dev.lan1.tx_dropped": 4, "conntrack.drop": 6,
	}
	if !maps.Equal(moved, want) || reset != nil {
		t.Errorf("moved %v, reset %v\nwant  %v", moved, reset, want)
	}

	// On a machine of 64 bits the same is a counter made anew.
	wide := Machine{64, mips.Hardware}
	moved, reset = shown(t, wide, before, after)
	if _, there := moved["Udp.InErrors"]; there || !slices.Equal(reset, []string{"Udp.InErrors", "dev.eth0.rx_packets"}) {
		t.Errorf("64 bits: moved %v, reset %v", moved, reset)
	}

	s := wide.Parse(time.Unix(1, 0), before)
	if s.Settling("eth0") == 0 || s.Settling("br-lan.7") != 0 || s.Settling("lo") != 0 {
		t.Error("what has a device behind it is not told from what has none")
	}
	if !reflect.DeepEqual(mips.Parse(time.Unix(1, 0), nil).Unread, []string(nil)) {
		t.Error("files that are not there are faults")
	}
	if got := mips.Parse(time.Unix(1, 0), map[string]string{"/proc/net/softnet_stat": "cat: no\n"}).Unread; len(got) != 1 || !strings.HasPrefix(got[0], "softnet_stat: ") {
		t.Errorf("unread %q", got)
	}
}

// The queues at an interface's root and its ingress are read from what tc prints; those below the root count the same packets.
func TestParseQueues(t *testing.T) {
	const tc = `qdisc noqueue 0: dev lo root refcnt 2
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
qdisc htb 1: dev lan1 root refcnt 2 r2q 10 default 0x1 direct_packets_stat 0 direct_qlen 1000
 Sent 4200 bytes 100 pkt (dropped %d, overlimits %d requeues 2)
 backlog 15Kb 7p requeues 2
qdisc pfifo 8001: dev lan1 parent 1:1 limit 20p
 Sent 4200 bytes 100 pkt (dropped %d, overlimits 0 requeues 0)
 backlog 15Kb 7p requeues 0
qdisc clsact ffff: dev wan parent ffff:fff1
 Sent 0 bytes 0 pkt (dropped %d, overlimits 0 requeues 0)
qdisc tbf 8002: dev gone root refcnt 2 rate 50Kbit burst 1500b lat 400ms
 Sent 0 bytes 0 pkt (dropped 5, overlimits 0 requeues 0)
qdisc
`
	at := func(dropped int) map[string]string {
		return map[string]string{"/proc/net/dev": devRouter, RouterQueues: fmt.Sprintf(tc, dropped, 2*dropped, dropped, 3*dropped)}
	}
	moved, reset := shown(t, mips, at(1), at(11))
	want := map[string]uint64{"qdisc.lan1.htb.1:.drops": 10, "qdisc.lan1.htb.1:.overlimits": 20, "qdisc.wan.clsact.ffff:.drops": 30}
	if !maps.Equal(moved, want) || reset != nil {
		t.Errorf("moved %v, reset %v\nwant  %v", moved, reset, want)
	}
	s := mips.Parse(time.Unix(1, 0), at(1))
	if q := Queues(s, s); len(q) != 1 || q[0].Interface != "lan1" || q[0].QueuedPackets != 7 {
		t.Errorf("queues %+v", q)
	}
}

func TestInterfacesThatComeAndGo(t *testing.T) {
	at := time.Unix(1000, 0)
	one := map[string]string{"/proc/net/dev": "eth0: 1 100 0 0 0 0 0 0 1 100 0 0 0 0 0 0\n"}
	two := map[string]string{"/proc/net/dev": "ppp0: 1 7 0 0 0 0 0 0 1 9 0 0 0 0 0 0\neth0: 1 150 0 0 0 0 0 0 1 100 0 0 0 0 0 0\n"}
	byName := map[string]bool{}
	for _, c := range Diff(Snapshot{}, Machine{}.Parse(at, one), Snapshot{}, Machine{}.Parse(at, two), 0) {
		byName[c.Name] = c.Reset
		if c.Name == "dev.eth0.rx_packets" && c.Whole != 50 {
			t.Errorf("%+v: the line moved, not the interface", c)
		}
	}
	if !byName["dev.ppp0.rx_packets"] || byName["dev.eth0.rx_packets"] {
		t.Errorf("%v: want what was there at one end only as reset", byName)
	}
}

// Each file is read by its parser, whatever stands in it.
func FuzzFiles(f *testing.F) {
	for _, text := range []string{devRouter, "eth0:1: 1 2\n", snmpNow, snmpOld, "Ip: A\nIp: 1 2\n", "Ip6InReceives \t7\nUdp6RcvbufErrors \t3\n",
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
		if most := (strings.Count(text, "\n") + 1) * len(files) * max(len(linkCounters), strings.Count(text, " ")+1); len(s.readings) > most {
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
