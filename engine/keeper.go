package engine

import (
	"crypto/hmac"
	"encoding/binary"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// ConsentLasts is how long a sender sends on a stream after it sent the newest check that the receiver answered.
const ConsentLasts = 30 * time.Second

// checkRates are how often a stream is checked, by the time since the last answer.
var checkRates = []struct{ silent, every int64 }{
	{0, int64(time.Second / 4)},
	{int64(time.Second), int64(time.Second / 16)},
	{int64(4 * time.Second), int64(time.Second / 64)},
}

const (
	leastCheckGap = int64(time.Second / 6400)    // between two checks of this process
	checkGrid     = int64(10 * time.Millisecond) // keepers wake together: to be woken costs more than a check
)

// keptStreams counts the streams that all keepers of this process check.
var keptStreams atomic.Int64

// ConsentKeeper asks a sender's receiver over each 5-tuple whether it still consents: RFC 7675. Each check has an
// id that nobody can guess. Only who got the check can answer it, and only with the flow's key. Consent lasts from
// when the check was sent, so an answer that is held back or repeated wins no time. Lost consent never comes back.
//
// A path may lose 99 % of the checks, or delay them by 25 s in a queue: checks come faster while no answer does.
//
// A keeper is for one goroutine. Times are in ns of any clock that is never set.
type ConsentKeeper struct {
	order   Order
	secret  nonce // makes the ids
	sent    uint64
	streams []keptStream
}

type keptStream struct {
	since int64 // when the newest answered check was sent
	heard int64 // when its answer was read
	next  int64 // when the next check is due
	over  bool  // it is no longer checked
}

// NewConsentKeeper begins when a sender does, with the consent that Connect got. Its caller must Close it.
func NewConsentKeeper(o Order, now int64) *ConsentKeeper {
	k := &ConsentKeeper{order: o, secret: newNonce()}
	keptStreams.Add(int64(o.Flow.Streams))
	for range o.Flow.Streams {
		k.streams = append(k.streams, keptStream{since: now, heard: now, next: now + checkGap(0)})
	}
	return k
}

// Close ends the checks of all streams.
func (k *ConsentKeeper) Close() {
	for i := range k.streams {
		k.End(i)
	}
}

// End ends the checks of a stream: it sends no more.
func (k *ConsentKeeper) End(stream int) {
	if s := &k.streams[stream]; !s.over {
		s.over = true
		keptStreams.Add(-1)
	}
}

// checkGap returns the time until the next check. It varies by a fifth, so that hosts do not ask in step.
func checkGap(silent int64) (gap int64) {
	for _, r := range checkRates {
		if silent >= r.silent {
			gap = r.every
		}
	}
	gap = max(gap, leastCheckGap*keptStreams.Load())
	return gap*4/5 + rand.Int64N(gap*2/5)
}

// Due reports whether it is time to check a stream: to hear what came, to ask Lost, and to send what Ask returns.
func (k *ConsentKeeper) Due(stream int, now int64) bool {
	return !k.streams[stream].over && now >= k.streams[stream].next
}

// Ask returns a check to send over a stream.
func (k *ConsentKeeper) Ask(stream int, now int64) ConsentMessage {
	s := &k.streams[stream]
	s.next = min(max(s.next+checkGap(now-s.heard), now), s.since+int64(ConsentLasts))
	k.sent++
	m := consentFields{StreamKey: k.order.StreamKey(stream), kind: ask}
	binary.BigEndian.PutUint64(m.dialer[:], uint64(now))
	binary.BigEndian.PutUint64(m.dialer[8:], k.sent)
	m.listener = k.id(stream, m.dialer)
	return m.message()
}

// Wait returns the time until the next check of any stream is due, at most a second.
func (k *ConsentKeeper) Wait(now int64) time.Duration {
	wait := int64(time.Second)
	for _, s := range k.streams {
		if !s.over {
			wait = min(wait, s.next-now)
		}
	}
	wait = max(wait, 0)
	if late := (now + wait) % checkGrid; late > 0 && wait > 0 {
		wait += checkGrid - late
	}
	return time.Duration(wait)
}

// id returns the part of a check that only this keeper can make: an answer with it proves that the peer got the
// check.
func (k *ConsentKeeper) id(stream int, when nonce) nonce {
	return sign(k.secret[:], append(when[:], byte(stream)))
}

// Hear reads a message that came over a stream, and returns when the newest check was sent that is answered: the
// consent counts from then.
func (k *ConsentKeeper) Hear(stream int, b []byte, now int64) (since int64) {
	s := &k.streams[stream]
	if m, ok := k.answer(stream, b); ok {
		if sent := int64(binary.BigEndian.Uint64(m.dialer[:])); sent > s.since {
			s.since, s.heard = sent, now
		}
	}
	return s.since
}

// answer reads an answer to a check of this keeper.
func (k *ConsentKeeper) answer(stream int, b []byte) (m consentFields, ok bool) {
	m, ok = k.order.StreamKey(stream).read(b)
	id := k.id(stream, m.dialer)
	return m, ok && m.kind == agree && hmac.Equal(m.listener[:], id[:])
}

// Answers reports whether b is an answer to a check of this keeper, however old, and whether to that very one.
func (k *ConsentKeeper) Answers(stream int, b []byte, check ConsentMessage) (any, this bool) {
	m, any := k.answer(stream, b)
	c, _ := parseConsent(check[:])
	return any, any && m.dialer == c.dialer
}

// Lost reports whether a stream has just lost its consent: the sender must end it.
func (k *ConsentKeeper) Lost(stream int, now int64) bool {
	s := &k.streams[stream]
	if s.over || now-s.since < int64(ConsentLasts) {
		return false
	}
	k.End(stream)
	return true
}

// AnswerCheck returns the answer to a check of this stream, and the check's number: a sender's checks have rising ones.
// ok is false if b is no such check.
func (k StreamKey) AnswerCheck(b []byte) (answer ConsentMessage, number uint64, ok bool) {
	m, ok := k.read(b)
	if !ok || m.kind != ask {
		return answer, 0, false
	}
	m.kind = agree
	return m.message(), binary.BigEndian.Uint64(m.dialer[8:]), true
}
