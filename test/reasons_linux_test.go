package test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// trial runs one trial from the near host to the far one, as it is: an invalid
// one is not tried again. ahead are words before the near host's command.
func (h hosts) trial(t *testing.T, ahead, flags string) (model.Document, string) {
	t.Helper()
	s := h.serve(t)
	path := filepath.Join(h.work, "out.json")
	near := h.at(h.near)
	if near.Ahead = strings.Fields(ahead); ahead != "" {
		testenv.Tool(t, near.Ahead[0])
	}
	out, err := near.Run(append(s.line, strings.Fields(flags+" --repeats 1 --json "+path)...)...)
	if orInvalid(err) != nil {
		t.Fatalf("%v\n%s\nserver: %s", err, out, s.Err)
	}
	return document(t, path, ""), out
}

// The sender's own queue holds its socket back: it is no broken generator, and
// what it could not send is no loss. A packet of 200 B is charged 768 B to a
// socket of 208 KiB until it leaves the queue, so the socket is full before the
// queue of 200 kB is.
func TestClockBackpressure(t *testing.T) {
	testenv.Clock(t)
	testenv.Tool(t, "tc", "sed")
	h := newHosts(t)
	inside(t, h.near, "tc qdisc add dev eth0 root tbf rate 20mbit burst 8kb limit 200000")
	d, out := h.trial(t, "", "--engine udp --payload 200 --rate 12kpps --time 5s --warmup 200ms")
	r := d.Results[0]
	f := r.Flows[0]
	var held uint64
	for _, l := range f.Ledger.Pacing {
		if l.Cause == "backpressure" {
			held = l.Packets
			if q := l.Queue; q == nil || q.Kind != "tbf" || q.Interface != "eth0" || q.RateBPS != 20e6 {
				t.Errorf("held by %+v, want tbf on eth0 at 20 Mbit/s", q)
			}
		}
	}
	if r.State != "valid" || f.Lost != 0 {
		t.Errorf("%s %v: %d lost; want a valid trial without loss", r.State, r.Why, f.Lost)
	}
	// 20 Mbit/s are 10.3 kpps of 242 B: a seventh of the schedule is held back.
	if share := float64(held) / float64(f.Planned); share < 0.1 || share > 0.2 {
		t.Errorf("%d of %d planned held back (%v), want about a seventh", held, f.Planned, share)
	}
	if want := "held back by tbf on eth0, 20 Mbit/s"; !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
		t.Errorf("the report lacks %q:\n%s", want, out)
	}
}

// An emulated link that takes no more frames makes a trial invalid, not lossy.
func TestClockLinkBehind(t *testing.T) {
	testenv.Clock(t)
	testenv.Root(t)
	path := filepath.Join(t.TempDir(), "out.json")
	out, err := peltproc.Host{T: t,
		Data: t.TempDir()}.Run(strings.Fields("curve lab:direct --link-receiver delay=5ms --engine udp --payload 64 --rate max --streams 4 --time 1s --warmup 200ms --repeats 1 --json " + path)...)
	if peltproc.ExitCode(err) != invalid {
		t.Fatalf("%v, want exit code 4\n%s", err, out)
	}
	d := document(t, path, "")
	if r := d.Results[0]; r.State != "invalid" || len(r.Why) != 1 || r.Why[0].Code != "link-behind" ||
		r.Why[0].Link != "sender to receiver" {
		t.Errorf("%s %v, want link-behind alone", r.State, r.Why)
	}
}

// What makes a trial invalid is one reason, and the true one.
func TestClockOneReason(t *testing.T) {
	testenv.Clock(t)
	for _, c := range []struct {
		name, ahead, flags string
		hog                bool // three programs take turns with the near host's process on its one core
		want               string
	}{
		{"starved of its core", "taskset -c 0", "--engine udp --payload 64 --rate 20kpps --time 2s", true,
			"sender-starved"},
		{"more than a core sends", "", "--engine udp --payload 64 --rate 2mpps --time 1s", false, "sender-core-full"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHosts(t)
			if c.hog {
				for range 3 {
					peltproc.Host{T: t}.Launch(exec.Command("taskset", "-c", "0", "sh", "-c", "while :; do :; done"))
				}
			}
			d, out := h.trial(t, c.ahead, c.flags+" --warmup 200ms")
			r := d.Results[0]
			if r.State != "invalid" || len(r.Why) != 1 || r.Why[0].Code != c.want {
				t.Errorf("%s %v, want %s alone\n%s", r.State, r.Why, c.want, out)
			}
			t.Log(r.Why)
		})
	}
}
