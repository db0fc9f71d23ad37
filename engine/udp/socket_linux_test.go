package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/engine/enginetest"
	"pelt/internal/netbed"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/unit"
)

// A route of this host that refuses the peer is named.
func TestRefusingRoute(t *testing.T) {
	t.Parallel()
	near, _ := linked(t)
	for kind, want := range map[int]string{unix.RTN_BLACKHOLE: "invalid argument",
		unix.RTN_PROHIBIT: "permission denied", unix.RTN_UNREACHABLE: "no route to host"} {
		undo := near.Refuse(farFour, kind)
		r := newTrial()
		_, err := testEngine(Config{}, false).Open(t.Context(), near,
			engine.Order{Flow: r.Flow, Role: engine.Send, Trial: r.Order.Trial, Tag: r.Tag,
				Key: r.Key, Peer: farFour, Ports: []uint16{9}})
		var fault *engine.Fault
		if !errors.As(err, &fault) || fault.Why.Code != model.RouteRefusesUDP || fault.Why.Text != want ||
			fault.Why.Names["peer"] != fmt.Sprintf("%v:9", farFour) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		undo()
	}
}

func TestDontFragment(t *testing.T) {
	t.Parallel()
	for _, peer := range []string{"127.0.0.1", "::1"} {
		for _, paced := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s paced %v", peer, paced), func(t *testing.T) {
				host := loopback(t, 1500)
				r := newTrial()
				r.Near.Host, r.Far.Host, r.Peer = host, host, netip.MustParseAddr(peer)
				r.Flow.PayloadBytes, r.Timing.MeasureSeconds = 3000, 60
				if !paced {
					r.Flow.Rate = unit.Rate{}
				}
				r.Flow.DontFragment = true
				dialer, _ := r.connected(t)
				from := time.Now()
				err := dialer.run(t)
				if !errors.Is(err, unix.EMSGSIZE) || !strings.Contains(err.Error(), "mtu_bytes=1500") {
					t.Errorf("3000 B with DF over an MTU of 1500 gave %v", err)
				}
				if d := time.Since(from); d > testenv.Patience {
					t.Errorf("gave up after %v", d)
				}
			})
		}
		t.Run(peer+" in fragments", func(t *testing.T) {
			host := loopback(t, 1500)
			r := newTrial()
			r.Near.Host, r.Far.Host, r.Peer = host, host, netip.MustParseAddr(peer)
			r.Flow.PayloadBytes = 3000
			send, receive := r.Play(t)
			r.Undisturbed(t, send, receive)
		})
	}
}

func TestPathMTUIsReported(t *testing.T) {
	t.Parallel()
	host := loopback(t, 1400)
	r := newTrial()
	r.Near.Host, r.Far.Host = host, host
	send, _ := r.Play(t)
	if send.PathMTU != 1400 {
		t.Errorf("path MTU %d, want 1400", send.PathMTU)
	}
}

// All packets have the flow's mark, also what the shared port answers before the flow has a socket.
func TestDSCP(t *testing.T) {
	s := loopback(t, 65536)
	for _, dscp := range []int{46, 0} {
		var marks func(uint16) map[byte]int
		_ = s.Do(func() error { marks = netbed.Marks(t, unix.IPPROTO_UDP); return nil })
		r := newTrial()
		r.Near.Host, r.Far.Host, r.Flow.DSCP = s, s, dscp
		_, listener := r.connected(t)
		if got := marks(listener.Ports()[0]); len(got) != 1 || got[byte(dscp<<2)] < 4 {
			t.Errorf("DSCP %d: packets by TOS: %v, want all with %d", dscp, got, dscp<<2)
		}
		r.Peer, r.Tag = netip.IPv6Loopback(), r.Tag+1
		dialer, listener := r.connected(t)
		testenv.Must(t, listener.t.OpenStreams())
		for _, e := range []testEnd{dialer, listener} {
			got, err := unix.GetsockoptInt(e.t.sockets[0].(*linuxSocket).fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS)
			if err != nil || got != dscp<<2 {
				t.Errorf("DSCP %d: the traffic class is %d, %v", dscp, got, err)
			}
		}
	}
}

// A probe goes the way of the flow: from its address.
func TestProbeHasTheSourceAddress(t *testing.T) {
	r := newTrial()
	r.Role = engine.Probe
	r.Flow.SourceAddresses = []netip.Addr{netip.MustParseAddr("127.0.0.2")}
	dialer, _ := r.connected(t)
	if got := dialer.t.sockets[0].local().Addr(); got != r.Flow.SourceAddresses[0] {
		t.Errorf("the probe comes from %v, want %v", got, r.Flow.SourceAddresses[0])
	}
}

