package test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"pelt/finding"
	"pelt/internal/netbed"
	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// hosts are two machines:
//
//	near 10.77.0.1 ──── 10.77.0.2 far
type hosts struct {
	near, far  *netbed.Node
	work       string
	otherClock bool // the far host's monotonic clock is not the near one's
}

func newHosts(t *testing.T) hosts {
	t.Helper()
	nodes := netbed.Chain(t, "near", "far")
	return hosts{near: nodes[0], far: nodes[1], work: t.TempDir()}
}

// at is where pelt runs on a node.
func at(n *netbed.Node, work string) peltproc.Host {
	return peltproc.Host{T: n.T, In: n, Dir: work, Data: filepath.Join(work, n.Name)}
}

func (h hosts) at(n *netbed.Node) peltproc.Host {
	x := at(n, h.work)
	if n == h.far && h.otherClock {
		x.Ahead = strings.Fields("unshare --time --monotonic 86400 --fork --kill-child")
	}
	return x
}

// inside runs a command line in a node.
func inside(t *testing.T, n *netbed.Node, line string) string {
	t.Helper()
	p := peltproc.Host{T: t, In: n}.Launch(exec.Command("sh", "-ec", line))
	if err := p.Wait(); err != nil {
		t.Fatalf("%s: %s: %v\n%s", n.Name, line, err, p)
	}
	return p.Out.String()
}

func number(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	testenv.Must(t, err)
	return n
}

// waitPackets waits until a node has counted so many more.
func waitPackets(t *testing.T, count func() uint64, packets uint64) {
	t.Helper()
	from := count()
	testenv.Await(t, fmt.Sprint(packets, " packets"), func() bool { return count() >= from+packets })
}

// server is a running pelt serve.
type server struct {
	*peltproc.Process
	line []string // to paste on the near host
}

var pasteLine = regexp.MustCompile(`(?m)^\s+PELT_CODE=(\S+ pelt curve 10\.77\.0\.2\S*)$`)

// serve starts pelt serve on the far host and reads the line it prints.
func (h hosts) serve(t *testing.T, args ...string) *server {
	t.Helper()
	s := &server{Process: h.at(h.far).Start(append([]string{"serve"}, args...)...)}
	line := strings.Fields(s.Match(pasteLine)) // CODE pelt curve HOST
	s.line = append(line[2:], "--code", line[0])
	if h.otherClock { // unshare keeps SIGTERM to itself, and takes its child along when killed
		t.Cleanup(s.Kill)
	}
	return s
}

// run pastes the line on the near host with more flags.
func (h hosts) run(s *server, flags ...string) (text string, err error) {
	text, err = h.at(h.near).Run(append(s.line, flags...)...)
	return text, orInvalid(err)
}

// status is a line of what the kernel tells of a process.
func status(t *testing.T, pid int, name string) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, value, found := strings.Cut(string(text), "\n"+name+":")
	if !found {
		t.Fatalf("no %s of process %d: %v", name, pid, err)
	}
	value, _, _ = strings.Cut(value, "\n")
	return strings.TrimSpace(value)
}

// measured runs the line with more flags, one repeat of each trial, and returns the document, in which each flow
// arrived.
func (h hosts) measured(t *testing.T, s *server, clock, flags string) model.Document {
	t.Helper()
	path := filepath.Join(h.work, "out.json")
	if out, err := h.run(s, append(strings.Fields(flags), "--repeats", "1", "--json", path)...); err != nil {
		t.Fatalf("%s: %v\n%s\nserver: %s", flags, err, out, s.Err)
	}
	d := document(t, path, clock)
	for _, r := range d.Results {
		for _, f := range r.Flows {
			if f.Received == 0 {
				t.Errorf("%s: cell %v flow %s: %s (%s), nothing arrived", flags, r.Cell, f.Name, r.State, finding.Why(r.Why))
			}
		}
	}
	return d
}

