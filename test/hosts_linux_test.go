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

	"pelt/internal/netbed"
	"pelt/internal/peltproc"
	"pelt/internal/testenv"
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
	if err != nil {
		t.Fatal(err)
	}
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

// TestTwoHosts is the README's way: serve there, paste its line here.
func TestTwoHosts(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	s := h.serve(t)
	pid := s.Cmd.Process.Pid
	const used = 0xc401803400 // what internal/privilege keeps
	effective := status(t, pid, "CapEff")
	if rights, err := strconv.ParseUint(effective, 16, 64); err != nil || rights&^used != 0 || status(t, pid, "NoNewPrivs") != "1" {
		t.Errorf("the server keeps the rights %s of root, more than tests use: %v", effective, err)
	}
	for _, c := range []struct {
		name  string
		flags string
	}{
		{"up at full rate", "--payload 64,1472"},
		{"both ways, paced", "--payload 64,1472 --direction up,down,both --rate 10kpps --burst 2000"},
		{"tcp both ways", "--proto tcp --payload 64,1460 --direction both"},
		{"two streams", "--payload 64 --streams 2 --rate 20kpps --burst 4000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(h.work, "out.json")
			out, err := h.run(s, append(strings.Fields(c.flags), "--time", "400ms", "--warmup", "100ms", "--repeats", "1", "--json", path)...)
			if err != nil {
				t.Fatalf("%v\n%s\nserver: %s", err, out, s.Err)
			}
			d := document(t, path, "one-clock")
			for _, r := range d.Results {
				for _, f := range r.Flows {
					if f.Received == 0 {
						t.Errorf("cell %v flow %s: %s (%s), received %d", r.Cell, f.Name, r.State, r.Why, f.Received)
					}
				}
			}
		})
	}
	if most := status(t, pid, "VmHWM"); number(t, strings.TrimSuffix(most, " kB")) > 100<<10 { // it has sent and received
		t.Errorf("the server took %s of memory", most)
	}
}

// TestLinkLocal: a link-local target is reached through its interface, by control, data and the search of the path MTU.
// The control connection leaves from the address that the test packets leave from.
func TestLinkLocal(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	h.far.Give("eth0", netip.MustParsePrefix("fe80::77:2/64"))
	h.near.Give("eth0", netip.MustParsePrefix("fe80::77:3/64"))
	s, path := h.serve(t), filepath.Join(h.work, "out.json")
	for _, flags := range []string{"--rate 10kpps --burst 2000", "--engine xdp --rate 10kpps", "--proto tcp"} {
		s.line[1] = "[fe80::77:2%eth0]:7358"
		out, err := h.run(s, append(strings.Fields(flags), "--drops", "off", "--payload", "64", "--direction", "both", "--time", "400ms",
			"--warmup", "100ms", "--repeats", "1", "--source-address", "fe80::77:3%eth0", "--json", path)...)
		if err != nil && !strings.Contains(out, "not valid") {
			t.Fatalf("%s: %v\n%s\nserver: %s", flags, err, out, s.Err)
		}
		d := document(t, path, "one-clock")
		for _, f := range d.Results[0].Flows {
			if f.Received == 0 {
				t.Errorf("%s: flow %s: received nothing: %s", flags, f.Name, d.Results[0].Why)
			}
		}
		for _, m := range d.PathMTU {
			if m.Bytes != 1500 {
				t.Errorf("%s: path MTU %d: %s", flags, m.Bytes, m.Why)
			}
		}
	}
	if said := s.Err.String(); strings.Count(said, "client connected from fe80::77:3") != 3 {
		t.Errorf("server: %s", said)
	}
}

