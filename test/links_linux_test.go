package test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"pelt/internal/peltproc"
	"pelt/model"
)

// TestInterfaceChanges: a trial during which an interface went away or was set to another MTU is invalid, and that is
// what is said, whatever ended it. Trials that are over stay.
func TestInterfaceChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, repeats, seconds, engine string
		change                         func(h hosts)
		want                           model.Reason
	}{
		{"MTU of the far host", "1", "2s", "udp", func(h hosts) { h.far.MTU("eth0", 1400) },
			model.Reason{Code: model.InterfaceMTU, Node: model.Receiver}},
		{"cable removed", "20", "2s", "xdp", func(h hosts) { h.near.Link("eth0", netlink.LinkDel) },
			model.Reason{Code: model.InterfaceGone, Node: model.Sender}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHosts(t)
			s := h.serve(t)
			path := filepath.Join(h.work, "out.json")
			flags := "--drops off --payload 64 --rate 4kpps --burst 1000 --warmup 0s --json " + path
			near := h.at(h.near).Start(append(append(s.line, strings.Fields(flags)...), "--engine", c.engine,
				"--time", c.seconds, "--repeats", c.repeats)...)
			if c.repeats != "1" {
				near.Await(": sent") // of a busy host's trials the first may be invalid
			}
			waitPackets(t, h.far.Received, 500)
			start := time.Now()
			c.change(h)
			if err, took := near.Wait(), time.Since(start); peltproc.ExitCode(err) != 4 || took > 30*time.Second {
				t.Errorf("%v after %v, want exit code 4:\n%s", err, took, near.Err)
			}
			d := decoded(t, path) // a lost end has no figures
			x := d.Results[len(d.Results)-1]
			if x.State != model.Invalid || len(x.Why) == 0 || x.Why[0].Code != c.want.Code ||
				x.Why[0].Node != c.want.Node || x.Why[0].Name != "eth0" {
				t.Errorf("%s: %+v, want %+v", x.State, x.Why, c.want)
			}
			received := func(r model.Result) bool { return len(r.Flows) != 0 && r.Flows[0].Received != 0 }
			if n := len(d.Results); c.repeats != "1" &&
				(n == 20 || !slices.ContainsFunc(d.Results[:n-1], received) || d.Complete) {
				t.Errorf("%d results, complete: %v; want those before the change, too", n, d.Complete)
			}
		})
	}
}
