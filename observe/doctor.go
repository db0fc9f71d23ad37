package observe

import (
	"fmt"
	"time"

	"pelt/unit"
)

// Check is one thing a machine can or cannot do. A check that is not OK has a
// Reason, and a Remedy where there is one; an OK one may have neither.
type Check struct {
	Topic  string `json:"topic"` // tier, xdp, ledger, sockets, clock, processor
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"` // what was found, with figures
	Reason string `json:"reason,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// Doctor examines this machine in about half a second. It changes nothing;
// the BPF programs it offers to the kernel are closed at once.
func Doctor() []Check { return diagnose(examine()) }

// Tiers, from most to least that can be done without asking an administrator.
const (
	TierRootBPF       = "root with BPF"
	TierRoot          = "root"
	TierUserNamespace = "user namespace"
	TierPlain         = "plain"
)

// survey is what diagnose judges.
type survey struct {
	os                  string
	admin               bool   // CAP_NET_ADMIN and CAP_SYS_ADMIN
	userNamespace       string // why none can be made; "" if one can
	btf                 bool
	bpf                 string // why no XDP program loads; "" if it does
	drops               string // why drops are not watched; "" if they can be
	kernel              string
	receiveMax, sendMax int // bytes; 0 unknown
	clockSource         string
	otherClocks         string // available_clocksource
	clockCost           time.Duration
	governor            string
	sleepP50, sleepP99  time.Duration // overshoot beyond the asked sleep
	cores               int
	virtual             bool
	busy                float64 // share of all cores while examined, not by us
	busyKnown           bool
}

func (s survey) tier() string {
	switch {
	case s.admin && s.bpf == "" && s.btf:
		return TierRootBPF
	case s.admin:
		return TierRoot
	case s.userNamespace == "":
		return TierUserNamespace
	}
	return TierPlain
}

func diagnose(s survey) []Check {
	if s.os != "linux" {
		return []Check{tierElsewhere(s), clockCost(s), sleep(s), cores(s)}
	}
	return []Check{
		tier(s), xdpKernel(s), btf(s), bpf(s), namedDrops(s),
		receiveBuffer(s), sendBuffer(s),
		clockSource(s), clockCost(s), sleep(s),
		governor(s), cores(s), quiet(s),
	}
}

func tierElsewhere(s survey) Check {
	return Check{Topic: "tier", Name: "tier", OK: true, Detail: "plain: sender, receiver, reports and analysis (" + s.os + ")"}
}

func tier(s survey) Check {
	c := Check{Topic: "tier", Name: "tier", OK: true, Detail: s.tier()}
	switch s.tier() {
	case TierRoot:
		c.Detail += ": every lab, no XDP engine"
	case TierUserNamespace:
		c.Detail += ": labs inside an unprivileged user namespace, no XDP engine"
		c.Remedy = "for everything, run as root"
	case TierPlain:
		c.OK, c.Detail = false, c.Detail+": traffic between real hosts and over loopback, no lab"
		c.Reason = s.userNamespace
		c.Remedy = "run as root, or let users make namespaces: " + userNamespaceRemedy
	}
	return c
}

// The three switches that distributions use: mainline, Debian's, Ubuntu's.
const userNamespaceRemedy = "sudo sysctl -w user.max_user_namespaces=10000; where they exist also kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0"

func xdpKernel(s survey) Check {
	c := Check{Topic: "xdp", Name: "kernel for XDP live frames", Detail: "Linux " + s.kernel}
	major, minor, ok := parseKernel(s.kernel)
	// BPF_F_TEST_XDP_LIVE_FRAMES came with Linux 5.18.
	if c.OK = ok && (major > 5 || major == 5 && minor >= 18); !c.OK {
		c.Reason, c.Remedy = "the XDP engine needs Linux 5.18 or later", "use the udp engine, or a newer kernel"
	}
	return c
}

func btf(s survey) Check {
	c := Check{Topic: "xdp", Name: "kernel type information (BTF)", OK: s.btf, Detail: "/sys/kernel/btf/vmlinux"}
	if !s.btf {
		c.Detail, c.Reason = "none", "/sys/kernel/btf/vmlinux is not there"
		c.Remedy = "use a kernel built with CONFIG_DEBUG_INFO_BTF=y"
	}
	return c
}

func bpf(s survey) Check {
	c := Check{Topic: "xdp", Name: "BPF programs", OK: s.bpf == "", Detail: "the kernel takes an XDP program"}
	if !c.OK {
		c.Detail, c.Reason = "refused", s.bpf
		c.Remedy = "run as root (CAP_BPF and CAP_NET_ADMIN), and in a container allow the bpf system call"
	}
	return c
}

func namedDrops(s survey) Check {
	c := Check{Topic: "ledger", Name: "verdicts on lost packets", OK: s.drops == "", Detail: "every lost packet gets a name, by sequence"}
	if !c.OK {
		c.Detail, c.Reason = "counters only: losses get a name, with less confidence", s.drops
		c.Remedy = "run as root, on Linux 5.17 or later with BTF (CONFIG_DEBUG_INFO_BTF=y)"
	}
	return c
}

const (
	// smallTruesize is what the kernel charges a socket for a UDP payload of up
	// to 64 B: measured 832 B on veth, Linux 6.18 (rmem_alloc / queued).
	smallTruesize = 832
	// socketPPS is about what one UDP socket receives on one core.
	socketPPS = 270_000
	// wantReceiveMax holds 10 082 small datagrams, 37 ms at socketPPS: longer
	// than a scheduler keeps a receiver waiting.
	wantReceiveMax = 4 << 20
	// wantSendMax is the kernel's own default (SK_WMEM_MAX, 256 skbs of 256 B
	// overhead, include/net/sock.h).
	wantSendMax = 212992
)

func receiveBuffer(s survey) Check {
	// setsockopt(SO_RCVBUF) grants twice what is asked (net/core/sock.c).
	packets := 2 * s.receiveMax / smallTruesize
	hold := time.Duration(float64(packets) / socketPPS * float64(time.Second)).Round(100 * time.Microsecond)
	c := Check{Topic: "sockets", Name: "receive buffer", OK: s.receiveMax >= wantReceiveMax}
	c.Detail = fmt.Sprintf("net.core.rmem_max %d B: %d small datagrams, %v at %s", s.receiveMax, packets, hold, unit.FormatPPS(socketPPS))
	if !c.OK {
		c.Reason = "a receiver that waits longer than that for its turn loses datagrams in its own buffer"
		c.Remedy = fmt.Sprintf("sudo sysctl -w net.core.rmem_max=%d", wantReceiveMax)
	}
	return c
}

func sendBuffer(s survey) Check {
	c := Check{Topic: "sockets", Name: "send buffer", OK: s.sendMax >= wantSendMax, Detail: fmt.Sprintf("net.core.wmem_max %d B", s.sendMax)}
	if !c.OK {
		c.Reason = "smaller than the kernel's default: the sender waits for its own queue"
		c.Remedy = fmt.Sprintf("sudo sysctl -w net.core.wmem_max=%d", wantSendMax)
	}
	return c
}

func clockSource(s survey) Check {
	c := Check{Topic: "clock", Name: "clock source", OK: true, Detail: s.clockSource}
	switch s.clockSource {
	case "":
		c.Detail = "not told"
	case "hpet", "acpi_pm", "jiffies", "refined-jiffies":
		c.OK = false
		c.Reason = s.clockSource + " is read through a slow device, and every packet reads the clock"
		c.Remedy = "find out why the kernel left tsc (dmesg | grep -i tsc); available here: " + s.otherClocks
	}
	return c
}

// slowClock lies between a reading in user space (20 to 60 ns) and one that
// takes a system call or a device (200 ns to 2 us).
const slowClock = 200 * time.Nanosecond

func clockCost(s survey) Check {
	c := Check{Topic: "clock", Name: "reading the clock", OK: s.clockCost < slowClock, Detail: fmt.Sprintf("%d ns a reading", s.clockCost.Nanoseconds())}
	if !c.OK {
		c.Reason = "the time of a packet costs a good part of sending it"
		c.Remedy = "choose a clock source that is read without a system call (tsc, kvm-clock, arch_sys_counter)"
	}
	return c
}

// sleepWant is the asked sleep's own length: beyond it a sender that sleeps
// between packets misses whole deadlines at a few thousand packets a second.
const sleepWant = probeSleep

func sleep(s survey) Check {
	c := Check{Topic: "clock", Name: "waking from sleep", OK: s.sleepP50 < sleepWant}
	c.Detail = fmt.Sprintf("%v late (p50), %v (p99), of %v asked", s.sleepP50.Round(time.Microsecond), s.sleepP99.Round(time.Microsecond), probeSleep)
	if !c.OK {
		c.Reason = "paced senders wake late and must burn processor time to keep their schedule"
		c.Remedy = "use a kernel with high-resolution timers (CONFIG_HIGH_RES_TIMERS) on a machine that is not overloaded"
	}
	return c
}

func governor(s survey) Check {
	c := Check{Topic: "processor", Name: "frequency governor", OK: true, Detail: s.governor}
	switch s.governor {
	case "performance":
	case "":
		c.Detail = "none: hypervisor or firmware decides"
	default:
		c.OK = false
		c.Reason = "the clock rate follows the load, so the first packets of a trial meet a slower machine"
		c.Remedy = "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
	}
	return c
}

func cores(s survey) Check {
	c := Check{Topic: "processor", Name: "cores", OK: s.cores >= 2, Detail: fmt.Sprint(s.cores)}
	if s.virtual {
		c.Detail += ", virtual: the hypervisor may take them away"
	}
	if !c.OK {
		c.Reason = "in a lab sender and receiver share the one core, so the figures are of both together"
		c.Remedy = "measure between two machines"
	}
	return c
}

// quietBusy is where other work visibly takes time from a sender or receiver.
const quietBusy = 0.2

func quiet(s survey) Check {
	c := Check{Topic: "processor", Name: "other work", OK: s.busy < quietBusy, Detail: unit.FormatRatio(s.busy) + " busy while examined"}
	if !s.busyKnown {
		c.OK, c.Detail = true, "not told"
	}
	if !c.OK {
		c.Reason = "other programs take processor time, and figures will be lower and less steady"
		c.Remedy = "see top, and stop what is not needed"
	}
	return c
}
