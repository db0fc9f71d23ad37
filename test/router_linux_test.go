package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pelt/internal/testenv"
	"pelt/model"
)

// sshRouter is a router between two hosts with an sshd that gives a BusyBox ash.
type sshRouter struct {
	routed
	conf string // of ssh, for a wrapper in PATH: ssh takes no other home
}

const sshPort, routerAddress, dutFlag = "2222", "10.77.0.1", "ssh://root@10.77.0.1:2222"

func newSSHRouter(t *testing.T) *sshRouter {
	t.Helper()
	r := &sshRouter{routed: newRouted(t)}
	r.serveSSH(t)
	return r
}

// serveSSH starts Debian's sshd on the router with keys of its own. What it gives
// is an ash that finds BusyBox's commands only.
func (r *sshRouter) serveSSH(t *testing.T) {
	t.Helper()
	dir := filepath.Join(r.work, "ssh")
	tools := filepath.Join(dir, "bin")
	if err := os.MkdirAll(tools, 0o755); err != nil {
		t.Fatal(err)
	}
	testenv.Tool(t, "busybox", "ssh", "ssh-keygen", "sshd", "kill", "sh")
	if out, err := exec.Command("busybox", "--install", "-s", tools).CombinedOutput(); err != nil {
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
		"Port " + sshPort, "ListenAddress " + routerAddress, "HostKey " + filepath.Join(dir, "host"), "AuthorizedKeysFile " + write("authorized", public("user"), 0o600),
		"PermitRootLogin yes", "StrictModes no", "UsePAM no", "PasswordAuthentication no", "KbdInteractiveAuthentication no", "PidFile none",
		"ForceCommand PATH=" + tools + " exec " + filepath.Join(tools, "ash"), "",
	}, "\n"), 0o600)
	r.conf = write("ssh_config", strings.Join([]string{
		"Host *", "IdentityFile " + filepath.Join(dir, "user"), "IdentitiesOnly yes",
		"UserKnownHostsFile " + write("known_hosts", "["+routerAddress+"]:"+sshPort+" "+public("host"), 0o600), "GlobalKnownHostsFile none", "",
	}, "\n"), 0o600)
	_ = os.MkdirAll("/run/sshd", 0o755) // Debian's sshd wants it for what drops its rights
	sshd, err := exec.LookPath("sshd")  // by its whole path, which it wants
	if err != nil {
		t.Fatal(err)
	}
	daemon := at(r.router, r.work).Launch(exec.Command(sshd, "-D", "-e", "-f", config))
	t.Cleanup(r.cut)
	wrapper := "#!/bin/sh\nexec /usr/bin/ssh -F \"${PELT_TEST_SSH:-" + r.conf + "}\" \"$@\"\n"
	if err := os.MkdirAll(filepath.Join(r.work, "path"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.work, "path", "ssh"), []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(r.work, "path")+string(os.PathListSeparator)+os.Getenv("PATH"))
	daemon.Await("Server listening")
}

