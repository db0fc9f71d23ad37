package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pelt/internal/testenv"
	"pelt/model"
)

// serveSSH starts Debian's sshd on the router with keys of its own, and puts an ssh into PATH that has them. What it
// gives is a BusyBox ash that finds BusyBox's commands only.
func (r routed) serveSSH(t *testing.T, address, port string) {
	t.Helper()
	testenv.Tool(t, "busybox", "ssh", "ssh-keygen", "sshd", "sh")
	dir := t.TempDir()
	tools := filepath.Join(dir, "bin")
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.Mkdir(tools, 0o755); err != nil {
		t.Fatal(err)
	}
	output(t, "busybox", "--install", "-s", tools)
	public := map[string]string{}
	for _, key := range []string{"host", "user"} {
		output(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key))
		b, err := os.ReadFile(filepath.Join(dir, key+".pub"))
		if err != nil {
			t.Fatal(err)
		}
		public[key] = string(b)
	}
	config := write("sshd_config", strings.Join([]string{
		"Port " + port, "ListenAddress " + address, "HostKey " + filepath.Join(dir, "host"), "AuthorizedKeysFile " + write("authorized", public["user"], 0o600),
		"PermitRootLogin yes", "StrictModes no", "UsePAM no", "PasswordAuthentication no", "KbdInteractiveAuthentication no", "PidFile none",
		"ForceCommand PATH=" + tools + " exec " + filepath.Join(tools, "ash"), "",
	}, "\n"), 0o600)
	own := write("ssh_config", strings.Join([]string{
		"Host *", "IdentityFile " + filepath.Join(dir, "user"), "IdentitiesOnly yes",
		"UserKnownHostsFile " + write("known_hosts", "["+address+"]:"+port+" "+public["host"], 0o600), "GlobalKnownHostsFile none", "",
	}, "\n"), 0o600)
	_ = os.MkdirAll("/run/sshd", 0o755) // Debian's sshd wants it for what drops its rights
	sshd, err := exec.LookPath("sshd")  // by its whole path, which it wants
	if err != nil {
		t.Fatal(err)
	}
	daemon := at(r.router, r.work).Launch(exec.Command(sshd, "-D", "-e", "-f", config))
	t.Cleanup(func() { // its sessions lead groups of their own
		for _, pid := range r.router.Processes() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	write("ssh", "#!/bin/sh\nexec /usr/bin/ssh -F "+own+" \"$@\"\n", 0o755) // which takes no other home
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	daemon.Await("Server listening")
}

// TestRouterOverSSH is the bench of a real router: hosts on both sides, and the router asked over ssh. What the router
// loses is package faults' matter, and what ends the watch package dut's and TestRouterAgent's.
func TestRouterOverSSH(t *testing.T) {
	r := newRouted(t)
	r.serveSSH(t, "10.77.0.1", "2222")
	s := r.serve(r.far, wanCode)
	out, err := r.run(r.near, "router", "10.77.1.2", "--code", wanCode, "--dut", "ssh://root@10.77.0.1:2222", "--frame", "64", "--direction", "up", "--time", "2s",
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
	if last.CostRatio == nil || *last.CostRatio > .02 {
		t.Errorf("the watch's own cost is %v of a core, want at most 0.02", last.CostRatio)
	}
}