// TestTwoHosts is the README's way: serve there, paste its line here. Networks are made of more than plain cables and
// IPv4: a VLAN's interface has its test with the XDP engine's, for not all kernels have it. A link-local target is
// reached through its interface, by control, data and the search of the path MTU, from the address that is asked for.
func TestTwoHosts(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	h.far.Give("eth0", netip.MustParsePrefix("fe80::77:2/64"))
	h.near.Give("eth0", netip.MustParsePrefix("fe80::77:3/64"))
	for i, name := range []string{"jumbo", "queues"} {
		netbed.Cable(h.near, name, h.far, name, []int{1, 4}[i])
		for at, n := range []*netbed.Node{h.near, h.far} {
			if name == "jumbo" {
				n.MTU(name, 9000)
			}
			n.Give(name, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, byte(i + 2), byte(at + 1)}), 24))
		}
	}
	s := h.serve(t)
	pid := s.Cmd.Process.Pid
	const used = 0xc401803400 // what internal/privilege keeps
	effective := status(t, pid, "CapEff")
	if rights, err := strconv.ParseUint(effective, 16, 64); err != nil || rights&^used != 0 ||
		status(t, pid, "NoNewPrivs") != "1" {
		t.Errorf("the server keeps the rights %s of root, more than tests use: %v", effective, err)
	}
	const plain, local, jumbo, queues = "10.77.0.2", "[fe80::77:2%eth0]:7358", "10.77.2.2", "10.77.3.2"
	const paced = "--drops off --direction both --rate 4kpps --burst 1000 --streams 4 "
	const fromLocal = "--source-address fe80::77:3%eth0 "
	for i, c := range []struct {
		address, flags, engine string
		mtu                    int
	}{
		{plain, "--payload 64", "", 1500}, // at full rate
		{plain, "--drops off --payload 64 --streams 2 --rate 10kpps --burst 2000 --direction up,down,both", "udp",
			1500},
		{plain, "--drops off --payload 1460 --proto tcp --direction both", "tcp", 1500},
		{local, paced + fromLocal + "--payload 64 --engine udp", "udp", 1500},
		{local, paced + fromLocal + "--payload 64 --engine xdp", "xdp", 1500},
		{local, fromLocal + "--drops off --payload 64 --proto tcp --rate 1kpps --direction both", "tcp", 1500},
		{"fd77::2", paced + "--payload 1452 --engine xdp", "xdp", 1500},
		{jumbo, paced + "--payload 8972 --engine udp", "udp", 9000},
		{jumbo, paced + "--payload 3300 --engine xdp", "xdp", 9000},
		{queues, paced + "--payload 64 --engine xdp", "xdp", 1500},
	} {
		s.line[1] = c.address
		d := h.measured(t, s, "one-clock", c.flags+" --time 300ms --warmup 0s")
		for _, r := range d.Results {
			if c.engine != "" && r.Engine != c.engine {
				t.Errorf("%s %s: carried by %s (%v)", c.address, c.flags, r.Engine, r.EngineReason)
			}
			for _, f := range r.Flows {
				if f.Protocol == model.UDP && f.FrameBytes < f.PayloadBytes+46 {
					t.Errorf("%s %s: frames of %d B", c.address, c.flags, f.FrameBytes)
				}
			}
		}
		for _, m := range d.PathMTU {
			if m.Bytes != c.mtu {
				t.Errorf("%s %s: path MTU %d: %v", c.address, c.flags, m.Bytes, m.Why)
			}
		}
		took := status(t, pid, "RssAnon")                                  // beside the program's own pages, which a test at full rate reads more of
		if i == 2 && number(t, strings.TrimSuffix(took, " kB")) > 64<<10 { // it has sent and received
			t.Errorf("the server took %s of memory", took)
		}
	}
	s.line[1] = jumbo
	out, err := h.run(s, "--payload", "8972", "--engine", "xdp")
	const want = "an XDP frame lies in one memory page: 3300 B of payload at most"
	if peltproc.ExitCode(err) != 1 || !strings.Contains(out, want) {
		t.Errorf("%v, want %q:\n%s", err, want, out)
	}
	if said := s.Err.String(); strings.Count(said, "client connected from fe80::77:3") != 3 {
		t.Errorf("server: %s", said)
	}
}

