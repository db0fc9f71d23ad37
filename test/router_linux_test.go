package test

import (
	"net/netip"
	"path/filepath"
	"syscall"
	"testing"

	"pelt/internal/netbed"
	"pelt/internal/sshbed"
	"pelt/internal/testenv"
	"pelt/model"
)

// serveSSH lets ssh reach the router under that name. What it gives is a BusyBox ash that finds BusyBox's commands only.
func serveSSH(t *testing.T, router *netbed.Node, address string) {
	t.Helper()
	testenv.Tool(t, "busybox")
	tools := t.TempDir()
	output(t, "busybox", "--install", "-s", tools)
	sshbed.Start(t, netip.MustParseAddrPort(address+":2222"), router.Start,
		sshbed.Host{Name: "router", Command: "PATH=" + tools + " exec " + filepath.Join(tools, "ash")})
	t.Cleanup(func() { // its sessions lead groups of their own
		for _, pid := range router.Processes() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
}

// TestRouterOverSSH is the bench of a real router: hosts on both sides, and the router asked over ssh. What the router
// loses is package faults' matter, and what ends the watch package dut's and TestRouterAgent's.
func TestRouterOverSSH(t *testing.T) {
	r := newRouted(t)
	serveSSH(t, r.router, "10.77.0.1")
	s := r.serve(r.far, wanCode)
	out, err := r.run(r.near, "router", "10.77.1.2", "--code", wanCode, "--dut", "ssh://router", "--frame", "64", "--direction", "up", "--time", "2s",
		"--warmup", "200ms", "--repeats", "1", "--idle-rate", "0", "--json", "out.json")
	if err != nil {
		t.Fatalf("%v\n%s\nserver: %s", err, out, s.Err)
	}
	d := document(t, filepath.Join(r.work, "out.json"), "")
	if d.Router == nil || d.Router.Kernel == "" || d.Router.Cores == 0 || len(d.Router.Before) == 0 || len(d.Router.After) == 0 {
		t.Fatalf("the router's own words are missing: %+v", d.Router)
	}
	for _, x := range d.Results {
		w := x.Router
		switch {
		case x.State == model.Aborted:
			t.Errorf("%s is %s: %s", x.Cell.Key(), x.State, x.Why)
		case w == nil || w.CPU == nil || w.Samples < 2 || len(w.Cores) != d.Router.Cores || len(w.Gaps) > 0:
			t.Errorf("%s: watched as %+v", x.Cell.Key(), w)
		case w.CPU.Busy() < .05:
			t.Errorf("%s: the router was %.3f busy while this machine sent at full rate", x.Cell.Key(), w.CPU.Busy())
		}
	}
	last := d.Results[len(d.Results)-1].Router
	if last.CostRatio == nil || *last.CostRatio > .03 { // in short trials their begin and end cost most
		t.Errorf("the watch's own cost is %v of a core, want at most 0.03", last.CostRatio)
	}
}
