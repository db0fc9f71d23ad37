package engine

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

var testCaller = netip.MustParseAddrPort("192.0.2.1:4000")

func testKey() StreamKey {
	return StreamKey{Trial: 7, Tag: 3, Stream: 2, Key: bytes.Repeat([]byte{9}, 32)}
}

func (d *ConsentDialer) text() []byte {
	b := d.Message()
	return b[:]
}

// Over a path that loses, repeats and reorders, both sides agree in the end,
// and the dialer is never done before the listener.
func TestConsentOverABadPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, c := NewConsentListener(testKey()), NewConsentDialer(testKey())
		var up, down [][]byte
		done := false
		for range 60 {
			d.answers = 0 // a second is over
			up = append(up, c.text())
			for range rapid.IntRange(0, 4).Draw(t, "up") {
				if reply, ok := d.Answer(rapid.SampledFrom(up).Draw(t, "which"), testCaller); ok {
					down = append(down, reply[:])
				}
			}
			for range rapid.IntRange(0, 4).Draw(t, "down") {
				if len(down) > 0 {
					if _, fin := c.Hear(rapid.SampledFrom(down).Draw(t, "which")); fin {
						done = true
					}
				}
			}
			if done && !d.Confirmed() {
				t.Fatal("the dialer is done, the listener is not")
			}
		}
		d.answers = 0
		for range 3 { // the path heals
			if reply, ok := d.Answer(c.text(), testCaller); ok {
				if _, fin := c.Hear(reply[:]); fin {
					done = true
				}
			}
		}
		if !done || !d.Confirmed() {
			t.Fatalf("dialer done %v, listener confirmed %v", done, d.Confirmed())
		}
		if d.Token() != c.Token() {
			t.Fatal("tokens differ")
		}
	})
}

// Who has the key may say hello in another's name, but not often.
func TestConsentReflectsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewConsentListener(testKey())
		answers := 0
		for range 1000 {
			hello := NewConsentDialer(testKey()).Message()
			if _, ok := l.Answer(hello[:], testCaller); ok {
				answers++
			}
			time.Sleep(2500 * time.Microsecond)
		}
		if answers != 3*mostAnswers {
			t.Errorf("%d answers to 1000 hellos in 2.5 s, want %d", answers, 3*mostAnswers)
		}
	})
}

// Who knows the key but forges the victim's source address does not hear what the listener answers to it, and must not
// get consent in the victim's name.
func TestNobodyConsentsForAnother(t *testing.T) {
	victim := netip.MustParseAddrPort("198.51.100.1:9")
	l, attacker := NewConsentListener(testKey()), NewConsentDialer(testKey())
	own, _ := l.Answer(attacker.text(), testCaller)
	l.Answer(attacker.text(), victim)
	if turn, _ := attacker.Hear(own[:]); !turn {
		t.Fatal("the attacker's own hello was not answered")
	}
	l.Answer(attacker.text(), victim)
	if l.Confirmed() {
		t.Error("the flow would go to who never confirmed")
	}
	if l.Answer(attacker.text(), testCaller); !l.Confirmed() || l.Peer() != testCaller {
		t.Errorf("confirmed %v, the flow would go to %v; %v did confirm", l.Confirmed(), l.Peer(), testCaller)
	}
}

func TestConsentRefuses(t *testing.T) {
	l := testKey()
	other := l
	other.Key = bytes.Repeat([]byte{8}, 32)
	otherTrial, otherTag, otherStream := l, l, l
	otherTrial.Trial, otherTag.Tag, otherStream.Stream = 8, 4, 1
	for _, c := range []struct {
		name string
		from StreamKey
	}{{"another key", other}, {"another trial", otherTrial}, {"another tag", otherTag}, {"another stream",
		otherStream}} {
		if _, ok := NewConsentListener(l).Answer(NewConsentDialer(c.from).text(), testCaller); ok {
			t.Errorf("%s: a hello was answered", c.name)
		}
	}
	echoed := NewConsentDialer(l)
	if turn, done := echoed.Hear(echoed.text()); turn || done {
		t.Error("an echo of the hello satisfied the dialer")
	}
	d, first := NewConsentListener(l), NewConsentDialer(l)
	for range 2 {
		reply, _ := d.Answer(first.text(), testCaller)
		first.Hear(reply[:])
	}
	if _, ok := d.Answer(NewConsentDialer(l).text(), testCaller); ok || !d.Confirmed() {
		t.Error("a second dialer took over a confirmed stream")
	}
	guess := first.next
	guess.listener[0]++
	b := guess.message()
	if _, ok := NewConsentListener(l).Answer(b[:], testCaller); ok {
		t.Error("a confirm of a nonce never given was answered")
	}
}

func FuzzConsent(f *testing.F) {
	l := testKey()
	f.Add(NewConsentDialer(l).text())
	f.Add([]byte{})
	f.Add(make([]byte, ConsentBytes))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, parsed := parseConsent(b)
		reply, ok := NewConsentListener(l).Answer(b, testCaller)
		if ok && (!parsed || m.kind != hello) {
			t.Errorf("% x was answered by % x", b, reply)
		}
		if ok && len(reply) > len(b) {
			t.Errorf("the answer to % x is longer", b)
		}
		if !parsed {
			return
		}
		m.Key = l.Key
		back := m.message()
		if !slices.Equal(back[:signedBytes], b[:signedBytes]) {
			t.Errorf("% x was read as %+v, written as % x", b, m, back)
		}
	})
}
