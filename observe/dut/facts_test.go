package dut

import (
	"reflect"
	"slices"
	"testing"

	"pelt/model"
	"pelt/observe/counters"
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

func TestLearn(t *testing.T) {
	first := sample{Processors: counters.Processors{Cores: map[int]counters.Ticks{0: {}, 1: {}, 2: {}, 3: {}}}}
	l := learn(openwrt(), first)
	f := l.facts
	want := model.RouterFacts{
		System: "openwrt", Model: "Linksys EA7300 v2 second line", Firmware: "OpenWrt 23.05.5 r24106-10cc5fcd00", Kernel: "5.15.167",
		CPU: "MIPS 1004Kc V2.15", Cores: 4, MemoryBytes: 249728 << 10,
		Offload: []string{
			"configured: software flow offloading is on (firewall.@defaults[0].flow_offloading)",
			"configured: hardware flow offloading is off (firewall.@defaults[0].flow_offloading_hw)",
			"real: nft's flowtable ft takes flows of lan1, wan past the rules in hardware, as far as the device can",
		},
		Tuning: []string{
			"packet steering is 2 (network.globals.packet_steering)", "clock governor ondemand",
			"eth0 rx-0 is steered to cores f (rps_cpus, a mask)", "fq_codel queues on eth0",
			"net/core/netdev_max_backlog = 1000", "net/ipv4/ip_forward = 1",
		},
		Untold: []string{"/proc/interrupts: the router told nothing"},
	}
	var names []string
	for _, text := range f.Before {
		names = append(names, text.Name)
	}
	if !slices.Equal(names, []string{"top", "sysctl", "tc -s qdisc", "uci", "nft list flowtables", "dmesg"}) {
		t.Errorf("texts %q", names)
	}
	f.Before = nil
	if !reflect.DeepEqual(f, want) {
		t.Errorf("got  %+v\nwant %+v", f, want)
	}
	if !l.hardware["wan"] || l.hardware["br-lan"] || l.namespace != 4026531840 || longBits(l.machine) != 32 {
		t.Errorf("%+v", l)
	}
	for machine, bits := range map[string]int{"": 64, "x86_64": 64, "aarch64": 64, "mips": 32, "mipsel": 32,
		"armv7l": 32, "mips64": 64, "i686": 32, "riscv64": 64} {
		if longBits(machine) != bits {
			t.Errorf("%s has %d bits, want %d", machine, longBits(machine), bits)
		}
	}

	// A router that answers nothing is unknown, and no more.
	if f := learn(map[string]string{}, first).facts; f.Offload != nil || f.Tuning != nil || f.Before != nil ||
		f.System != "linux" || len(f.Untold) < 5 {
		t.Errorf("%+v", f)
	}
}

func TestOffload(t *testing.T) {
	for _, c := range []struct {
		name string
		told map[string]string
		want []string
	}{
		{"nothing told", nil, nil},
		{"no flowtable", map[string]string{"nft list flowtables": "# nft answers"},
			[]string{"real: nft has no flowtable, so it offloads no flow"}},
		{"in software",
			map[string]string{"nft list flowtables": "# nft answers\ntable ip x {\n flowtable f {\n  devices = { a }\n }\n flowtable g {\n }\n}"},
			[]string{"real: nft's flowtable f takes flows of a past the rules in software",
				"real: nft's flowtable g takes flows of no device past the rules in software"}},
		{"flows", map[string]string{"conntrack flags": "software 3\nhardware 0"},
			[]string{"real: 3 tracked connections were offloaded in software when it was asked"}},
		{"an XDP program",
			map[string]string{"ip link, xdp": "3: wan@if2: <UP> mtu 1500 xdp qdisc noqueue\n    prog/xdp id 7"},
			[]string{"real: an XDP program sees the packets that wan@if2 receives before the kernel's own path does"}},
		{"uci of another system", map[string]string{"uci": "a=b"}, nil},
	} {
		if got := offload(c.told); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q\nwant %q", c.name, got, c.want)
		}
	}
}
