// Package balance checks, under the kernel it runs on, that the pelt a user
// builds names every packet that a fault made from outside has dropped. Only
// package kernels builds it; package test has the whole matrix of faults.
package balance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/model"
)

// binary is the pelt that the guest has.
var binary = os.Getenv("PELT_TEST_BINARY")

// lab is a held lab:direct: sender ──── receiver.
type lab struct {
	name string
	data string // where its runs are kept
}

func newLab(t *testing.T, more ...string) lab {
	t.Helper()
	l := lab{name: fmt.Sprintf("balance-%d", os.Getpid()), data: t.TempDir()}
	l.pelt(t, append([]string{"lab", "up", "direct", "--name", l.name}, more...)...)
	t.Cleanup(func() { l.pelt(t, "lab", "down", l.name) })
	return l
}

func (l lab) command(args ...string) *exec.Cmd {
	c := exec.Command(binary, args...)
	c.Env = append(os.Environ(), "PELT_DATA="+l.data)
	return c
}

func (l lab) pelt(t *testing.T, args ...string) {
	t.Helper()
	if out, err := l.command(args...).CombinedOutput(); err != nil {
		t.Fatalf("pelt %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// disturbed tells whether pelt itself says that the machine disturbed it (exit code 4): then it is measured again, twice
// at the most.
func disturbed(err error) bool {
	exit := (*exec.ExitError)(nil)
	return errors.As(err, &exit) && exit.ExitCode() == 4
}

// curve measures once, and again if it was disturbed.
func (l lab) curve(t *testing.T, args ...string) model.Result {
	t.Helper()
	args = append([]string{"curve", "lab:" + l.name, "--engine", "udp", "--time", "500ms", "--warmup", "100ms", "--repeats", "1", "--json", "-"}, args...)
	for try := 1; ; try++ {
		c := l.command(args...)
		var stderr bytes.Buffer
		c.Stderr = &stderr
		out, err := c.Output()
		if disturbed(err) && try < 3 {
			continue
		}
		if err != nil {
			t.Fatalf("pelt %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
		}
		var doc model.Document
		if err := json.Unmarshal(out, &doc); err != nil {
			t.Fatal(err)
		}
		if len(doc.Results) != 1 || len(doc.Results[0].Flows) != 1 {
			t.Fatalf("%d results, want one with one flow: %s", len(doc.Results), out)
		}
		return doc.Results[0]
	}
}

// atLeast reports whether the running kernel is that Linux or a later one.
func atLeast(t *testing.T, major, minor int) bool {
	t.Helper()
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		t.Fatal(err)
	}
	var have [2]int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &have[0], &have[1]); err != nil {
		t.Fatal(err)
	}
	return slices.Compare(have[:], []int{major, minor}) >= 0
}

// run runs a program in a node of the lab.
func (l lab) run(t *testing.T, node, command string) {
	t.Helper()
	l.pelt(t, append([]string{"lab", "exec", l.name, node, "--"}, strings.Fields(command)...)...)
}

// dropEvery10th has the receiver's input drop one of ten UDP packets that are
// longer than those by which pelt makes contact.
func (l lab) dropEvery10th(t *testing.T) {
	t.Helper()
	l.run(t, "receiver", "nft add table inet fault; add chain inet fault input { type filter hook input priority 0; };"+
		" add rule inet fault input udp length > 70 numgen inc mod 10 0 counter drop")
}

// balanced fails unless the ledger accounts for every packet.
func balanced(t *testing.T, r model.Result) model.FlowResult {
	t.Helper()
	f := r.Flows[0]
	sum := f.Ledger.Unattributed
	for _, l := range f.Ledger.Lines {
		sum += l.Packets
	}
	if f.Lost != f.Attempted-f.Received || f.Ledger.Lost != f.Lost || sum != f.Lost || f.Ledger.Unattributed != 0 {
		t.Errorf("attempted %d, received %d, lost %d; ledger %s; want every one named", f.Attempted, f.Received, f.Lost, text(f.Ledger))
	}
	for _, c := range f.Ledger.Checks {
		if !c.Held {
			t.Errorf("check %s: %s", c.Name, c.Text)
		}
	}
	for _, o := range r.Observed {
		if o.Mode != model.DropsSeq || o.Overwritten+o.SitesLost > 0 {
			t.Errorf("node %s was watched by mode %q (%s), %d verdicts overwritten, %d without a site; want seq and none", o.Node, o.Mode, o.Why, o.Overwritten, o.SitesLost)
		}
	}
	if len(r.Observed) < 2 {
		t.Errorf("%d nodes watched, want sender and receiver", len(r.Observed))
	}
	return f
}

func text(v any) string {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// line gives the only line of a ledger with that layer and a cause that has
// one of the names, which differ between kernels; there must be no other lines.
func line(t *testing.T, f model.FlowResult, layer string, causes ...string) model.Line {
	t.Helper()
	if len(f.Ledger.Lines) != 1 || f.Ledger.Lines[0].Layer != layer || !slices.Contains(causes, f.Ledger.Lines[0].Cause) {
		t.Fatalf("ledger %s\nwant one line, %s with cause %s", text(f.Ledger), layer, strings.Join(causes, " or "))
	}
	return f.Ledger.Lines[0]
}

func TestNothingLost(t *testing.T) {
	f := balanced(t, newLab(t).curve(t, "--payload", "64", "--rate", "2kpps", "--burst", "2000", "--drops", "seq"))
	if f.Lost != 0 || len(f.Ledger.Lines) != 0 {
		t.Errorf("lost %d: %s", f.Lost, text(f.Ledger))
	}
}

func TestNetfilter(t *testing.T) {
	l := newLab(t)
	l.dropEvery10th(t)
	f := balanced(t, l.curve(t, "--payload", "64", "--rate", "2kpps", "--burst", "2000", "--family", "4", "--drops", "seq"))
	got := line(t, f, "receiver-filter", "NETFILTER_DROP")
	if got.Host != "receiver" || got.Confidence != "exact-seq" {
		t.Errorf("line %s; want exact-seq at the receiver", text(got))
	}
	// The rule counts the warm-up, too, so its rhythm may begin anywhere.
	if want := f.Attempted / 10; got.Packets < want || got.Packets > want+1 {
		t.Errorf("%d of %d dropped, want every tenth", got.Packets, f.Attempted)
	}
}

func TestReceiveBuffer(t *testing.T) {
	f := balanced(t, newLab(t).curve(t, "--payload", "64", "--rate", "20kpps", "--burst", "20000", "--receive-buffer", "4608", "--drops", "seq"))
	got := line(t, f, "receiver-buffer", "SOCKET_RCVBUFF")
	if got.Host != "receiver" || got.Confidence != "exact-seq" {
		t.Errorf("line %s; want exact-seq at the receiver", text(got))
	}
}

// Segmentation offload hands the receiver's rule ten datagrams in one buffer.
// Where they lie outside its linear part, only Linux 6.12 lets a tracing
// program read them (commit ffc83860d8c0); below, they are counted.
func TestSegments(t *testing.T) {
	l := newLab(t)
	l.dropEvery10th(t)
	r := l.curve(t, "--payload", "64", "--gso", "10", "--rate", "20kpps", "--burst", "20000", "--family", "4", "--drops", "seq")
	f := balanced(t, r)
	got := line(t, f, "receiver-filter", "NETFILTER_DROP")
	readable := atLeast(t, 6, 12)
	confidence := "exact-seq"
	if !readable {
		confidence = "bounded" // by the warm-up, which was dropped as well
	}
	if got.Host != "receiver" || got.Confidence != confidence {
		t.Errorf("line %s; want %s at the receiver", text(got), confidence)
	}
	for _, o := range r.Observed {
		if (o.Unreadable == 0) != readable {
			t.Errorf("node %s: %d unreadable; can this kernel read them? %v", o.Node, o.Unreadable, readable)
		}
	}
	if got.Packets%10 != 0 || got.Packets == 0 {
		t.Errorf("%d datagrams dropped, want whole buffers of ten", got.Packets)
	}
}

// Three faults at a time, over IPv6: a queue at the sender, a rule and a small
// buffer at the receiver. Soft interrupts drop packets while send calls do.
func TestThreeFaults(t *testing.T) {
	l := newLab(t)
	l.dropEvery10th(t)
	l.run(t, "sender", "tc qdisc replace dev eth0 root tbf rate 4mbit burst 4kb limit 12000")
	f := balanced(t, l.curve(t, "--payload", "64", "--rate", "20kpps", "--burst", "20000", "--family", "6", "--receive-buffer", "4608", "--drops", "seq"))
	var got []string
	for _, l := range f.Ledger.Lines {
		got = append(got, fmt.Sprintf("%s at the %s: %s, %s", l.Layer, l.Host, l.Cause, l.Confidence))
	}
	want := []string{
		"sender-qdisc at the sender: QDISC_DROP, exact-seq", "receiver-filter at the receiver: NETFILTER_DROP, exact-seq",
		"receiver-buffer at the receiver: SOCKET_RCVBUFF, exact-seq",
	}
	if !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q in %s", got, want, text(f.Ledger))
	}
}

// start runs pelt in a node of the lab until a test ends.
func (l lab) start(t *testing.T, node string, args ...string) {
	t.Helper()
	c := l.inNode(node, args...)
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := c.Wait(); t.Failed() {
			t.Logf("pelt %s: %v\n%s", strings.Join(args, " "), err, said.String())
		}
	})
}

