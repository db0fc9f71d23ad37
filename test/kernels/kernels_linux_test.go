package kernels

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pelt/internal/testenv"
)

// series are the kernels that Debian keeps for its releases: 5.10 stands for those from 5.5 to 5.16.
var series = []string{"5.10", "6.1", "6.12"}

// suites are the packages whose tests run in the guest. Their limits are far
// above what they take, for the machine may be busy. What depends on the kernel most
// runs under all; the rest under 6.1, for the host itself has a new one.
var suites = []suite{
	{"observe/drops", 300, "", ""},
	{"observe/counters", 120, "", "6.1"},
	{"test/faults", 1500, "", ""},
	{"engine/xdp", 300, "", "6.1"},
	{"lab/fastpath", 60, "", "6.1"},
	{"test/kernels/testdata/whole", 600, "", "6.1"},
	{"lab", 180, "^TestClockNetem", "6.12"}, // which the host's kernel may not have
}

type suite struct {
	pkg      string // below this module
	timeoutS float64
	run      string // only these of its tests, whole; "": all, as with -short
	series   string // only under this one; "": all
}

// modules are what a usual system loads on demand for labs, faults, and tests.
var modules = []string{
	"veth", "tun", "bridge", "dummy", "ifb", "8021q",
	"sch_tbf", "sch_netem", "sch_fq", "sch_fq_codel", "sch_htb", "sch_ingress", "sch_cake", "sch_red", "sch_sfq",
	"cls_bpf", "cls_u32", "cls_matchall", "act_bpf", "act_gact", "act_mirred", "act_police",
	"nf_tables", "nft_ct", "nft_nat", "nft_masq", "nft_chain_nat", "nft_numgen", "nft_limit", "nft_reject_inet",
	"nft_meta_bridge", "nft_log", "nft_queue", "wireguard", "vxlan", "bonding", "xfrm_user", "nf_conntrack_netlink",
	"tcp_bbr", "udp_diag", "tcp_diag",
}

// olderModules are what other kernels have in other modules.
var olderModules = []string{"nft_counter", "nf_log_syslog", "nf_log_ipv4", "nf_log_ipv6"}

// programs are what tests call to make faults and traffic.
var programs = []string{"ip", "tc", "nft", "bridge", "ethtool", "iperf3", "sh", "busybox"}

var (
	guestRun = flag.String("guest.run", "",
		"run only these tests of the guest's programs, as -run does, and show what they print")
	guestSuite = flag.String("guest.suite", "", "run only the packages that match")
)

// need wants a machine that can build and start guests.
func need(t *testing.T) {
	t.Helper()
	testenv.Nightly(t)
	if runtime.GOARCH != "amd64" {
		testenv.Lacks(t, "an x86-64 machine")
	}
	testenv.Tool(t, "qemu-system-x86_64", "apt-get", "dpkg-deb", "xz")
	testenv.Tool(t, programs...)
}

func TestNightlyKernels(t *testing.T) {
	need(t)
	suites = slices.DeleteFunc(suites,
		func(s suite) bool { return !regexp.MustCompile(*guestSuite).MatchString(s.pkg) })
	dir := t.TempDir()
	for _, b := range [][]string{
		{"build", "-o", filepath.Join(dir, "init"), "./guest"},
		{"build", "-o", filepath.Join(dir, "pelt"), "pelt/cmd/pelt"},
		{"test", "-o", filepath.Join(dir, "selftest"), "./testdata/selftest"},
	} {
		build(t, b...)
	}
	for _, s := range suites {
		build(t, "test", "-tags", "guest", "-o", filepath.Join(dir, s.file()), "pelt/"+s.pkg)
	}
	for _, s := range series {
		// Not in parallel: two guests have four processors, and what keeps time in one is late beside another.
		t.Run(s, func(t *testing.T) { testGuest(t, s, dir) })
	}
}

