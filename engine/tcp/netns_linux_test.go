package tcp

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"pelt/internal/netns"
	"pelt/internal/testenv"
)

// newNamespace makes a namespace whose loopback is up; it ends with the test.
func newNamespace(t *testing.T) *netns.Handle {
	t.Helper()
	testenv.Root(t)
	h, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	if err := h.Do(exec.Command("ip", "link", "set", "lo", "up").Run); err != nil {
		t.Fatal(err)
	}
	return h
}

// listeners counts listening sockets of a port in the calling thread's namespace.
func listeners(t *testing.T, port uint16) (n int) {
	t.Helper()
	for _, name := range []string{"tcp", "tcp6"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/net/%s", unix.Gettid(), name))
		if err != nil {
			t.Fatal(err)
		}
		n += countListeners(string(b), port)
	}
	return n
}
