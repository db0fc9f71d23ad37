package test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"pelt/model"
)

// routed are two machines with a router between, as named namespaces:
//
//	lan 10.77.1.2 ──── 10.77.1.1 router 10.77.0.1 ──── 10.77.0.2 wan
//
// The router hides the LAN behind its address, and an sshd on it gives a BusyBox ash.
type routed struct {
	hosts  // near is the LAN side, far the WAN side
	router string
	conf   string // of ssh, for a wrapper in PATH: ssh takes no other home
	sshd   *exec.Cmd
}

const sshPort = "2222"

func newRouted(t *testing.T) *routed {
	t.Helper()
	needRoot(t)
	n := hostsMade.Add(1)
	r := &routed{router: fmt.Sprintf("pelt-router-%d-%d", os.Getpid(), n)}
	r.hosts = hosts{near: fmt.Sprintf("pelt-lan-%d-%d", os.Getpid(), n), far: fmt.Sprintf("pelt-wan-%d-%d", os.Getpid(), n), work: t.TempDir()}
	do := func(words ...string) {
		t.Helper()
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
		}
	}
	for _, ns := range []string{r.near, r.router, r.far} {
		do("ip", "netns", "add", ns)
		t.Cleanup(func() {
			if out, err := exec.Command("ip", "netns", "del", ns).CombinedOutput(); err != nil {
				t.Errorf("deleting %s: %v\n%s", ns, err, out)
			}
		})
		do("ip", "-n", ns, "link", "set", "lo", "up")
	}
	for _, c := range []struct{ ns, iface, address, router string }{
		{r.near, "lan", "10.77.1.2/24", "10.77.1.1/24"},
		{r.far, "wan", "10.77.0.2/24", "10.77.0.1/24"},
	} {
		do("ip", "-n", c.ns, "link", "add", "eth0", "type", "veth", "peer", "name", c.iface, "netns", r.router)
		do("ip", "-n", c.ns, "address", "add", c.address, "dev", "eth0")
		do("ip", "-n", c.ns, "link", "set", "eth0", "up")
		do("ip", "-n", r.router, "address", "add", c.router, "dev", c.iface)
		do("ip", "-n", r.router, "link", "set", c.iface, "up")
	}
	do("ip", "-n", r.near, "route", "add", "default", "via", "10.77.1.1")
	do("ip", "netns", "exec", r.router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
	do("ip", "netns", "exec", r.router, "nft", "add table ip nat; add chain ip nat post { type nat hook postrouting priority 100; }; add rule ip nat post oifname wan masquerade")
	r.serveSSH(t)
	return r
}

// serveSSH starts Debian's sshd on the router with keys of its own. What it gives
// is an ash that finds BusyBox's commands only.
func (r *routed) serveSSH(t *testing.T) {
	t.Helper()
	dir := filepath.Join(r.work, "ssh")
	tools := filepath.Join(dir, "bin")
	if err := os.MkdirAll(tools, 0o755); err != nil {
		t.Fatal(err)
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(busybox, "--install", "-s", tools).CombinedOutput(); err != nil {
		t.Fatalf("busybox --install: %v\n%s", err, out)
	}
	for _, key := range []string{"host", "user", "other"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v\n%s", err, out)
		}
	}
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	public := func(key string) string {
		b, err := os.ReadFile(filepath.Join(dir, key+".pub"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	config := write("sshd_config", strings.Join([]string{
		"Port " + sshPort, "ListenAddress 10.77.1.1", "HostKey " + filepath.Join(dir, "host"), "AuthorizedKeysFile " + write("authorized", public("user"), 0o600),
		"PermitRootLogin yes", "StrictModes no", "UsePAM no", "PasswordAuthentication no", "KbdInteractiveAuthentication no", "PidFile none",
		"ForceCommand PATH=" + tools + " exec " + filepath.Join(tools, "ash"), "",
	}, "\n"), 0o600)
	r.conf = write("ssh_config", strings.Join([]string{
		"Host *", "IdentityFile " + filepath.Join(dir, "user"), "IdentitiesOnly yes",
		"UserKnownHostsFile " + write("known_hosts", "[10.77.1.1]:"+sshPort+" "+public("host"), 0o600), "GlobalKnownHostsFile none", "",
	}, "\n"), 0o600)
	_ = os.MkdirAll("/run/sshd", 0o755) // Debian's sshd wants it for what drops its rights
	sshd, err := exec.LookPath("sshd")
	if err != nil {
		sshd = "/usr/sbin/sshd"
	}
	r.sshd = exec.Command("ip", "netns", "exec", r.router, sshd, "-D", "-e", "-f", config)
	said := &lockedBuffer{}
	r.sshd.Stderr = said
	r.sshd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := r.sshd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.cut()
		_ = r.sshd.Wait()
	})
	wrapper := "#!/bin/sh\nexec /usr/bin/ssh -F \"${PELT_TEST_SSH:-" + r.conf + "}\" \"$@\"\n"
	if err := os.MkdirAll(filepath.Join(r.work, "path"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.work, "path", "ssh"), []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(r.work, "path")+string(os.PathListSeparator)+os.Getenv("PATH"))
	for end := time.Now().Add(10 * time.Second); !strings.Contains(said.String(), "Server listening"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("sshd does not listen:\n%s", said)
		}
	}
}

