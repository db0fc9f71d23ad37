package udp

import (
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"pelt/engine"
	"pelt/engine/enginetest"
	"pelt/internal/icmp"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/unit"
)

// runSame runs the trial and checks that just what was refused is missing.
func (r *trial) runSame(t testing.TB) (send, receive engine.Report) {
	t.Helper()
	send, receive = r.Play(t)
	enginetest.Balance(t, r.Order, send, receive)
	unexplained := 0
	for i := range send.Send.Refused {
		refused, missing := enginetest.Sequences(t, send.Send.Refused[i]), enginetest.Sequences(t,
			receive.Receive.Missing[i])
		if len(refused) == 0 {
			t.Errorf("stream %d: nothing was refused", i)
		}
		for n := range refused {
			if !missing[n] {
				t.Fatalf("stream %d: sequence %d was refused and came (%d refused, %d missing, %d offered again)", i,
					n, len(refused), len(missing), send.Send.Retried)
			}
		}
		unexplained += len(missing) - len(refused)
	}
	// A veth's packets go through the backlog behind the queue.
	if uint64(unexplained) > r.Backlog {
		t.Errorf("%d sequences are missing and were not refused; the backlog dropped %d", unexplained, r.Backlog)
	}
	return send, receive
}

// A queue of the sender's host drops, and the kernel tells for which packet.
func TestFullQueueIsTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		peer netip.Addr
		rate unit.Rate
		set  func(*trial)
		// Of the token bucket at the sender: bytes a second, and bytes of its queue.
		rateBytes uint64
		limit     uint32
	}{
		{"paced", farFour, unit.PacketRate(5000), func(*trial) {}, 2_500_000, 6000},
		{"small packets now and then", farFour, unit.Rate{},
			func(r *trial) { r.Flow.PayloadBytes, r.Flow.SendBuffer = 64, 1<<20 }, 1_250_000, 30_000},
		{"IPv6, streams", farSix, unit.Rate{}, func(r *trial) { r.Flow.Streams = 3 }, 2_500_000, 6000},
		{"dialer receives", farFour, unit.Rate{}, func(r *trial) { r.Role = engine.Receive }, 2_500_000, 6000},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			near, far := linked(t)
			r := newTrial()
			r.Near.Host, r.Far.Host, r.Peer = near, far, c.peer
			r.Flow.PayloadBytes, r.Flow.Rate = 1200, c.rate
			r.Timing.WarmupSeconds = 0.3
			r.sends(1000)
			c.set(&r)
			sender := near
			if r.Role == engine.Receive {
				sender = far
			}
			sender.TBF("eth0", netlink.HANDLE_ROOT, c.rateBytes, c.limit)
			send, receive := r.runSame(t)
			s := send.Send
			if s.Hopeless || s.Errors["ENOBUFS"] == 0 || len(s.Errors) != 1 || s.Retried > s.Attempted/2 {
				t.Errorf("hopeless %v, errors %v, %d of %d offered again", s.Hopeless, s.Errors, s.Retried, s.Attempted)
			}
			if w := receive.Receive.WarmupReceived; w > s.WarmupSent || s.WarmupSent > 1000 &&
				(w == 0 || w == s.WarmupSent) {
				t.Errorf("of the warm-up %d were sent, %d came", s.WarmupSent, w)
			}
		})
	}
}

// What a rule of the receiver's host rejects brings back ICMP errors. Those that
// only IP_RECVERR brings up cost no further packet.
func TestICMPIsToldAndCostsNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		peer         netip.Addr
		reject, want string
	}{
		{farFour, "icmp type host-unreachable", "host unreachable from 10.77.0.2"},
		{farSix, "icmpv6 type addr-unreachable", "host unreachable from fd77::2"},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			near, far := linked(t)
			r := newTrial()
			r.Near.Host, r.Far.Host, r.Peer = near, far, c.peer
			r.sends(500)
			rules(far,
				"table inet t { chain c { type filter hook input priority 0; udp length 72 numgen inc mod 10 < 1 reject with "+c.reject+"; }; }")
			send, receive := r.Play(t)
			enginetest.Balance(t, r.Order, send, receive)
			s := send.Send
			if s.Accepted+s.Errors["ENOBUFS"] != s.Attempted { // a busy host fills the queue of the cable's far end
				t.Errorf("errors %v: ICMP errors for others cost packets of ours", s.Errors)
			}
			if w := send.Warnings; len(w) != 1 || w[0].Code != model.ICMPCame || w[0].Text != c.want {
				t.Errorf("warnings %v, want %q", w, c.want)
			}
			lost := s.Accepted - receive.Receive.Tally.Received
			if whole := s.Attempted + s.WarmupSent; lost < s.Accepted/10-1 || lost > whole/10+1+r.Backlog {
				t.Errorf("%d of %d lost, want every tenth", lost, s.Attempted)
			}
		})
	}
}