// TestClientFromAnotherNetwork: whoever is in no network of the serving host gets 100 Mbit/s and an hour, and is told so
// before any traffic.
func TestClientFromAnotherNetwork(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	strange := netip.MustParsePrefix("198.51.100.7/32")
	h.near.Give("lo", strange)
	h.near.Link("eth0", func(l netlink.Link) error {
		return netlink.RouteReplace(&netlink.Route{LinkIndex: l.Attrs().Index, Src: strange.Addr().AsSlice(), Scope: netlink.SCOPE_LINK,
			Dst: &net.IPNet{IP: net.IPv4(10, 77, 0, 0), Mask: net.CIDRMask(24, 32)}})
	})
	h.far.Route(strange, h.near.IP(false))
	s := h.serve(t)
	short := []string{"--payload", "64", "--warmup", "50ms", "--repeats", "1", "--drops", "off"}
	for _, c := range []struct{ flags, want string }{
		{"--time 200ms", "that host allows 100 Mbit/s to other networks (--max-rate there), so give --rate 100mbit"},
		{"--time 200ms --proto tcp", "that host allows 100 Mbit/s to other networks (--max-rate there), so give --rate 100mbit"},
		{"--time 200ms --rate 101mbit", "the flows ask for 101 Mbit/s together; that host allows 100 Mbit/s"},
		{"--time 1h --rate 1kpps", "with its warm-up; that host allows 1 h (--max-time there)"},
	} {
		out, err := h.run(s, append(short, strings.Fields(c.flags)...)...)
		if err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v\n%s\nwant %s", c.flags, err, out, c.want)
		}
	}
	if said := s.Err.String(); strings.Contains(said, "trial started: up") || !strings.Contains(said, "client connected from 198.51.100.7") {
		t.Errorf("server: %s", said)
	}
	if out, err := h.run(s, append(short, "--time", "200ms", "--rate", "1kpps", "--burst", "100")...); err != nil {
		t.Errorf("what is allowed: %v\n%s\nserver: %s", err, out, s.Err)
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
		return netlink.AddrDel(l, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 77, 0, 2), Mask: net.CIDRMask(24, 32)}})
	})
	h.far.Give("br0", netip.MustParsePrefix("10.77.0.2/24"))
	short := []string{"--payload", "64", "--time", "300ms", "--warmup", "100ms", "--repeats", "1", "--drops", "off"}
	const why = "br0 there is a real interface, whose XDP needs pelt serve --xdp"
	for _, c := range []struct{ serve, engine, carried, reason string }{
		{"--port=7400", "udp:xdp", "", why}, {"--port=7400", "auto", "udp", why}, {"--xdp", "udp:xdp", "udp+xdp", "an XDP program on br0"},
	} {
		s, path := h.serve(t, c.serve), filepath.Join(h.work, "out.json")
		out, err := h.run(s, append(short, "--engine", c.engine, "--json", path)...)
		_ = s.Cmd.Process.Signal(syscall.SIGTERM)
		_ = s.Wait()
		if c.carried == "" {
			if err == nil || !strings.Contains(out, c.reason) {
				t.Errorf("%s with %s: %v\n%s", c.engine, c.serve, err, out)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%v\n%s\nserver: %s", err, out, s.Err)
		}
		r := document(t, path, "one-clock").Results[0]
		if r.Engine != c.carried || !strings.Contains(r.EngineReason, c.reason) || r.Flows[0].Received == 0 {
			t.Errorf("%s with %s: carried by %s: %s", c.engine, c.serve, r.Engine, r.EngineReason)
		}
	}
}

// TestTwoClocks: where the clocks are two there is no one-way delay, and the
// round trips of the probe flow stand in its place.
func TestTwoClocks(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	h.otherClock = true
	s := h.serve(t)
	path := filepath.Join(h.work, "out.json")
	for _, flags := range []string{"--direction both --rate 5kpps --burst 1000", "--proto tcp"} {
		args := append(strings.Fields(flags), "--drops", "off", "--payload", "64", "--time", "600ms", "--warmup", "100ms", "--repeats", "1", "--json", path)
		if out, err := h.run(s, args...); err != nil {
			t.Fatalf("%s: %v\n%s\nserver: %s", flags, err, out, s.Err)
		}
		d := document(t, path, "two-clocks")
		for _, f := range d.Results[0].Flows {
			rtt := f.RoundTrip.P50
			if rtt <= 0 || rtt > 1e9 {
				t.Errorf("%s, flow %s: round trip %v ns, want some microseconds", flags, f.Name, rtt)
			}
		}
	}
}

