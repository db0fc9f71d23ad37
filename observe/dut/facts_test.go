package dut

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pelt/observe/counters"
	"pelt/test/golden"
)

// openwrt is what an OpenWrt router with a switch of its own answers.
func openwrt() map[string]string {
	return map[string]string{
		"release": "5.15.167", "machine": "mips", "model": "Linksys EA7300 v2\nsecond line",
		"openwrt": "DISTRIB_ID='OpenWrt'\nDISTRIB_RELEASE='23.05.5'\nDISTRIB_DESCRIPTION='OpenWrt 23.05.5 r24106-10cc5fcd00'\n",
		"os":      "NAME=\"OpenWrt\"\nPRETTY_NAME=\"OpenWrt 23.05.5\"\n",
		"cpuinfo": "system type\t\t: MediaTek MT7621 ver:1 eco:3\nmachine\t\t\t: Linksys EA7300 v2\nprocessor\t\t: 0\ncpu model\t\t: MIPS 1004Kc V2.15\n",
		"memory":  "MemTotal:         249728 kB", "namespace": "net:[4026531840]",
		"devices":             "/sys/class/net/eth0/device\n/sys/class/net/lan1/device\n/sys/class/net/wan/device",
		"steering":            "/sys/class/net/eth0/queues/rx-0/rps_cpus:f\n/sys/class/net/lo/queues/rx-0/rps_cpus:0\n/sys/class/net/wan/queues/rx-0/rps_cpus:00,00000000",
		"governor":            "ondemand\nondemand",
		"uci":                 "firewall.@defaults[0].flow_offloading=1\nnetwork.globals.packet_steering=2",
		"nft list flowtables": "# nft answers\ntable inet fw4 {\n\tflowtable ft {\n\t\thook ingress priority filter\n\t\tdevices = { \"lan1\", \"wan\" }\n\t\tflags offload;\n\t\tcounter\n\t}\n}",
		"tc -s qdisc":         "qdisc noqueue 0: dev lo root refcnt 2\n Sent 0 bytes\nqdisc fq_codel 0: dev eth0 root refcnt 2 limit 10240p\nqdisc fq_codel 0: dev wan parent 1:1",
		"sysctl":              "core/netdev_max_backlog:1000\nipv4/ip_forward:1",
		"top":                 "Mem: 1 used\nCPU: 0% usr 1% sys", "dmesg": "[ 1.0] nf_conntrack: table full",
	}
}

// TestLearn: what is made of the answers of routers stands in the golden file.
func TestLearn(t *testing.T) {
	first := sample{Processors: counters.Processors{Cores: map[int]counters.Ticks{0: {}, 1: {}, 2: {}, 3: {}}}}
	flowtables := func(text string) map[string]string { return map[string]string{"nft list flowtables": text} }
	var out strings.Builder
	for _, c := range []struct {
		name string
		told map[string]string
	}{
		{"OpenWrt", openwrt()},
		{"nothing told", nil},
		{"no flowtable", flowtables("# nft answers")},
		{"in software", flowtables("# nft answers\ntable ip x {\n flowtable f {\n  devices = { a }\n }\n" +
			" flowtable g {\n }\n}")},
		{"flows", map[string]string{"conntrack flags": "software 3\nhardware 0"}},
		{"an XDP program",
			map[string]string{"ip link, xdp": "3: wan@if2: <UP> mtu 1500 xdp qdisc noqueue\n    prog/xdp id 7"}},
		{"uci of another system", map[string]string{"uci": "a=b"}},
	} {
		l := learn(c.told, first)
		facts, err := json.MarshalIndent(l.facts, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s, in namespace %d, of %d bits, hardware %v:\n%s\n", c.name, l.namespace,
			longBits(l.machine), l.hardware, facts)
	}
	golden.File(t, "testdata/facts.txt", out.String())
}
