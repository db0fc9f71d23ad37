package observe

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pelt/model"
	"pelt/test/golden"
	"pelt/words"
)

func healthy() survey {
	return survey{
		os: "linux", version: liveFrames, admin: true, btf: true, busyKnown: true,
		Host: model.Host{Kernel: "6.18.44", ReceiveBufferB: 4 << 20, SendBufferB: 4 << 20, ClockSource: "tsc",
			Governor: "performance", Cores: 8},
	}
}

// sentence is a text that is no figure, file or command.
var sentence = regexp.MustCompile(`^[^/=]*[a-z]{2,} [a-z]{2,}[^/=]*$`)

// TestDiagnose: the checks of a healthy machine, and those that say no of each other one, stand in the golden file, with
// reason and remedy, in English and Chinese. All has Chinese words.
func TestDiagnose(t *testing.T) {
	var out strings.Builder
	for _, c := range []struct {
		name   string
		change func(*survey)
	}{
		{"healthy", func(*survey) {}},
		{"Windows", func(s *survey) { s.os = "windows" }},
		{"user namespace is enough", func(s *survey) { s.admin = false }},
		{"no rights at all", func(s *survey) {
			s.admin, s.userNamespace = false, "make a user namespace: operation not permitted"
		}},
		{"root in a container", func(s *survey) { s.userNamespace, s.bpf = "no", "refused" }},
		{"user with namespaces", func(s *survey) { s.admin, s.bpf = false, "refused" }},
		{"old kernel", func(s *survey) { s.version = 5<<16 | 17<<8 | 255 }},
		{"kernel not told", func(s *survey) { s.version = 0 }},
		{"no BTF", func(s *survey) { s.btf = false }},
		{"no BPF", func(s *survey) { s.bpf = "load a BPF program: needs CAP_BPF" }},
		{"drops not watched", func(s *survey) { s.drops = "BTF is missing" }},
		{"default buffer", func(s *survey) { s.ReceiveBufferB = 212992 }},
		{"small send buffer", func(s *survey) { s.SendBufferB = 65536 }},
		{"slow clock", func(s *survey) { s.ClockSource, s.otherClocks = "hpet", "tsc hpet" }},
		{"powersave", func(s *survey) { s.Governor = "powersave" }},
		{"one core", func(s *survey) { s.Cores = 1 }},
		{"busy host", func(s *survey) { s.busy = .7 }},
	} {
		s := healthy()
		c.change(&s)
		fmt.Fprintf(&out, "%s, tier %q:\n", c.name, s.tier())
		inChinese := s
		inChinese.Language = words.Chinese
		chinese := diagnose(inChinese)
		if s.os == "linux" && words.Chinese.Say(s.tier()) == s.tier() {
			t.Errorf("no Chinese words for the tier %q", s.tier())
		}
		for i, got := range diagnose(s) {
			for text, translated := range map[string]string{got.Topic: chinese[i].Topic, got.Name: chinese[i].Name,
				got.Detail: chinese[i].Detail, got.Reason: chinese[i].Reason, got.Remedy: chinese[i].Remedy} {
				found := []string{s.bpf, s.drops, s.userNamespace} // in the language of who looked
				if text == translated && sentence.MatchString(text) && !slices.Contains(found, text) {
					t.Errorf("%s: no Chinese words for %q", c.name, text)
				}
			}
			for _, x := range []Check{got, chinese[i]} {
				if !x.OK || c.name == "healthy" {
					fmt.Fprintf(&out, "\t%s: %s\n\t\t%s\n\t\t%s\n", x.Name, x.Detail, x.Reason, x.Remedy)
				}
			}
			if got.Topic == "" || got.Name == "" || got.Detail == "" || got.OK != (got.Reason == "") ||
				got.OK != (got.Remedy == "") {
				t.Errorf("%s: incomplete check %+v", c.name, got)
			}
		}
	}
	golden.File(t, "testdata/doctor.txt", out.String())
}

// Before Linux 5.17 it says that functions stand for reasons.
func TestReasonsOfDrops(t *testing.T) {
	for _, none := range []bool{false, true} {
		s := healthy()
		s.noReasons = none
		for _, c := range diagnose(s) {
			if c.Topic == "ledger" && (!c.OK || strings.Contains(c.Detail, "function") != none) {
				t.Errorf("no reasons %v: %+v", none, c)
			}
		}
	}
}
