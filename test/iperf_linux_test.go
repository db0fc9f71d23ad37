package test

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pelt/internal/netbed"
	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// iperfServer starts the real iperf3, and returns its target.
func iperfServer(t *testing.T, args ...string) (target string, p *peltproc.Process) {
	t.Helper()
	testenv.Tool(t, "iperf3")
	port, err := testenv.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	host := peltproc.Host{T: t, Dir: t.TempDir(), Data: t.TempDir()}
	line := append([]string{"-s", "-B", "127.0.0.1", "-p", fmt.Sprint(port), "--forceflush"}, args...)
	p = host.Launch(exec.Command("iperf3", line...))
	p.Await("Server listening")
	return fmt.Sprintf("iperf3://127.0.0.1:%d", port), p
}

// TestIperfServer: a curve to the real iperf3. Its own report and pelt's agree, and the account balances.
func TestIperfServer(t *testing.T) {
	t.Parallel()
	target, server := iperfServer(t)
	work := t.TempDir()
	host := peltproc.Host{T: t, Dir: work, Data: t.TempDir()}
	out, err := host.Run(strings.Fields("curve " + target + " --payload 16,200 --streams 3 --rate 300pps --time 700ms " +
		"--repeats 1 --json curve.json")...)
	if orInvalid(err) != nil {
		t.Fatalf("%v\n%s\n%s", err, out, server)
	}
	d := document(t, filepath.Join(work, "curve.json"), "")
	if len(d.Results) != 2 || !strings.Contains(out, "at the receiver reported what was received") {
		t.Fatalf("%d results\n%s", len(d.Results), out)
	}
	for _, r := range d.Results {
		f := r.Flows[0]
		if f.Attempted < 50 || f.Peer == nil || f.Received+f.Lost != f.Attempted || f.Peer.Highest+f.Peer.Tail != f.Attempted {
			t.Errorf("%d B: %d attempted, %d received, %d lost, peer %+v", f.PayloadBytes, f.Attempted, f.Received, f.Lost, f.Peer)
		}
		for _, c := range f.Ledger.Checks {
			if !c.Held && c.Name != "udp" && c.Name != "filter" { // which other programs of this machine move
				t.Errorf("%d B: check %s is broken: %s", f.PayloadBytes, c.Name, c.Text)
			}
		}
		// iperf3 prints lost/all of the three streams, and the sum behind them.
		if want := fmt.Sprintf("%d/%d ", f.Peer.Gaps, f.Peer.Highest); !strings.Contains(server.String(), want) {
			t.Errorf("%d B: iperf3 does not say %q\n%s", f.PayloadBytes, want, server)
		}
	}
}

// TestIperfSocketBuffer: the server's socket has no room for a flood. It is on this machine, whose kernel says where the
// packets ended.
func TestIperfSocketBuffer(t *testing.T) {
	testenv.Root(t)
	t.Parallel()
	target, server := iperfServer(t)
	work := t.TempDir()
	host := peltproc.Host{T: t, Dir: work, Data: t.TempDir()}
	out, err := host.Run(strings.Fields("curve " + target + " --payload 64 --rate max --receive-buffer 4608 --time 500ms " +
		"--repeats 1 --json curve.json")...)
	if orInvalid(err) != nil {
		t.Fatalf("%v\n%s\n%s", err, out, server)
	}
	f := document(t, filepath.Join(work, "curve.json"), "").Results[0].Flows[0]
	if f.Lost == 0 {
		t.Fatalf("nothing was lost of %d: %+v", f.Attempted, f.Peer)
	}
	for _, l := range f.Ledger.Lines {
		if l.Host == model.Receiver && l.Layer == model.LayerReceiverBuffer && 10*l.Packets >= 9*f.Lost {
			return
		}
	}
	t.Errorf("%d lost: %+v", f.Lost, f.Ledger)
}

// TestIperfNearBuffer: a receive buffer of a few packets at the near end has no room for what an iperf3 server on another host
// sends. The account names each packet that this host's socket dropped.
func TestIperfNearBuffer(t *testing.T) {
	testenv.Root(t)
	testenv.Tool(t, "iperf3")
	t.Parallel()
	b := netbed.New(t, 1, false)
	work := t.TempDir()
	near := peltproc.Host{T: t, In: b.Receiver, Dir: work, Data: t.TempDir()}
	server := peltproc.Host{T: t, In: b.Sender, Dir: work}.Launch(exec.Command("iperf3", "-s", "--forceflush"))
	server.Await("Server listening")
	out, err := near.Run("curve", "iperf3://"+netbed.Address(false, 1).String(), "-R", "--payload", "64", "--rate", "max",
		"--receive-buffer", "4608", "--time", "500ms", "--repeats", "1", "--json", "o.json")
	if orInvalid(err) != nil {
		t.Fatalf("%v\n%s\n%s", err, out, server)
	}
	f := decoded(t, filepath.Join(work, "o.json")).Results[0].Flows[0]
	t.Logf("%d sent, %d lost; %+v", f.Attempted, f.Lost, f.Ledger.Lines)
	if f.Lost == 0 {
		t.Fatalf("nothing was lost of %d\n%s", f.Attempted, out)
	}
	for _, l := range f.Ledger.Lines {
		if l.Host == model.Sender && l.Layer == model.LayerReceiverBuffer && l.Confidence == "exact-seq" &&
			10*l.Packets >= 9*f.Lost {
			return
		}
	}
	t.Errorf("%d lost: %+v\n%s", f.Lost, f.Ledger, out)
}

// TestIperfRefused: one line says what is wrong, and nothing is sent.
func TestIperfRefused(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	closed.Close()
	for _, c := range []struct {
		line, want string
		code       int
	}{
		{"curve iperf3://" + nobody + " --payload 64", "nothing listens there (connection refused): start iperf3 -s", 1},
		{"curve iperf3://127.0.0.1 -R --rate 1kpps --profile poisson", "an iperf3 server sends packets evenly for a time", 2},
		{"cc iperf3://127.0.0.1 --bytes 1MB", "not single connections or transfers", 2},
		{"cc iperf3://127.0.0.1 -R --control cubic+reno,cubic", "one congestion control for all streams", 2},
		{"curve iperf3://127.0.0.1 --warmup 1s", "--warmup: an iperf3 server counts all packets: want 0", 2},
		{"curve iperf3://127.0.0.1 --payload mtu", "answers no probes, which this test needs", 2},
		{"curve iperf3://127.0.0.1 --engine xdp", "--engine: sockets carry what an iperf3 server sends and gets: want udp", 2},
		{"latency iperf3://127.0.0.1", "answers no probes, which this test needs", 2},
		{"curve iperf3://", "want HOST[:PORT]", 2},
		{"curve iperf3://192.0.2.1 --yes --payload 64", "is a public address", 2},
	} {
		out, err := (peltproc.Host{T: t, Dir: t.TempDir(), Data: t.TempDir()}).Run(strings.Fields(c.line)...)
		if code := peltproc.ExitCode(err); code != c.code || !strings.Contains(out+fmt.Sprint(err), c.want) {
			t.Errorf("%s: exit code %d\n%s%v\nwant %d, %s", c.line, code, out, err, c.code, c.want)
		}
	}
}
