package observe

import (
	"errors"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pelt/internal/testenv"
	"pelt/words"
)

func TestFacts(t *testing.T) {
	h := Facts()
	for name, got := range map[string]string{"name": h.Name, "kernel": h.Kernel, "boot": h.Boot,
		"clock source": h.ClockSource} {
		if got == "" || strings.ContainsAny(got, "\n\x00") {
			t.Errorf("%s is %q", name, got)
		}
	}
	if h.OS != runtime.GOOS+"/"+runtime.GOARCH || h.Cores < 1 || h.MemoryBytes < 1<<20 || h.ReceiveBufferB <= 0 ||
		h.SendBufferB <= 0 {
		t.Errorf("odd facts: %+v", h)
	}
	if h.Privileged != (os.Geteuid() == 0) {
		t.Errorf("privileged %v for user %d", h.Privileged, os.Geteuid())
	}
}

func TestInterfaceForLoopback(t *testing.T) {
	for _, addr := range []string{"127.0.0.1", "127.9.9.9", "::ffff:127.0.0.1", "::1"} {
		i, err := InterfaceFor(testenv.Here, netip.MustParseAddr(addr), "")
		if err != nil || i.Name != "lo" || i.MTUBytes <= 0 || !i.Address.IsLoopback() {
			t.Errorf("%s: got %+v, %v; want lo", addr, i, err)
		}
	}
}

// inNamespace runs f on a thread of its own in a new network namespace, whose
// loopback is down; both end with the thread.
func inNamespace(f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread dies with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			result <- err
			return
		}
		result <- f()
	}()
	return <-result
}

func TestInterfaceForWithoutRoute(t *testing.T) {
	testenv.Root(t)
	_, err := InterfaceFor(inNamespace, netip.MustParseAddr("192.0.2.1"), "")
	if !errors.Is(err, unix.ENETUNREACH) || !strings.Contains(err.Error(), "192.0.2.1") {
		t.Errorf("in an empty namespace: %v, want network unreachable with the address", err)
	}
}

func TestDoctorOnThisMachine(t *testing.T) {
	testenv.LeakCheck(t)
	for _, c := range Doctor(words.English, true, "", error.Error) {
		t.Logf("%-9s %-32s %-5v %s | %s | %s", c.Topic, c.Name, c.OK, c.Detail, c.Reason, c.Remedy)
		if !c.OK && (c.Reason == "" || c.Remedy == "") {
			t.Errorf("%q says no without reason or remedy: %+v", c.Name, c)
		}
	}
}
