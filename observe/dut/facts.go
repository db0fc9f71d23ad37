package dut

import (
	"cmp"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pelt/finding"
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

// also are facts with those that the router told later.
func also(facts, later []model.RouterFact) []model.RouterFact {
	facts = slices.Clip(facts)
	for _, f := range later {
		same := func(known model.RouterFact) bool {
			return known.Code == f.Code && maps.Equal(known.Words, f.Words) && reflect.DeepEqual(known.Of, f.Of)
		}
		if !slices.ContainsFunc(facts, same) {
			f.Later = true
			facts = append(facts, f)
		}
	}
	return facts
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
	f.Before, f.Told = texts(told), facts(told)
	for _, q := range questions {
		if q.needed && told[q.name] == "" {
			f.Told = append(f.Told, fact(model.FactUntold, "name", q.name))
		}
	}
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

// fact has words by pairs of name and word.
func fact(code string, words ...string) model.RouterFact {
	f := model.RouterFact{Code: code, Words: map[string]string{}}
	for pair := range slices.Chunk(words, 2) {
		f.Words[pair[0]] = oneLine(pair[1])
	}
	return f
}

// untold is why no question was answered.
func untold(err error) model.RouterFact {
	return model.RouterFact{Code: model.FactUntold, Of: model.Reasons{finding.ReasonOf(err)}}
}

// maxFacts bounds what one router tells.
const maxFacts = 64

// facts are what the router's forwarding and tuning come to, as far as it tells.
func facts(told map[string]string) []model.RouterFact {
	out := append(offload(told), tuning(told)...)
	return out[:min(len(out), maxFacts)]
}

// offload tells what is configured and what is real.
func offload(told map[string]string) (out []model.RouterFact) {
	say := func(code string, words ...string) { out = append(out, fact(code, words...)) }
	if uci, ok := told["uci"]; ok && told["openwrt"] != "" {
		for _, k := range []struct{ key, by string }{
			{"firewall.@defaults[0].flow_offloading", "software"},
			{"firewall.@defaults[0].flow_offloading_hw", "hardware"},
		} {
			state := "off"
			if setting(uci, k.key) == "1" {
				state = "on"
			}
			say(model.FactOffload, "by", k.by, "state", state, "name", k.key)
		}
	}
	tables := flowtable.FindAllStringSubmatch(told["nft list flowtables"], -1)
	if told["nft list flowtables"] != "" && len(tables) == 0 {
		say(model.FactNoFlowtable)
	}
	for _, t := range tables {
		by, devices := "software", ""
		if strings.Contains(t[2], "flags offload") {
			by = "hardware"
		}
		if found := devicesOf.FindStringSubmatch(t[2]); found != nil {
			devices = strings.ReplaceAll(found[1], `"`, "")
		}
		say(model.FactFlowtable, "name", t[1], "devices", devices, "by", by)
	}
	for line := range strings.Lines(told["ip link, xdp"]) {
		f := strings.Fields(line) // 3: wan@if2: <UP> mtu 1500 xdp qdisc noqueue
		if len(f) < 2 {
			continue
		}
		if device, ok := strings.CutSuffix(f[1], ":"); ok {
			say(model.FactXDP, "device", device)
		}
	}
	for _, by := range []string{"software", "hardware"} {
		for line := range strings.Lines(told["conntrack flags"]) {
			count, ok := strings.CutPrefix(line, by+" ")
			n, err := strconv.Atoi(strings.TrimSpace(count))
			if ok && err == nil && (n > 0 || len(tables) > 0) {
				say(model.FactConnections, "count", strconv.Itoa(n), "by", by)
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

// tuning is what steers the load.
func tuning(told map[string]string) (out []model.RouterFact) {
	add := func(name, value string) { out = append(out, fact(model.FactSetting, "name", name, "value", value)) }
	if v := setting(told["uci"], "network.globals.packet_steering"); v != "" {
		add("network.globals.packet_steering", v)
	}
	governors := strings.Fields(told["governor"])
	slices.Sort(governors)
	if all := slices.Compact(governors); len(all) > 0 {
		add("cpu.governor", strings.Join(all, ", "))
	}
	for line := range strings.Lines(told["steering"]) {
		path, mask, _ := strings.Cut(strings.TrimSpace(line), ":")
		where := strings.Split(path, "/") // /sys/class/net/eth0/queues/rx-0/rps_cpus
		if len(where) == 8 && strings.Trim(mask, "0,") != "" {
			add(where[4]+"."+where[6]+".rps_cpus", mask)
		}
	}
	for line := range strings.Lines(told["tc -s qdisc"]) {
		f := strings.Fields(line) // qdisc fq_codel 0: dev eth0 root ...
		if len(f) > 5 && f[0] == "qdisc" && f[1] != "noqueue" && f[3] == "dev" && f[5] == "root" {
			add(f[4]+".qdisc", f[1])
		}
	}
	for line := range strings.Lines(told["sysctl"]) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			add("net."+strings.ReplaceAll(name, "/", "."), value)
		}
	}
	return out
}
