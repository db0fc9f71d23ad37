package test

import (
	"net/netip"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pelt/finding"
	"pelt/internal/netbed"
	"pelt/internal/sshbed"
	"pelt/internal/testenv"
	"pelt/model"
)

// serveSSH lets ssh reach the router under that name, where PATH is as returned. What it gives is a BusyBox ash that
// finds BusyBox's commands only.
func serveSSH(t *testing.T, router *netbed.Node, address string) (path string) {
	t.Helper()
	testenv.Tool(t, "busybox")
	tools := t.TempDir()
	output(t, "busybox", "--install", "-s", tools)
	s := sshbed.Start(t, netip.MustParseAddrPort(address+":2222"), router.Start,
		sshbed.Host{Name: "router", Command: "PATH=" + tools + " exec " + filepath.Join(tools, "ash")})
	t.Cleanup(func() { // its sessions lead groups of their own
		for _, pid := range router.Processes() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return s.Path
}

// TestRouterOverSSH is the bench of a real router: hosts on both sides, and the router asked over ssh. What the router
// loses is package faults' matter, and what ends the watch package dut's and TestRouterAgent's.
func TestRouterOverSSH(t *testing.T) {
	t.Parallel()
	r := newRouted(t)
	near := at(r.near, r.work)
	near.Env = []string{"PATH=" + serveSSH(t, r.router, "10.77.0.1")}
	s := r.serve(r.far, wanCode)
	out, err := near.Run(strings.Fields("router 10.77.1.2 --code " + wanCode +
		" --dut ssh://router --proto udp --frame 64 " +
		"--rate 10kpps --direction up --time 5s --warmup 200ms --repeats 1 --idle-rate 0 --json out.json")...)
	if orInvalid(err) != nil {
		t.Fatalf("%v\n%s\nserver: %s", err, out, s.Err)
	}
	d := document(t, filepath.Join(r.work, "out.json"), "")
	if d.Router == nil || d.Router.Kernel == "" || d.Router.Cores == 0 || len(d.Router.Before) == 0 ||
		len(d.Router.After) == 0 {
		t.Fatalf("the router's own words are missing: %+v", d.Router)
	}
	for _, x := range d.Results {
		w := x.Router
		switch {
		case x.State == model.Aborted:
			t.Errorf("%s is %s: %s", x.Cell.Key(), x.State, finding.Why(x.Why))
		case w == nil || w.CPU == nil || w.Samples < 2 || len(w.Cores) != d.Router.Cores: // a busy machine may leave gaps
			t.Errorf("%s: watched as %+v", x.Cell.Key(), w)
		case w.CPU.Busy() < .01:
			t.Errorf("%s: the router was %.3f busy while it forwarded 10 kpps", x.Cell.Key(), w.CPU.Busy())
		}
	}
	cost := d.Results[0].Router.CostRatio
	if cost == nil {
		t.Fatal("the watch's own cost is not told")
	}
	if *cost > .05 { // also on a busy machine
		t.Errorf("the watch's own cost is %.3f of a core, want at most 0.05", *cost)
	}
}
