package engine

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"sync"
	"time"
)

// Consent on the data path. Before a stream carries anything, its two ends prove over its
// own 5-tuple that each is there and knows the flow's key:
//
//	dialer   -> listener  hello    the dialer's nonce
//	listener -> dialer    welcome  both nonces: the listener is there
//	dialer   -> listener  confirm  both nonces: the dialer is there, too
//	listener -> dialer    ready    the listener knows it
//
// Every message has ConsentBytes and carries a MAC over all of it, so an answer is
// never longer than what it answers, a caller without the key gets no answer, and a
// service that echoes what it gets proves nothing. Over datagrams the dialer repeats hello
// or confirm until it is answered. The listener only ever answers, and answering
// twice changes nothing. The listener's nonce is made from the address that it
// is sent to: a confirm is worth nothing from any other, so who can forge
// source addresses cannot consent in another's name.
//
// While a sender sends, its receiver goes on to agree: see ConsentKeeper. TCP needs no
// more than the hello: what its kernel sends is bounded by what the peer acknowledges, with sequence numbers
// that nobody off the path knows, and a peer that is gone gets a few packets a minute.
//
//	sender   -> receiver  ask      when it was sent, and an id
//	receiver -> sender    agree    the same, to where the newest ask of the stream came from
//
//	magic u16 | trial u16 | tag u16 | kind u8 | stream u8 | dialer's nonce 16 B | listener's nonce 16 B | MAC 16 B
const (
	consentMagic = Magic + 1 // tells consent from test packets
	// ConsentBytes is the length of every message of the consent.
	ConsentBytes = 56
	signedBytes  = ConsentBytes - 16 // the rest is the MAC
)

type consentKind uint8

const (
	hello consentKind = 1 + iota
	welcome
	confirm
	ready
	ask   // of a sender, while it sends: ConsentKeeper
	agree // its receiver's answer
)

type nonce [16]byte

// ConsentMessage is one message of the consent.
type ConsentMessage [ConsentBytes]byte

// ConsentToken is what both ends of a consented stream know and no one else.
type ConsentToken [16]byte

// StreamKey names one stream of a flow, and holds the flow's key.
type StreamKey struct {
	Trial, Tag uint16
	Stream     uint8
	Key        []byte // KeyBytes
}

// StreamKey returns the key of one stream of the order's flow.
func (o Order) StreamKey(stream int) StreamKey {
	return StreamKey{Trial: o.Trial, Tag: o.Tag, Stream: uint8(stream), Key: o.Key}
}

// ConsentOf returns the stream that a consent message names, without its key; ok is false if b is no consent message.
// It does not check the MAC.
func ConsentOf(b []byte) (k StreamKey, ok bool) {
	m, ok := parseConsent(b)
	return m.StreamKey, ok
}

// consentFields are what a message says.
type consentFields struct {
	StreamKey
	kind             consentKind
	dialer, listener nonce
}

// message writes the fields with their MAC.
func (m consentFields) message() (b ConsentMessage) {
	binary.BigEndian.PutUint16(b[0:], consentMagic)
	binary.BigEndian.PutUint16(b[2:], m.Trial)
	binary.BigEndian.PutUint16(b[4:], m.Tag)
	b[6], b[7] = byte(m.kind), m.Stream
	copy(b[8:], m.dialer[:])
	copy(b[24:], m.listener[:])
	mac := sign(m.Key, b[:signedBytes])
	copy(b[signedBytes:], mac[:])
	return b
}

// parseConsent reads a message; ok is false if b is none. The MAC is not checked.
func parseConsent(b []byte) (m consentFields, ok bool) {
	if len(b) != ConsentBytes || binary.BigEndian.Uint16(b) != consentMagic {
		return m, false
	}
	m.Trial, m.Tag, m.Stream = binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint16(b[4:]), b[7]
	m.kind, m.dialer, m.listener = consentKind(b[6]), nonce(b[8:24]), nonce(b[24:signedBytes])
	return m, m.kind >= hello && m.kind <= agree
}

// read parses b and checks that it is about this stream and made with its key.
func (k StreamKey) read(b []byte) (m consentFields, ok bool) {
	m, ok = parseConsent(b)
	if !ok || m.Trial != k.Trial || m.Tag != k.Tag || m.Stream != k.Stream {
		return m, false
	}
	m.Key = k.Key
	mac := sign(k.Key, b[:signedBytes])
	return m, hmac.Equal(mac[:], b[signedBytes:])
}

