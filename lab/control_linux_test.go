package lab

import (
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pelt/internal/testenv"
)

func readSettingIn(t *testing.T, n *Node, name string) (value string) {
	t.Helper()
	must(t, n.Do(func() error { value = readSetting(name); return nil }))
	return value
}

// controlOf connects two nodes and reads the congestion controls of both ends.
func controlOf(t *testing.T, from, to *Node, network, addr string) (names [2]string) {
	t.Helper()
	var listener net.Listener
	err := to.Do(func() (err error) { listener, err = net.Listen(network, addr); return err })
	must(t, err)
	defer listener.Close()
	var conns [2]net.Conn
	err = from.Do(func() (err error) { conns[0], err = net.Dial(network, listener.Addr().String()); return err })
	must(t, err)
	defer conns[0].Close()
	if conns[1], err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	defer conns[1].Close()
	for i, c := range conns {
		raw, err := c.(*net.TCPConn).SyscallConn()
		must(t, err)
		_ = raw.Control(func(fd uintptr) {
			names[i], err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		})
		must(t, err)
	}
	return names
}

// TestProgramControl gives each control of this kernel, those that the host does
// not allow to everybody included.
func TestProgramControl(t *testing.T) {
	testenv.Tool(t, "sh", "cat")
	l := openLab(t, "router")
	a, b := node(t, l, "sender"), node(t, l, "receiver")
	const setting = "net/ipv4/tcp_congestion_control"
	before := [2]string{readSettingIn(t, a, setting), readSettingIn(t, b, setting)}
	addrs := map[string]string{"tcp4": b.Addr(4).String() + ":0", "tcp6": "[" + b.Addr(6).String() + "]:0"}
	if !b.Addr(6).IsValid() {
		delete(addrs, "tcp6")
	}
	routes := routeText(t, a)
	for _, name := range strings.Fields(readSettingIn(t, a, "net/ipv4/tcp_available_congestion_control")) {
		t.Run(name, func(t *testing.T) {
			o := shell("exec sleep 600")
			o.Control = name
			p := begin(t, a, o)
			for network, addr := range addrs {
				if got := controlOf(t, a, b, network, addr); got != [2]string{name, before[1]} {
					t.Errorf("%s: got %q, want %q of the sender, %q of the receiver", network, got, name, before[1])
				}
			}
			if _, err := a.Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), "another program") {
				t.Errorf("a second program with a control: %v", err)
			}
			if _, err := p.Stop(); err != nil {
				t.Error(err)
			}
			for network, addr := range addrs {
				if got := controlOf(t, a, b, network, addr); got != before {
					t.Errorf("%s, afterwards: got %q, want %q", network, got, before)
				}
			}
			if got := routeText(t, a); got != routes {
				t.Errorf("routes afterwards:\n%s\nwere\n%s", got, routes)
			}
		})
	}
	t.Run("unknown", func(t *testing.T) {
		o := shell("true")
		o.Control = "nosuch"
		_, err := a.Start(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), `"nosuch" is not in this kernel; there is `) || !strings.Contains(err.Error(), "reno") {
			t.Errorf("got %v", err)
		}
		if got := routeText(t, a); got != routes {
			t.Errorf("routes afterwards:\n%s\nwere\n%s", got, routes)
		}
	})
}

func routeText(t *testing.T, n *Node) string {
	t.Helper()
	p := begin(t, n, shell("ip route show; ip -6 route show"))
	if e, err := p.Wait(); err != nil || e.ExitCode != 0 {
		t.Fatalf("ip route: %v, %v", e, err)
	}
	p.out[0].mu.Lock()
	defer p.out[0].mu.Unlock()
	return string(p.out[0].text)
}
