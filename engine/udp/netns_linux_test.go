package udp

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"pelt/internal/netns"
	"pelt/internal/testenv"
)

// space is a network namespace.
type space struct{ *netns.Handle }

// ownSpace makes a network namespace with nothing in it but its loopback, whose
// MTU it sets.
func ownSpace(t testing.TB, mtu int) space {
	t.Helper()
	testenv.Root(t)
	h, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	s := space{h}
	s.command(t, fmt.Sprintf("ip link set lo mtu %d up", mtu))
	return s
}

// linked makes two nameless namespaces, which end with the test:
//
//	near 10.77.0.1, fd77::1 ---- veth v0 ---- 10.77.0.2, fd77::2 far
func linked(t testing.TB) (near, far space) {
	t.Helper()
	near, far = ownSpace(t, 65536), ownSpace(t, 65536)
	near.command(t, fmt.Sprintf("ip link add v0 type veth peer name v0 netns /proc/%d/fd/%d", os.Getpid(), far.File().Fd()))
	for i, s := range []space{near, far} {
		s.command(t, fmt.Sprintf("ip address add 10.77.0.%d/24 dev v0", i+1))
		s.command(t, fmt.Sprintf("ip address add fd77::%d/64 dev v0 nodad", i+1))
		s.command(t, "ip link set v0 up")
	}
	return near, far
}

var (
	farFour = netip.MustParseAddr("10.77.0.2")
	farSix  = netip.MustParseAddr("fd77::2")
)

// command runs a program inside the namespace, to make a fault from outside.
func (s space) command(t testing.TB, line string) {
	t.Helper()
	s.feed(t, "", line)
}

// rules loads an nft table.
func (s space) rules(t testing.TB, text string) {
	t.Helper()
	s.feed(t, text, "nft -f -")
}

func (s space) feed(t testing.TB, text, line string) {
	t.Helper()
	f := strings.Fields(line)
	testenv.Tool(t, f[0])
	c := exec.Command(f[0], f[1:]...)
	c.Stdin = strings.NewReader(text)
	err := s.Do(func() error {
		out, err := c.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", line, err, out)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
