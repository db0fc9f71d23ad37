package engine

import (
	"cmp"
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// ConsentLasts is how long a sender goes on after the last check that its receiver got and answered.
const ConsentLasts = 5 * time.Second

// ErrLapsed is what a sender ends with whose consent ran out before its keeper could stop it.
var ErrLapsed = errors.New("this host was too busy to hear from the receiver in time: its consent is gone (RFC 7675)")

const (
	checkEvery = int64(250 * time.Millisecond) // and half of it, and so on, for each such time without an answer
	leastPPS   = 20                            // of unanswered checks, at the most, however slow a stream is
	mostPPS    = 4000                          // ... and however fast
	checkShare = 4                             // ... else one for so many packets of the stream
	hearEvery  = int64(50 * time.Millisecond)  // while an answer may come
	checkStep  = int64(time.Millisecond)       // checks closer than this are due together
	checkLate  = int64(20 * time.Millisecond)  // a thread may be this late, on a busy host, and send all checks that were due
	keeperLate = int64(time.Second)            // and no later, or it is not the receiver who was silent
)

// ConsentKeeper asks a sender's receiver over each 5-tuple whether it still consents: RFC 7675,
// with 5 s in place of 30. Each check has an id that nobody can guess, which only who got the
// check can answer, and only with the flow's key. Consent lasts from when the check was sent, so an
// answer that is held back or repeated wins no time. Once it is gone nothing brings it back.
//
// A path that loses nearly all packets loses checks, too. Checks come the faster the longer there is no
// answer, but stay a small share of the stream: one of 1000 has to come through in 5 s.
//
// It is for one goroutine. Times are in ns of any clock that is never set.
type ConsentKeeper struct {
	order   Order
	secret  nonce // makes the ids
	sent    uint64
	fastest int64 // ns between checks of a stream
	streams []keptStream
	looked  int64 // when Lost was asked last
	gone    error
}

type keptStream struct {
	since int64 // when the newest check was sent that was answered
	asked int64 // when the last check was due
	pause int64 // after that one, if it is answered
}

// NewConsentKeeper begins when a sender does, with the consent that Connect got.
func NewConsentKeeper(o Order, now int64) *ConsentKeeper {
	most := float64(mostPPS)
	if pps, paced := o.Flow.Rate.PPS(o.Flow.PayloadBytes); paced {
		most = max(min(pps/float64(checkShare*o.Flow.Streams), most), leastPPS)
	}
	k := &ConsentKeeper{order: o, secret: newNonce(), fastest: int64(1e9 / most), looked: now}
	for range o.Flow.Streams {
		k.streams = append(k.streams, keptStream{since: now, asked: now, pause: checkEvery})
	}
	return k
}

// Ask returns a check to send over a stream; due is false if it is not time for one. Several
// may be due.
func (k *ConsentKeeper) Ask(stream int, now int64) (check ConsentMessage, due bool) {
	s := &k.streams[stream]
	gap := k.gap(s, now)
	if now-s.asked < gap {
		return check, false
	}
	s.asked = max(s.asked+gap, now-checkLate)
	s.pause = checkEvery*4/5 + rand.Int64N(checkEvery*2/5) // so that hosts do not ask in step
	k.sent++
	m := consentFields{StreamKey: k.order.StreamKey(stream), kind: ask}
	binary.BigEndian.PutUint64(m.dialer[:], uint64(now))
	binary.BigEndian.PutUint64(m.dialer[8:], k.sent)
	m.listener = k.id(stream, m.dialer)
	return m.message(), true
}

// gap is the time between the last check of a stream and the next.
func (k *ConsentKeeper) gap(s *keptStream, now int64) int64 {
	unanswered := now - s.since - s.pause
	if unanswered < 0 {
		return s.pause
	}
	return max(checkEvery>>(unanswered/checkEvery), k.fastest)
}

// Wait is how long there is nothing to hear or to ask.
func (k *ConsentKeeper) Wait(now int64) time.Duration {
	wait := checkEvery
	for i := range k.streams {
		s := &k.streams[i]
		if wait = min(wait, s.asked+k.gap(s, now)-now); k.Awaits(i) {
			wait = min(wait, hearEvery)
		}
	}
	return time.Duration(max(wait, checkStep))
}

// id is the part of a check that nobody can guess.
func (k *ConsentKeeper) id(stream int, when nonce) nonce {
	return sign(k.secret[:], append(when[:], byte(stream)))
}

// Hear takes what came over a stream.
func (k *ConsentKeeper) Hear(stream int, b []byte) {
	m, ok := k.order.StreamKey(stream).read(b)
	if id := k.id(stream, m.dialer); !ok || m.kind != agree || !hmac.Equal(m.listener[:], id[:]) {
		return
	}
	s := &k.streams[stream]
	s.since = max(s.since, int64(binary.BigEndian.Uint64(m.dialer[:])))
}

// Awaits reports whether a stream has a check without an answer.
func (k *ConsentKeeper) Awaits(stream int) bool {
	return k.streams[stream].asked > k.streams[stream].since
}

// Until is when the consent runs out that there is on every stream. Who sends must not send from then on, also while
// its keeper gets no core to run on.
func (k *ConsentKeeper) Until() int64 {
	first := slices.MinFunc(k.streams, func(a, b keptStream) int { return cmp.Compare(a.since, b.since) })
	return first.since + int64(ConsentLasts)
}

// Lost says why the sender must end, nil while there is consent on every stream.
func (k *ConsentKeeper) Lost(now int64) error {
	late := now - k.looked
	k.looked = now
	for i, s := range k.streams {
		switch {
		case k.gone != nil || now-s.since < int64(ConsentLasts):
		case late > keeperLate:
			k.gone = fmt.Errorf("this host was too busy to ask the receiver for %.1f s: its consent is gone (RFC 7675)",
				float64(late)/1e9)
		default:
			k.gone = fmt.Errorf("the receiver did not answer for %v on stream %d: its consent is gone (RFC 7675)",
				ConsentLasts, i)
		}
	}
	return k.gone
}

// Agree answers a check; ok is false if b is none of this stream.
func (k StreamKey) Agree(b []byte) (answer ConsentMessage, ok bool) {
	m, ok := k.read(b)
	if !ok || m.kind != ask {
		return answer, false
	}
	m.kind = agree
	return m.message(), true
}
