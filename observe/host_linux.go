package observe

import (
	"os"

	"golang.org/x/sys/unix"

	"pelt/model"
)

const hostRoot = files("/")

func systemFacts(h *model.Host) {
	hostRoot.facts(h)
	h.Privileged = hasCapability(unix.CAP_NET_ADMIN)
}

func (root files) facts(h *model.Host) {
	h.Kernel = root.text("proc/sys/kernel/osrelease")
	h.Boot = root.text("proc/sys/kernel/random/boot_id")
	// Processes in different time namespaces of one boot have different monotonic clocks.
	if space, err := os.Readlink(string(root) + "/proc/self/ns/time"); err == nil && h.Boot != "" {
		h.Boot += " " + space
	}
	h.ClockSource = root.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
	h.Governor = root.text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	h.ReceiveBufferB, _ = root.number("proc/sys/net/core/rmem_max")
	h.SendBufferB, _ = root.number("proc/sys/net/core/wmem_max")
	if f, err := os.Open(string(root) + "/proc/meminfo"); err == nil {
		h.MemoryBytes = parseMemory(f)
		f.Close()
	}
	p := root.processor()
	h.CPU = p.model
	if p.virtual {
		h.Notes = map[string]string{"virtual": "runs under a hypervisor"}
	}
}

func (root files) processor() (p processor) {
	if f, err := os.Open(string(root) + "/proc/cpuinfo"); err == nil {
		p = parseProcessor(f)
		f.Close()
	}
	if p.model == "" {
		p.model = root.text("proc/device-tree/model")
	}
	return p
}

// hasCapability reports whether the calling thread may use a capability now.
func hasCapability(number uint) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[number/32].Effective&(1<<(number%32)) != 0
}

// kernelIdentity is the same for processes that share a kernel, whatever their namespaces.
func kernelIdentity() string { return hostRoot.text("proc/sys/kernel/random/boot_id") }
