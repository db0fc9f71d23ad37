package sshbed

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"pelt/internal/peltproc"
	"pelt/internal/testenv"
)

// Host is a name that ssh knows.
type Host struct {
	Name    string
	Command string // what a login runs, whatever it asks for; "": the server does not take the key
	Known   Known
	Port    uint16 // 0: the server's
}

// Known is the host key that ssh expects.
type Known string

// The host keys.
const (
	Right   Known = ""
	Unknown Known = "none" // it was never seen
	Changed Known = "changed"
)

// Server is an sshd.
type Server struct {
	Path   string // a PATH whose ssh knows the hosts
	daemon *exec.Cmd
	log    peltproc.Buffer
}

// Start starts a server, by start in a namespace of the test's.
func Start(t testing.TB, at netip.AddrPort, start func(*exec.Cmd) error, hosts ...Host) *Server {
	t.Helper()
	testenv.Root(t) // to log in as root
	testenv.Tool(t, "sh", "ssh", "ssh-keygen", "sshd")
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		testenv.Must(t, os.WriteFile(file(name), []byte(text), mode))
	}
	key := func(name string) (public string) {
		t.Helper()
		out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file(name)).CombinedOutput()
		b, err2 := os.ReadFile(file(name + ".pub"))
		if err != nil || err2 != nil {
			t.Fatalf("make a key: %v, %v\n%s", err, err2, out)
		}
		return strings.TrimSpace(string(b))
	}
	known := func(public string) string { return fmt.Sprintf("[%s]:%d %s\n", at.Addr(), at.Port(), public) }
	write("known", known(key("host")), 0o600)
	write("known-changed", known(key("other")), 0o600)
	var allowed, config strings.Builder
	for _, h := range hosts {
		public, port := key("of-"+h.Name), cmp.Or(h.Port, at.Port())
		if h.Command != "" {
			fmt.Fprintf(&allowed, "restrict,command=\"%s\" %s\n", strings.ReplaceAll(h.Command, `"`, `\"`), public)
		}
		knownHosts := file("known")
		if h.Known != Right {
			knownHosts += "-" + string(h.Known)
		}
		fmt.Fprintf(&config, "Host %s\n HostName %s\n Port %d\n User root\n IdentityFile %s\n UserKnownHostsFile %s\n",
			h.Name, at.Addr(), port, file("of-"+h.Name), knownHosts)
	}
	config.WriteString("Host *\n IdentitiesOnly yes\n IdentityAgent none\n GlobalKnownHostsFile none\n")
	write("allowed", allowed.String(), 0o600)
	write("config", config.String(), 0o600)
	write("sshd_config",
		fmt.Sprintf("ListenAddress %s\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\nStrictModes no\nUsePAM no\n"+
			"PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n",
			at, file("host"), file("allowed")), 0o600)
	client, err := exec.LookPath("ssh")
	testenv.Must(t, err)
	daemon, err := exec.LookPath("sshd") // by its whole path, which it wants
	testenv.Must(t, err)
	testenv.Must(t, os.Mkdir(file("bin"), 0o700))
	write("bin/ssh", fmt.Sprintf("#!/bin/sh\nexec %s -F %s \"$@\"\n", client, file("config")), 0o700)
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // where sshd keeps its unprivileged part
		t.Fatal(err)
	}
	s := &Server{Path: file("bin") + ":" + os.Getenv("PATH"),
		daemon: exec.Command(daemon, "-D", "-e", "-f", file("sshd_config"))}
	s.daemon.Stderr, s.daemon.WaitDelay = &s.log, testenv.Patience
	s.daemon.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	testenv.Must(t, start(s.daemon))
	t.Cleanup(func() {
		s.HangUp()
		_ = s.daemon.Process.Kill()
		_ = s.daemon.Wait()
		if t.Failed() {
			t.Log(s.log.String())
		}
	})
	testenv.Await(t, "sshd to listen", func() bool { return strings.Contains(s.log.String(), "Server listening") })
	return s
}

// HangUp ends the server's processes for connections.
func (s *Server) HangUp() {
	pid := s.daemon.Process.Pid
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, child := range strings.Fields(string(b)) {
		if n, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
}