// A host that was told to listen at one address listens at no other, wherever it runs.
func TestListensAtItsAddressOnly(t *testing.T) {
	at, host := netip.MustParseAddr("127.0.0.3"), loopback(t, 65536)
	for name, maker := range map[string]socketMaker{"native": newSocketMaker(netip.AddrPortFrom(at, 0)),
		"portable": portable{at}} {
		r := newTrial()
		r.Near.Host, r.Far.Host, r.Peer, r.Far.Engine = host, host, at, &Engine{clock: engine.NewClock(),
			socketMaker: maker}
		_, listener := r.connected(t)
		if err := host.Do(func() error {
			other, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.4:%d", listener.Ports()[0]))
			if err != nil {
				return err
			}
			return other.Close()
		}); err != nil {
			t.Errorf("%s: the port is taken at another address, too: %v", name, err)
		}
	}
}

// All listening ends of an engine share its port, in both families.
func TestSharedPort(t *testing.T) {
	host := loopback(t, 65536)
	listening := New(Config{Listen: netip.AddrPortFrom(netip.Addr{}, 5001)})
	var ends []testEnd
	for i, peer := range []string{"127.0.0.1", "127.0.0.2", "::1"} {
		r := newTrial()
		r.Near.Host, r.Far.Host, r.Far.Engine, r.Peer, r.Tag = host, host, listening, netip.MustParseAddr(peer), uint16(i)
		r.Flow.Streams = 2
		dialer, listener := r.prepare(t)
		if p := listener.Ports(); p[0] != 5001 || p[1] != 5001 {
			t.Errorf("%s: ports %v, want 5001", peer, p)
		}
		enginetest.Connect(t, dialer.End, listener.End)
		ends = append(ends, dialer, listener)
	}
	other := New(Config{Listen: netip.AddrPortFrom(netip.Addr{}, 5001)})
	order := engine.Order{Flow: newTrial().Flow, Role: engine.Receive, Listen: true, Trial: 9, Key: newTrial().Key,
		CPU: -1}
	if _, err := prepare(t, other, host, order); !errors.Is(err, unix.EADDRINUSE) ||
		!strings.Contains(err.Error(), "5001") {
		t.Errorf("a second engine on the port: %v", err)
	}
	for _, e := range ends {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	end, err := prepare(t, other, host, order)
	if err != nil {
		t.Fatalf("the port is still taken: %v", err)
	}
	if err := end.Close(); err != nil {
		t.Error(err)
	}
}

// A dialer that gives up and comes again from another port is served.
func TestDialerComesAgain(t *testing.T) {
	r := newTrial()
	first, listener := r.prepare(t)
	w := first.t.sockets[0]
	hello := engine.NewConsentDialer(first.t.order.StreamKey(0)).Message()
	testenv.Must(t, w.write(hello[:]))
	if d, err := w.read(testenv.Patience); err != nil || d.bytes != engine.ConsentBytes {
		t.Fatalf("hello was answered by %+v, %v", d, err)
	}
	first.Close()
	order := first.Order
	second, err := prepare(t, r.Near.Engine.(*Engine), enginetest.Here{}, order)
	testenv.Must(t, err)
	defer second.Close()
	enginetest.Connect(t, second.End, listener.End)
}

// What a socket that was found empty brings next cannot be older.
func TestNotBefore(t *testing.T) {
	in := batchInbox{messages: newMessages(2, 1)}
	for _, c := range []struct {
		n         int
		now, want int64
	}{{1, 10, 0}, {2, 20, 0}, {2, 30, 0}, {1, 40, 30}, {0, 50, 40}} {
		if in.found(c.n, c.now); in.notBefore != c.want {
			t.Errorf("%d at %d: not before %d, want %d", c.n, c.now, in.notBefore, c.want)
		}
	}
}

// An end that is told that its packets get nowhere gives up sooner, and says who told it.
func TestClosedPort(t *testing.T) {
	t.Parallel()
	r := newTrial()
	dialer, listener := r.prepare(t)
	if err := listener.Close(); err != nil { // with its port
		t.Fatal(err)
	}
	met, err := dialer.End.End.Connect(t.Context())
	if err != nil || len(met.ICMP) != 1 {
		t.Fatalf("%+v, %v", met, err)
	}
	s, said := met.Streams[0], met.ICMP[0]
	if s.Met || s.Heard > 0 || s.Sent < 2 || s.Sent > 6 || said.From != r.Peer.String() ||
		said.What != "port unreachable" || said.Packets != s.Sent {
		t.Errorf("stream %+v, ICMP %+v", s, said)
	}
}

// TestLocalPortInUse: who calls from a port that another program has is told so by a code.
func TestLocalPortInUse(t *testing.T) {
	taken, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testenv.Must(t, err)
	defer taken.Close()
	order := engine.Order{Flow: newTrial().Flow, Role: engine.Send, Trial: 9, Key: newTrial().Key, CPU: -1,
		Peer: netip.MustParseAddr("127.0.0.1"), Ports: []uint16{9}}
	order.Flow.SourcePort = taken.LocalAddr().(*net.UDPAddr).Port
	var fault *engine.Fault
	_, err = prepare(t, testEngine(Config{}, false), enginetest.Here{}, order)
	if !errors.As(err, &fault) || fault.Why.Code != model.LocalPortTaken {
		t.Errorf("calling from a busy port: %v", err)
	}
}
