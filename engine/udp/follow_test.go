package udp

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pelt/engine"
)

// movable is a socket that says where its peer is.
type movable struct {
	socket
	peer    netip.AddrPort
	answers int
}

func (s *movable) remote() netip.AddrPort         { return s.peer }
func (s *movable) follow(to netip.AddrPort) error { s.peer = to; return nil }
func (s *movable) try([]byte) error               { s.answers++; return nil }

// The newest check of the sender says where a stream is. A copy of an older one moves nothing; a copy of the newest one
// that is faster than the check itself holds the stream only until that comes.
func TestFollower(t *testing.T) {
	o := newTrial().Order
	o.Role = engine.Receive
	clock := engine.NewClock()
	f := newFollower(o, clock)
	at := func(port uint16) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 77, 0, 2}), port)
	}
	home, nat, thief := at(1), at(2), at(3)
	s := &movable{peer: home}
	f.follow([]socket{s})
	k := engine.NewConsentKeeper(o, clock.Now())
	defer k.Close()
	var checks [][]byte
	for range 6 {
		m := k.Ask(0, clock.Now())
		checks = append(checks, m[:])
	}
	packet := packetOf(o.Trial, 1).head
	other := o
	other.Key = make([]byte, engine.KeyBytes)
	forger := engine.NewConsentKeeper(other, clock.Now())
	defer forger.Close()
	forged := forger.Ask(0, clock.Now())
	for range 9 {
		forged = forger.Ask(0, clock.Now())
	}
	note := func(n int) {
		_, number, _ := o.StreamKey(0).AnswerCheck(checks[n])
		f.note(0, number)
	}
	for _, c := range []struct {
		what    string
		do      func()
		peer    netip.AddrPort
		answers int
		moves   int
		strange uint64
	}{
		{"the second check comes home", func() { note(1) }, home, 0, 0, 0},
		{"its copy comes from elsewhere", func() { f.take(0, checks[1], thief) }, home, 0, 0, 0},
		{"so does one of the first", func() { f.take(0, checks[0], thief) }, home, 0, 0, 0},
		{"and one with another key", func() { f.take(0, forged[:], thief) }, home, 0, 0, 0},
		{"packets come from elsewhere", func() {
			for _, from := range []netip.AddrPort{thief, nat, nat} {
				f.take(0, packet, from)
			}
		}, home, 0, 0, 3},
		{"the third comes from there", func() { f.take(0, checks[2], nat) }, nat, 1, 1, 3},
		{"a packet that waited meanwhile is read", func() { f.take(0, packet, nat) }, nat, 1, 1, 4},
		{"a copy of the fourth is faster", func() { f.take(0, checks[3], thief) }, thief, 2, 2, 4},
		{"the fourth comes", func() { f.take(0, checks[3], nat) }, nat, 3, 1, 4},
		{"the copy comes again", func() { f.take(0, checks[3], thief) }, nat, 3, 1, 4},
		{"the fifth comes from home", func() { f.take(0, checks[4], home) }, home, 4, 2, 4},
		{"the sixth waited to be read meanwhile", func() { f.take(0, checks[5], home) }, home, 5, 2, 4},
		{"a packet still comes from before", func() { f.take(0, packet, nat) }, home, 5, 2, 5},
	} {
		c.do()
		moves, strange := f.report()
		if s.peer != c.peer || s.answers != c.answers || len(moves) != c.moves || strange != c.strange {
			t.Errorf("%s: at %v with %d answers, moves %v, %d strange; want %+v", c.what, s.peer, s.answers, moves, strange,
				c)
		}
	}
}

