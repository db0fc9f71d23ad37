package udp

import (
	"net/netip"
	"testing"

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
		late    uint64
	}{
		{"the second check comes home", func() { note(1) }, home, 0, 0, 0},
		{"its copy comes from elsewhere", func() { f.take(0, checks[1], thief) }, home, 0, 0, 0},
		{"so does one of the first", func() { f.take(0, checks[0], thief) }, home, 0, 0, 0},
		{"and one with another key", func() { f.take(0, forged[:], thief) }, home, 0, 0, 0},
		{"packets come from elsewhere", func() {
			for _, from := range []netip.AddrPort{thief, nat, nat} {
				f.take(0, packet, from)
			}
		}, home, 0, 0, 0},
		{"the third comes from there", func() { f.take(0, checks[2], nat) }, nat, 1, 1, 2},
		{"a packet that waited meanwhile is read", func() { f.take(0, packet, nat) }, nat, 1, 1, 3},
		{"a copy of the fourth is faster", func() { f.take(0, checks[3], thief) }, thief, 2, 2, 4},
		{"the fourth comes", func() { f.take(0, checks[3], nat) }, nat, 3, 1, 4},
		{"the copy comes again", func() { f.take(0, checks[3], thief) }, nat, 3, 1, 4},
		{"the fifth comes from home", func() { f.take(0, checks[4], home) }, home, 4, 2, 4},
		{"the sixth waited to be read meanwhile", func() { f.take(0, checks[5], home) }, home, 5, 2, 4},
	} {
		c.do()
		moves, late := f.report()
		if s.peer != c.peer || s.answers != c.answers || len(moves) != c.moves || late != c.late {
			t.Errorf("%s: at %v with %d answers, moves %v, %d late; want %+v", c.what, s.peer, s.answers, moves, late,
				c)
		}
	}
}
