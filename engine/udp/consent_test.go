package udp

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var testCaller = netip.MustParseAddrPort("192.0.2.1:4000")

func testLabel() label {
	return label{trial: 7, tag: 3, stream: 2, key: bytes.Repeat([]byte{9}, 32)}
}

func (c *caller) text() []byte {
	var b [consentBytes]byte
	c.next.put(&b, c.key)
	return b[:]
}

// Over a path that loses, repeats and reorders, both sides agree in the end,
// and the dialer is never done before the listener.
func TestConsentOverABadPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, c := newDesk(testLabel()), newCaller(testLabel())
		var up, down [][]byte
		done := false
		for range 60 {
			up = append(up, c.text())
			for range rapid.IntRange(0, 4).Draw(t, "up") {
				if reply, ok := d.answer(rapid.SampledFrom(up).Draw(t, "which"), testCaller); ok {
					down = append(down, reply[:])
				}
			}
			for range rapid.IntRange(0, 4).Draw(t, "down") {
				if len(down) > 0 {
					if _, fin := c.hear(rapid.SampledFrom(down).Draw(t, "which")); fin {
						done = true
					}
				}
			}
			if done && !d.confirmed {
				t.Fatal("the dialer is done, the listener is not")
			}
		}
		for range 3 { // the path heals
			if reply, ok := d.answer(c.text(), testCaller); ok {
				if _, fin := c.hear(reply[:]); fin {
					done = true
				}
			}
		}
		if !done || !d.confirmed {
			t.Fatalf("dialer done %v, listener confirmed %v", done, d.confirmed)
		}
		if d.token(d.theirs, d.mine) != c.token(c.next.dialer, c.next.listener) {
			t.Fatal("tokens differ")
		}
	})
}

func TestConsentRefuses(t *testing.T) {
	l := testLabel()
	other := l
	other.key = bytes.Repeat([]byte{8}, 32)
	otherTrial, otherTag, otherStream := l, l, l
	otherTrial.trial, otherTag.tag, otherStream.stream = 8, 4, 1
	for _, c := range []struct {
		name string
		from label
	}{{"another key", other}, {"another trial", otherTrial}, {"another tag", otherTag}, {"another stream", otherStream}} {
		if _, ok := newDesk(l).answer(newCaller(c.from).text(), testCaller); ok {
			t.Errorf("%s: a hello was answered", c.name)
		}
	}
	echoed := newCaller(l)
	if turn, done := echoed.hear(echoed.text()); turn || done {
		t.Error("an echo of the hello satisfied the dialer")
	}
	d, first := newDesk(l), newCaller(l)
	for range 2 {
		reply, _ := d.answer(first.text(), testCaller)
		first.hear(reply[:])
	}
	if _, ok := d.answer(newCaller(l).text(), testCaller); ok || !d.confirmed {
		t.Error("a second dialer took over a confirmed stream")
	}
	guess := first.next
	guess.listener[0]++
	var b [consentBytes]byte
	guess.put(&b, l.key)
	if _, ok := newDesk(l).answer(b[:], testCaller); ok {
		t.Error("a confirm of a nonce never given was answered")
	}
}

func FuzzConsent(f *testing.F) {
	l := testLabel()
	f.Add(newCaller(l).text())
	f.Add([]byte{})
	f.Add(make([]byte, consentBytes))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, parsed := parseConsent(b)
		reply, ok := newDesk(l).answer(b, testCaller)
		if ok && (!parsed || m.kind != hello) {
			t.Errorf("% x was answered by % x", b, reply)
		}
		if ok && len(reply) > len(b) {
			t.Errorf("the answer to % x is longer", b)
		}
		if !parsed {
			return
		}
		var back [consentBytes]byte
		m.put(&back, l.key)
		if !slices.Equal(back[:40], b[:40]) {
			t.Errorf("% x was read as %+v, written as % x", b, m, back)
		}
	})
}
