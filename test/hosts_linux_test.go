package test

import (
	"bufio"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

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

// TestTwoHosts is the README's way: serve there, paste its line here.
func TestTwoHosts(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	s := h.serve(t)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	const used = 0xc401803400 // what internal/privilege keeps
	_, effective, _ := strings.Cut(string(status), "CapEff:\t")
	effective, _, _ = strings.Cut(effective, "\n")
	if rights, err := strconv.ParseUint(effective, 16, 64); err != nil || rights&^used != 0 || !strings.Contains(string(status), "NoNewPrivs:\t1\n") {
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
		out, err := h.run(s, append(strings.Fields(flags), "--payload", "64", "--direction", "both", "--time", "400ms",
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

// TestOtherTrafficGoesOn: another TCP connection is answered through the interfaces that a flood of frames takes, while
// programs come and go there.
func TestOtherTrafficGoesOn(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	testenv.Tool(t, "busybox")
	netcat := func(words string) *exec.Cmd { return exec.Command("busybox", strings.Fields("nc "+words)...) }
	far, near := peltproc.Host{T: t, In: h.far}, peltproc.Host{T: t, In: h.near}
	echo := far.Launch(netcat("-ll -p 22 -e cat"))
	const call = "10.77.0.2 22"
	testenv.Await(t, "an echo", func() bool { return near.Launch(netcat(call)).Wait() == nil })
	c := netcat(call)
	to, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	from, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	shell := near.Launch(c)

	s := h.serve(t)
	type ended struct {
		out string
		err error
	}
	flood := make(chan ended, 1)
	go func() {
		out, err := h.run(s, "--engine", "xdp:xdp", "--payload", "18,1472", "--direction", "up,both", "--time", "500ms", "--repeats", "1")
		flood <- ended{out, err}
	}()
	answers, slowest := 0, time.Duration(0)
	for lines := bufio.NewReader(from); ; answers++ {
		select {
		case e := <-flood:
			if e.err != nil {
				t.Errorf("%v\n%s\nserver: %s", e.err, e.out, s.Err)
			}
			t.Logf("%d answers, the slowest after %v\n%s", answers, slowest, e.out)
			if answers < 100 || slowest > testenv.Patience {
				t.Errorf("%d answers, the slowest after %v", answers, slowest)
			}
			return
		default:
		}
		began := time.Now()
		tooLate := time.AfterFunc(testenv.Patience, func() { _ = shell.Cmd.Process.Kill() })
		line := fmt.Sprintf("line %d\n", answers)
		if _, err := io.WriteString(to, line); err != nil {
			t.Fatalf("line %d: %v\n%s%s", answers, err, shell.Err, echo)
		}
		if got, err := lines.ReadString('\n'); err != nil || got != line {
			t.Fatalf("line %d came back as %q, %v\n%s%s", answers, got, err, shell.Err, echo)
		}
		tooLate.Stop()
		slowest = max(slowest, time.Since(began))
		time.Sleep(2 * time.Millisecond)
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
		args := append(strings.Fields(flags), "--payload", "64", "--time", "600ms", "--warmup", "100ms", "--repeats", "1", "--json", path)
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

// TestFarHostDies: kill -9 of the server ends the near side's sending, and what was measured is kept.
func TestFarHostDies(t *testing.T) {
	t.Parallel()
	farHostDies(t, "xdp", true)
}

// TestNightlyFarHostDies: of sockets, and by a pulled cable.
func TestNightlyFarHostDies(t *testing.T) {
	testenv.Nightly(t)
	t.Run("killed, sockets", func(t *testing.T) { farHostDies(t, "udp", true) })
	t.Run("cable pulled", func(t *testing.T) { farHostDies(t, "xdp", false) })
}

func farHostDies(t *testing.T, engine string, killed bool) {
	h := newHosts(t)
	s := h.serve(t)
	path := filepath.Join(h.work, "out.json")
	near := h.at(h.near).Start(append(s.line, "--engine", engine, "--payload", "64", "--rate", "5kpps", "--time", "50s", "--warmup", "0s", "--repeats", "1", "--json", path)...)
	waitPackets(t, h.far.Received, 12_000) // more than a second: its samples have come
	if engine == "xdp" && !h.far.HasProgram("eth0") {
		t.Error("no XDP program receives: this test is to see it go")
	}
	if killed {
		s.Kill()
	} else {
		h.far.Down("eth0")
	}
	start := time.Now()
	err := near.Wait()
	took := time.Since(start)
	if peltproc.ExitCode(err) != 1 {
		t.Errorf("near side ended with %v, want exit code 1; stderr:\n%s", err, near.Err)
	}
	if took > testenv.Patience {
		t.Errorf("near side ended %v after the cut, want 3 s and a little", took)
	}
	d, err := readDocument(path, "")
	if err != nil {
		t.Fatalf("what was measured is not kept: %v; stderr:\n%s", err, near.Err)
	}
	r := d.Results[0]
	f := r.Flows[0]
	if r.State != "aborted" || f.Attempted == 0 {
		t.Errorf("result is %s (%s) with %d packets; want an aborted one with the packets that both ends told of", r.State, r.Why, f.Attempted)
	}
	// Its side of the ledger is not observed, and nobody takes that for nothing lost there.
	for _, o := range r.Observed {
		if seen := o.Mode != ""; seen != (o.Node == "sender") || !seen && o.Why == "" {
			t.Errorf("the %s was observed in mode %q: %s", o.Node, o.Mode, o.Why)
		}
	}
	if engine == "udp" && f.Unheard == nil && !slices.ContainsFunc(f.Ledger.Checks, func(c model.Check) bool { return strings.Contains(c.Text, "not observed") }) {
		t.Errorf("no check says that the receiver was not observed: %s", ledgerText(f))
	}
	for _, n := range []*netbed.Node{h.near, h.far} {
		if killed && n.HasProgram("eth0") {
			t.Errorf("%s still has an XDP program", n.Name)
		}
	}
}

// TestNearHostDies: the far side stops sending.
func TestNearHostDies(t *testing.T) {
	t.Parallel()
	nearHostDies(t, "xdp")
}

func TestNightlyNearHostDies(t *testing.T) {
	testenv.Nightly(t)
	nearHostDies(t, "udp")
}

func nearHostDies(t *testing.T, engine string) {
	h := newHosts(t)
	s := h.serve(t)
	near := h.at(h.near).Start(append(s.line, "--engine", engine, "--payload", "64", "--rate", "5kpps", "--direction", "down", "--time", "60s", "--warmup", "0s", "--repeats", "1")...)
	waitPackets(t, h.near.Received, 1000)
	share := 0.0
	for limit := time.Now().Add(testenv.Patience); engine == "xdp" && share < 0.5 && time.Now().Before(limit); {
		share = busy(t, s.Cmd.Process.Pid)
	}
	if engine == "xdp" && share < 0.5 {
		t.Errorf("the sender of frames takes %.2f of a core: what follows would not see it", share)
	}
	near.Kill()
	start := time.Now()
	// Frames find no program at the other end any more and go nowhere: who
	// still makes them is known by the time it takes.
	for perSecond(h.near.Received) > 500 || busy(t, s.Cmd.Process.Pid) > 0.5 {
		if time.Since(start) > testenv.Patience {
			t.Fatalf("the far host still sends %v after the near one was killed", time.Since(start))
		}
	}
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

// TestNightlyStrangers: 10 000 hostile connections from 4096 addresses neither disturb a running test nor the
// server, nor keep out who knew the code before.
func TestNightlyStrangers(t *testing.T) {
	testenv.Nightly(t)
	t.Parallel()
	h := newHosts(t)
	s := h.serve(t, "--listen", "10.77.0.2", "--code", "our-own-code")
	strangers := netip.MustParsePrefix("198.18.0.0/20")
	h.near.Give("lo", strangers) // all of them are its own
	h.far.Route(strangers, h.near.IP(false))
	path := filepath.Join(h.work, "out.json")
	near := h.at(h.near).Start(append(s.line, "--payload", "64", "--rate", "5kpps", "--burst", "2000", "--time", "15s", "--repeats", "1", "--json", path)...)
	waitPackets(t, h.far.Received, 5000)
	if open := inside(t, h.far, "cat /proc/net/udp /proc/net/udp6 /proc/net/tcp /proc/net/tcp6"); everyAddress.MatchString(open) {
		t.Errorf("it listens on every address:\n%s", open)
	}
	short := []string{"--payload", "64", "--rate", "1kpps", "--burst", "1000", "--time", "100ms", "--warmup", "0", "--repeats", "1"}
	if out, err := h.run(s, short...); err != nil { // what a second client takes is no growth
		t.Fatalf("%v\n%s", err, out)
	}
	before := resident(t, s.Cmd.Process.Pid)
	attacked := make(chan time.Duration)
	began := time.Now()
	go func() {
		attack(t, h)
		attacked <- time.Since(began)
	}()
	time.Sleep(time.Second)
	right := time.Now()
	out, err := h.run(s, short...)
	if took := time.Since(right); err != nil {
		t.Errorf("the right code during the attack: %v\n%s", err, out)
	} else {
		t.Logf("the right code during the attack: a test of 0.1 s took %v", took)
	}
	grown := resident(t, s.Cmd.Process.Pid) - before
	t.Logf("10 000 hostile connections within %v; the server grew by %d KiB", <-attacked, grown)
	if n := strings.Count(s.Err.String(), "wrong code from"); n < 20 {
		t.Errorf("%d wrong codes; want all that strangers have together", n)
	}
	if grown > 20<<10 {
		t.Errorf("the server grew by %d KiB", grown)
	}
	if err := orInvalid(near.Wait()); err != nil {
		t.Fatalf("the test beside the strangers: %v\n%s", err, near.Err)
	}
	d := document(t, path, "")
	f := d.Results[0].Flows[0]
	t.Logf("the test beside them: %.4f %% lost, %.0f pps", f.LossRatio*100, f.ReceivePPS)
	if d.Results[0].State == "aborted" || f.LossRatio > 0.01 {
		t.Errorf("trial is %s (%s) with %.2f %% lost; strangers must not disturb it", d.Results[0].State, d.Results[0].Why, f.LossRatio*100)
	}
	bad, err := h.at(h.near).Run("curve", "10.77.0.2", "--code", "wrong-11-wrong", "--payload", "64")
	if err == nil || !strings.Contains(bad, "code") {
		t.Errorf("a wrong code gave %v: %s", err, bad)
	}
}

// everyAddress matches a socket on port 7358 or 7359 that has no address of its own.
var everyAddress = regexp.MustCompile(`: 0+:1CB[EF] `)

// attack is 10 000 connections from inside the near namespace, 100 at a time.
func attack(t *testing.T, h hosts) {
	self, err := os.Executable()
	if err != nil {
		t.Error(err)
		return
	}
	c := exec.Command(self, "-test.run", "^TestAttacker$")
	c.Env = append(os.Environ(), "PELT_TEST_ATTACK=10.77.0.2:7358", peltproc.BinaryEnv+"="+peltproc.Binary)
	if p := h.at(h.near).Launch(c); p.Wait() != nil {
		t.Errorf("attacker: %s", p)
	}
}

// TestAttacker is the attacker's process, started by attack alone.
func TestAttacker(t *testing.T) {
	addr := os.Getenv("PELT_TEST_ATTACK")
	if addr == "" {
		return
	}
	from := func(n int) net.Dialer {
		return net.Dialer{Timeout: time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(198, 18, byte(n>>8&15), byte(n))}}
	}
	var wg sync.WaitGroup
	tokens := make(chan struct{}, 100)
	for n := range 9000 {
		tokens <- struct{}{}
		wg.Go(func() {
			defer func() { <-tokens }()
			d := from(n)
			c, err := d.Dial("tcp", addr)
			if err != nil {
				return
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(time.Second))
			noise := make([]byte, 512)
			_, _ = rand.Read(noise)
			if n%3 == 0 {
				_, _ = c.Write(noise)
				return
			}
			secure := tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"pelt-control/5"}})
			if err := secure.Handshake(); err != nil || n%3 == 1 {
				return
			}
			noise[0] = 0 // a guess
			_, _ = secure.Write(noise[:1+16+32])
			if _, err := io.ReadFull(secure, noise[:32]); err == nil {
				_, _ = secure.Write(noise[:64])
				_, _ = secure.Read(noise)
			}
		})
	}
	wg.Wait()
	// These take all places for handshakes, so they come last.
	for n := range 1000 {
		d := from(n)
		if c, err := d.Dial("tcp", addr); err == nil {
			defer c.Close()
		}
	}
	time.Sleep(2 * time.Second)
}

// TestMemoryStaysSmall: both ends of a full-rate trial stay under 100 MiB
// resident, and do not grow while it runs.
func TestMemoryStaysSmall(t *testing.T) {
	h := newHosts(t)
	s := h.serve(t)
	near := h.at(h.near).Start(append(s.line, "--payload", "18", "--time", "60s", "--repeats", "1")...)
	waitPackets(t, h.far.Received, 1000)
	first := map[string]int{}
	const limit = 100 << 10
	for i := range 5 {
		time.Sleep(time.Second)
		for name, pid := range map[string]int{"near": near.Cmd.Process.Pid, "far": s.Cmd.Process.Pid} {
			kib := resident(t, pid)
			t.Logf("%d s: %s %d MiB resident", i+1, name, kib>>10)
			if kib > limit {
				t.Errorf("%s is %d KiB resident, want under %d", name, kib, limit)
			}
			if i == 0 {
				first[name] = kib
			} else if kib > first[name]+(8<<10) {
				t.Errorf("%s grew from %d to %d KiB during the trial", name, first[name], kib)
			}
		}
	}
	if err := near.Cmd.Process.Signal(os.Interrupt); err != nil { // not a fixed time after which samples would come too late
		t.Fatal(err)
	}
	if err := near.Wait(); peltproc.ExitCode(err) != 130 {
		t.Errorf("interrupted, pelt ended with %v; want exit code 130", err)
	}
}

// resident reads VmRSS in KiB.
func resident(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no VmRSS of %d", pid)
	return 0
}
