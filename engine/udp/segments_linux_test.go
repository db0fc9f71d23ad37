package udp

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"pelt/engine"
	"pelt/engine/enginetest"
	"pelt/internal/netbed"
	"pelt/model"
	"pelt/unit"
)

// Buffers of segments arrive as datagrams, each with its own sequence, also where the receiver's
// kernel joins them.
func TestSegments(t *testing.T) {
	t.Parallel()
	near, far := linked(t)
	lo := loopback(t, 65536)
	for _, c := range []struct {
		name              string
		near, far         *netbed.Node
		peer              netip.Addr
		payload, segments int
		rate              unit.Rate
		dialer            engine.Role
		burst             int // most packets at once
		joined            bool
	}{
		{"veth IPv4", near, far, farFour, 64, 16, unit.PacketRate(20_000), engine.Send, 16, false},
		{"veth IPv6", near, far, farSix, 64, 64, unit.PacketRate(20_000), engine.Send, 64, false},
		{"loopback", lo, lo, netip.MustParseAddr("127.0.0.1"), 200, 7, unit.PacketRate(7_000), engine.Send, 7, false},
		{"smallest", near, far, farFour, 16, 2, unit.PacketRate(2000), engine.Send, 2, false},
		{"longest", near, far, farFour, 1472, 44, unit.PacketRate(4000), engine.Send, 44, false},
		{"listener sends", near, far, farFour, 64, 16, unit.PacketRate(20_000), engine.Receive, 16, false},
		{"as fast as it goes", near, far, farFour, 1000, 10, unit.Rate{}, engine.Send, 60, false},
		{"joined over loopback", lo, lo, netip.MustParseAddr("127.0.0.1"), 200, 7, unit.PacketRate(20_000),
			engine.Send, 7, true},
		{"joined over a veth, IPv6, longest", near, far, farSix, 1000, 60, unit.PacketRate(20_000), engine.Send, 60,
			true},
		{"joined, smallest", near, far, farFour, 16, 64, unit.PacketRate(20_000), engine.Send, 64, true},
		{"joined, sent singly", near, far, farFour, 64, 1, unit.PacketRate(20_000), engine.Send, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newTrial()
			r.Near.Host, r.Far.Host, r.Peer, r.Role = c.near, c.far, c.peer, c.dialer
			r.Flow.PayloadBytes, r.Flow.Segments, r.Flow.Rate, r.Flow.Joined = c.payload, c.segments, c.rate, c.joined
			r.Flow.ReceiveBuffer = 16 << 20
			if c.rate == (unit.Rate{}) {
				r.Timing.WarmupSeconds = 0
				r.sends(10_000)
			} else {
				r.sends(500)
			}
			send, receive := r.Play(t)
			enginetest.Balance(t, r.Order, send, receive)
			s, rec := send.Send, receive.Receive
			if s.BurstMax != c.burst {
				t.Errorf("burst %d, want %d", s.BurstMax, c.burst)
			}
			if c.rate != (unit.Rate{}) {
				r.Undisturbed(t, send, receive)
				if rec.WarmupReceived > s.WarmupSent || s.WarmupSent-rec.WarmupReceived > r.Backlog ||
					rec.SocketKnown == c.joined {
					t.Errorf("warm-up %d of %d; the sockets' count is said to be known: %v", rec.WarmupReceived,
						s.WarmupSent, rec.SocketKnown)
				}
			} else if lost := s.Attempted - rec.Tally.Received; lost > rec.SocketDrops+r.Backlog || s.Attempted < 100 {
				t.Errorf("of %d packets %d are lost, the socket dropped %d, the backlog %d", s.Attempted, lost,
					rec.SocketDrops, r.Backlog)
			}
			if g := s.Gap; s.Attempted > 1 && (g == nil || g.Count != s.Attempted-1) {
				t.Errorf("gaps %+v of %d packets", g, s.Attempted)
			}
		})
	}
}

// A buffer is refused as a whole, and each of its packets is listed.
func TestRefusedSegmentsAreListed(t *testing.T) {
	t.Parallel()
	near, far := linked(t)
	rules(near,
		"table inet t { chain c { type filter hook output priority 0; udp length 648 numgen inc mod 3 < 1 drop; }; }")
	r := newTrial()
	r.Near.Host, r.Far.Host, r.Peer = near, far, farFour
	r.Flow.Segments, r.Flow.Rate = 10, unit.PacketRate(20_000)
	r.sends(2000)
	send, _ := r.runSame(t)
	s := send.Send
	for _, x := range enginetest.Listed(t, s.Refused[0]) {
		if x.From%10 != 0 || x.Count%10 != 0 {
			t.Errorf("%+v is not whole buffers", x)
		}
	}
	if lost := s.Attempted - s.Accepted; lost < s.Attempted/3-20 || lost > s.Attempted/3+20 ||
		s.Errors["EPERM"] != lost {
		t.Errorf("%d of %d refused: %v", lost, s.Attempted, s.Errors)
	}
}

