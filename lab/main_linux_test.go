package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/internal/testenv"
)

const (
	childEnv = "LAB_TEST_CHILD" // the test binary plays this part instead of testing
	ownEnv   = "LAB_TEST_OWN_HOST"
)

// TestMain runs the tests in a network and a mount namespace of their own: they
// stand for the host, so that nothing else on the machine moves what the tests
// compare. They leave the host as it was.
func TestMain(m *testing.M) {
	if part := os.Getenv(childEnv); part != "" {
		os.Exit(childParts()[part]())
	}
	switch {
	case os.Getenv(ownEnv) != "":
		os.Exit(watched(m))
	case os.Geteuid() != 0:
		os.Exit(m.Run())
	}
	signal.Ignore(os.Interrupt)
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", ownEnv, os.Getpid()))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		os.Exit(code)
	}
	fmt.Fprintln(os.Stderr, "run tests in namespaces of their own:", err)
	os.Exit(1)
}

// watched runs the tests, and fails if the host looks different at their end.
func watched(m *testing.M) (code int) {
	before, err := testenv.Traces(testenv.HostTraces...)
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") != "true" {
		fmt.Println("the host is not watched: ", err)
		return m.Run()
	}
	code = m.Run()
	after, failed := testenv.Traces(testenv.HostTraces...)
	left := testenv.Left(before, after)
	if err := errors.Join(err, failed); err != nil || len(left) > 0 {
		fmt.Printf("FAIL: the host: %v\n%s\n", err, strings.Join(left, "\n"))
		code = max(code, 1)
	}
	return code
}

// inodes lists the namespaces a lab holds, hidden ones included.
func inodes(t *testing.T, l *Lab) map[uint64]bool {
	t.Helper()
	set := map[uint64]bool{}
	for _, h := range l.held {
		n, err := h.Inode()
		must(t, err)
		set[n] = true
	}
	return set
}

// ours tells whether a file of /proc/PID is of this test or of what it started, whose environment says so. The kernel
// gives the numbers of namespaces that are gone to others, so a process of another test may have one.
func ours(file string) bool {
	environ, err := os.ReadFile(filepath.Join("/proc", strings.Split(file, "/")[2], "environ"))
	return err == nil && bytes.Contains(environ, []byte(ownEnv+"="+os.Getenv(ownEnv)+"\x00"))
}

// holders lists the files of /proc by which this test keeps one of the namespaces alive.
func holders(set map[uint64]bool) (found []string) {
	for _, pattern := range []string{"/proc/[0-9]*/fd/*", "/proc/[0-9]*/task/[0-9]*/ns/net"} {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			target, err := os.Readlink(f)
			var inode uint64
			if err == nil && strings.HasPrefix(target, "net:[") {
				if _, err := fmt.Sscanf(target, "net:[%d]", &inode); err == nil && set[inode] && ours(f) {
					found = append(found, f)
				}
			}
		}
	}
	return found
}

// expectGone waits until nothing holds the namespaces any more.
func expectGone(t *testing.T, set map[uint64]bool) {
	t.Helper()
	if len(set) == 0 {
		t.Error("no namespaces to look for")
	}
	var left []string
	for deadline := time.Now().Add(testenv.Patience); time.Now().Before(deadline); {
		if left = holders(set); len(left) == 0 {
			return
		}
	}
	t.Errorf("namespaces outlived their lab, held by %v", left)
}

// openLab opens a lab, and checks at the test's end that nothing of it is left.
func openLab(t *testing.T, topology string, links ...string) *Lab {
	t.Helper()
	testenv.Root(t)
	testenv.LeakCheck(t)
	parsed, err := parseLinks(links)
	must(t, err)
	l, err := Open(t.Context(), topology, parsed)
	must(t, err)
	set := inodes(t, l)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		expectGone(t, set)
	})
	return l
}

// chains lists the topologies with one receiver.
func chains() []string {
	return slices.DeleteFunc(Topologies(), func(name string) bool { return name == Star })
}

func node(t *testing.T, l *Lab, name string) *Node {
	t.Helper()
	n, err := l.Node(name)
	must(t, err)
	return n
}