// TestServeWithoutXDP: whose host shall load no program on a real interface is an end all the same. A bridge stands for
// a card: it is no virtual cable.
func TestServeWithoutXDP(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	h.far.Bridge("br0")
	h.far.Master("eth0", "br0")
	h.far.Link("eth0", func(l netlink.Link) error {
		return netlink.AddrDel(l, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 77, 0, 2),
			Mask: net.CIDRMask(24, 32)}})
	})
	h.far.Give("br0", netip.MustParsePrefix("10.77.0.2/24"))
	const why = "br0 there is a real interface, whose XDP needs pelt serve --xdp"
	for _, c := range []struct{ serve, engine, carried, reason string }{
		{"--port=7400", "udp:xdp", "", why},
		{"--port=7400", "auto", "udp", why},
		{"--xdp", "udp:xdp", "udp+xdp", "an XDP program on br0"},
	} {
		s, flags := h.serve(t, c.serve), "--payload 64 --time 500ms --warmup 50ms --drops off --engine "+c.engine
		if c.carried == "" {
			if out, err := h.run(s, strings.Fields(flags)...); err == nil || !strings.Contains(out, c.reason) {
				t.Errorf("%s with %s: %v\n%s", c.engine, c.serve, err, out)
			}
		} else {
			r := h.measured(t, s, "one-clock", flags).Results[0]
			if r.Engine != c.carried || !strings.Contains(finding.Why(model.Reasons(r.EngineReason)), c.reason) {
				t.Errorf("%s with %s: carried by %s: %v", c.engine, c.serve, r.Engine, r.EngineReason)
			}
		}
		_ = s.Cmd.Process.Signal(syscall.SIGTERM)
		_ = s.Wait()
	}
}

