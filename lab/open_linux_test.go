package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/internal/testenv"
	"pelt/words"
)

// direct:  sender ------------- receiver
// switch:  sender -- switch --- receiver
// router:  sender -- router --- receiver
// nat:     sender -- [router -- receiver
// fast:    sender -- [router -- receiver
func TestTopologies(t *testing.T) {
	for _, top := range chains() {
		for _, links := range [][]string{nil, {"rate=50mbit,queue=20", "sender:mtu=1300"},
			{"rate=10mbit,toward=sender"}} {
			t.Run(top+"/"+strings.Join(links, ";"), func(t *testing.T) {
				l := openLab(t, top, links...)
				sender, receiver := node(t, l, "sender"), node(t, l, "receiver")
				for _, family := range []int{4, 6} {
					want := sender.Addr(family)
					if hides(top) {
						// The router's first address on the receiver's segment.
						want = node(t, l, "router").Interfaces()[1].Addr4.Addr()
						if family == 6 {
							want = node(t, l, "router").Interfaces()[1].Addr6.Addr()
						}
					}
					if got := exchange(t, sender, receiver, family); got != want {
						t.Errorf("receiver saw %v, want %v", got, want)
					}
				}
			})
		}
	}
}

// hides reports whether a topology's router masquerades.
func hides(topology string) bool { return topology == "nat" || topology == "fast" }

// An end owns a block of addresses beside its own.
func TestBlocks(t *testing.T) {
	for _, top := range chains() {
		l := openLab(t, top)
		sender, receiver := node(t, l, "sender"), node(t, l, "receiver")
		for _, text := range []string{"198.18.129.0", "198.18.129.255", "2001:2::1:0", "2001:2::1:ffff"} {
			as, family := netip.MustParseAddr(text), 4
			if as.Is6() {
				family = 6
			}
			got := exchangeAs(t, sender, as, receiver, family)
			if hidden := hides(top); hidden == (got == as) {
				t.Errorf("%s: the receiver saw %v of %v", top, got, as)
			}
		}
		if hides(top) {
			continue // its receiver cannot begin
		}
		theirs := receiver.Interface()
		segment := theirs.Addr4.Addr().As4()[1]
		host := theirs.Addr4.Addr().As4()[3]
		as := netip.AddrFrom4([4]byte{198, segment, 128 + host, 9})
		if got := exchangeAs(t, receiver, as, sender, 4); got != as {
			t.Errorf("%s: the sender saw %v of %v", top, got, as)
		}
	}
}

// sender -- [router -- receiver: the LAN asks, the WAN only answers.
func TestNATHidesItsInside(t *testing.T) {
	testenv.Tool(t, "ip")
	for _, topology := range []string{"nat", "fast"} {
		t.Run(topology, func(t *testing.T) { hidesItsInside(t, openLab(t, topology)) })
	}
}

func hidesItsInside(t *testing.T, l *Lab) {
	sender, router, receiver := node(t, l, "sender"), node(t, l, "router"), node(t, l, "receiver")
	inside := listen(t, sender, sender.Addr(4))
	for _, to := range []netip.Addr{sender.Addr(4), router.Interfaces()[1].Addr4.Addr()} {
		var sent error
		must(t, receiver.Do(func() error {
			conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, local(inside).Port())))
			if err != nil {
				sent = err
				return nil
			}
			defer conn.Close()
			_, sent = conn.Write([]byte("knock"))
			return nil
		}))
		// outside nobody knows the inside
		if unknown := errors.Is(sent, unix.ENETUNREACH); unknown != (to == sender.Addr(4)) {
			t.Errorf("knocking at %v: %v", to, sent)
		}
	}
	// With a route to the inside, the firewall is what is left.
	must(t, receiver.Do(func() error {
		return exec.Command("ip", "route", "add", "198.18.0.0/16", "via",
			router.Interfaces()[1].Addr4.Addr().String()).Run()
	}))
	knock := dial(t, receiver, netip.AddrPortFrom(sender.Addr(4), local(inside).Port()))
	if _, err := knock.Write([]byte("knock")); err != nil {
		t.Fatal(err)
	}
	// An exchange from the inside, begun later, passes: the knocks had their time.
	exchange(t, sender, receiver, 4)
	must(t, inside.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	if n, from, err := inside.ReadFromUDP(make([]byte, 64)); err == nil {
		t.Errorf("%d B from %v came in unasked", n, from)
	}
}

// A lab whose making fails half way leaves nothing.
func TestFailedOpenLeavesNothing(t *testing.T) {
	testenv.Root(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	testenv.LeakCheck(t)
	if l, err := Open(ctx, "router", nil); !errors.Is(err, context.Canceled) || l != nil {
		t.Errorf("Open with a cancelled context: %v, %v", l, err)
	}
}

func TestProbe(t *testing.T) {
	testenv.Root(t)
	for _, c := range Probe(words.English) {
		t.Logf("%+v", c)
		needed := slices.Contains([]string{"network-namespace", "veth", "bridge", "relay", "tbf", "masquerade",
			"fast-path"}, c.Name)
		if needed && !c.OK || c.OK != (c.Reason == "") || c.OK != (c.Remedy == "") {
			t.Errorf("%+v", c)
		}
	}
}

// TestWires: each hidden relay is a node between two others, and has the
// interfaces it names.
func TestWires(t *testing.T) {
	wires := openLab(t, "router", "rate=100mbit").Wires()
	if len(wires) != 2 || wires[0].Name() != "link sender-router" || wires[1].Name() != "link router-receiver" {
		t.Fatalf("got %d wires", len(wires))
	}
	for _, w := range wires {
		err := w.Do(func() error {
			for _, i := range w.Interfaces() {
				if _, err := net.InterfaceByName(i.Name); err != nil {
					return fmt.Errorf("%s toward %s: %w", i.Name, i.Peer, err)
				}
			}
			return nil
		})
		if err != nil || len(w.Interfaces()) != 2 {
			t.Errorf("%s: %d interfaces, %v", w.Name(), len(w.Interfaces()), err)
		}
	}
	if n := len(openLab(t, "direct").Wires()); n != 0 {
		t.Errorf("a lab without shaping has %d wires", n)
	}
}

// What a trial asks of an interface is set at that one alone.
func TestInterfaceSettings(t *testing.T) {
	testenv.Tool(t, "ethtool")
	l := openLab(t, "direct")
	setting := func(name string) string {
		n := node(t, l, name)
		var text []byte
		if err := n.Do(func() (err error) {
			text, err = exec.Command("ethtool", "-k", n.Interface().Name).CombinedOutput()
			return err
		}); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		_, rest, _ := strings.Cut(string(text), "generic-receive-offload: ")
		on, _, _ := strings.Cut(rest, "\n")
		return on
	}
	before := setting("receiver")
	receiver := node(t, l, "receiver")
	must(t, receiver.JoinPackets(receiver.Interface().Name))
	if got := []string{before, setting("receiver"), setting("sender")}; !slices.Equal(got,
		[]string{"off", "on", "off"}) {
		t.Errorf("receiving offload of the receiver before and after, and of the sender: %q", got)
	}
	if err := receiver.JoinPackets("none"); err == nil || !strings.Contains(err.Error(), "none of receiver") {
		t.Errorf("an interface that is not there: %v", err)
	}
}
