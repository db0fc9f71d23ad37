package tcp

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"pelt/engine"
	"pelt/engine/enginetest"
	"pelt/model"
)

// TestKeptTogether: all ends of an engine keep no more connections than one may.
func TestKeptTogether(t *testing.T) {
	g := New(Config{})
	o := engine.Order{Flow: connections(model.ConnectionKeep, 1), Timing: timing(0, time.Second, 0),
		Role: engine.Receive, Listen: true,
		Key: make([]byte, engine.KeyBytes)}
	one, other := g.newEnd(enginetest.Here{}, o), g.newEnd(enginetest.Here{}, o)
	one.most, other.most = 3, 3
	keep := func(e *end, want bool) {
		t.Helper()
		if e.keepOpen(&net.TCPConn{}) != want {
			t.Errorf("kept: want %v with %d held", want, g.held.Load())
		}
	}
	keep(one, true)
	keep(one, true)
	keep(other, true)
	keep(other, false)
	keep(one, false)
	o.Role, o.Listen = engine.Send, false
	sender := g.newEnd(enginetest.Here{}, o)
	opener := newOpener(sender)
	opener.most = 3
	if c := (&connector{o: opener}); c.begin(time.Now(), true) || opener.ended != model.TurnedAway ||
		opener.underWay.Load() != 0 {
		t.Errorf("beside what receivers keep one more is opened; ended: %q", opener.ended)
	}
	one.Close()
	keep(other, true)
	other.Close()
	if n := g.held.Load(); n != 0 {
		t.Errorf("%d held in the end", n)
	}
}

// stranger is a connection from an address.
type stranger struct {
	net.Conn
	from   netip.AddrPort
	closed bool
}

func (s *stranger) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(s.from) }
func (s *stranger) Close() error         { s.closed = true; return nil }

// TestCrowdedAddress: callers of the address that has most give way, however young they are.
func TestCrowdedAddress(t *testing.T) {
	l := &listener{from: map[netip.Prefix]int{}}
	come := func(from string, n int) (all []*stranger) {
		for i := range n {
			a := netip.MustParseAddr(from).As16()
			if a[15] += byte(i); netip.MustParseAddr(from).Is4() {
				a = netip.MustParseAddr(from).As16()
			}
			s := &stranger{from: netip.AddrPortFrom(netip.AddrFrom16(a), 4000)}
			if !l.admit(s) {
				t.Fatal("refused")
			}
			all = append(all, s)
		}
		return all
	}
	quiet := append(come("192.0.2.1", 3), come("2001:db8::", 3)...)
	crowd := append(come("198.51.100.7", maxGreeted), come("2001:db8:1::", maxGreeted)...)
	for i, s := range append(quiet, come("203.0.113.9", 1)...) {
		if s.closed {
			t.Errorf("caller %d of a quiet address was dropped", i)
		}
	}
	open := 0
	for _, s := range crowd {
		if !s.closed {
			open++
		}
	}
	if n := len(l.greeted); n != maxGreeted || open != maxGreeted-len(quiet)-1 {
		t.Errorf("%d wait, %d of the crowd; want %d in all", n, open, maxGreeted)
	}
}