// cut ends the sshd and its sessions, which lead groups of their own.
func (r *sshRouter) cut() {
	for _, pid := range r.router.Processes() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func (r *sshRouter) bench(flags ...string) (string, error) {
	return r.run(r.near, append([]string{"router", "10.77.1.2", "--code", wanCode}, flags...)...)
}

// TestRouterOverSSH is the bench of a real router: hosts on both sides, and the
// router asked over ssh.
func TestRouterOverSSH(t *testing.T) {
	r := newSSHRouter(t)
	s := r.serve(r.far, wanCode)
	t.Run("watched", func(t *testing.T) {
		out, err := r.bench("--dut", dutFlag, "--frame", "64", "--direction", "up", "--time", "2s", "--warmup", "200ms", "--repeats", "1", "--idle-rate", "0", "--json", "out.json")
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
	})
	// Without verdicts, as between real hosts: the router's counters alone tell
	// that it took the packets in and did not send them on.
	t.Run("loss inside", func(t *testing.T) {
		inside(t, r.router, "tc qdisc add dev to-far root tbf rate 50mbit burst 10kb limit 30kb")
		defer inside(t, r.router, "tc qdisc del dev to-far root")
		out, err := r.bench("--dut", dutFlag, "--frame", "512", "--proto", "udp", "--direction", "up", "--time", "1s", "--warmup", "200ms", "--repeats", "1", "--idle-rate", "0", "--drops", "off", "--json", "loss.json")
		if err != nil {
			t.Fatalf("%v\n%s\nserver: %s", err, out, s.Err)
		}
		f := document(t, filepath.Join(r.work, "loss.json"), "").Results[0].Flows[0]
		inside := uint64(0)
		for _, l := range f.Ledger.Lines {
			if l.Host == "router" && l.Layer == "network" {
				inside += l.Packets
			}
		}
		if f.Lost < 1000 || float64(inside) < .95*float64(f.Lost) {
			t.Errorf("%d packets were lost, %d of them inside the router: %+v", f.Lost, inside, f.Ledger.Lines)
		}
	})
	for name, c := range map[string]struct {
		flags []string
		env   string
		want  string
	}{
		"wrong key":        {[]string{"--dut", dutFlag}, strings.ReplaceAll(readFile(t, r.conf), "/user\n", "/other\n"), `(?m)^pelt: .*10\.77\.0\.1.*key`},
		"unknown host key": {[]string{"--dut", dutFlag}, regexp.MustCompile(`(?m)^UserKnownHostsFile.*$`).ReplaceAllString(readFile(t, r.conf), "UserKnownHostsFile none"), `(?m)^pelt: .*10\.77\.0\.1.*host key`},
		"wrong port":       {[]string{"--dut", "ssh://root@10.77.0.1:2223"}, readFile(t, r.conf), `(?m)^pelt: .*10\.77\.0\.1.*refused`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(r.work, strings.ReplaceAll(name, " ", "-"))
			if err := os.WriteFile(path, []byte(c.env), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PELT_TEST_SSH", path)
			out, err := r.bench(append(c.flags, "--time", "1s", "--repeats", "1", "--proto", "tcp", "--direction", "up")...)
			if err == nil || !regexp.MustCompile(c.want).MatchString(out) {
				t.Errorf("%v, want a line like %s in:\n%s", err, c.want, out)
			}
		})
	}
	t.Run("cut", func(t *testing.T) {
		c := at(r.near, r.work).Start("router", "10.77.1.2", "--code", wanCode, "--dut", dutFlag, "--proto", "tcp", "--direction", "up,down", "--time", "4s", "--warmup", "200ms", "--repeats", "1", "--json", "cut.json")
		// The first trial runs once its heading is there.
		c.Await("router 10.77.1.2")
		time.Sleep(time.Second) // into the measured part
		r.cut()
		if err := orInvalid(c.Wait()); err != nil {
			t.Fatalf("%v\n%s", err, c)
		}
		d := document(t, filepath.Join(r.work, "cut.json"), "")
		if len(d.Results) != 2 {
			t.Fatalf("%d trials, want both", len(d.Results))
		}
		for _, x := range d.Results {
			if x.State == model.Aborted || x.Flows[0].GoodputBPS == 0 {
				t.Errorf("%s is %s (%s) at %v bit/s: the bench did not go on", x.Cell.Key(), x.State, x.Why, x.Flows[0].GoodputBPS)
			}
			if x.Router == nil || !regexp.MustCompile(`^not observed from t=\d+\.\d s`).MatchString(strings.Join(x.Router.Gaps, "; ")) {
				t.Errorf("%s: gaps %+v", x.Cell.Key(), x.Router)
			}
		}
		if !slices.ContainsFunc(d.Findings, func(f model.Finding) bool { return strings.Contains(f.Text, "not observed from t=") }) {
			t.Errorf("no finding says it: %+v", d.Findings)
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