// cut ends the sshd and its sessions, which lead groups of their own.
func (r *routed) cut() {
	pids, _ := exec.Command("ip", "netns", "pids", r.router).Output()
	for _, pid := range strings.Fields(string(pids)) {
		_ = exec.Command("kill", "-9", pid).Run()
	}
}

func (r *routed) bench(t *testing.T, s *server, flags ...string) (string, error) {
	t.Helper()
	args := append([]string{"router", s.line[1], "--code", s.line[3], "--yes"}, flags...)
	out, err := r.command(r.near, args...).CombinedOutput()
	return string(out), err
}

func (r *routed) document(t *testing.T, name string) model.Document {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(r.work, name))
	if err != nil {
		t.Fatal(err)
	}
	var d model.Document
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

const dutFlag = "ssh://root@10.77.1.1:" + sshPort

// TestRouterOverSSH is the bench of a real router: hosts on both sides, and the
// router asked over ssh.
func TestRouterOverSSH(t *testing.T) {
	r := newRouted(t)
	s := r.serve(t)
	t.Run("watched", func(t *testing.T) {
		out, err := r.bench(t, s, "--dut", dutFlag, "--frame", "64", "--direction", "up,down", "--time", "2s", "--warmup", "200ms", "--repeats", "1", "--idle-rate", "0", "--json", "out.json")
		if err != nil {
			t.Fatalf("%v\n%s\nserver: %s", err, out, s.stderr)
		}
		d := r.document(t, "out.json")
		if d.Router == nil || d.Router.Kernel == "" || d.Router.Cores == 0 || len(d.Router.Before) == 0 || len(d.Router.After) == 0 {
			t.Fatalf("the router's own words are missing: %+v", d.Router)
		}
		for _, x := range d.Results {
			w := x.Router
			switch {
			case x.State != model.Valid:
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
	})
	for name, c := range map[string]struct {
		flags []string
		env   string
		want  string
	}{
		"wrong key":        {[]string{"--dut", dutFlag}, strings.ReplaceAll(readFile(t, r.conf), "/user\n", "/other\n"), `(?m)^pelt: .*10\.77\.1\.1.*key`},
		"unknown host key": {[]string{"--dut", dutFlag}, regexp.MustCompile(`(?m)^UserKnownHostsFile.*$`).ReplaceAllString(readFile(t, r.conf), "UserKnownHostsFile none"), `(?m)^pelt: .*10\.77\.1\.1.*host key`},
		"wrong port":       {[]string{"--dut", "ssh://root@10.77.1.1:2223"}, readFile(t, r.conf), `(?m)^pelt: .*10\.77\.1\.1.*refused`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(r.work, strings.ReplaceAll(name, " ", "-"))
			if err := os.WriteFile(path, []byte(c.env), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PELT_TEST_SSH", path)
			out, err := r.bench(t, s, append(c.flags, "--time", "1s", "--repeats", "1", "--proto", "tcp", "--direction", "up")...)
			if err == nil || !regexp.MustCompile(c.want).MatchString(out) {
				t.Errorf("%v, want a line like %s in:\n%s", err, c.want, out)
			}
		})
	}
	t.Run("cut", func(t *testing.T) {
		c := r.command(r.near, "router", s.line[1], "--code", s.line[3], "--dut", dutFlag, "--proto", "tcp", "--direction", "up,down", "--time", "3s", "--warmup", "200ms", "--repeats", "1", "--json", "cut.json")
		said := &lockedBuffer{}
		c.Stderr = said
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		// The first trial runs once its heading is there.
		for end := time.Now().Add(20 * time.Second); !strings.Contains(said.String(), "router 10.77.0.2"); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("no heading:\n%s", said)
			}
		}
		time.Sleep(1500 * time.Millisecond) // into the measured part
		r.cut()
		if err := c.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		d := r.document(t, "cut.json")
		if len(d.Results) != 2 {
			t.Fatalf("%d trials, want both", len(d.Results))
		}
		for _, x := range d.Results {
			if x.State != model.Valid || x.Flows[0].GoodputBPS == 0 {
				t.Errorf("%s is %s (%s) at %v bit/s: the bench did not go on", x.Cell.Key(), x.State, x.Why, x.Flows[0].GoodputBPS)
			}
			if x.Router == nil || !regexp.MustCompile(`^not observed from t=\d+\.\d s`).MatchString(strings.Join(x.Router.Gaps, "; ")) {
				t.Errorf("%s: gaps %+v", x.Cell.Key(), x.Router)
			}
		}
		if !strings.Contains(strings.Join(d.Warnings, "\n"), "router not observed from t=") {
			t.Errorf("no warning says it: %q", d.Warnings)
		}
	})
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
