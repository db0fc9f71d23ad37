package udp

import (
	"crypto/subtle"
	"encoding/binary"
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"pelt/engine"
	"pelt/model"
)

// Messages of a prober and its echo. All carry the token that only the two ends of the consent
// know, so nobody can be made to send to a third party.
//
//	prober -> echo    ask    at the flow's rate: its number, and the pulse of the prober's host
//	echo -> prober    reply  to each: the number, the pulse of the echo's host, when the ask came by the
//	                         echo's clock, and in place of a size how long it was held there, both in ns
//	echo -> prober    sign   where no ask comes: a flood may fill the way there only
//
// In a survey nothing may be fragmented. The size is that of an IP packet.
//
//	prober -> echo    whole  as long as its size; a note answers it
//	prober -> echo    fetch  short; a note answers it, then a datagram as long as its size
//	echo -> prober    note   short: the size, and the MTU that the echo's kernel knows for the way back
//	echo -> prober    long   as long as its size
//
//	magic u16 | trial u16 | tag u16 | kind u8 | 0 u8 | number u32 | size u32 | value u64 | token 16 B
//	| at u64, of ask and reply only: a survey's messages fit into an IP packet of 68 B
const (
	probeMagic = engine.Magic + 2
	probeBytes = 40
	timedBytes = probeBytes + 8
)

const (
	kindAsk uint8 = 1 + iota
	kindReply
	kindSign
	kindWhole
	kindFetch
	kindNote
	kindLong
)

const signEvery = 200 * time.Millisecond

type probe struct {
	kind         uint8
	number, size uint32 // number of the probe, or of the survey's round
	value        uint64 // pulse, or of a note the MTU; 0: the echo's system cannot forbid fragments
	at           int64  // of a reply
}

// bytes is the length of a short message.
func (p probe) bytes() int {
	if p.kind == kindAsk || p.kind == kindReply {
		return timedBytes
	}
	return probeBytes
}

// putProbe writes a message into the first bytes of b, which has room for it.
func (e *Sockets) putProbe(b []byte, p probe) {
	binary.BigEndian.PutUint16(b[0:], probeMagic)
	binary.BigEndian.PutUint16(b[2:], e.order.Trial)
	binary.BigEndian.PutUint16(b[4:], e.order.Tag)
	b[6], b[7] = p.kind, 0
	binary.BigEndian.PutUint32(b[8:], p.number)
	binary.BigEndian.PutUint32(b[12:], p.size)
	binary.BigEndian.PutUint64(b[16:], p.value)
	copy(b[24:probeBytes], e.tokens[0][:])
	if p.bytes() == timedBytes {
		binary.BigEndian.PutUint64(b[probeBytes:], uint64(p.at))
	}
}

// parseProbe reads a message; ok is false if b begins with none or has another token.
func (e *Sockets) parseProbe(b []byte) (p probe, ok bool) {
	if len(b) < probeBytes || binary.BigEndian.Uint16(b) != probeMagic ||
		subtle.ConstantTimeCompare(b[24:probeBytes], e.tokens[0][:]) != 1 {
		return probe{}, false
	}
	p = probe{kind: b[6], number: binary.BigEndian.Uint32(b[8:]), size: binary.BigEndian.Uint32(b[12:]),
		value: binary.BigEndian.Uint64(b[16:])}
	if len(b) < p.bytes() {
		return probe{}, false
	}
	if p.bytes() == timedBytes {
		p.at = int64(binary.BigEndian.Uint64(b[probeBytes:]))
	}
	return p, true
}

// sendProbe sends a short message. A lost or refused one is a probe without an answer.
func (e *Sockets) sendProbe(p probe) {
	var b [timedBytes]byte
	e.putProbe(b[:], p)
	_ = e.sockets[0].write(b[:p.bytes()])
}

// pulse is the sign of life of both hosts.
type pulse struct {
	mine, theirs, count atomic.Uint64
	peer                atomic.Bool // other flows of the peer came since it was looked at last
}

