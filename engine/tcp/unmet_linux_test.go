package tcp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/engine/enginetest"
	"pelt/internal/icmp"
	"pelt/internal/netbed"
	"pelt/internal/testenv"
	"pelt/model"
)

// A port that answers no SYN: both ends say on which streams they have not met, and the dialing one how many SYNs left.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	p := newPair(t, enginetest.Here{}, "127.0.0.1", false, flow(2, 64, false), timing(0, time.Minute, 0))
	o := p.sender.Order
	o.Ports = []uint16{mute(t), mute(t)}
	caller, err := prepare(t, New(Config{}), enginetest.Here{}, o)
	testenv.Must(t, err)
	for name, c := range map[string]struct {
		end  testEnd
		sent []bool
	}{"caller": {caller, []bool{true, false}}, "listener": {p.receiver, []bool{false, false}}} { // one after the other
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		met, err := c.end.End.End.Connect(ctx)
		if err != nil || len(met.Streams) != 2 {
			t.Fatalf("%s: %+v, %v", name, met, err)
		}
		for i, s := range met.Streams {
			if s.Met || s.Sent > 0 != c.sent[i] || name == "caller" && s.Remote.Port() != o.Ports[i] {
				t.Errorf("%s: stream %d: %+v, want some sent: %v", name, i, s, c.sent[i])
			}
		}
	}
}

// A connection that is set up and over which nothing comes back has not met either: a rule on the way loses what follows
// the first packets.
func TestNoAnswerAfterSYN(t *testing.T) {
	t.Parallel()
	p := newPair(t, enginetest.Here{}, "127.0.0.1", false, flow(1, 64, false), timing(0, time.Minute, 0))
	deaf, err := net.Listen("tcp", "127.0.0.1:0") // whose kernel takes connections
	testenv.Must(t, err)
	defer deaf.Close()
	o := p.sender.Order
	o.Ports = []uint16{netip.MustParseAddrPort(deaf.Addr().String()).Port()}
	caller, err := prepare(t, New(Config{}), enginetest.Here{}, o)
	testenv.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	met, err := caller.End.End.Connect(ctx)
	if err != nil || len(met.Streams) != 1 || met.Streams[0].Met || met.Streams[0].Sent != 1 {
		t.Errorf("%+v, %v", met, err)
	}
}

// mute is a port whose host lets SYNs lie, because nobody takes the connections that are there.
func mute(t *testing.T) uint16 {
	at := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	open := func() int {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		testenv.Must(t, err)
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	l := open()
	testenv.Must(t, unix.Bind(l, at))
	testenv.Must(t, unix.Listen(l, 0))
	bound, err := unix.Getsockname(l)
	testenv.Must(t, err)
	for range 3 { // one more than it keeps
		if err := unix.Connect(open(), bound); err != nil && err != unix.EINPROGRESS {
			t.Fatal(err)
		}
	}
	return uint16(bound.(*unix.SockaddrInet4).Port)
}

// What refuses a connection is told as what it is: a reset, which anybody may have sent, an ICMP error with its sender,
// or an error of this host.
func TestRefused(t *testing.T) {
	t.Parallel()
	const resets, firstPort = unix.NFT_REJECT_TCP_RST, 40000
	unreachable := func(router, server *netbed.Node) {
		for _, six := range []bool{false, true} {
			router.Refuse(server.IP(six), unix.RTN_UNREACHABLE)
		}
	}
	// reject answers packets of a source port, 0 of all.
	reject := func(n *netbed.Node, hook *nftables.ChainHook, kind uint32, port uint16) {
		match := netbed.Of(unix.IPPROTO_TCP)
		if port > 0 {
			match = netbed.OfPort(unix.IPPROTO_TCP, 0, 0xffff, port)
		}
		n.Rule(hook, append(match, &expr.Reject{Type: kind, Code: unix.NFT_REJECT_ICMPX_ADMIN_PROHIBITED})...)
	}
	const message = unix.NFT_REJECT_ICMPX_UNREACH
	atRouter := func(kind uint32, port uint16) func(_, router, _ *netbed.Node) {
		return func(_, router, _ *netbed.Node) { reject(router, nftables.ChainHookForward, kind, port) }
	}
	noRoute := func(_, r, s *netbed.Node) { unreachable(r, s) }
	for name, c := range map[string]struct {
		six    bool
		fault  func(client, router, server *netbed.Node)
		icmp   string
		resets uint64
		errno  string
		met    int // streams
	}{
		"nobody listens":         {resets: 1},
		"nobody listens, IPv6":   {six: true, resets: 1},
		"a router resets":        {fault: atRouter(resets, 0), resets: 1},
		"a router refuses":       {fault: noRoute, icmp: "host unreachable from 10.77.0.2"},
		"a router refuses, IPv6": {six: true, fault: noRoute, icmp: "network unreachable from fd77::2"},
		"the server's firewall": {icmp: "administratively prohibited from 10.77.1.2",
			fault: func(_, _, s *netbed.Node) {
				reject(s, nftables.ChainHookInput, message, 0)
			}},
		"this host's route": {errno: "EACCES", fault: func(c, _, s *netbed.Node) {
			c.Refuse(s.IP(false), unix.RTN_PROHIBIT)
		}},
		"a later stream, by a reset": {fault: atRouter(resets, firstPort+1), resets: 1, met: 1},
		"a later stream, by a message": {fault: atRouter(message, firstPort+1), met: 1,
			icmp: "administratively prohibited from 10.77.0.2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := netbed.Chain(t, "client", "router", "server")
			r := enginetest.New(model.TCP)
			r.Flow, r.Timing, r.Peer = flow(2, 64, false), timing(0, time.Minute, 0), nodes[2].IP(c.six)
			r.Flow.SourcePort = firstPort
			r.Near.Host, r.Far.Host, r.Near.Engine, r.Far.Engine = nodes[0], nodes[2], New(Config{}), New(Config{})
			p := r.Prepare(t)
			if c.fault == nil {
				p.Receiver.Close() // with the port
			} else {
				c.fault(nodes[0], nodes[1], nodes[2])
			}
			m, err := p.Sender.End.Connect(t.Context())
			p.Sender.Close()
			if c.fault != nil {
				p.Receiver.Close()
			}
			if err != nil || len(m.Streams) != 2 {
				t.Fatalf("%+v, %v", m, err)
			}
			said := ""
			for _, e := range m.ICMP {
				said += e.What + " from " + e.From
			}
			refused := m.Streams[c.met] // its SYN may leave again before a busy host hears the answer
			if said != c.icmp || m.Resets != c.resets || m.Streams[0].Met != (c.met > 0) || refused.Met ||
				refused.Sent < 1 || refused.Sent > 2 ||
				len(refused.Errors) != len(c.errno)/6 || c.errno != "" && refused.Errors[c.errno] != 1 {
				t.Errorf("%+v", m)
			}
		})
	}
}

// A rule of this host that forbids a connection is as one that forbids a packet.
func TestForbidden(t *testing.T) {
	e := &end{order: engine.Order{Peer: netip.IPv6Loopback(), Ports: []uint16{9}}}
	m := engine.Meeting{Streams: make([]engine.MetStream, 1)}
	var unmet errUnmet
	if !errors.As(e.explain(t.Context(), os.NewSyscallError("connect", unix.EPERM), icmp.Attempt{Sent: 1}, 0), &unmet) {
		t.Fatal("it ends the trial")
	}
	if unmet.count(&m, 0); m.Streams[0].Sent != 1 || m.Streams[0].Errors["EPERM"] != 1 || m.Resets != 0 {
		t.Errorf("%+v", m)
	}
}
