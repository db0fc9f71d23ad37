package observe

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"pelt/model"
	"pelt/observe/counters"
)

// text returns a kernel file without surrounding white space, "" if it cannot be read, as where there is no /proc.
func text(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(bytes.Trim(b, " \t\n\x00"))
}

// number returns a kernel file that holds one whole number; 0 if it cannot be read.
func number(path string) int {
	n, _ := strconv.Atoi(text(path))
	return n
}

const clockSources = "/sys/devices/system/clocksource/clocksource0/"

// Facts describes this machine as far as it tells; it never fails. Node,
// Version and the fields of the interface are the caller's to fill.
func Facts() model.Host {
	h := model.Host{OS: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(), Privileged: mayConfigure()}
	if name, err := os.Hostname(); err == nil {
		h.Name = name
	}
	h.Kernel = text("/proc/sys/kernel/osrelease")
	h.Boot = kernelIdentity()
	// Processes in different time namespaces of one boot have different monotonic clocks.
	if space, err := os.Readlink("/proc/self/ns/time"); err == nil && h.Boot != "" {
		h.Boot += " " + space
	}
	h.ClockSource = text(clockSources + "current_clocksource")
	h.Governor = text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	h.ReceiveBufferB, h.SendBufferB = number("/proc/sys/net/core/rmem_max"), number("/proc/sys/net/core/wmem_max")
	h.MemoryBytes = counters.ParseMemory(text("/proc/meminfo"))
	name, _, virtual := counters.ParseCPUInfo(text("/proc/cpuinfo"))
	h.Virtual = virtual
	h.CPU = cmp.Or(name, text("/proc/device-tree/model"))
	return h
}

// kernelIdentity is the same for processes that share a kernel, whatever their namespaces.
func kernelIdentity() string { return text("/proc/sys/kernel/random/boot_id") }

// Knobs reads how this host is set in the calling process's namespace, with the settings
// of one interface, or of none for "".
func Knobs(iface string) []model.HostSetting {
	return counters.Knobs(func(f func() error) error { return f() }, iface)
}

// mostSetting is more than any TCP setting has, in bytes.
const mostSetting = 4096

// TCPSettings are the net.ipv4.tcp_* of the calling thread's network namespace, by the
// words after tcp_; what it may not read is left out.
func TCPSettings() map[string]string {
	const dir = "/proc/sys/net/ipv4"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	settings := map[string]string{}
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), "tcp_")
		if !ok || strings.Contains(name, "fastopen_key") { // a secret
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err == nil && len(text) <= mostSetting {
			settings[name] = strings.Join(strings.Fields(string(text)), " ")
		}
	}
	return settings
}
