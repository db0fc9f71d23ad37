package dut

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/observe/counters"
)

// learned is what the answers to the questions before the first trial make known.
type learned struct {
	facts     model.RouterFacts
	machine   string          // as uname -m calls it
	hardware  map[string]bool // interfaces with a device behind them
	namespace uint64          // inode of the network namespace; 0 unknown
}

func also(lines, more []string) []string {
	for _, l := range more {
		if !slices.Contains(lines, l) {
			lines = append(slices.Clip(lines), "after the last trial, "+l)
		}
	}
	return lines
}

// learn reads the answers; first is the first sample.
func learn(told map[string]string, first sample) learned {
	l := learned{machine: told["machine"], hardware: map[string]bool{}}
	f := &l.facts
	f.System, f.Model, f.Kernel = "linux", oneLine(told["model"]), oneLine(told["release"])
	if release := told["openwrt"]; release != "" {
		f.System, f.Firmware = "openwrt", setting(release, "DISTRIB_DESCRIPTION")
	}
	f.Firmware = cmp.Or(f.Firmware, setting(told["os"], "PRETTY_NAME"))
	name, part, _ := counters.ParseCPUInfo(told["cpuinfo"])
	f.CPU, f.Cores = oneLine(cmp.Or(name, armPart(part))), len(first.Cores)
	f.MemoryBytes = counters.ParseMemory(told["memory"])
	if text, ok := strings.CutPrefix(told["namespace"], "net:["); ok {
		l.namespace, _ = strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 64)
	}
	for path := range strings.Lines(told["devices"]) {
		name, _, _ := strings.Cut(strings.TrimPrefix(path, "/sys/class/net/"), "/")
		l.hardware[name] = true
	}
	f.Offload, f.Tuning = offload(told), tuning(told)
	f.Before, f.Untold = texts(told), untold(told)
	return l
}

// longBits is the width of the unsigned long of a machine that uname -m names.
func longBits(machine string) int {
	if machine == "" || strings.Contains(machine, "64") || machine == "s390x" || machine == "alpha" {
		return 64
	}
	return 32
}

// texts are the answers that stand in the report as they are.
func texts(told map[string]string) (out []model.Text) {
	for _, q := range questions {
		if q.shown && told[q.name] != "" {
			out = append(out, model.Text{Name: q.name, Text: told[q.name]})
		}
	}
	return out
}

func untold(told map[string]string) (out []string) {
	for _, q := range questions {
		if q.needed && told[q.name] == "" {
			out = append(out, q.name+": the router told nothing")
		}
	}
	return out
}

func oneLine(text string) string {
	return clean(strings.Join(strings.Fields(text), " "), maxWords)
}

// setting is the value of a NAME='value' line.
func setting(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			return oneLine(strings.Trim(strings.TrimSpace(value), `'"`))
		}
	}
	return ""
}

// armPart names the cores that routers have (arch/arm64/include/asm/cputype.h).
func armPart(part string) string {
	name, known := map[string]string{
		"0xc07": "A7", "0xc08": "A8", "0xc09": "A9", "0xc0f": "A15", "0xd03": "A53", "0xd04": "A35", "0xd05": "A55",
		"0xd07": "A57", "0xd08": "A72", "0xd09": "A73", "0xd0a": "A75", "0xd0b": "A76",
	}[part]
	switch {
	case known:
		return "ARM Cortex-" + name
	case part == "":
		return ""
	}
	return "ARM, part " + part
}

// offload says what is configured and what is real, a sentence each. What the
// router does not tell has none.
func offload(told map[string]string) (out []string) {
	say := func(format string, a ...any) { out = append(out, fmt.Sprintf(format, a...)) }
	if uci, ok := told["uci"]; ok && told["openwrt"] != "" {
		for _, k := range []struct{ key, what string }{
			{"firewall.@defaults[0].flow_offloading", "software flow offloading"},
			{"firewall.@defaults[0].flow_offloading_hw", "hardware flow offloading"},
		} {
			state := "off"
			if setting(uci, k.key) == "1" {
				state = "on"
			}
			say("configured: %s is %s (%s)", k.what, state, k.key)
		}
	}
	tables := flowtable.FindAllStringSubmatch(told["nft list flowtables"], -1)
	if told["nft list flowtables"] != "" && len(tables) == 0 {
		say("real: nft has no flowtable, so it offloads no flow")
	}
	for _, t := range tables {
		how, devices := "in software", "no device"
		if strings.Contains(t[2], "flags offload") {
			how = "in hardware, as far as the device can"
		}
		if found := devicesOf.FindStringSubmatch(t[2]); found != nil {
			devices = oneLine(strings.ReplaceAll(found[1], `"`, ""))
		}
		say("real: nft's flowtable %s takes flows of %s past the rules %s", oneLine(t[1]), devices, how)
	}
	for line := range strings.Lines(told["ip link, xdp"]) {
		f := strings.Fields(line) // 3: wan@if2: <UP> mtu 1500 xdp qdisc noqueue
		if len(f) < 2 {
			continue
		}
		if device, ok := strings.CutSuffix(f[1], ":"); ok {
			say("real: an XDP program sees the packets that %s receives before the kernel's own path does", device)
		}
	}
	for _, c := range []struct{ key, how string }{{"software", "in software"}, {"hardware", "in hardware"}} {
		for line := range strings.Lines(told["conntrack flags"]) {
			count, ok := strings.CutPrefix(line, c.key+" ")
			n, err := strconv.Atoi(strings.TrimSpace(count))
			if ok && err == nil && (n > 0 || len(tables) > 0) {
				say("real: %d tracked connections were offloaded %s when it was asked", n, c.how)
			}
		}
	}
	return out
}

// A flowtable as nft lists it.
var (
	flowtable = regexp.MustCompile(`flowtable (\S+) \{((?:[^{}]|\{[^{}]*\})*)\}`)
	devicesOf = regexp.MustCompile(`devices = \{([^{}]*)\}`)
)

// maxTuning bounds the lines about tuning.
const maxTuning = 64

// tuning is what steers the load, a line each.
func tuning(told map[string]string) (out []string) {
	if v := setting(told["uci"], "network.globals.packet_steering"); v != "" {
		out = append(out, "packet steering is "+v+" (network.globals.packet_steering)")
	}
	governors := strings.Fields(told["governor"])
	slices.Sort(governors)
	if all := slices.Compact(governors); len(all) > 0 {
		out = append(out, "clock governor "+strings.Join(all, ", "))
	}
	for line := range strings.Lines(told["steering"]) {
		path, mask, _ := strings.Cut(strings.TrimSpace(line), ":")
		where := strings.Split(path, "/") // /sys/class/net/eth0/queues/rx-0/rps_cpus
		if len(where) == 8 && strings.Trim(mask, "0,") != "" {
			const format = "%s %s is steered to cores %s (rps_cpus, a mask)"
			out = append(out, fmt.Sprintf(format, where[4], where[6], mask))
		}
	}
	for line := range strings.Lines(told["tc -s qdisc"]) {
		f := strings.Fields(line) // qdisc fq_codel 0: dev eth0 root ...
		if len(f) > 5 && f[0] == "qdisc" && f[1] != "noqueue" && f[3] == "dev" && f[5] == "root" {
			out = append(out, f[1]+" queues on "+f[4])
		}
	}
	for line := range strings.Lines(told["sysctl"]) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			out = append(out, "net/"+name+" = "+value)
		}
	}
	if left := len(out) - maxTuning; left > 0 {
		out = append(out[:maxTuning], fmt.Sprintf("and %d lines more", left))
	}
	return out
}