// A sender asks where an answer came from. Only an answer from there to that very check moves the stream: others may be
// copies. It asks less and less often there, so that an answer may take long.
func TestSenderFollows(t *testing.T) {
	o := newTrial().Order
	o.Role = engine.Send
	now := int64(time.Hour)
	f := newFollower(o, engine.NewClock())
	at := func(port uint16) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 77, 0, 2}), port)
	}
	home, nat, thief := at(1), at(2), at(3)
	s := &movable{peer: home}
	k := &keeper{engine.NewConsentKeeper(o, now), &Sockets{engine: &Engine{}, now: func() int64 { return now }}, nil}
	defer k.Close()
	answer := func(check engine.ConsentMessage) []byte {
		m, _, _ := o.StreamKey(0).AnswerCheck(check[:])
		return m[:]
	}
	stranger := engine.NewConsentKeeper(o, now)
	defer stranger.Close()
	old, strange := answer(k.Ask(0, now)), stranger.Ask(0, now)
	var asked, first engine.ConsentMessage
	hear := func(b []byte, from netip.AddrPort) (asks bool) {
		check, asks := f.seek(0, b, from)
		if asks {
			asked = check
		}
		return asks
	}
	if f.follow([]socket{s}); hear(old, nat) {
		t.Error("a sender that does not send asks")
	}
	f.keep(k)
	for _, c := range []struct {
		what string
		do   func() bool
		asks bool
		peer netip.AddrPort
	}{
		{"a check of one who has the key", func() bool { return f.take(0, strange[:], thief) }, false, home},
		{"an answer to another sender", func() bool { return hear(answer(strange), thief) }, false, home},
		{"an old answer comes from home", func() bool { return hear(old, home) }, false, home},
		{"and from elsewhere", func() bool { defer func() { first = asked }(); return hear(old, nat) }, true, home},
		{"and at once again", func() bool { return hear(old, nat) }, false, home},
		{"a thief has the answer to that", func() bool { return hear(answer(first), thief) }, true, home},
		{"who was asked has, before the thief", func() bool { return hear(answer(first), nat) }, true, home},
		{"it repeats the old answer after 90 ms", func() bool { now += 90e6; return hear(old, nat) }, false, home},
		{"after 110 ms", func() bool { now += 20e6; return hear(old, nat) }, true, home},
		{"and after 190 ms more", func() bool { now += 190e6; return hear(old, nat) }, false, home},
		{"it answers the newest check", func() bool { return hear(answer(asked), nat) }, false, nat},
		{"and again", func() bool { return hear(answer(asked), nat) }, false, nat},
		{"the sender ends", func() bool { f.keep(nil); return hear(old, thief) }, false, nat},
	} {
		if asks := c.do(); asks != c.asks || s.peer != c.peer {
			t.Errorf("%s: asks %v, is at %v; want %v, %v", c.what, asks, s.peer, c.asks, c.peer)
		}
	}
	if moves, _ := f.report(); len(moves) != 1 || moves[0].From != home || moves[0].To != nat {
		t.Errorf("moves %v", moves)
	}
}

// telling is a socket that tells when something is sent.
type telling struct {
	socket
	sent chan time.Time
}

func (s *telling) try([]byte) error { s.sent <- time.Now(); return nil }

// A receiver that calls repeats its last answer while no check comes, and not before it has had one.
func TestAnswersAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := deafSockets(t, engine.Receive)
		s := &telling{sent: make(chan time.Time, 1000)}
		e.sockets = []socket{s}
		k := engine.NewConsentKeeper(e.order, e.now())
		defer k.Close()
		begun := time.Now()
		_ = e.Consented(func() error {
			for range 2 {
				time.Sleep(1050 * time.Millisecond)
				m := k.Ask(0, e.now())
				e.answerCheck(0, datagram{head: m[:], bytes: len(m), nanos: 1})
			}
			time.Sleep(40 * time.Second)
			return nil
		}, nil, false)
		var after []int64
		for len(s.sent) > 0 {
			after = append(after, (<-s.sent).Sub(begun).Milliseconds())
		}
		if want := []int64{1050, 1800, 2000, 2100, 2800, 3000}; !slices.Equal(after[:len(want)], want) ||
			after[len(after)-1] != 32_000 {
			t.Errorf("sent after %v ms; want %v and so on, until 32 s", after, want)
		}
	})
}
