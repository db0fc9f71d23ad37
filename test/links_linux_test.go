package test

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"pelt/internal/netbed"
	"pelt/internal/peltproc"
	"pelt/model"
)

// TestKindsOfLinks: what networks are made of besides a plain cable and IPv4. A VLAN's
// interface has its test with the XDP engine's, for not all kernels have it.
func TestKindsOfLinks(t *testing.T) {
	t.Parallel()
	h := newHosts(t)
	for i, name := range []string{"jumbo", "queues"} {
		queues := []int{1, 4}[i]
		netbed.Cable(h.near, name, h.far, name, queues)
		for at, n := range []*netbed.Node{h.near, h.far} {
			if name == "jumbo" {
				n.MTU(name, 9000)
			}
			n.Give(name, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, byte(i + 2), byte(at + 1)}), 24))
		}
	}
	s := h.serve(t)
	for _, c := range []struct{ name, address, engine, payload, refused string }{
		{"IPv6", "fd77::2", "udp", "1452", ""},
		{"IPv6", "fd77::2", "xdp", "1452", ""},
		{"jumbo frames", "10.77.2.2", "udp", "8972", ""},
		{"jumbo frames", "10.77.2.2", "xdp", "3300", ""},
		{"jumbo frames", "10.77.2.2", "xdp", "8972", "an XDP frame lies in one memory page: 3300 B of payload at most"},
		{"several queues", "10.77.3.2", "udp", "64", ""},
		{"several queues", "10.77.3.2", "xdp", "64", ""},
	} {
		t.Run(strings.Join([]string{c.name, c.engine, c.payload}, ", "), func(t *testing.T) {
			path := filepath.Join(h.work, "out.json")
			flags := "--payload " + c.payload + " --engine " + c.engine + " --drops off --direction both --rate 4kpps --burst 1000 --streams 4 --time 300ms --warmup 0s --repeats 1 --json " + path
			args := append([]string{"curve", c.address}, s.line[2:]...)
			out, err := h.at(h.near).Run(append(args, strings.Fields(flags)...)...)
			if c.refused != "" {
				if peltproc.ExitCode(err) != 1 || !strings.Contains(out, c.refused) {
					t.Errorf("%v, want %q:\n%s", err, c.refused, out)
				}
				return
			}
			if orInvalid(err) != nil {
				t.Fatalf("%v\n%s\nserver: %s", err, out, s.Err)
			}
			x := document(t, path, "one-clock").Results[0]
			want := strings.Join(strings.Split(c.engine, ":"), "+")
			if len(x.Flows) != 2 || x.Engine != want {
				t.Fatalf("%s (%s): %d flows by %s (%s), want 2 by %s", x.State, x.Why, len(x.Flows), x.Engine, x.EngineReason, want)
			}
			for _, f := range x.Flows {
				if f.Received == 0 || f.Received+f.Lost != f.Attempted || f.Lost > f.Attempted/20 || f.FrameBytes < f.PayloadBytes+46 {
					t.Errorf("flow %s: %d attempted, %d received, %d lost, frames of %d B; %s", f.Name, f.Attempted, f.Received, f.Lost, f.FrameBytes, ledgerText(f))
				}
			}
		})
	}
}

// TestInterfaceChanges: a trial during which an interface went away or was set to another MTU is invalid, and that is
// what is said, whatever ended it. Trials that are over stay.
func TestInterfaceChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, repeats, seconds, engine string
		change                         func(h hosts)
		want                           model.Reason
	}{
		{"MTU of the far host", "1", "3s", "udp", func(h hosts) { h.far.MTU("eth0", 1400) },
			model.Reason{Code: model.InterfaceMTU, Node: model.Receiver}},
		{"cable removed", "20", "3s", "xdp", func(h hosts) { h.near.Link("eth0", netlink.LinkDel) },
			model.Reason{Code: model.InterfaceGone, Node: model.Sender}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHosts(t)
			s := h.serve(t)
			path := filepath.Join(h.work, "out.json")
			flags := "--drops off --payload 64 --rate 4kpps --burst 1000 --warmup 0s --json " + path
			near := h.at(h.near).Start(append(append(s.line, strings.Fields(flags)...), "--engine", c.engine, "--time", c.seconds, "--repeats", c.repeats)...)
			if c.repeats != "1" {
				near.Await("64 B: sent")
			}
			waitPackets(t, h.far.Received, 500)
			start := time.Now()
			c.change(h)
			if err, took := near.Wait(), time.Since(start); peltproc.ExitCode(err) != 4 || took > 30*time.Second {
				t.Errorf("%v after %v, want exit code 4:\n%s", err, took, near.Err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v\n%s", err, near.Err)
			}
			var d model.Document // a lost end has no figures, which readDocument wants
			if err := json.Unmarshal(text, &d); err != nil {
				t.Fatal(err)
			}
			x := d.Results[len(d.Results)-1]
			if x.State != model.Invalid || len(x.Why) == 0 || x.Why[0].Code != c.want.Code || x.Why[0].Node != c.want.Node || x.Why[0].Name != "eth0" {
				t.Errorf("%s: %+v, want %+v", x.State, x.Why, c.want)
			}
			if n := len(d.Results); c.repeats != "1" && (n < 2 || n == 20 || d.Results[0].Flows[0].Received == 0 || d.Complete) {
				t.Errorf("%d results, complete: %v; want the first trial's, too", n, d.Complete)
			}
		})
	}
}
