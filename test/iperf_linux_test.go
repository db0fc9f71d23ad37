package test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pelt/internal/netbed"
	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// TestIperfBuffers: the socket of the end that receives has no room for a flood. The account names its buffer: that of a
// server on this host, whose kernel says where the packets ended, and that of this host for what a server on another one
// sends.
func TestIperfBuffers(t *testing.T) {
	testenv.Root(t)
	testenv.Tool(t, "iperf3")
	t.Parallel()
	b, work := netbed.New(t, 1, false), t.TempDir()
	server := peltproc.Host{T: t, In: b.Sender, Dir: work}.Launch(exec.Command("iperf3", "-s", "--forceflush"))
	server.Await("Server listening")
	for _, c := range []struct {
		at             *netbed.Node
		line, receives string
	}{
		{b.Sender, "curve iperf3://127.0.0.1", model.Receiver},
		{b.Receiver, "curve -R iperf3://" + netbed.Address(false, 1).String(), model.Sender},
	} {
		near := peltproc.Host{T: t, In: c.at, Dir: work, Data: t.TempDir()}
		out, err := near.Run(strings.Fields(c.line + " --payload 64 --rate max --receive-buffer 4608 --time 500ms " +
			"--repeats 1 --json o.json")...)
		if orInvalid(err) != nil {
			t.Fatalf("%v\n%s\n%s", err, out, server)
		}
		f := decoded(t, filepath.Join(work, "o.json")).Results[0].Flows[0]
		if f.Lost == 0 || !slices.ContainsFunc(f.Ledger.Lines, func(l model.Line) bool {
			return l.Host == c.receives && l.Layer == model.LayerReceiverBuffer && 10*l.Packets >= 9*f.Lost &&
				(c.at == b.Sender || l.Confidence == "exact-seq")
		}) {
			t.Errorf("%s: %d of %d lost: %+v\n%s", c.line, f.Lost, f.Attempted, f.Ledger, out)
		}
	}
}