// A port that was closed refuses every other packet over loopback: its ICMP
// errors come back at once.
func TestClosedPortIsTold(t *testing.T) {
	t.Parallel()
	for _, peer := range []string{"127.0.0.1", "::1"} {
		r := newTrial()
		r.Peer, r.Timing = netip.MustParseAddr(peer), model.Timing{MeasureSeconds: 600}
		dialer, listener := r.connected(t)
		listener.Close()
		wait := start(t, dialer)
		testenv.Await(t, "packets", func() bool { return dialer.Snapshot().Packets >= 100 })
		dialer.Stop()
		wait()
		s := dialer.Account().Send
		refused := s.Errors["ECONNREFUSED"]
		if refused == 0 || s.Attempted != s.Accepted+refused || s.Refused[0].Packets != refused ||
			s.Errnos[enginetest.Listed(t, s.Refused[0])[0].Mark] != "ECONNREFUSED" {
			t.Errorf("attempted %d, accepted %d, errors %v, %d listed with %v", s.Attempted, s.Accepted, s.Errors,
				s.Refused[0].Packets, s.Errnos)
		}
		for _, x := range enginetest.Listed(t, s.Refused[0]) {
			if x.From == 0 {
				t.Errorf("the first packet was refused for an error that none had made: %+v", x)
			}
		}
		told := icmp.Error{What: "port unreachable", From: netip.MustParseAddr(peer)}
		if n := dialer.t.role.(*sender).icmpErrors.counts[told]; n < refused {
			t.Errorf("%d packets were refused, ICMP %d", refused, n)
		}
	}
}

// The kernel accounts for a queued datagram what the report says.
func TestTruesize(t *testing.T) {
	t.Parallel()
	near, far := linked(t)
	for _, payload := range []int{64, 1200} {
		r := newTrial()
		r.Near.Host, r.Far.Host, r.Peer = near, far, farFour
		r.Flow.PayloadBytes, r.Flow.Rate, r.Flow.Burst = payload, unit.PacketRate(20_000), 64
		long := r
		long.sends(10_000)
		send, receive := long.Play(t)
		// The same datagrams again, with nobody reading.
		dialer, listener := r.connected(t)
		testenv.Must(t, listener.t.OpenStreams())
		before := far.Received() // what a backlog drops is not among it
		testenv.Must(t, dialer.run(t))
		m, ok := memoryOf(listener.t.sockets[0].(*linuxSocket).fd)
		came := far.Received() - before
		if want := float64(m.queued) / float64(came); !ok || want < float64(payload) {
			t.Fatalf("%d B are queued of %d packets", m.queued, came)
		} else if got := float64(receive.Receive.TruesizeBytes); got < 0.9*want || got > 1.1*want {
			t.Errorf("%d B: truesize %v, want %v (%d packets)", payload, got, want, send.Send.Accepted)
		}
		listener.Close()
		dialer.Close()
	}
}

// Before the queue was empty the kernel may still count what was read: such looks count only where there are no others.
func TestTruesizeOfLooks(t *testing.T) {
	var s truesize
	look := func(at int64, queued uint32, fresh bool) int {
		s.look(at, queued, fresh)
		s.read([]datagram{{nanos: at - 1}, {nanos: at}, {nanos: at + 1}}, false)
		return s.bytes()
	}
	if got := look(10, 2000, false); got != 1000 {
		t.Errorf("%d, want 1000", got)
	}
	if got := look(20, 1536, true); got != 768 {
		t.Errorf("%d, want that of the look after an empty queue", got)
	}
	if got := look(30, 4000, false); got != 768 {
		t.Errorf("%d, want the same", got)
	}
}

func TestTuples(t *testing.T) {
	t.Parallel()
	near, far := linked(t)
	rules(near,
		"table ip t { chain c { type nat hook postrouting priority 100; ip protocol udp masquerade to :21000-21100; }; }")
	for _, c := range []struct {
		name   string
		peer   netip.Addr
		dialer engine.Role
		nat    bool
	}{
		{"sender dials", farSix, engine.Send, false},
		{"receiver dials", farSix, engine.Receive, false},
		{"sender dials through NAT", farFour, engine.Send, true},
		{"receiver dials through NAT", farFour, engine.Receive, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newTrial()
			r.Near.Host, r.Far.Host, r.Peer, r.Role, r.Flow.Streams = near, far, c.peer, c.dialer, 3
			dialer, listener := r.connected(t)
			mine, theirs := dialer.Met.Tuples(c.dialer), listener.Met.Tuples(listener.Order.Role)
			if len(mine) != 3 || len(theirs) != 3 {
				t.Fatalf("tuples %v and %v", mine, theirs)
			}
			for i := range mine {
				near, far := dialer.Ports()[i], listener.Ports()[i]
				want := model.Tuple{From: near, To: far, Peer: c.peer}
				own, other := theirs[i].From, theirs[i].To
				if c.dialer == engine.Receive {
					want = model.Tuple{From: far, To: near, Peer: c.peer}
					own, other = other, own
				}
				if mine[i] != want {
					t.Errorf("stream %d: the dialer says %v, want %v", i, mine[i], want)
				}
				if c.nat != (own >= 21000 && own <= 21100) || !c.nat && own != near || other != far {
					t.Errorf("stream %d: the listener says %v, the dialer %v", i, theirs[i], mine[i])
				}
			}
		})
	}
}