func (e *Sockets) Pulse(mine uint64, peer bool) (theirs uint64) {
	e.pulse.mine.Store(mine)
	if peer {
		e.pulse.peer.Store(true)
	}
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
	end   *Sockets
	times *probeTimes

	answered atomic.Uint64
	pending  [1024]pendingProbe // at number mod 1024: 10 s of the fastest probes
	silent   bool               // the echo's consent was lost: nothing is sent any more, but signs of life are heard
}

// pendingProbe is a probe without an answer that is timed; at is 0 for none.
type pendingProbe struct {
	number uint32
	at     int64 // when it was sent
}

func newProber(e *Sockets) *prober { return &prober{end: e, times: newProbeTimes(e.order.Timing)} }

func (p *prober) run(func()) error {
	e, t := p.end, p.times
	begin := e.settings.clock.Now()
	pps, _ := e.order.Flow.Rate.PPS(e.order.Flow.PayloadBytes)
	every := int64(1e9 / pps)
	t.begin(begin)
	k := engine.NewConsentKeeper(e.order, begin)
	defer k.Close()
	for n := int64(0); e.stopped.Err() == nil; {
		now := e.settings.clock.Now()
		due := begin + n*every
		if !p.silent && k.Due(0, now) {
			if p.silent = k.Lost(0, now); !p.silent {
				m := k.Ask(0, now)
				_ = e.sockets[0].try(m[:])
			}
		}
		if now >= due {
			if !p.silent {
				p.ask(uint32(n), now)
			}
			n = max(n+1, (now-begin)/every) // what is overdue is left out
			continue
		}
		d, err := e.sockets[0].read(min(time.Duration(due-now), readWait))
		if err != nil {
			continue // an ICMP error: the probe stays unanswered
		}
		k.Hear(0, d.whole(), now)
		p.answer(d.whole(), d.nanos)
	}
	for _, slot := range p.pending {
		t.unanswered(slot.at, e.settings.clock.Now())
	}
	return nil
}

func (p *prober) ask(n uint32, now int64) {
	slot := &p.pending[n%uint32(len(p.pending))]
	if *slot = (pendingProbe{}); p.times.sent(now) {
		*slot = pendingProbe{n, now}
	}
	p.end.sendProbe(probe{kind: kindAsk, number: n, value: p.end.pulse.mine.Load()})
}

func (p *prober) answer(b []byte, nanos int64) {
	a, ok := p.end.parseProbe(b)
	if !ok || a.kind != kindReply && a.kind != kindSign {
		return
	}
	p.end.pulse.hear(a.value)
	slot := &p.pending[a.number%uint32(len(p.pending))]
	if a.kind == kindReply && slot.at != 0 && slot.number == a.number {
		if p.times.answered(slot.at, a.at, a.at+int64(a.size), nanos) {
			p.answered.Add(1)
		}
		*slot = pendingProbe{}
	}
}

func (p *prober) count() engine.Snapshot {
	n := p.answered.Load()
	return engine.Snapshot{Packets: n, Bytes: n * probeBytes, Heard: p.end.pulse.count.Load()}
}

func (p *prober) account(r *engine.Report, _ engine.Sent) {
	r.Probe = p.times.report()
	if p.silent { // traffic has its own consent, or, as TCP, may outlive the probes
		r.Warnings = append(r.Warnings, model.NewReason(model.ProbesSilent, "silent_s", engine.ConsentLasts.Seconds()))
	}
}

// echo answers a prober.
type echo struct {
	end       *Sockets
	answered  atomic.Uint64
	signed    uint32
	signNext  time.Time
	asked     time.Time  // when the prober, or another flow of its host, was heard
	mtuSender *mtuSender // of a survey
}

func (c *echo) run(reading func()) error {
	e := c.end
	reading()
	runtime.LockOSThread() // an answer shall not wait for the scheduler
	defer runtime.UnlockOSThread()
	if e.order.Survey {
		c.mtuSender = newMTUSender(e)
	}
	for c.asked = time.Now(); e.stopped.Err() == nil; {
		if d, err := e.sockets[0].read(readWait); err == nil { // an error is an ICMP message for an answer
			c.serve(d)
		}
		if c.mtuSender == nil {
			c.sendSign(time.Now())
		}
	}
	return nil
}

