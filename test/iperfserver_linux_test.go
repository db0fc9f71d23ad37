package test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"

	"pelt/internal/netbed"
	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// iperfClients starts pelt serve --iperf3, and returns what runs the real iperf3 against it.
func iperfClients(t *testing.T, args ...string) (host peltproc.Host, run func(line string) (string, error)) {
	t.Helper()
	testenv.Tool(t, "iperf3")
	host = peltproc.Host{T: t, Dir: t.TempDir(), Data: t.TempDir()}
	var ports [2]int
	for i := range ports {
		ports[i] = testenv.Port(t)
	}
	line := fmt.Sprintf("serve --listen 127.0.0.1:%d --iperf3=%d", ports[0], ports[1])
	p := host.Start(append(strings.Fields(line), args...)...)
	p.Await("--get-server-output")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p)
		}
	})
	return host, func(line string) (string, error) {
		c := exec.Command("iperf3", strings.Fields(fmt.Sprintf("-c 127.0.0.1 -p %d %s", ports[1], line))...)
		out, err := c.CombinedOutput()
		return string(out), err
	}
}

var explained = regexp.MustCompile(`pelt explain (\S+)`)

// iperfRun has iperf3 of one host test another one that runs pelt serve --iperf3. It returns what the client says, and
// the run that is kept of its test.
func iperfRun(t *testing.T, from, to *netbed.Node, line string) (said iperfEnd, r model.Result) {
	t.Helper()
	testenv.Tool(t, "iperf3")
	work := t.TempDir()
	host := at(to, work)
	server := host.Start("serve", "--iperf3")
	server.Await("--get-server-output")
	words := strings.Fields("-J --get-server-output " + line + " -c " + to.IP(false).String())
	client := peltproc.Host{T: t, In: from}.Launch(exec.Command("iperf3", words...))
	err := client.Wait()
	if err != nil || json.Unmarshal([]byte(client.Out.String()), &said) != nil {
		t.Fatalf("%v\n%s\n%s", err, client, server)
	}
	id := explained.FindStringSubmatch(said.Output)
	if id == nil {
		t.Fatalf("the client is told %q", said.Output)
	}
	file := filepath.Join(work, "run.json")
	if out, err := host.Run("report", id[1], "--json", file); orInvalid(err) != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return said, document(t, file, "").Results[0]
}

// TestIperfClientsMany: twenty clients at once, from one host. None is refused, and none sends more than it may.
func TestIperfClientsMany(t *testing.T) {
	t.Parallel()
	const bps, seconds = 100e3, 1
	_, run := iperfClients(t, "--max-sessions", "20", "--max-rate", "2mbit")
	var clients sync.WaitGroup
	for i := range 20 {
		line := "-u -l 200"
		if i%2 > 0 {
			line = "-l 1000"
		}
		clients.Go(func() {
			text, err := run(fmt.Sprintf("-J -b %g -t %d %s", bps, seconds, line))
			var said iperfEnd
			if err != nil || json.Unmarshal([]byte(text), &said) != nil {
				t.Errorf("%s: %v\n%s", line, err, text)
				return
			}
			bits := max(said.End.Sum.Packets*200, said.End.Sent.Bytes) * 8
			if bits == 0 || float64(bits) > bps*seconds*1.2 {
				t.Errorf("%s: %d bits in %d s", line, bits, seconds)
			}
		})
	}
	clients.Wait()
}

// TestIperfClientSendsAgain: behind a router with a short queue, a client over TCP is told how much it sent again. What
// it counted and what came are equal, for an amount ends the test.
func TestIperfClientSendsAgain(t *testing.T) {
	t.Parallel()
	nodes := netbed.Chain(t, "client", "router", "server")
	nodes[1].TBF("to-server", netlink.HANDLE_ROOT, 2_500_000, 20_000)
	said, r := iperfRun(t, nodes[0], nodes[2], "-n 2M")
	if !strings.Contains(said.Output, " again") {
		t.Errorf("the client is told %q", said.Output)
	}
	f := r.Flows[0]
	if f.TCP == nil || f.TCP.ReceivedBytes != said.End.Received.Bytes || f.TCP.SentBytes != said.End.Sent.Bytes ||
		f.TCP.Retransmits != said.End.Sent.Retransmits || f.TCP.SegmentsIn == 0 || f.GoodputBPS == 0 ||
		f.TCP.ReceivedBytes != f.TCP.SentBytes || r.Why.Has(model.SenderStalled) {
		t.Fatalf("iperf3 says %+v, the run %v, %+v", said.End, r.Why, f.TCP)
	}
	if f.Lost == 0 || f.Lost != said.End.Sent.Retransmits {
		t.Errorf("iperf3 sent %d again, the run %d: %+v", said.End.Sent.Retransmits, f.Lost, f.Ledger)
	}
}

