package test

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"pelt/internal/netbed"
	"pelt/internal/peltproc"
)

// TestDevice: two hosts have one address, each at a cable of its own. Only --dev says which of them is called.
//
//	other 10.77.0.2 ──── 10.77.0.1 eth0 near eth1 10.77.0.1 ──── 10.77.0.2 far, where pelt serve runs
func TestDevice(t *testing.T) {
	t.Parallel()
	pair, work := netbed.Chain(t, "near", "other"), t.TempDir()
	near, far := pair[0], netbed.Namespace(t)
	far.Name = "far"
	netbed.Cable(near, "eth1", far, "eth0", 1)
	near.Give("eth1", netip.MustParsePrefix("10.77.0.1/24"))
	far.Give("eth0", netip.MustParsePrefix("10.77.0.2/24"))
	near.AwaitCarrier("eth1", true)
	far.AwaitCarrier("eth0", true)
	at(far, work).Start("serve", "--code", "tiger-42-amber", "--iperf3").
		Await("data on 7359/udp and 7359/tcp")

	call := func(line string) (string, error) {
		h := at(near, work)
		h.Env = []string{"PELT_CODE=tiger-42-amber"}
		return h.Run(strings.Fields(line)...)
	}
	const short = " --payload 64 --rate 1kpps --time 300ms --repeats 1 "
	path := filepath.Join(work, "run.json")
	for _, line := range []string{
		"curve 10.77.0.2 --dev eth1 --warmup 100ms --direction both --json " + path + short,
		"curve 10.77.0.2 --dev eth1 --warmup 100ms --proto tcp --json " + path + short,
		"router 10.77.0.2 --dev eth1 --proto tcp --connections rate --direction up --idle-rate 0 --json " + path +
			" --time 300ms --warmup 100ms --repeats 1",
		"curve iperf3://10.77.0.2 --dev eth1 --json " + path + " --payload 64 --rate 1kpps --time 1s --repeats 1",
	} {
		out, err := call(line)
		if err = orInvalid(err); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
			continue
		}
		d := decoded(t, path)
		if h := d.Host[0]; h.Interface != "eth1" {
			t.Errorf("%s: the sender's interface is %q, want eth1", line, h.Interface)
		}
		arrived := false
		for _, x := range d.Results {
			for _, f := range x.Flows { // a busy machine may send nothing in 300 ms
				arrived = arrived || f.Received > 0
				if f.Received == 0 && f.Attempted > 0 && f.Connections == nil {
					t.Errorf("%s: flow %s: nothing of %d arrived\n%s", line, f.Name, f.Attempted, out)
				}
			}
		}
		if !arrived {
			t.Errorf("%s: nothing arrived\n%s", line, out)
		}
	}
	out, err := call("curve 10.77.0.2" + short)
	if peltproc.ExitCode(err) != 1 || !strings.Contains(out, "connection refused") {
		t.Errorf("without --dev: %v, want a refusal of the other host:\n%s", err, out)
	}
}

// TestOnePort: a router lets in TCP and UDP of one port only.
func TestOnePort(t *testing.T) {
	t.Parallel()
	nodes, work := netbed.Chain(t, "client", "router", "server"), t.TempDir()
	client, router, server := nodes[0], nodes[1], nodes[2]
	inside(t, router, `nft 'table ip wall { chain f { type filter hook forward priority 0; policy drop; `+
		`ct state established accept; meta l4proto { tcp, udp } th dport 7358 accept; }; }'`)
	at(server, work).Start("serve", "--code", "tiger-42-amber", "--one-port", "--iperf3=7359").
		Await("control on 7358/tcp, data on 7358/udp")
	at(server, work).Start("serve", "--code", "tiger-42-amber", "--one-port", "--port", "65535").
		Await("control on 65535/tcp, data on 65535/udp")
	near, path := at(client, work), filepath.Join(work, "run.json")
	near.Env = []string{"PELT_CODE=tiger-42-amber"}
	out, err := near.Run(strings.Fields("curve 10.77.1.2 --payload 64 --rate 1kpps --direction both --streams 2 " +
		"--time 300ms --warmup 100ms --repeats 1 --json " + path)...)
	if err := orInvalid(err); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, f := range decoded(t, path).Results[0].Flows {
		if f.Received == 0 || len(f.DeadStreams) > 0 {
			t.Errorf("flow %s: %d packets arrived, and %d of 2 streams met nobody\n%s", f.Name, f.Received,
				len(f.DeadStreams), out)
		}
	}
	for _, line := range []string{"curve 10.77.1.2 --proto tcp", "cc 10.77.1.2", "router 10.77.1.2"} {
		out, err := near.Run(strings.Fields(line)...)
		const want = ": pelt serve --one-port carries no TCP tests"
		if peltproc.ExitCode(err) != 2 || !strings.Contains(out, want) || strings.Count(out, "\n") != 1 {
			t.Errorf("%s: %v, want exit code 2 and one line with %q:\n%s", line, err, want, out)
		}
	}
}