// TestTwoClocks: where the clocks are two there is no one-way delay, and the round trips of the probe flow stand in its
// place. The sender's TCP says when all of a transfer has arrived; which controls the far side lacks is said before the
// first trial.
func TestTwoClocks(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	h.otherClock = true
	s := h.serve(t)
	for _, flags := range []string{"--direction both --rate 5kpps --burst 1000", "--proto tcp --rate 1kpps"} {
		d := h.measured(t, s, "two-clocks", flags+" --drops off --payload 64 --time 600ms --warmup 100ms")
		for _, f := range d.Results[0].Flows {
			rtt := f.RoundTrip.P50
			if rtt <= 0 || rtt > 1e9 {
				t.Errorf("%s, flow %s: round trip %v ns, want some microseconds", flags, f.Name, rtt)
			}
		}
		if len(d.Host[0].TCPSettings) > 0 {
			t.Errorf("%s: settings of TCP without its figures: %v", flags, d.Host[0].TCPSettings)
		}
	}
	s.line[0] = "cc"
	const bytes = 10e6
	for _, c := range []struct{ flags, by string }{
		{"--control cubic,reno --bytes 10MB", model.ByAcknowledged},
		{"--control reno --bytes 10MB --http --streams 2 --direction down", model.ByAnswer},
		{"--control cubic+reno --time 600ms --stagger 300ms", ""},
	} {
		d := h.measured(t, s, "", c.flags)
		for _, r := range d.Results {
			f := r.Flows[0]
			done := f.TCP.Completion
			switch {
			case f.GoodputBPS < 1e6 || f.TCP.Control == "" || f.Delay != nil:
				t.Errorf("%s: %+v", c.flags, f)
			case c.by != "" && (done == nil || !done.Done || done.By != c.by || f.TCP.ReceivedBytes != bytes):
				t.Errorf("%s: completion %+v, %d B", c.flags, done, f.TCP.ReceivedBytes)
			case c.by == "":
				second := f.TCP.PerStream[len(f.TCP.PerStream)-1]
				// It is counted from when the first began, which may be late.
				late := second.Control == "reno" && second.StartSeconds > 0.1 && second.ReceivedBytes > 0
				if done != nil || len(f.TCP.PerStream) != 2 || !late {
					t.Errorf("%s: completion %+v, streams %+v", c.flags, done, f.TCP.PerStream)
				}
			}
		}
		for _, host := range d.Host {
			if host.TCPSettings["congestion_control"] == "" {
				t.Errorf("%s: the settings of %s are missing", c.flags, host.Node)
			}
		}
	}
	out, err := h.run(s, "--control", "nonesuch", "--direction", "down")
	if peltproc.ExitCode(err) != 1 || !strings.Contains(out, `before the first trial: `) ||
		!strings.Contains(out, `congestion control "nonesuch" is not in this kernel`) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestFarHostDies: kill -9 of the server ends the near side's sending, and what was measured is kept. Package fleet
// pulls the cable, ends either side, and has hosts die in set-up.
func TestFarHostDies(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	s := h.serve(t)
	path := filepath.Join(h.work, "out.json")
	flags := "--engine udp:xdp --payload 64 --rate 5kpps --time 50s --warmup 0s --repeats 1 --json " + path
	near := h.at(h.near).Start(append(s.line, strings.Fields(flags)...)...)
	waitPackets(t, h.far.Received, 12_000) // more than a second: its samples have come
	if !h.far.HasProgram("eth0") {
		t.Error("no XDP program receives: this test is to see it go")
	}
	s.Kill()
	start := time.Now()
	err := near.Wait()
	if took := time.Since(start); peltproc.ExitCode(err) != 1 || took > testenv.Patience {
		t.Errorf("near side ended with %v, want exit code 1, after %v, want 3 s and a little; stderr:\n%s", err, took,
			near.Err)
	}
	d, err := readDocument(path, "")
	if err != nil {
		t.Fatalf("what was measured is not kept: %v; stderr:\n%s", err, near.Err)
	}
	r := d.Results[0]
	if r.State != "aborted" || r.Flows[0].Attempted == 0 {
		t.Errorf("result is %s (%s) with %d packets; want an aborted one with those that both ends told of",
			r.State, finding.Why(r.Why), r.Flows[0].Attempted)
	}
	// Its side of the ledger is not observed, and nobody takes that for nothing lost there.
	for _, o := range r.Observed {
		if seen := o.Mode != ""; seen != (o.Node == "sender") || !seen && len(o.Why) == 0 {
			t.Errorf("the %s was observed in mode %v: %v", o.Node, o.Mode, o.Why)
		}
	}
	for _, n := range []*netbed.Node{h.near, h.far} {
		if n.HasProgram("eth0") {
			t.Errorf("%s still has an XDP program", n.Name)
		}
	}
}

// perSecond measures how fast a node counts packets, over 200 ms.
func perSecond(count func() uint64) float64 {
	start, from := time.Now(), count()
	time.Sleep(200 * time.Millisecond)
	return float64(count()-from) / time.Since(start).Seconds()
}

// TestServeOnce: a serve that is there for one client waits for it, and ends by itself once it is gone.
func TestServeOnce(t *testing.T) {
	t.Parallel()
	port := testenv.Port(t)
	host := peltproc.Host{T: t, Dir: t.TempDir(), Data: t.TempDir()}
	at := fmt.Sprintf("127.0.0.1:%d", port)
	server := host.Start("serve", "--once", "--code", "tiger-42-amber", "--listen", at)
	server.Await("pelt curve")
	out, err := host.Run("curve", at, "--code", "tiger-42-amber", "--payload", "64", "--rate", "1kpps", "--burst", "1000",
		"--time", "100ms", "--repeats", "2")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if code := server.Code(); code != 0 {
		t.Errorf("exit code %d\n%s", code, server)
	}
}