// TestIperfServedQueue: what an iperf3 client misses of a test with -R died in this host's own queue, and both are told so.
func TestIperfServedQueue(t *testing.T) {
	t.Parallel()
	nodes := netbed.Chain(t, "client", "server")
	nodes[1].TBF("eth0", netlink.HANDLE_ROOT, 250_000, 20_000)
	said, r := iperfRun(t, nodes[0], nodes[1], "-u -R -l 1000 -b 4M -t 1")
	f := r.Flows[0]
	t.Logf("iperf3 says %+v, %+v; the run %d of %d lost, %+v; told %q", said.End.Sent, said.End.Received, f.Lost, f.Attempted,
		f.Ledger.Lines, said.Output)
	if f.Attempted != said.End.Sent.Packets || f.Lost < said.End.Received.Lost || f.Lost == 0 {
		t.Errorf("%d of %d lost", f.Lost, f.Attempted)
	}
	const waiting = 20 // in the queue's 20 kB when the client leaves: it counts them as lost, and the queue does not
	for _, l := range f.Ledger.Lines {
		if l.Host == model.Receiver && l.Layer == model.LayerSenderQdisc && l.Packets > 0 && f.Lost-l.Packets <= waiting {
			return
		}
	}
	t.Errorf("%d lost: %+v", f.Lost, f.Ledger)
}

// TestIperfClientVanishes: the place of a client that is gone without a word is another's.
func TestIperfClientVanishes(t *testing.T) {
	t.Parallel()
	testenv.Tool(t, "iperf3")
	for _, line := range []string{"-u -b 100K -n 1G", "-b 1M -n 1G", "-R -u -b 100K -n 1G", "-R -b 1M -n 1G"} { // which have no end of their own
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			h := newHosts(t)
			server := h.at(h.far).Start(strings.Fields("serve --iperf3 --max-sessions 1")...)
			server.Await("--get-server-output")
			client := func(line string) *peltproc.Process {
				c := exec.Command("iperf3", strings.Fields("-c 10.77.0.2 --forceflush "+line)...)
				return peltproc.Host{T: t, In: h.near}.Launch(c)
			}
			gone := client(line)
			gone.Await("sec")
			if full := client("-u -t 1"); full.Wait() == nil {
				t.Errorf("a second client is served\n%s", full)
			}
			undo := h.near.Down("eth0")
			server.Await("it has not answered for 9 s")
			gone.Kill()
			undo()
			if next := client("-u -t 1"); next.Wait() != nil {
				t.Errorf("%s\n%s", next, server)
			}
		})
	}
}

// TestIperfClientsRefused: what pelt does not take is refused by the words that iperf3 has for it.
func TestIperfClientsRefused(t *testing.T) {
	t.Parallel()
	host, run := iperfClients(t, "--max-rate", "1mbit", "--max-time", "5s")
	for _, c := range []struct{ line, want string }{
		{"-t 1", "total required bandwidth is larger than server limit"},
		{"-b 2M -t 1", "total required bandwidth is larger than server limit"},
		{"-R -t 1", "total required bandwidth is larger than server limit"},
		{"-b 600K -t 1 --bidir", "total required bandwidth is larger than server limit"},
		{"-u -t 1 -R -b 2M", "total required bandwidth is larger than server limit"},
		{"-u -t 1 -R -b 0", "total required bandwidth is larger than server limit"},
		{"-u -t 6 -R -b 100K", "37"},
		{"-u -t 1 -b 2M", "total required bandwidth is larger than server limit"},
		{"-u -t 1 -b 600K -P 2", "total required bandwidth is larger than server limit"},
		{"-u -t 1 -b 0", "total required bandwidth is larger than server limit"},
		{"-u -t 6 -b 100K", "37"}, // has no words in 3.12
	} {
		if out, err := run(c.line); err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v\n%s\nwant %s", c.line, err, out, c.want)
		}
	}
	if out, _ := host.Run("list"); strings.Contains(out, "soak") {
		t.Errorf("a refused test is kept:\n%s", out)
	}
}