// sign is HMAC-SHA256, truncated to 128 bits (RFC 2104 section 5).
func sign(key, text []byte) (mac [16]byte) {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("pelt consent 1"))
	h.Write(text)
	return [16]byte(h.Sum(nil))
}

func (k StreamKey) token(dialer, listener nonce) ConsentToken {
	return sign(k.Key, append(append([]byte("token"), dialer[:]...), listener[:]...))
}

func newNonce() (n nonce) {
	rand.Read(n[:]) // never fails: crypto/rand ends the program instead
	return n
}

// ConsentListener is the listening side of one stream's consent. It is safe for concurrent use.
type ConsentListener struct {
	StreamKey
	secret nonce         // makes the nonces
	done   chan struct{} // closed when the dialer has confirmed

	mu           sync.Mutex
	theirs, mine nonce          // of the dialer that said hello last, or that has confirmed
	peer         netip.AddrPort // its address
	second       time.Time      // in which answers are counted
	answers      int
	heard, sent  uint64
}

// mostAnswers bounds the answers of a listener in a second: who has the key may forge the address of somebody else.
const mostAnswers = 20

// NewConsentListener awaits the dialer of a stream.
func NewConsentListener(k StreamKey) *ConsentListener {
	return &ConsentListener{StreamKey: k, secret: newNonce(), done: make(chan struct{})}
}

// Done is closed when the dialer has confirmed.
func (l *ConsentListener) Done() <-chan struct{} { return l.done }

// Confirmed reports whether the dialer has confirmed.
func (l *ConsentListener) Confirmed() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// Token returns the token of the dialer that has confirmed.
func (l *ConsentListener) Token() ConsentToken {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.token(l.theirs, l.mine)
}

// Peer returns the address of the dialer that has confirmed.
func (l *ConsentListener) Peer() netip.AddrPort {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.peer
}

// Counts returns how many messages of a dialer came, and how many it was answered.
func (l *ConsentListener) Counts() (heard, sent uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heard, l.sent
}

// nonceFor is the listener's nonce for one address.
func (l *ConsentListener) nonceFor(from netip.AddrPort) nonce {
	text, _ := from.MarshalBinary() // never fails
	return sign(l.secret[:], text)
}

// Answer returns what to send back for a message that came from an address;
// ok is false when it deserves no answer.
func (l *ConsentListener) Answer(b []byte, from netip.AddrPort) (reply ConsentMessage, ok bool) {
	m, ok := l.read(b)
	if !ok {
		return reply, false
	}
	mine := l.nonceFor(from)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Confirmed() && (m.dialer != l.theirs || mine != l.mine) {
		return reply, false // someone consented already; a replayed hello must not take over
	}
	if m.kind == hello || m.kind == confirm {
		l.heard++
	}
	switch {
	case m.kind == hello:
		m.kind = welcome
	case m.kind == confirm && m.listener == mine:
		m.kind = ready
	default:
		return reply, false
	}
	if now := time.Now(); now.Sub(l.second) >= time.Second {
		l.second, l.answers = now, 0
	}
	if l.answers++; l.answers > mostAnswers {
		return reply, false
	}
	l.theirs, l.mine, l.peer, m.listener = m.dialer, mine, from, mine
	if m.kind == ready && !l.Confirmed() {
		close(l.done)
	}
	l.sent++
	return m.message(), true
}

// ConsentDialer is the dialing side of one stream's consent, for one goroutine.
type ConsentDialer struct {
	Heard uint64 // answers of the listener
	next  consentFields
}

// NewConsentDialer begins the consent of a stream.
func NewConsentDialer(k StreamKey) *ConsentDialer {
	return &ConsentDialer{next: consentFields{StreamKey: k, kind: hello, dialer: newNonce()}}
}

// Message is what to send, and to repeat until the listener answers.
func (d *ConsentDialer) Message() ConsentMessage { return d.next.message() }

// Hear reads an answer of the listener. turn: Message has changed and is to be sent at once. done: the listener is
// ready.
func (d *ConsentDialer) Hear(b []byte) (turn, done bool) {
	m, ok := d.next.read(b)
	if !ok || m.dialer != d.next.dialer || m.kind != welcome && m.kind != ready {
		return false, false
	}
	d.Heard++
	switch {
	case m.kind == welcome && d.next.kind == hello:
		d.next.kind, d.next.listener = confirm, m.listener
		return true, false
	case m.kind == ready && d.next.kind == confirm && m.listener == d.next.listener:
		return false, true
	}
	return false, false
}

// Token is the stream's, once the listener is ready.
func (d *ConsentDialer) Token() ConsentToken { return d.next.token(d.next.dialer, d.next.listener) }
