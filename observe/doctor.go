package observe

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"

	"pelt/model"
	"pelt/unit"
	"pelt/words"
)

// Check is one thing a machine can or cannot do. A check that is not OK has a
// Reason, and a Remedy where there is one; an OK one has neither.
type Check struct {
	Topic  string `json:"topic"` // tier, xdp, ledger, sockets, clock, processor
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"` // what was found, with figures
	Reason string `json:"reason,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// Doctor examines this machine in about half a second. It changes nothing;
// the BPF programs it offers to the kernel are closed at once. Package lab tells whether
// this process may make labs as it is, and else why it may not in a user namespace. unwatched says why drops cannot be
// watched. Both are in the language of the checks.
func Doctor(l words.Language, admin bool, userNamespace string, unwatched func(error) string) []Check {
	s := survey{Language: l, Host: Facts(), os: runtime.GOOS, admin: admin, userNamespace: userNamespace}
	examineSystem(&s, unwatched)
	return diagnose(s)
}

// survey is what diagnose judges.
type survey struct {
	words.Language
	model.Host
	os            string // as runtime.GOOS
	version       uint32 // as LINUX_VERSION_CODE; 0 unknown
	admin         bool   // CAP_NET_ADMIN and CAP_SYS_ADMIN
	userNamespace string // why none can be made; "" if one can
	btf           bool
	bpf           string  // why no XDP program loads; "" if it does
	drops         string  // why drops are not watched; "" if they can be
	noReasons     bool    // the kernel does not tell why it drops packets
	otherClocks   string  // available_clocksource
	busy          float64 // share of all cores while examined, not by us
	busyKnown     bool
}

// The tiers, from most to least that can be done without asking an administrator.
const (
	tierRootBPF       = "root with BPF"
	tierRoot          = "root without BPF: no XDP engine"
	tierUserNamespace = "user namespace: labs inside an unprivileged user namespace, no XDP engine"
	tierPlain         = "plain: traffic between real hosts and over loopback, no lab"
)

func (s survey) tier() string {
	switch {
	case s.admin && s.bpf == "" && s.btf:
		return tierRootBPF
	case s.admin:
		return tierRoot
	case s.userNamespace == "":
		return tierUserNamespace
	}
	return tierPlain
}

// diagnose judges a survey by each check that its system has.
func diagnose(s survey) (list []Check) {
	for _, c := range checks {
		if s.os != "linux" && !c.anywhere {
			continue
		}
		detail, reason := c.look(s)
		found := Check{Topic: s.Say(c.topic), Name: s.Say(c.name), OK: reason == "", Detail: s.Say(detail),
			Reason: s.Say(reason)}
		if !found.OK {
			found.Remedy = s.Say(c.remedy)
		}
		list = append(list, found)
	}
	return list
}

// unless is the reason if something is not as it should be.
func unless(ok bool, reason string) string {
	if ok {
		return ""
	}
	return reason
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
	// liveFrames is the Linux that BPF_F_TEST_XDP_LIVE_FRAMES came with: 5.18.
	liveFrames = 5<<16 | 18<<8
	// quietBusy is where other work visibly takes time from a sender or receiver.
	quietBusy = 0.2
)

// check is one row of what doctor looks at. look tells what is there, and why that is not
// enough, "" if it is.
type check struct {
	topic, name string
	anywhere    bool // also where the system is not Linux
	look        func(survey) (detail, reason string)
	remedy      string
}

var checks = []check{
	{"tier", "tier", true, func(s survey) (string, string) {
		if s.os != "linux" {
			return s.Sayf("plain: sender, receiver, reports and analysis (%s)", s.os), ""
		}
		return s.tier(), unless(s.tier() != tierPlain, s.userNamespace)
	}, "run as root, or let users make namespaces"},

	{"xdp", "kernel for XDP live frames", false, func(s survey) (string, string) {
		return "Linux " + s.Kernel, unless(s.version >= liveFrames, "the XDP engine needs Linux 5.18 or later")
	}, "use the udp engine, or a newer kernel"},
	{"xdp", "kernel type information (BTF)", false, func(s survey) (string, string) {
		if !s.btf {
			return "none", "/sys/kernel/btf/vmlinux is not there"
		}
		return "/sys/kernel/btf/vmlinux", ""
	}, "use a kernel built with CONFIG_DEBUG_INFO_BTF=y"},
	{"xdp", "BPF programs", false, func(s survey) (string, string) {
		if s.bpf != "" {
			return "refused", s.bpf
		}
		return "the kernel takes an XDP program", ""
	}, "run as root (CAP_BPF and CAP_NET_ADMIN), and in a container allow the bpf system call"},

	{"ledger", "causes of lost packets", false, func(s survey) (string, string) {
		if s.drops != "" {
			return "counters only: they tell where packets were lost, but not which", s.drops
		}
		if s.noReasons {
			return "each packet that this kernel drops is listed with the function that dropped it; Linux 5.17 says why, too", ""
		}
		return "each packet that this kernel drops is listed with its cause", ""
	}, "run as root, on Linux 5.5 or later with BTF (CONFIG_DEBUG_INFO_BTF=y)"},

	{"sockets", "receive buffer", false, func(s survey) (string, string) {
		// setsockopt(SO_RCVBUF) grants twice what is asked (net/core/sock.c).
		packets := 2 * s.ReceiveBufferB / smallTruesize
		detail := s.Sayf("net.core.rmem_max %d B: room for %s small datagrams, %s at %s", s.ReceiveBufferB,
			unit.FormatCount(uint64(packets)), unit.Seconds.Format(float64(packets)/socketPPS), unit.FormatPPS(socketPPS))
		return detail, unless(s.ReceiveBufferB >= wantReceiveMax,
			"a receiver that waits longer than that for its turn loses datagrams in its own buffer")
	}, fmt.Sprintf("sudo sysctl -w net.core.rmem_max=%d", wantReceiveMax)},
	{"sockets", "send buffer", false, func(s survey) (string, string) {
		return fmt.Sprintf("net.core.wmem_max %d B", s.SendBufferB), unless(s.SendBufferB >= wantSendMax,
			"smaller than the kernel's default: the sender waits for its own queue")
	}, fmt.Sprintf("sudo sysctl -w net.core.wmem_max=%d", wantSendMax)},

	{"clock", "clock source", false, func(s survey) (string, string) {
		slow := slices.Contains([]string{"hpet", "acpi_pm", "jiffies", "refined-jiffies"}, s.ClockSource)
		return cmp.Or(s.ClockSource, "not told"), unless(!slow, s.Sayf("%s is read through a slow device, and every "+
			"packet reads the clock; available: %s", s.ClockSource, s.otherClocks))
	}, "find out why the kernel left tsc (dmesg | grep -i tsc)"},

	{"processor", "frequency governor", false, func(s survey) (string, string) {
		steady := s.Governor == "performance" || s.Governor == ""
		return cmp.Or(s.Governor, "none: hypervisor or firmware decides"), unless(steady,
			"the clock rate follows the load, so the first packets of a trial meet a slower machine")
	}, "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"},
	{"processor", "cores", true, func(s survey) (string, string) {
		detail := fmt.Sprint(s.Cores)
		if s.Virtual {
			detail = s.Sayf("%d, virtual: the hypervisor may take them away", s.Cores)
		}
		return detail, unless(s.Cores >= 2,
			"in a lab sender and receiver share the one core, so the figures are of both together")
	}, "measure between two machines"},
	{"processor", "free for a test", false, func(s survey) (string, string) {
		if !s.busyKnown {
			return "not told", ""
		}
		return s.Sayf("%s busy while examined", unit.FormatRatio(s.busy)),
			unless(s.busy < quietBusy, "other programs take processor time, and figures will be lower and less steady")
	}, "see top, and stop what is not needed"},
}