// build makes a static program.
func build(t *testing.T, args ...string) {
	t.Helper()
	if args[0] == "test" {
		args = append([]string{"test", "-c"}, args[1:]...)
	} else {
		args = append([]string{args[0], "-ldflags=-s -w"}, args[1:]...)
	}
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (s suite) file() string { return strings.ReplaceAll(s.pkg, "/", "-") }

// commands are all that the guest of a series runs, in order; of "" all that any
// guest runs.
func commands(series string) []Command {
	test := func(name, file, dir string, timeoutS float64, run string) Command { // run "": all of them
		// The program's own limit comes first, because it tells where the test stood.
		limit := fmt.Sprintf("-test.timeout=%gs", timeoutS-5)
		args := []string{"/tests/" + file, "-test.v=test2json", limit}
		if run == "" { // what is named is quick enough
			args = append(args, "-test.short")
		}
		if *guestRun != "" && name != "selftest" {
			run = *guestRun
		}
		if run != "" {
			args = append(args, "-test.run="+run)
		}
		return Command{Name: name, Args: args, Dir: dir, TimeoutS: timeoutS}
	}
	list := []Command{
		test("selftest", "selftest", "/", 20, ""),
		{Name: "doctor", Args: []string{"/bin/pelt", "doctor"}, Dir: "/", TimeoutS: 20},
	}
	for _, s := range suites {
		if series != "" && s.series != "" && s.series != series {
			continue
		}
		list = append(list, test(s.pkg, s.file(), "/source/"+s.pkg, s.timeoutS, s.run))
	}
	return list
}

func testGuest(t *testing.T, series, built string) {
	k, err := findKernel(series)
	if err != nil {
		testenv.Lacks(t, "a kernel for the guest: %v", err)
	}
	dir := t.TempDir()
	initrd := filepath.Join(dir, "initrd")
	if err := pack(initrd, k, built, commands(series)); err != nil {
		t.Fatal(err)
	}
	s, err := bootFor(dir, k.image, initrd)
	if s.stood(err) {
		t.Logf("%s: %v; booted again for what was left\nits log ends:\n%s", series, err, tail(s.console, 4000))
		ended := max(0, len(s.commands)-1)
		if err := pack(initrd, k, built, commands(series)[ended:]); err != nil {
			t.Fatal(err)
		}
		before := s
		s, err = bootFor(dir, k.image, initrd)
		s.commands = append(before.commands[:ended:ended], s.commands...)
	}
	t.Logf("Linux %s: up %.1f s after its start, %.1f s in all, %s", s.up.Release, s.up.UptimeS, s.seconds,
		strings.Join(s.up.Settings, " "))
	if err != nil {
		t.Errorf("%v\nits log ends:\n%s", err, tail(s.console, 4000))
	}
	if s.up.Release == "" {
		t.FailNow()
	}
	for _, line := range kernelTrouble(s.console) {
		t.Errorf("the kernel complains: %s", line)
	}
	for _, m := range s.up.Missing {
		t.Errorf("the guest lacks something: %s", m)
	}
	if !strings.HasPrefix(s.up.Release, series+".") || !s.up.BTF {
		t.Errorf("release %q, BTF %v; want %s and BTF", s.up.Release, s.up.BTF, series)
	}
	for i, c := range commands(series) {
		t.Run(c.Name, func(t *testing.T) {
			if i >= len(s.commands) {
				t.Fatal("never began")
			}
			d := s.commands[i]
			t.Logf("%.1f s", d.exit.Seconds)
			switch c.Name {
			case "selftest":
				checkSelftest(t, d, s.up.Release)
			case "doctor":
				checkDoctor(t, d)
			default:
				checkSuite(t, d, s.up.Release)
			}
		})
	}
}

// pack writes the initramfs of a guest that is to run these commands.
func pack(file string, k kernel, built string, list []Command) error {
	tree, err := readModuleTree(k.modules)
	if err != nil {
		return err
	}
	wanted := slices.Clone(modules)
	for _, name := range olderModules {
		if tree.files[name] != "" {
			wanted = append(wanted, name)
		}
	}
	loaded, err := tree.load(wanted...)
	if err != nil {
		return err
	}
	fsys := initramfs{
		"/etc/hosts":  []byte("127.0.0.1 localhost\n::1 localhost\n"),
		"/etc/passwd": []byte("root:x:0:0:root:/root:/bin/sh\n"),
		"/etc/group":  []byte("root:x:0:\n"),
		// nft reads names there
		"/etc/protocols": []byte("ip 0 IP\nicmp 1 ICMP\ntcp 6 TCP\nudp 17 UDP\nipv6-icmp 58 IPv6-ICMP\n"),
		"/root/.keep":    nil,
	}
	if err := fsys.addOrder(loaded, list); err != nil {
		return err
	}
	for _, p := range programs {
		if err := fsys.addProgram(p); err != nil {
			return err
		}
	}
	files := map[string]string{"/init": "init", "/bin/pelt": "pelt", "/tests/selftest": "selftest"}
	for _, s := range suites {
		files["/tests/"+s.file()] = s.file()
		// As under go test, its directory is there; the sources are not.
		fsys["/source/"+s.pkg+"/.keep"] = nil
		if err := fsys.addTree("/source/"+s.pkg+"/testdata", filepath.Join("../..", s.pkg, "testdata")); err != nil {
			return err
		}
	}
	for at, name := range files {
		if err := fsys.addFile(at, filepath.Join(built, name)); err != nil {
			return err
		}
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := fsys.writeTo(out); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}

// summary matches what package faults prints at its end.
var summary = regexp.MustCompile(`(?m)^\S.*: \d+ rows .*$`)

// checkSuite reports a test program's tests, and what the program itself did wrong.
func checkSuite(t *testing.T, d done, release string) {
	all, err := readOutcome(d.output)
	if err != nil {
		t.Fatal(err)
	}
	all.report(t, release)
	for _, line := range summary.FindAllString(string(d.output), -1) { // printed without -v, too
		fmt.Printf("Linux %s: %s\n", release, line)
	}
	slices.SortStableFunc(all.tests, func(a, b *outcome) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, slow := range all.tests[:min(3, len(all.tests))] {
		t.Logf("%.1f s in %s", slow.seconds, slow.name)
	}
	if len(all.tests) == 0 || d.exit.Code != 0 && !t.Failed() {
		t.Errorf("%d tests, exit code %d %s; it printed last:\n%s", len(all.tests), d.exit.Code, d.exit.Why,
			tail(string(d.output), 4000))
	}
	for _, left := range d.exit.Left {
		t.Errorf("left behind: %s", left)
	}
}

// checkDoctor wants of a guest's kernel all that labs and the ledger need.
func checkDoctor(t *testing.T, d done) {
	if d.exit.Code != 0 {
		t.Errorf("exit code %d %s\n%s", d.exit.Code, d.exit.Why, d.output)
	}
	for line := range strings.Lines(string(d.output)) {
		if strings.HasPrefix(line, "  no ") {
			t.Logf("doctor: %s", strings.TrimSpace(line))
		}
	}
	for _, want := range []string{"network-namespace", "veth", "bridge", "tbf", "masquerade", "tun",
		"kernel type information (BTF)", "BPF programs"} {
		if !strings.Contains(string(d.output), "  yes  "+want) {
			t.Errorf("doctor does not say yes to %s:\n%s", want, d.output)
		}
	}
	for _, left := range d.exit.Left {
		t.Errorf("left behind: %s", left)
	}
}

func tail(text string, n int) string {
	text = strings.TrimSpace(text)
	return text[max(0, len(text)-n):]
}
