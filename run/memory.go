package run

import (
	"math"
	"os"
	slash "path"
	"path/filepath"
	"strconv"
	"strings"
)

// A serving host lends clients a quarter of its available memory, within these bounds.
const (
	leastMemory = 16 << 20
	mostMemory  = 4 << 30
)

// MemoryForClients is how many bytes of memory all clients of this host may take; 0: the system does not say.
func MemoryForClients() float64 { return memoryForClients("/") }

func memoryForClients(root string) float64 {
	left := math.Inf(1)
	for line := range strings.Lines(readText(root, "proc/meminfo")) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemAvailable:" {
			left = number(f[1]) * 1024
		}
	}
	for line := range strings.Lines(readText(root, "proc/self/cgroup")) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		switch {
		case id == "0": // cgroup v2
			left = min(left, leftInGroup(root, "sys/fs/cgroup", group, "memory.max", "memory.current"))
		case controllers == "memory":
			left = min(left, leftInGroup(root, "sys/fs/cgroup/memory", group, "memory.limit_in_bytes", "memory.usage_in_bytes"))
		}
	}
	if math.IsInf(left, 1) {
		return 0
	}
	return min(max(left/4, leastMemory), mostMemory)
}

// leftInGroup is what a control group and those around it have left: all of them bind.
func leftInGroup(root, mount, group, limit, usage string) float64 {
	left := math.Inf(1)
	for at := slash.Join("/", group); ; at = slash.Dir(at) {
		dir := slash.Join(mount, at)
		if most := number(readText(root, slash.Join(dir, limit))); most > 0 { // "max" is no number
			left = min(left, max(most-number(readText(root, slash.Join(dir, usage))), 0))
		}
		if at == "/" {
			return left
		}
	}
}

func readText(root, name string) string {
	b, _ := os.ReadFile(filepath.Join(root, name)) // what cannot be read does not say
	return string(b)
}

func number(text string) float64 {
	n, _ := strconv.ParseUint(strings.TrimSpace(text), 10, 63)
	return float64(n)
}
