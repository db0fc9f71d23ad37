package udp

import (
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	"pelt/engine"
	"pelt/model"
	"pelt/unit"
)

// listed reads a list; it must be whole and in order.
func listed(t testing.TB, m model.Marks) (all []model.Stretch) {
	t.Helper()
	next := uint64(0)
	for s, err := range m.Stretches() {
		if err != nil {
			t.Fatal(err)
		}
		if len(all) > 0 && s.From < next {
			t.Fatalf("stretch %+v after sequence %d", s, next)
		}
		next = s.From + s.Count
		all = append(all, s)
	}
	if m.Unlisted > 0 {
		t.Fatalf("%d sequences are not listed", m.Unlisted)
	}
	return all
}

// sequences are those of a list, whatever their marks.
func sequences(t testing.TB, m model.Marks) map[uint64]bool {
	set := map[uint64]bool{}
	for _, s := range listed(t, m) {
		for n := range s.Count {
			set[s.From+n] = true
		}
	}
	return set
}

// balance checks what holds of every account: what was attempted was accepted or
// refused, what did not come is missing, and the lists say the same.
func balance(t testing.TB, send, receive engine.Report) {
	t.Helper()
	s, r := send.Send, receive.Receive
	var refused, missing uint64
	byName := map[string]uint64{}
	for _, m := range s.Refused {
		refused += m.Packets
		for _, x := range listed(t, m) {
			if int(x.Mark) >= len(s.Errnos) {
				t.Fatalf("mark %d of %v", x.Mark, s.Errnos)
			}
			byName[s.Errnos[x.Mark]] += x.Count
		}
	}
	for _, m := range r.Missing {
		missing += m.Packets
		listed(t, m)
	}
	if s.Attempted != s.Accepted+refused || len(s.Refused) != len(s.Streams) {
		t.Errorf("attempted %d, accepted %d, %d refused in %d lists of %d streams", s.Attempted, s.Accepted, refused, len(s.Refused), len(s.Streams))
	}
	for name, n := range s.Errors {
		if byName[name] != n {
			t.Errorf("%s: %d refused, %d listed", name, n, byName[name])
		}
	}
	if len(byName) != len(s.Errors) {
		t.Errorf("listed %v, counted %v", byName, s.Errors)
	}
	if !r.MissingKnown || missing != s.Attempted-r.Tally.Received || len(r.Missing) != len(s.Streams) {
		t.Errorf("attempted %d, received %d, %d missing in %d lists (known %v)", s.Attempted, r.Tally.Received, missing, len(r.Missing), r.MissingKnown)
	}
}

// runSame runs the trial and checks that just what was refused is missing.
func (r *trial) runSame(t testing.TB) (send, receive engine.Report) {
	t.Helper()
	send, receive = r.run(t)
	balance(t, send, receive)
	unexplained := 0
	for i := range send.Send.Refused {
		refused, missing := sequences(t, send.Send.Refused[i]), sequences(t, receive.Receive.Missing[i])
		if len(refused) == 0 {
			t.Errorf("stream %d: nothing was refused", i)
		}
		for n := range refused {
			if !missing[n] {
				t.Fatalf("stream %d: sequence %d was refused and came (%d refused, %d missing, %d offered again)", i, n, len(refused), len(missing), send.Send.Retried)
			}
		}
		unexplained += len(missing) - len(refused)
	}
	// A veth's packets go through the backlog behind the queue.
	if uint64(unexplained) > r.backlog {
		t.Errorf("%d sequences are missing and were not refused; the backlog dropped %d", unexplained, r.backlog)
	}
	return send, receive
}

// backlogDrops sums up the second column of softnet_stat, modulo 2^32.
func backlogDrops(t testing.TB) (sum uint32) {
	t.Helper()
	text, err := os.ReadFile("/proc/net/softnet_stat")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		n, err := strconv.ParseUint(strings.Fields(line)[1], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		sum += uint32(n)
	}
	return sum
}

