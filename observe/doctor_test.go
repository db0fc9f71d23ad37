package observe

import (
	"strings"
	"testing"
	"time"

	"pelt/model"
)

func healthy() survey {
	return survey{
		os: "linux", version: liveFrames, admin: true, btf: true, clockCost: 30 * time.Nanosecond, busyKnown: true,
		sleepP50: 55 * time.Microsecond, sleepP99: 90 * time.Microsecond,
		Host: model.Host{Kernel: "6.18.44", ReceiveBufferB: 4 << 20, SendBufferB: 4 << 20, ClockSource: "tsc",
			Governor: "performance", Cores: 8},
	}
}

func TestDiagnose(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*survey)
		check  string // the one that says no, "" for none
		reason string // part of its reason
		remedy string // part of its remedy
	}{
		{"healthy", func(s *survey) {}, "", "", ""},
		{"user namespace is enough", func(s *survey) { s.admin = false }, "", "", ""},
		{"no rights at all", func(s *survey) {
			s.admin, s.userNamespace = false,
				"make a user namespace: operation not permitted"
		}, "tier", "not permitted", "let users make namespaces"},
		{"old kernel", func(s *survey) { s.version = 5<<16 | 17<<8 | 255 }, "kernel for XDP live frames", "5.18",
			"newer kernel"},
		{"kernel not told", func(s *survey) { s.version = 0 }, "kernel for XDP live frames", "5.18", "newer kernel"},
		{"no BTF", func(s *survey) { s.btf = false }, "kernel type information (BTF)", "btf/vmlinux",
			"CONFIG_DEBUG_INFO_BTF"},
		{"no BPF", func(s *survey) { s.bpf = "load a BPF program: needs CAP_BPF" }, "BPF programs", "CAP_BPF", "root"},
		{"drops not watched", func(s *survey) { s.drops = "BTF is missing" }, "verdicts on lost packets",
			"BTF is missing", "root"},
		{"default buffer", func(s *survey) { s.ReceiveBufferB = 212992 }, "receive buffer", "loses datagrams",
			"net.core.rmem_max=4194304"},
		{"small send buffer", func(s *survey) { s.SendBufferB = 65536 }, "send buffer", "default",
			"net.core.wmem_max=212992"},
		{"slow clock", func(s *survey) { s.ClockSource, s.otherClocks = "hpet", "tsc hpet" }, "clock source",
			"slow device, and every packet reads the clock; available: tsc hpet", "dmesg"},
		{"clock by system call", func(s *survey) { s.clockCost = time.Microsecond }, "reading the clock", "packet",
			"clock source"},
		{"coarse timers", func(s *survey) { s.sleepP50 = 4 * time.Millisecond }, "waking from sleep", "late",
			"CONFIG_HIGH_RES_TIMERS"},
		{"powersave", func(s *survey) { s.Governor = "powersave" }, "frequency governor", "clock rate", "performance"},
		{"one core", func(s *survey) { s.Cores = 1 }, "cores", "share", "two machines"},
		{"busy host", func(s *survey) { s.busy = .7 }, "other work", "other programs", "top"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := healthy()
			c.change(&s)
			for _, got := range diagnose(s) {
				if got.Topic == "" || got.Name == "" || got.Detail == "" {
					t.Errorf("incomplete check %+v", got)
				}
				if got.OK != (got.Name != c.check) {
					t.Errorf("check %q is OK=%v; want only %q to say no", got.Name, got.OK, c.check)
				}
				if got.OK && got.Reason != "" {
					t.Errorf("check %q is OK and has the reason %q", got.Name, got.Reason)
				}
				if !got.OK && (!strings.Contains(got.Reason, c.reason) || !strings.Contains(got.Remedy, c.remedy) ||
					got.Remedy == "") {
					t.Errorf("check %q: reason %q, remedy %q; want %q and %q in them", got.Name, got.Reason,
						got.Remedy, c.reason, c.remedy)
				}
			}
		})
	}
}

func TestTier(t *testing.T) {
	for _, c := range []struct {
		name      string
		admin     bool
		namespace string
		bpf       string
		want      string
	}{
		{"root with BPF", true, "", "", tierRootBPF},
		{"root in a container", true, "no", "refused", tierRoot},
		{"user with namespaces", false, "", "refused", tierUserNamespace},
		{"user without", false, "no", "refused", tierPlain},
	} {
		s := survey{os: "linux", btf: true, admin: c.admin, userNamespace: c.namespace, bpf: c.bpf}
		if got := s.tier(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestDiagnoseElsewhere(t *testing.T) {
	s := healthy()
	s.os = "windows"
	for _, c := range diagnose(s) {
		if !c.OK {
			t.Errorf("%q says no on a healthy Windows machine: %s", c.Name, c.Reason)
		}
	}
}

func TestMeasureSleep(t *testing.T) {
	n := 0
	p50, p99 := measureSleep(func(d time.Duration) { n++; sleepFor(d) })
	if n != probeCount || p50 < 0 || p99 < p50 {
		t.Errorf("%d sleeps, p50 %v, p99 %v", n, p50, p99)
	}
}