// TestFarHostDies: kill -9 of the server ends the near side's sending, and what was measured is kept. Package fleet pulls
// the cable.
func TestFarHostDies(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	s := h.serve(t)
	path := filepath.Join(h.work, "out.json")
	near := h.at(h.near).Start(append(s.line, "--engine", "xdp", "--payload", "64", "--rate", "5kpps", "--time", "50s", "--warmup", "0s", "--repeats", "1", "--json", path)...)
	waitPackets(t, h.far.Received, 12_000) // more than a second: its samples have come
	if !h.far.HasProgram("eth0") {
		t.Error("no XDP program receives: this test is to see it go")
	}
	s.Kill()
	start := time.Now()
	err := near.Wait()
	if took := time.Since(start); peltproc.ExitCode(err) != 1 || took > testenv.Patience {
		t.Errorf("near side ended with %v, want exit code 1, after %v, want 3 s and a little; stderr:\n%s", err, took, near.Err)
	}
	d, err := readDocument(path, "")
	if err != nil {
		t.Fatalf("what was measured is not kept: %v; stderr:\n%s", err, near.Err)
	}
	r := d.Results[0]
	if r.State != "aborted" || r.Flows[0].Attempted == 0 {
		t.Errorf("result is %s (%s) with %d packets; want an aborted one with the packets that both ends told of", r.State, r.Why, r.Flows[0].Attempted)
	}
	// Its side of the ledger is not observed, and nobody takes that for nothing lost there.
	for _, o := range r.Observed {
		if seen := o.Mode != ""; seen != (o.Node == "sender") || !seen && o.Why == "" {
			t.Errorf("the %s was observed in mode %q: %s", o.Node, o.Mode, o.Why)
		}
	}
	for _, n := range []*netbed.Node{h.near, h.far} {
		if n.HasProgram("eth0") {
			t.Errorf("%s still has an XDP program", n.Name)
		}
	}
}

// TestNearHostDies: the far side stops sending.
func TestNearHostDies(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	s := h.serve(t)
	near := h.at(h.near).Start(append(s.line, "--engine", "xdp", "--payload", "64", "--rate", "5kpps", "--direction", "down", "--time", "60s", "--warmup", "0s", "--repeats", "1")...)
	waitPackets(t, h.near.Received, 1000)
	testenv.Await(t, "a sender of frames that takes half of a core", func() bool { return busy(t, s.Cmd.Process.Pid) > 0.5 })
	near.Kill()
	// Frames find no program at the other end any more and go nowhere: who
	// still makes them is known by the time it takes.
	testenv.Await(t, "the far host to stop", func() bool {
		return perSecond(h.near.Received) < 500 && busy(t, s.Cmd.Process.Pid) < 0.5
	})
	if h.near.HasProgram("eth0") {
		t.Error("the killed one's XDP program is still there")
	}
	if out, err := h.run(s, "--payload", "64", "--rate", "1kpps", "--burst", "1000", "--time", "100ms", "--repeats", "1"); err != nil {
		t.Errorf("the server does not serve the next client: %v\n%s", err, out)
	}
}

// busy is the share of one core that a process takes, over 200 ms.
func busy(t *testing.T, pid int) float64 {
	t.Helper()
	read := func() (ticks float64) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		for _, word := range strings.Fields(rest)[11:13] { // utime and stime, proc(5)
			n, err := strconv.ParseFloat(word, 64)
			if err != nil {
				t.Fatal(err)
			}
			ticks += n
		}
		return ticks
	}
	start, from := time.Now(), read()
	time.Sleep(200 * time.Millisecond)
	const hertz = 100 // of the clock that user programs are told of
	return (read() - from) / hertz / time.Since(start).Seconds()
}

// perSecond measures how fast a node counts packets, over 200 ms.
func perSecond(count func() uint64) float64 {
	start, from := time.Now(), count()
	time.Sleep(200 * time.Millisecond)
	return float64(count()-from) / time.Since(start).Seconds()
}