// A queue of the sender's host drops, and the kernel tells for which packet.
func TestFullQueueIsTold(t *testing.T) {
	for _, c := range []struct {
		name  string
		peer  netip.Addr
		rate  unit.Rate
		set   func(*trial)
		limit string
	}{
		{"IPv4", farFour, unit.Rate{}, func(*trial) {}, "rate 20mbit burst 3kb limit 6000"},
		{"IPv6", farSix, unit.Rate{}, func(*trial) {}, "rate 20mbit burst 3kb limit 6000"},
		{"paced", farFour, unit.PacketRate(5000), func(*trial) {}, "rate 20mbit burst 3kb limit 6000"},
		{"small packets now and then", farFour, unit.Rate{}, func(r *trial) { r.flow.PayloadBytes, r.flow.SendBuffer = 64, 1<<20 }, "rate 10mbit burst 20kb limit 30000"},
		{"streams", farFour, unit.Rate{}, func(r *trial) { r.flow.Streams = 3 }, "rate 20mbit burst 3kb limit 6000"},
		{"dialer receives", farFour, unit.Rate{}, func(r *trial) { r.dialer = engine.Receive }, "rate 20mbit burst 3kb limit 6000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			near, far := linked(t)
			r := newTrial()
			r.near, r.far, r.peer = near, far, c.peer
			r.flow.PayloadBytes, r.flow.Rate = 1200, c.rate
			r.timing = model.Timing{WarmupSeconds: 0.3, DrainSeconds: 20}
			c.set(&r)
			r.sends(t, 1000)
			sender := near
			if r.dialer == engine.Receive {
				sender = far
			}
			sender.command(t, "tc qdisc add dev v0 root tbf "+c.limit)
			send, receive := r.runSame(t)
			s := send.Send
			if s.Hopeless || s.Errors["ENOBUFS"] == 0 || len(s.Errors) != 1 || s.Retried > s.Attempted/2 {
				t.Errorf("hopeless %v, errors %v, %d of %d offered again", s.Hopeless, s.Errors, s.Retried, s.Attempted)
			}
			if w := receive.Receive.WarmupReceived; w > s.WarmupSent || s.WarmupSent > 1000 && (w == 0 || w == s.WarmupSent) {
				t.Errorf("of the warm-up %d were sent, %d came", s.WarmupSent, w)
			}
		})
	}
}

// A rule of the sender's host forbids some packets.
func TestForbiddenPacketsAreTold(t *testing.T) {
	both(t, func(t *testing.T, r trial) {
		near, far := linked(t)
		r.near, r.far, r.peer = near, far, farFour
		r.flow.Streams = 2
		r.sends(t, 500)
		near.rules(t, "table inet t { chain c { type filter hook output priority 0; udp length 72 numgen random mod 100 < 30 drop; }; }")
		send, _ := r.runSame(t)
		if s := send.Send; s.Errors["EPERM"] == 0 {
			t.Errorf("errors %v, want EPERM", s.Errors)
		}
	})
}

// A receiver that nobody told what was attempted does not guess what is missing.
func TestMissingNeedsToBeTold(t *testing.T) {
	for _, attempted := range [][]uint64{nil, {5}, {5, 5, 5}} {
		r := newTrial()
		r.flow.Streams = 2
		dialer, listener := r.prepare(t)
		connectBoth(t, dialer, listener)
		if err := listener.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if attempted == nil {
			listener.Stop()
			<-listener.Done()
		} else if err := listener.Drain(t.Context(), engine.Sent{Streams: attempted}); err != nil {
			t.Fatal(err)
		}
		if got := listener.account().Receive; got.MissingKnown || got.Missing != nil {
			t.Errorf("told %v of 2 streams, it knows %+v", attempted, got.Missing)
		}
	}
}

// What a rule of the receiver's host rejects brings back ICMP errors. Those that
// only IP_RECVERR brings up cost no further packet.
func TestICMPIsToldAndCostsNothing(t *testing.T) {
	for _, c := range []struct {
		peer         netip.Addr
		reject, want string
	}{
		{farFour, "icmp type host-unreachable", "host unreachable from 10.77.0.2"},
		{farSix, "icmpv6 type addr-unreachable", "address unreachable from fd77::2"},
	} {
		t.Run(c.want, func(t *testing.T) {
			near, far := linked(t)
			r := newTrial()
			r.near, r.far, r.peer = near, far, c.peer
			r.sends(t, 500)
			far.rules(t, "table inet t { chain c { type filter hook input priority 0; udp length 72 numgen inc mod 10 < 1 reject with "+c.reject+"; }; }")
			send, receive := r.run(t)
			balance(t, send, receive)
			s := send.Send
			if s.Accepted+s.Errors["ENOBUFS"] != s.Attempted { // a busy host fills the queue of the cable's far end
				t.Errorf("errors %v: ICMP errors for others cost packets of ours", s.Errors)
			}
			if text := strings.Join(send.Warnings, "; "); !strings.HasSuffix(text, " ICMP "+c.want) || strings.Contains(text, ";") {
				t.Errorf("warnings %q, want %q", text, c.want)
			}
			lost := s.Accepted - receive.Receive.Tally.Received
			if whole := s.Attempted + s.WarmupSent; lost < s.Accepted/10-1 || lost > whole/10+1+r.backlog {
				t.Errorf("%d of %d lost, want every tenth", lost, s.Attempted)
			}
		})
	}
}

