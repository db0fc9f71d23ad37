package udp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"net/netip"
	"sync"

	"pelt/engine"
)

// Consent on the data path. Before a stream floods, its two ends prove over its
// own 5-tuple that each is there and knows the flow's key:
//
//	dialer   -> listener  hello    the dialer's nonce
//	listener -> dialer    welcome  both nonces: the listener is there
//	dialer   -> listener  confirm  both nonces: the dialer is there, too
//	listener -> dialer    ready    the listener knows it
//
// Every message is 56 bytes and carries a MAC over all of it, so an answer is
// never longer than what it answers, whoever has no key gets no answer, and a
// service that echoes what it gets proves nothing. The dialer repeats hello or
// confirm until it is answered; the listener only ever answers, and answering
// twice changes nothing. The listener's nonce is made from the address that it
// is sent to: a confirm is worth nothing from any other, so who can forge
// source addresses cannot consent in another's name.
//
//	magic u16 | trial u16 | tag u16 | kind u8 | stream u8 | dialer's nonce 16 B | listener's nonce 16 B | MAC 16 B
const (
	consentMagic = engine.Magic + 1 // tells consent from test packets
	consentBytes = 56
	nonceBytes   = 16
	macBytes     = 16 // HMAC-SHA256, truncated to 128 bits (RFC 2104 section 5)
)

type kind uint8

const (
	hello kind = 1 + iota
	welcome
	confirm
	ready
)

type nonce [nonceBytes]byte

// label is which stream a message is about, and the flow's key.
type label struct {
	trial, tag uint16
	stream     uint8
	key        []byte
}

// message is one step of the consent.
type message struct {
	trial, tag       uint16
	kind             kind
	stream           uint8
	dialer, listener nonce
}

// put writes the message with its MAC.
func (m message) put(b *[consentBytes]byte, key []byte) {
	binary.BigEndian.PutUint16(b[0:], consentMagic)
	binary.BigEndian.PutUint16(b[2:], m.trial)
	binary.BigEndian.PutUint16(b[4:], m.tag)
	b[6], b[7] = byte(m.kind), m.stream
	copy(b[8:], m.dialer[:])
	copy(b[24:], m.listener[:])
	mac := sign(key, b[:40])
	copy(b[40:], mac[:])
}

// parseConsent reads a message; ok is false if b is none. The MAC is not checked.
func parseConsent(b []byte) (m message, ok bool) {
	if len(b) != consentBytes || binary.BigEndian.Uint16(b) != consentMagic {
		return message{}, false
	}
	m = message{
		trial: binary.BigEndian.Uint16(b[2:]), tag: binary.BigEndian.Uint16(b[4:]),
		kind: kind(b[6]), stream: b[7], dialer: nonce(b[8:24]), listener: nonce(b[24:40]),
	}
	return m, m.kind >= hello && m.kind <= ready
}

// read parses b and checks that it is about this stream and made with its key.
func (l label) read(b []byte) (message, bool) {
	m, ok := parseConsent(b)
	if !ok || m.trial != l.trial || m.tag != l.tag || m.stream != l.stream {
		return message{}, false
	}
	mac := sign(l.key, b[:40])
	return m, subtle.ConstantTimeCompare(mac[:], b[40:consentBytes]) == 1
}

func sign(key, text []byte) (mac [macBytes]byte) {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("pelt consent 1"))
	h.Write(text)
	return [macBytes]byte(h.Sum(nil))
}

// token is what both ends of a consented stream know and no one else; it opens
// the datagrams of the probe flow.
func (l label) token(dialer, listener nonce) (t [macBytes]byte) {
	return sign(l.key, append(append([]byte("token"), dialer[:]...), listener[:]...))
}

func newNonce() (n nonce) {
	rand.Read(n[:]) // never fails: crypto/rand ends the program instead
	return n
}

// desk is the listening side of one stream's consent. It is safe for concurrent use.
type desk struct {
	label
	secret nonce         // makes the nonces
	done   chan struct{} // closed when the dialer has confirmed

	mu           sync.Mutex
	theirs, mine nonce // of the dialer that said hello last, or that has confirmed
	confirmed    bool
}

func newDesk(l label) *desk {
	return &desk{label: l, secret: newNonce(), done: make(chan struct{})}
}

// nonceFor is the listener's nonce for one address.
func (d *desk) nonceFor(from netip.AddrPort) nonce {
	text, _ := from.MarshalBinary() // never fails
	return nonce(sign(d.secret[:], text))
}

// answer returns what to send back for a datagram that came from an address;
// ok is false when it deserves no answer.
func (d *desk) answer(b []byte, from netip.AddrPort) (reply [consentBytes]byte, ok bool) {
	m, ok := d.read(b)
	if !ok {
		return reply, false
	}
	mine := d.nonceFor(from)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch m.kind {
	case hello:
		if d.confirmed && (m.dialer != d.theirs || mine != d.mine) {
			return reply, false // someone consented already; a replayed hello must not take over
		}
		d.theirs, d.mine = m.dialer, mine
		m.kind = welcome
	case confirm:
		if m.listener != mine || d.confirmed && (m.dialer != d.theirs || mine != d.mine) {
			return reply, false
		}
		d.theirs, d.mine = m.dialer, mine
		if !d.confirmed {
			d.confirmed = true
			close(d.done)
		}
		m.kind = ready
	default:
		return reply, false
	}
	m.listener = mine
	m.put(&reply, d.key)
	return reply, true
}

// knows says whether b is a hello worth opening a socket for.
func (d *desk) knows(b []byte) bool {
	m, ok := d.read(b)
	d.mu.Lock()
	defer d.mu.Unlock()
	return ok && m.kind == hello && !d.confirmed
}

// caller is the dialing side of one stream's consent, for one goroutine.
type caller struct {
	label
	next message // what to send and repeat
}

func newCaller(l label) *caller {
	return &caller{label: l, next: message{trial: l.trial, tag: l.tag, stream: l.stream, kind: hello, dialer: newNonce()}}
}

// hear takes a datagram. turn means that there is something new to send at
// once; done that the listener is ready.
func (c *caller) hear(b []byte) (turn, done bool) {
	m, ok := c.read(b)
	if !ok || m.dialer != c.next.dialer {
		return false, false
	}
	switch {
	case m.kind == welcome && c.next.kind == hello:
		c.next.kind, c.next.listener = confirm, m.listener
		return true, false
	case m.kind == ready && c.next.kind == confirm && m.listener == c.next.listener:
		return false, true
	}
	return false, false
}