// A full queue that cuts up a buffer calls it taken if one of its packets found
// room. What it refuses is missing, but more than that.
func TestSegmentsIntoAFullQueue(t *testing.T) {
	t.Parallel()
	near, far := linked(t)
	near.TBF("eth0", netlink.HANDLE_ROOT, 2_500_000, 20_000)
	r := newTrial()
	r.Near.Host, r.Far.Host, r.Peer = near, far, farFour
	r.Flow.PayloadBytes, r.Flow.Segments, r.Flow.Rate = 1000, 10, unit.Rate{}
	r.sends(5000)
	send, receive := r.Play(t)
	enginetest.Balance(t, r.Order, send, receive)
	s := send.Send
	if s.Errors["ENOBUFS"] == 0 || s.Hopeless {
		t.Errorf("errors %v, hopeless %v", s.Errors, s.Hopeless)
	}
	missing := enginetest.Sequences(t, receive.Receive.Missing[0])
	for n := range enginetest.Sequences(t, s.Refused[0]) {
		if !missing[n] {
			t.Fatalf("sequence %d was refused and came", n)
		}
	}
}

// A segment is a datagram that cannot be fragmented.
func TestSegmentsBeyondTheMTU(t *testing.T) {
	t.Parallel()
	host := loopback(t, 1400)
	r := newTrial()
	r.Near.Host, r.Far.Host = host, host
	r.Flow.PayloadBytes, r.Flow.Segments, r.Timing.MeasureSeconds = 1400, 4, 10
	dialer, _ := r.connected(t)
	err := dialer.run(t)
	if s := dialer.Account().Send; err == nil || !s.Hopeless ||
		!strings.Contains(err.Error(), "cuts-whole: mtu_bytes=1400: packets=4") {
		t.Errorf("1400 B in segments over an MTU of 1400 gave %v, %+v", err, s.Errors)
	}
}

func TestSegmentsAreRefusedWhereUnknown(t *testing.T) {
	r := newTrial()
	r.plain, r.Flow.Segments = true, 2
	order := engine.Order{Flow: r.Flow, Role: engine.Send, Peer: r.Peer, Ports: []uint16{9}, Trial: 1, Key: r.Key,
		CPU: -1}
	var refusal *engine.Refusal
	if _, err := prepare(t, testEngine(Config{}, true), enginetest.Here{}, order); !errors.As(err, &refusal) ||
		refusal.Why.Code != model.SystemCuts {
		t.Errorf("got %v, want a refusal", err)
	}
	order.Role, order.Listen = engine.Receive, true // it receives them like any other
	end, err := prepare(t, testEngine(Config{}, true), enginetest.Here{}, order)
	if err != nil {
		t.Fatal(err)
	}
	end.Close()
}

func FuzzReadControl(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 64))
	f.Fuzz(func(_ *testing.T, b []byte) { readControl(b) })
}

// A buffer that came as one message is taken apart into datagrams of a segment, the last one shorter.
func FuzzAppendParts(f *testing.F) {
	f.Add(250, 100, 65536)
	f.Add(0, 0, 64)
	f.Add(9000, 1, 64)
	f.Add(1, -5, 0)
	f.Fuzz(func(t *testing.T, bytes, segment, room int) {
		bytes, room = min(max(bytes, 0), 1<<17), min(max(room, 0), 1<<16)
		if segment > 0 && bytes/segment > 1<<12 {
			return
		}
		whole := make([]byte, room)
		for i := range whole {
			whole[i] = byte(i * 7 / 3)
		}
		sum := 0
		for _, d := range appendParts(nil, datagram{bytes: bytes}, whole, segment) {
			if from := min(sum, room); !slices.Equal(d.head, whole[from:min(from+min(headBytes, d.bytes), room)]) {
				t.Errorf("the datagram from byte %d on begins with % x", sum, d.head)
			}
			if segment > 0 && d.bytes != min(segment, bytes-sum) {
				t.Errorf("a datagram of %d B at byte %d of %d", d.bytes, sum, bytes)
			}
			sum += d.bytes
		}
		if sum != bytes {
			t.Errorf("%d B were taken apart into %d", bytes, sum)
		}
	})
}