// sendSign sends the prober a sign of life at regular times, as long as packets come from it.
func (c *echo) sendSign(now time.Time) {
	if c.end.pulse.peer.Swap(false) {
		c.asked = now
	}
	if now.Before(c.signNext) || now.Sub(c.asked) > engine.ConsentLasts {
		return
	}
	c.signNext = now.Add(signEvery)
	c.signed++
	c.end.sendProbe(probe{kind: kindSign, number: c.signed, value: c.end.pulse.mine.Load()})
}

// mostFetches bounds what an echo sends that is longer than what it was asked with.
const mostFetches = 500

func (c *echo) serve(d datagram) {
	e, s := c.end, c.mtuSender
	p, ok := e.parseProbe(d.head)
	switch {
	case !ok:
		e.answerCheck(0, d)
		return
	case p.kind == kindAsk:
		e.pulse.hear(p.value)
		c.asked = time.Now()
		c.signNext = c.asked.Add(signEvery) // the answer is a sign, too
		p.kind, p.value, p.at = kindReply, e.pulse.mine.Load(), d.nanos
		p.size = uint32(min(max(e.settings.clock.Now()-d.nanos, 0), math.MaxUint32))
		e.sendProbe(p)
	case s != nil && p.kind == kindWhole && s.hasSize(d, p.size):
		e.pulse.count.Add(1)
		s.note(p.number, p.size)
	case s != nil && p.kind == kindFetch && c.answered.Load() < mostFetches:
		e.pulse.count.Add(1)
		if s.note(p.number, 0); p.size > 0 && s.mtu() > 0 {
			_ = s.send(probe{kind: kindLong, number: p.number, size: p.size}, int(p.size)) // a lost one is asked again
		}
	default:
		return
	}
	c.answered.Add(1)
}

func (c *echo) count() engine.Snapshot {
	n := c.answered.Load()
	return engine.Snapshot{Packets: n, Bytes: n * probeBytes, Heard: c.end.pulse.count.Load()}
}

// account says nothing: an echo serves until it is stopped.
func (c *echo) account(*engine.Report, engine.Sent) {}

// mtuSender is what either side of a survey sends from.
type mtuSender struct {
	end       *Sockets
	socket    socket
	six       bool
	fragments error // why this system cannot forbid them; nil if it does
	room      []byte
}

func newMTUSender(e *Sockets) *mtuSender {
	s := &mtuSender{end: e, socket: e.sockets[0], six: e.sockets[0].remote().Addr().Is6(),
		room: make([]byte, model.MaxUDPPayload)}
	engine.Fill(s.room)
	s.fragments = s.socket.forbidFragments()
	return s
}

// mtu is what the kernel knows of the way; 0 if it does not, or cannot forbid fragments.
func (s *mtuSender) mtu() int {
	if s.fragments != nil {
		return 0
	}
	return s.socket.pathMTU()
}

// send writes a message as an IP packet of so many bytes; 0 makes it short. A socket gives the
// error of an earlier packet to the next one, which is then not sent.
func (s *mtuSender) send(p probe, packet int) error {
	n := min(max(packet-overheadOf(s.six), probeBytes), len(s.room))
	s.end.putProbe(s.room, p)
	err := s.socket.write(s.room[:n])
	if err != nil {
		err = s.socket.write(s.room[:n])
	}
	return err
}

func (s *mtuSender) note(round, size uint32) {
	// a lost one is a probe without an answer
	_ = s.send(probe{kind: kindNote, number: round, size: size, value: uint64(s.mtu())}, 0)
}

// hasSize reports whether a datagram is as long as the IP packet that its message names: it came whole.
func (s *mtuSender) hasSize(d datagram, size uint32) bool {
	return d.bytes+overheadOf(s.six) == int(size)
}