// hosts waits until pelt hosts at the sender says a word.
func (l lab) hosts(t *testing.T, code, want string) {
	t.Helper()
	var out []byte
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if out, _ = l.inNode("sender", "hosts", code).CombinedOutput(); bytes.Contains(out, []byte(want)) {
			return
		}
	}
	t.Fatalf("pelt hosts: no %q in %s", want, out)
}

// inNode is a command of pelt in a node of the lab.
func (l lab) inNode(node string, args ...string) *exec.Cmd {
	return l.command(append([]string{"lab", "exec", l.name, node, "--", binary}, args...)...)
}

// Whoever sets the time of a fleet's hosts changes nothing of a mesh: its cycles begin when they should, and no packet
// counts as lost or as hours late.
func TestTimeIsSet(t *testing.T) {
	l := newLab(t)
	const every, cycles, code = 8 * time.Second, 3, "--code=heron-58-umber-otter-17-slate"
	l.start(t, "sender", "hub", code)
	l.hosts(t, code, "no host has joined")
	l.start(t, "sender", "join", "198.18.0.1", code, "--name", "near")
	l.hosts(t, code, "near")
	l.start(t, "receiver", "join", "198.18.0.1", code, "--name", "far")
	l.hosts(t, code, "far")
	var out, said bytes.Buffer
	var took time.Duration
	for try := 1; ; try++ {
		out.Reset()
		said.Reset()
		mesh := l.inNode("sender", "mesh", "fleet:near,far", code, "--rate", "200pps", "--time", "1s", "--json", "-",
			"--every", every.String(), "--for", (cycles * every).String())
		mesh.Stdout, mesh.Stderr = &out, &said
		began := time.Now()
		err := whileTimeIsSet(t, mesh)
		took = time.Since(began)
		if disturbed(err) && try < 3 {
			continue
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, said.String())
		}
		break
	}
	var doc model.Document
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if took < (cycles-1)*every || took > (cycles+1)*every || len(doc.Results) != cycles {
		t.Errorf("%d cycles in %v, want %d, one each %v\n%s", len(doc.Results), took, cycles, every, said.String())
	}
	for _, r := range doc.Results {
		if r.State != model.Valid || len(r.Flows) != 2 {
			t.Errorf("cycle %d is %s: %s", r.Repeat, r.State, text(r.Why))
		}
		for _, f := range r.Flows {
			if f.Attempted < 190 || f.Lost != 0 || f.Duplicates != 0 || f.Delay == nil || f.Delay.Min < 0 || f.Delay.Max > 1e9 {
				t.Errorf("cycle %d, %s: %s", r.Repeat, f.Name, text(f))
			}
		}
	}
}

// whileTimeIsSet runs a command. Each second the clock is set an hour forth or back, at the end as it was.
func whileTimeIsSet(t *testing.T, c *exec.Cmd) (err error) {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	set := time.NewTicker(time.Second)
	defer set.Stop()
	var ahead time.Duration
	for running := true; running; {
		step := time.Hour
		if ahead > 0 {
			step = -2 * time.Hour
		}
		select {
		case <-set.C:
		case err = <-ended:
			step, running = -ahead, false
		}
		now := unix.NsecToTimespec(time.Now().Add(step).UnixNano())
		if err := unix.ClockSettime(unix.CLOCK_REALTIME, &now); err != nil {
			t.Fatal(err)
		}
		ahead += step
	}
	return err
}
