package udp

import (
	"crypto/subtle"
	"encoding/binary"
	"runtime"
	"sync/atomic"
	"time"

	"pelt/engine"
	"pelt/measure"
)

// The probe flow: 20 datagrams a second out, and one back for each, of the same
// length. An echo that nothing reaches, because a flood fills the path, gives
// signs of its own: the way back may be free. All carry the token that only the two ends of the consent know, and
// each host's pulse.
//
//	magic u16 | trial u16 | tag u16 | kind u8 | 0 u8 | number u64 | pulse u64 | token 16 B | send time u64
const (
	probeMagic = engine.Magic + 2
	probeBytes = 48
	probeEvery = 50_000_000
	asks       = 1
	answers    = 2
	signs      = 3 // number counts the signs
	signEvery  = 200 * time.Millisecond
)

type probe struct {
	trial, tag    uint16
	kind          uint8
	number, pulse uint64
	token         engine.ConsentToken
	sendNanos     uint64
}

func (p probe) put(b *[probeBytes]byte) {
	binary.BigEndian.PutUint16(b[0:], probeMagic)
	binary.BigEndian.PutUint16(b[2:], p.trial)
	binary.BigEndian.PutUint16(b[4:], p.tag)
	b[6], b[7] = p.kind, 0
	binary.BigEndian.PutUint64(b[8:], p.number)
	binary.BigEndian.PutUint64(b[16:], p.pulse)
	copy(b[24:], p.token[:])
	binary.BigEndian.PutUint64(b[40:], p.sendNanos)
}

// parseProbe reads a probe or an answer; ok is false if b is none or has another token.
func parseProbe(b []byte, token engine.ConsentToken) (p probe, ok bool) {
	if len(b) != probeBytes || binary.BigEndian.Uint16(b) != probeMagic || subtle.ConstantTimeCompare(b[24:40], token[:]) != 1 {
		return probe{}, false
	}
	return probe{
		trial: binary.BigEndian.Uint16(b[2:]), tag: binary.BigEndian.Uint16(b[4:]), kind: b[6],
		number: binary.BigEndian.Uint64(b[8:]), pulse: binary.BigEndian.Uint64(b[16:]),
		token: token, sendNanos: binary.BigEndian.Uint64(b[40:]),
	}, true
}

// pulse is the sign of life of both hosts.
type pulse struct{ mine, theirs, count atomic.Uint64 }

// Pulse exchanges signs of life; see engine.Transport.
func (e *Sockets) Pulse(mine uint64) (theirs uint64) {
	e.pulse.mine.Store(mine)
	return e.pulse.theirs.Load()
}

// hear takes the peer's number; an overtaken packet does not turn it back.
func (p *pulse) hear(n uint64) {
	p.count.Add(1)
	if n > p.theirs.Load() {
		p.theirs.Store(n)
	}
}

// prober sends the probes and times the answers.
type prober struct {
	end  *Sockets
	trip *measure.Histogram

	over           atomic.Bool // the measured part has passed
	sent, answered atomic.Uint64
	pending        [256]uint64 // 1 + number of a counted probe without an answer, at number mod 256
}

func newProber(e *Sockets) *prober { return &prober{end: e, trip: measure.NewHistogram(1)} }

func (p *prober) run(func()) error {
	e := p.end
	begin := e.settings.clock.Now()
	from := begin + e.order.Timing.Warmup().Nanoseconds()
	to := from + e.order.Timing.Measure().Nanoseconds()
	for n := uint64(0); !e.stop.isSet(); {
		now := e.settings.clock.Now()
		p.over.Store(now >= to)
		due := begin + int64(n)*probeEvery
		if now >= due {
			p.ask(n, now, now >= from && now < to)
			n = max(n+1, uint64(now-begin)/probeEvery) // what is overdue is left out
			continue
		}
		d, err := e.wires[0].read(min(time.Duration(due-now), attendFor))
		if err != nil {
			continue // an ICMP error: the probe stays unanswered
		}
		p.answer(d.whole(), d.nanos)
	}
	return nil
}

func (p *prober) ask(n uint64, now int64, counted bool) {
	e := p.end
	p.pending[n%256] = 0
	if counted {
		p.sent.Add(1)
		p.pending[n%256] = n + 1
	}
	var b [probeBytes]byte
	probe{trial: e.order.Trial, tag: e.order.Tag, kind: asks, number: n, pulse: e.pulse.mine.Load(), token: e.tokens[0], sendNanos: uint64(now)}.put(&b)
	e.wires[0].write(b[:]) // a refused probe is one without an answer
}

func (p *prober) answer(b []byte, nanos int64) {
	a, ok := parseProbe(b, p.end.tokens[0])
	if !ok || a.kind != answers && a.kind != signs {
		return
	}
	p.end.pulse.hear(a.pulse)
	if a.kind == signs {
		return
	}
	if slot := &p.pending[a.number%256]; *slot == a.number+1 {
		*slot = 0
		p.answered.Add(1)
		p.trip.Record(0, nanos-int64(a.sendNanos), 1)
	}
}

func (p *prober) count() engine.Snapshot {
	n := p.answered.Load()
	return engine.Snapshot{Packets: n, Bytes: n * probeBytes, Heard: p.end.pulse.count.Load()}
}

func (p *prober) account(r *engine.Report, _ engine.Sent) {
	r.Stopped = r.Stopped && !p.over.Load()
	r.Probe = &engine.ProbeReport{Sent: p.sent.Load(), Answered: p.answered.Load(), RoundTrip: p.trip.Percentiles()}
}

// echo answers probes.
type echo struct {
	end      *Sockets
	answered atomic.Uint64
	signed   uint64
	signNext time.Time
}

func (c *echo) run(func()) error {
	e := c.end
	runtime.LockOSThread() // an answer shall not wait for the scheduler
	defer runtime.UnlockOSThread()
	c.serve(e.early[0])
	for !e.stop.isSet() {
		if d, err := e.wires[0].read(attendFor); err == nil { // an error is an ICMP message for an answer
			c.serve(d)
		}
		c.sign(time.Now())
	}
	return nil
}

// sign tells the prober that this host lives.
func (c *echo) sign(now time.Time) {
	e := c.end
	if now.Before(c.signNext) {
		return
	}
	c.signNext = now.Add(signEvery)
	c.signed++
	var b [probeBytes]byte
	probe{trial: e.order.Trial, tag: e.order.Tag, kind: signs, number: c.signed, pulse: e.pulse.mine.Load(), token: e.tokens[0]}.put(&b)
	e.wires[0].write(b[:]) // the next one says the same
}

func (c *echo) serve(d datagram) {
	e := c.end
	q, ok := parseProbe(d.whole(), e.tokens[0])
	if !ok || q.kind != asks {
		e.answer(0, e.wires[0], d.whole())
		return
	}
	e.pulse.hear(q.pulse)
	c.signNext = time.Now().Add(signEvery) // the answer is a sign, too
	q.kind, q.pulse = answers, e.pulse.mine.Load()
	var b [probeBytes]byte
	q.put(&b)
	e.wires[0].write(b[:]) // a lost answer is an unanswered probe
	c.answered.Add(1)
}

func (c *echo) count() engine.Snapshot {
	n := c.answered.Load()
	return engine.Snapshot{Packets: n, Bytes: n * probeBytes, Heard: c.end.pulse.count.Load()}
}

// account says nothing: an echo serves until it is stopped.
func (c *echo) account(r *engine.Report, _ engine.Sent) { r.Stopped = false }
