// Package spare tells what a host has left for others: memory and threads. Control groups count.
package spare

import (
	"math"
	"os"
	slash "path"
	"path/filepath"
	"strconv"
	"strings"
)

// Memory is a quarter of the memory that is available, in bytes and within bounds; 0: the system does not say.
func Memory(least, most float64) float64 { return memory("/", least, most) }

func memory(root string, least, most float64) float64 {
	left := math.Inf(1)
	for line := range strings.Lines(readText(root, "proc/meminfo")) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemAvailable:" {
			left = number(f[1]) * 1024
		}
	}
	left = min(left, leftInGroups(root, "memory", "memory.max", "memory.current", "memory.limit_in_bytes",
		"memory.usage_in_bytes"))
	if math.IsInf(left, 1) {
		return 0
	}
	return min(max(left/4, least), most)
}

// Threads is half of the threads that this process may still start, within bounds.
func Threads(least, most float64) int { return threads("/", least, most) }

func threads(root string, least, most float64) int {
	left := leftInGroups(root, "pids", "pids.max", "pids.current", "pids.max", "pids.current")
	if most := number(readText(root, "proc/sys/kernel/threads-max")); most > 0 {
		left = min(left, most)
	}
	for line := range strings.Lines(readText(root, "proc/self/limits")) {
		if rest, ok := strings.CutPrefix(line, "Max processes"); ok {
			if most := number(strings.Fields(rest)[0]); most > 0 { // "unlimited" is no number
				left = min(left, most)
			}
		}
	}
	return int(min(max(left/2, least), most))
}

// leftInGroups is what the control groups of this process have left of a controller's resource: those of version 2 with
// the first two files, those of version 1 with the last two.
func leftInGroups(root, controller, limit, usage, limit1, usage1 string) float64 {
	left := math.Inf(1)
	for line := range strings.Lines(readText(root, "proc/self/cgroup")) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		switch {
		case id == "0":
			left = min(left, leftInGroup(root, "sys/fs/cgroup", group, limit, usage))
		case controllers == controller:
			left = min(left, leftInGroup(root, "sys/fs/cgroup/"+controller, group, limit1, usage1))
		}
	}
	return left
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

// SocketMemory names the control group of this process whose limit of the memory of sockets is the least, and tells
// that, in bytes; "" if none has one.
func SocketMemory() (group string, bytes uint64) { return socketMemory("/") }

func socketMemory(root string) (group string, bytes uint64) {
	for line := range strings.Lines(readText(root, "proc/self/cgroup")) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, own, _ := strings.Cut(rest, ":")
		mount, limit := "sys/fs/cgroup", "memory.max"
		switch {
		case controllers == "memory":
			mount, limit = "sys/fs/cgroup/memory", "memory.kmem.tcp.limit_in_bytes" // UDP's as well
		case id != "0":
			continue
		}
		for at := slash.Join("/", own); ; at = slash.Dir(at) {
			most := number(readText(root, slash.Join(mount, at, limit))) // "max" is no number
			if none := float64(1 << 62); most > 0 && most < none && (group == "" || most < float64(bytes)) {
				group, bytes = at, uint64(most)
			}
			if at == "/" {
				break
			}
		}
	}
	return group, bytes
}

func readText(root, name string) string {
	b, _ := os.ReadFile(filepath.Join(root, name)) // what cannot be read does not say
	return string(b)
}

func number(text string) float64 {
	n, _ := strconv.ParseUint(strings.TrimSpace(text), 10, 63)
	return float64(n)
}
