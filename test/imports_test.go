// Package test holds what is tested across packages: the import rule, the
// commands as a user types them, whole labs, and the bargains with the outside
// world (cross builds, no traces).
package test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pelt/internal/testenv"
)

// layers lists which packages of this module each package may import. A
// package that is missing here fails the test: decide its place first.
var layers = map[string][]string{
	"docs":              {},
	"unit":              {"words"},
	"words":             {},
	"pace":              {"unit"},
	"model":             {"pace", "unit", "words"},
	"plan":              {"model", "unit", "words"},
	"design":            {"model", "unit"},
	"measure":           {"model", "unit"},
	"ledger":            {"model", "unit", "words"},
	"advice":            {"ledger", "model", "unit"},
	"record":            {"model", "unit"},
	"record/tap":        {"model", "unit", "record"},
	"record/disk":       {"internal/outfile"},
	"record/contents":   {"model", "unit", "measure", "record"},
	"record/export":     {"internal/checksum", "model", "unit", "record"},
	"table":             {"design", "model", "unit", "words"},
	"change":            {"model", "table"},
	"finding":           {"change", "design", "ledger", "model", "plan", "table", "unit", "words"},
	"view":              {"finding", "ledger", "model", "record/contents", "table", "unit", "words"},
	"render":            {"unit", "view", "render/draw", "render/plain", "words"},
	"render/draw":       {"unit", "view", "render/plain", "words"},
	"render/plain":      {},
	"engine":            {"engine/tcpinfo", "model", "pace", "unit"},
	"engine/tcpinfo":    {"model"},
	"engine/enginetest": {"engine", "measure", "internal/testenv", "model", "unit"},
	"engine/udp":        {"engine", "measure", "model", "pace", "unit", "internal/bind", "internal/icmp", "internal/kernelclock"},
	"engine/tcp":        {"engine", "engine/tcpinfo", "measure", "model", "pace", "unit", "internal/bind", "internal/icmp"},
	"engine/xdp": {"engine", "engine/udp", "measure", "model", "pace", "unit", "internal/checksum",
		"internal/kernelclock", "internal/kerneltypes", "internal/nic"},
	"iperf3":           {"engine", "engine/tcp", "engine/udp", "finding", "internal/bind", "measure", "model", "unit", "words"},
	"observe":          {"words", "model", "unit", "internal/bind", "internal/nic", "observe/counters", "observe/drops"},
	"observe/counters": {"model", "unit", "internal/netns", "internal/nic", "internal/spare"},
	"observe/drops":    {"model", "unit", "internal/kernelclock", "internal/kerneltypes", "internal/netns"},
	"observe/dut":      {"finding", "model", "unit", "observe/counters"},
	"lab": {"finding", "model", "unit", "words", "internal/netns", "internal/nic", "internal/spare", "lab/fastpath",
		"lab/impair", "lab/routerlog", "lab/userlink"},
	"lab/fastpath":  {"internal/kerneltypes"},
	"lab/routerlog": {},
	"lab/userlink":  {"internal/checksum", "internal/kernelclock", "lab/impair"},
	"lab/impair":    {"unit", "words"},
	"fleet": {"engine", "finding", "internal/bind", "internal/cpace", "internal/icmp", "model", "observe/counters", "unit",
		"words"},
	"foreign":              {"model", "unit", "words"},
	"store":                {"foreign", "model", "unit", "internal/outfile", "words"},
	"internal/awake":       {},
	"internal/bind":        {},
	"internal/checksum":    {},
	"internal/cpace":       {},
	"internal/icmp":        {},
	"internal/kernelclock": {},
	"internal/kerneltypes": {},
	"internal/netns":       {},
	"internal/spare":       {},
	"internal/netbed":      {"internal/checksum", "internal/netns", "internal/testenv"},
	"internal/nic":         {},
	"internal/outfile":     {"words"},
	"internal/peltproc":    {"internal/testenv"},
	"internal/privilege":   {},
	"internal/sshbed":      {"internal/peltproc", "internal/testenv"},
	"internal/testenv":     {"internal/netns"},
	"run": {"change", "finding", "table", "advice", "design", "engine", "engine/tcp", "engine/udp", "engine/xdp",
		"fleet", "internal/awake", "internal/bind", "iperf3", "internal/spare", "lab", "lab/impair", "lab/userlink", "ledger", "measure", "model",
		"observe", "observe/drops", "observe/dut", "record", "record/disk", "record/tap", "store", "unit",
		"words"},
	"live":         {"design", "engine", "finding", "model", "render/plain", "run", "table", "unit", "view", "words"},
	"live/metrics": {"model", "render", "store", "view"},
	"live/webhook": {},
	"live/screen":  {"live", "model", "render", "render/plain", "table", "unit", "words"},
	"live/web": {"finding", "live", "model", "plan", "render", "render/plain", "run", "store", "table",
		"unit", "view", "words"},
	"tune": {"words", "internal/nic", "internal/outfile"},
	"cmd/pelt": {"advice", "docs", "engine", "finding", "fleet", "foreign", "internal/outfile", "internal/privilege", "lab",
		"live", "live/metrics", "live/screen", "live/web", "live/webhook", "model", "plan", "record", "record/contents",
		"record/export", "render", "render/draw", "render/plain", "run", "store", "table", "tune", "unit", "view",
		"words"},
	"test":               {},
	"test/browser":       {"internal/testenv"},
	"test/faults":        {},
	"test/golden":        {},
	"test/kernels":       {"internal/testenv"},
	"test/sample":        {"design", "model", "unit"},
	"test/servers":       {},
	"test/kernels/guest": {"test/kernels"},
}

