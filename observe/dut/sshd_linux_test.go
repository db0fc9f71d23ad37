package dut

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pelt/internal/testenv"
)

// server is Debian's sshd on the loopback, with keys of its own, and an ssh whose
// configuration knows it under several names:
//
//	ash       a login shell of BusyBox
//	plain     this host's own shell
//	false     no shell: /bin/false
//	menu      a device with a menu
//	wrongkey  a key that the server does not take
//	unknown   a host key that was never seen
//	changed   another host key than the known one
//	refused   a port where nothing listens
type server struct {
	master *exec.Cmd
	log    *tail
}

// hosts are the names with what the server makes of their keys, "" for none.
var hosts = []struct{ name, command string }{
	{"ash", `busybox ash`},
	{"plain", `/bin/sh -c "$SSH_ORIGINAL_COMMAND"`},
	{"false", `/bin/false`},
	{"menu", `echo "Main menu"; echo "1) status"; read x; echo "no such choice"; exit 3`},
}

func startServer(t *testing.T) *server {
	t.Helper()
	testenv.Root(t) // to log in as root
	testenv.Tool(t, "sh", "ssh", "ssh-keygen", "sshd", "busybox")
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(file(name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	key := func(name string) string {
		t.Helper()
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file(name)).CombinedOutput(); err != nil {
			t.Fatalf("make a key: %v\n%s", err, out)
		}
		b, err := os.ReadFile(file(name + ".pub"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	port, closed := freePort(t), freePort(t)
	hostKey, otherKey := key("host"), key("other")
	_ = key("wrongkey")
	var allowed, config strings.Builder
	for _, h := range hosts {
		fmt.Fprintf(&allowed, "restrict,command=\"%s\" %s\n", strings.ReplaceAll(h.command, `"`, `\"`), key(h.name))
	}
	for _, h := range []struct {
		name, key, known string
		port             int
	}{
		{"ash", "ash", "known", port}, {"plain", "plain", "known", port}, {"false", "false", "known", port},
		{"menu", "menu", "known", port}, {"wrongkey", "wrongkey", "known", port}, {"unknown", "plain", "none", port},
		{"changed", "plain", "other_known", port}, {"refused", "plain", "known", closed},
	} {
		fmt.Fprintf(&config, "Host %s\n HostName 127.0.0.1\n Port %d\n User root\n IdentityFile %s\n UserKnownHostsFile %s\n", h.name, h.port, file(h.key), file(h.known))
	}
	config.WriteString("Host *\n IdentitiesOnly yes\n IdentityAgent none\n GlobalKnownHostsFile none\n")
	write("allowed", allowed.String(), 0o600)
	write("config", config.String(), 0o600)
	write("known", fmt.Sprintf("[127.0.0.1]:%d %s\n", port, hostKey), 0o600)
	write("other_known", fmt.Sprintf("[127.0.0.1]:%d %s\n", port, otherKey), 0o600)
	write("sshd_config", fmt.Sprintf("ListenAddress 127.0.0.1:%d\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n",
		port, file("host"), file("allowed")), 0o600)

	client, err := exec.LookPath("ssh")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file("bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("bin/ssh", fmt.Sprintf("#!/bin/sh\nexec %s -F %s \"$@\"\n", client, file("config")), 0o700)
	t.Setenv("PATH", file("bin")+":"+os.Getenv("PATH"))

	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // where sshd keeps its unprivileged part
		t.Fatal(err)
	}
	s := &server{master: exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", file("sshd_config")), log: &tail{}}
	said, stderr := io.Pipe()
	s.master.Stderr = stderr
	s.master.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.master.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.hangUp()
		_ = s.master.Process.Kill()
		_ = s.master.Wait()
		_ = stderr.Close()
		if t.Failed() {
			t.Log(s.log)
		}
	})
	listening := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(said); lines.Scan(); {
			_, _ = s.log.Write(append(lines.Bytes(), '\n'))
			if strings.HasPrefix(lines.Text(), "Server listening") {
				close(listening)
			}
		}
	}()
	select {
	case <-listening:
	case <-time.After(testenv.Patience):
		t.Fatalf("sshd does not listen: %s", s.log)
	}
	return s
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// hangUp ends the server's processes for connections.
func (s *server) hangUp() {
	pid := s.master.Process.Pid
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, child := range strings.Fields(string(b)) {
		if n, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
}

// load keeps the kernel's network stack busy on the loopback until stop.
func load(t *testing.T, stop *atomic.Bool) (done chan struct{}) {
	t.Helper()
	to, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	from, err := net.DialUDP("udp4", nil, to.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	done = make(chan struct{})
	go func() {
		defer close(done)
		for b := make([]byte, 64); !stop.Load(); {
			_, _ = from.Write(b) // nobody reads
		}
		_, _ = from.Close(), to.Close()
	}()
	return done
}