// A port that was closed refuses every other packet over loopback: its ICMP
// errors come back at once.
func TestClosedPortIsTold(t *testing.T) {
	for _, peer := range []string{"127.0.0.1", "::1"} {
		r := newTrial()
		r.peer, r.timing = netip.MustParseAddr(peer), model.Timing{MeasureSeconds: 0.2}
		dialer, listener := r.prepare(t)
		connectBoth(t, dialer, listener)
		listener.Close()
		if err := dialer.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := dialer.account().Send
		refused := s.Errors["ECONNREFUSED"]
		if refused == 0 || s.Attempted != s.Accepted+refused || s.Refused[0].Packets != refused || s.Errnos[listed(t, s.Refused[0])[0].Mark] != "ECONNREFUSED" {
			t.Errorf("attempted %d, accepted %d, errors %v, %d listed with %v", s.Attempted, s.Accepted, s.Errors, s.Refused[0].Packets, s.Errnos)
		}
		for _, x := range listed(t, s.Refused[0]) {
			if x.From == 0 {
				t.Errorf("the first packet was refused for an error that none had made: %+v", x)
			}
		}
		if n := dialer.t.role.(*sender).icmpErrors.counts["port unreachable from "+peer]; n < refused {
			t.Errorf("%d packets were refused, ICMP %d", refused, n)
		}
	}
}

// A small receive buffer overflows: the missing sequences are as many as the
// socket dropped.
func TestOverflowIsListed(t *testing.T) {
	near, far := linked(t)
	r := newTrial()
	r.near, r.far, r.peer = near, far, farFour
	r.flow.Rate, r.flow.ReceiveBuffer, r.flow.Streams = unit.Rate{}, 8192, 2
	r.sends(t, 100_000)
	send, receive := r.run(t)
	balance(t, send, receive)
	rec := receive.Receive
	lost := send.Send.Attempted - rec.Tally.Received
	if !rec.SocketKnown || rec.SocketDrops == 0 || lost+2*mostShifted < rec.SocketDrops || lost > rec.SocketDrops+r.backlog+2*mostShifted {
		t.Errorf("lost %d, the sockets dropped %d (known %v), the backlog %d", lost, rec.SocketDrops, rec.SocketKnown, r.backlog)
	}
	if rec.BufferBytes != 8192 || len(receive.Warnings) != 0 {
		t.Errorf("a buffer of %d B was granted, warnings %q", rec.BufferBytes, receive.Warnings)
	}
}

// The kernel accounts for a queued datagram what the report says.
func TestTruesize(t *testing.T) {
	near, far := linked(t)
	for _, payload := range []int{64, 1200} {
		r := newTrial()
		r.near, r.far, r.peer = near, far, farFour
		r.flow.PayloadBytes, r.flow.Rate, r.flow.Burst = payload, unit.PacketRate(20_000), 64
		send, receive := r.run(t)
		// The same datagrams again, with nobody reading.
		dialer, listener := r.prepare(t)
		connectBoth(t, dialer, listener)
		if err := listener.t.OpenStreams(); err != nil {
			t.Fatal(err)
		}
		if err := dialer.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		m, ok := memoryOf(listener.t.sockets[0].(*linuxSocket).fd)
		s := dialer.account().Send
		if want := float64(m.queued) / float64(s.Accepted+s.WarmupSent); !ok || want < float64(payload) {
			t.Fatalf("%d B are queued of %d packets", m.queued, s.Accepted+s.WarmupSent)
		} else if got := float64(receive.Receive.TruesizeBytes); got < 0.9*want || got > 1.1*want {
			t.Errorf("%d B: truesize %v, want %v (%d packets)", payload, got, want, send.Send.Accepted)
		}
		listener.Close()
		dialer.Close()
	}
}

func TestTuples(t *testing.T) {
	near, far := linked(t)
	near.rules(t, "table ip t { chain c { type nat hook postrouting priority 100; ip protocol udp masquerade to :21000-21100; }; }")
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
			r.near, r.far, r.peer, r.dialer, r.flow.Streams = near, far, c.peer, c.dialer, 3
			dialer, listener := r.prepare(t)
			atDialer, atListener := connectBoth(t, dialer, listener)
			mine, theirs := engine.Tuples(c.dialer, atDialer), engine.Tuples(map[engine.Role]engine.Role{engine.Send: engine.Receive, engine.Receive: engine.Send}[c.dialer], atListener)
			if len(mine) != 3 || len(theirs) != 3 {
				t.Fatalf("tuples %v and %v", mine, theirs)
			}
			for i := range mine {
				near, far := dialer.Ports()[i], listener.Ports()[i]
				want := model.Tuple{From: near, To: far}
				own, other := theirs[i].From, theirs[i].To
				if c.dialer == engine.Receive {
					want = model.Tuple{From: far, To: near}
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