// helpers lists the packages beside ./test that only tests import.
var helpers = []string{"engine/enginetest", "internal/netbed", "internal/peltproc", "internal/sshbed",
	"internal/testenv"}

// shared lists third-party modules that more than one package may import.
var shared = []string{
	"golang.org/x/sys",               // the system call layer
	"github.com/cilium/ebpf",         // each C source has its loader beside it, which the library's tool writes
	"github.com/vishvananda/netlink", // the lab makes links, the xdp engine looks up which one to take
	// messages of the packet filter: its rules' counters, and packets that the lab's router logs
	"github.com/mdlayher/netlink",
}

type listed struct {
	ImportPath string
	Imports    []string
	Standard   bool
}

func goList(t *testing.T, args ...string) (out []listed) {
	t.Helper()
	b, err := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports,Standard"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for d := json.NewDecoder(strings.NewReader(string(b))); d.More(); {
		var p listed
		testenv.Must(t, d.Decode(&p))
		out = append(out, p)
	}
	return out
}

// TestKindsStayInViews: what kind of test a run is, only its plan and its view ask.
func TestKindsStayInViews(t *testing.T) {
	asks := regexp.MustCompile(`Plan\.Command\s*(==|!=)|switch [a-z.A-Z]*Plan\.Command|p\.Command (==|!=)`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		rest := strings.TrimPrefix(path, "../")
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.HasPrefix(rest, "plan/") || strings.HasPrefix(rest, "view/") {
			return err
		}
		text, err := os.ReadFile(path)
		if found := asks.Find(text); found != nil {
			t.Errorf("%s asks what kind of test a run is: %s", rest, found)
		}
		return err
	})
	testenv.Must(t, err)
}

func TestImportsPointDown(t *testing.T) {
	users := map[string][]string{} // third-party module root -> packages
	for _, p := range goList(t, "../...") {
		name := strings.TrimPrefix(p.ImportPath, "pelt/")
		forTests := strings.HasPrefix(name, "test/") || slices.Contains(helpers, name)
		allowed, known := layers[name]
		if !known {
			t.Errorf("package %s has no place in the layers", name)
		}
		for _, i := range p.Imports {
			if own, ok := strings.CutPrefix(i, "pelt/"); ok {
				if !slices.Contains(allowed, own) {
					t.Errorf("%s imports %s; allowed: %s", name, own, strings.Join(allowed, ", "))
				}
				if slices.Contains(helpers, own) && !forTests {
					t.Errorf("%s imports %s, which is for tests alone", name, own)
				}
				continue
			}
			first, _, _ := strings.Cut(i, "/")
			if strings.Contains(first, ".") && !forTests {
				m := module(i)
				if !slices.Contains(users[m], name) {
					users[m] = append(users[m], name)
				}
			}
		}
	}
	for m, by := range users {
		if len(by) > 1 && !slices.Contains(shared, m) {
			t.Errorf("%s is imported by %s; want one package", m, strings.Join(by, ", "))
		}
	}
	if n := len(users); n > 18 {
		t.Errorf("%d direct run-time dependencies; about 18 were meant", n)
	}
}

// module cuts an import path down to what identifies its library here.
func module(path string) string {
	parts := strings.Split(path, "/")
	n := min(len(parts), 3)
	if parts[0] == "modernc.org" {
		n = 2
	}
	return strings.Join(parts[:n], "/")
}
