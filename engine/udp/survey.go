package udp

import (
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"pelt/engine"
	"pelt/model"
)

// A survey finds the path MTU in both directions over one consented stream. The
// prober asks in rounds; nothing it sends, and nothing that the echo sends back,
// may be fragmented.
//
//	prober -> echo    whole  so long as its size says; answered by a short note
//	prober -> echo    fetch  short; answered by a note, then by as long a datagram as its size says
//	echo -> prober    note   short: the size, and the MTU that the echo's kernel knows for the way back
//	echo -> prober    long   so long as its size says
//
// A size is that of the whole IP packet. All carry the token that only the two
// ends of the consent know, so nobody can be made to send to a third party.
//
//	magic u16 | trial u16 | tag u16 | kind u8 | 0 u8 | round u32 | size u32 | mtu u32 | 0 u32 | token 16 B
const (
	surveyMagic = engine.Magic + 3
	surveyBytes = 40

	kindWhole = 1
	kindFetch = 2
	kindNote  = 3
	kindLong  = 4
)

// The time of a survey. PROBE_TIMER of RFC 8899 is 15 s; here a round ends once
// its answers are overdue by what the first ones took.
const (
	surveyTime  = time.Second
	roundFirst  = 300 * time.Millisecond // while no answer has shown how long one takes
	roundLeast  = 15 * time.Millisecond  // threads wake late
	roundFactor = 3                      // of the shortest round trip
	surveyOver  = 4                      // round trips that a survey may take beyond its time
)

type surveyMessage struct {
	trial, tag       uint16
	kind             uint8
	round, size, mtu uint32
	token            engine.ConsentToken
}

// put writes the message into the first bytes of b.
func (m surveyMessage) put(b []byte) {
	binary.BigEndian.PutUint16(b[0:], surveyMagic)
	binary.BigEndian.PutUint16(b[2:], m.trial)
	binary.BigEndian.PutUint16(b[4:], m.tag)
	b[6], b[7] = m.kind, 0
	binary.BigEndian.PutUint32(b[8:], m.round)
	binary.BigEndian.PutUint32(b[12:], m.size)
	binary.BigEndian.PutUint32(b[16:], m.mtu)
	binary.BigEndian.PutUint32(b[20:], 0)
	copy(b[24:surveyBytes], m.token[:])
}

// parseSurvey reads a message; ok is false if b begins with none or has another token.
func parseSurvey(b []byte, token engine.ConsentToken) (m surveyMessage, ok bool) {
	if len(b) < surveyBytes || binary.BigEndian.Uint16(b) != surveyMagic || subtle.ConstantTimeCompare(b[24:surveyBytes], token[:]) != 1 {
		return surveyMessage{}, false
	}
	return surveyMessage{
		trial: binary.BigEndian.Uint16(b[2:]), tag: binary.BigEndian.Uint16(b[4:]), kind: b[6],
		round: binary.BigEndian.Uint32(b[8:]), size: binary.BigEndian.Uint32(b[12:]), mtu: binary.BigEndian.Uint32(b[16:]), token: token,
	}, true
}

// sheet is what either side sends from.
type sheet struct {
	end  *Sockets
	wire wire
	six  bool
	room []byte
}

func newSheet(e *Sockets) *sheet {
	s := &sheet{end: e, wire: e.wires[0], six: e.wires[0].remote().Addr().Is6(), room: make([]byte, model.MaxUDPPayload)}
	engine.Fill(s.room)
	return s
}

// send writes a message as an IP packet of so many bytes. A socket gives the
// error of an earlier packet to the next one, which is then not sent.
func (s *sheet) send(kind uint8, round, size, mtu uint32, packet int) error {
	n := min(max(packet-overheadOf(s.six), surveyBytes), len(s.room))
	surveyMessage{s.end.order.Trial, s.end.order.Tag, kind, round, size, mtu, s.end.tokens[0]}.put(s.room)
	err := s.wire.write(s.room[:n])
	if err != nil {
		err = s.wire.write(s.room[:n])
	}
	return err
}

// holds tells whether a datagram is as long as the IP packet that it speaks of.
func (s *sheet) holds(d datagram, size uint32) bool { return d.bytes+overheadOf(s.six) == int(size) }

// surveyor is the prober of a survey.
type surveyor struct {
	end       *Sockets
	messages  atomic.Uint64
	out, back *model.PathMTU
}

func (v *surveyor) run(func()) error {
	s := newSheet(v.end)
	x := &survey{sheet: s, out: newSearch(s.six), back: newSearch(s.six), begun: time.Now(), heard: &v.messages}
	if err := s.wire.unsplit(); err != nil {
		x.mute = err.Error()
	} else if mtu := s.wire.pathMTU(); mtu > 0 {
		x.out.start(mtu)
	} else {
		x.mute = "this system does not tell its route's MTU"
	}
	late := x.run(v.end.stop)
	v.out, v.back = x.out.result(late), x.back.result(late)
	v.out.Why, v.back.Why = x.why(x.out, x.mute), x.why(x.back, x.farMute)
	return nil
}

func (v *surveyor) count() engine.Snapshot {
	n := v.messages.Load()
	return engine.Snapshot{Packets: n, Bytes: n * surveyBytes, Heard: n}
}

func (v *surveyor) account(r *engine.Report, _ engine.Sent) {
	r.Probe = &engine.ProbeReport{Out: v.out, Back: v.back}
}

// survey is the search in both directions.
type survey struct {
	*sheet
	out, back *search
	mute      string // why nothing can be searched in a direction, "" if it can
	farMute   string
	begun     time.Time
	trip      time.Duration // the shortest round trip; 0 none yet
	sentAt    []time.Time   // of each round
	heard     *atomic.Uint64
}

func (x *survey) run(b *stopSignal) (late bool) {
	for !b.isSet() {
		ahead, behind := x.out.next(), x.back.next()
		if x.mute != "" {
			ahead = nil
		}
		asking := x.back.top == 0 && x.farMute == "" && len(x.sentAt) < maxProbes // what the far kernel takes is not known yet
		if len(ahead) == 0 && len(behind) == 0 && !asking {
			return false
		}
		if time.Since(x.begun) > x.patience() {
			return true
		}
		x.ask(ahead, behind)
		ahead, behind = x.gather(b, ahead, behind)
		x.out.silent(ahead)
		x.back.silent(behind)
	}
	return true
}

// patience is how long the survey may take.
func (x *survey) patience() time.Duration { return max(surveyTime, surveyOver*x.trip) }

// ask sends a round's probes. Even without any it asks for a note.
func (x *survey) ask(ahead, behind []int) {
	x.sentAt = append(x.sentAt, time.Now())
	round := uint32(len(x.sentAt))
	for _, n := range ahead {
		x.out.sent++
		if x.send(kindWhole, round, uint32(n), 0, n) != nil { // beyond the interface's MTU, or the kernel has been told
			x.out.start(x.wire.pathMTU())
		}
	}
	for _, n := range behind {
		x.back.sent++
		_ = x.send(kindFetch, round, uint32(n), 0, 0) // a lost one is asked again
	}
	if len(behind) == 0 && x.back.top == 0 {
		_ = x.send(kindFetch, round, 0, 0, 0) // likewise
	}
}

// mostOverdue bounds the messages read after a round's time: more than it can bring.
const mostOverdue = 1000

// gather hears a round's answers and returns what was not answered.
func (x *survey) gather(b *stopSignal, ahead, behind []int) (silentOut, silentBack []int) {
	sent := x.sentAt[len(x.sentAt)-1]
	for overdue := 0; !b.isSet() && overdue < mostOverdue; {
		if mtu := x.wire.pathMTU(); mtu > 0 && x.mute == "" {
			x.out.start(mtu) // also what a packet-too-big message has just said
			ahead = x.cut(x.out, ahead)
		}
		wait := roundFirst
		if x.trip > 0 {
			wait = max(roundLeast, roundFactor*x.trip)
		}
		wait -= time.Since(sent)
		known := x.back.top > 0 || x.farMute != ""
		if known && len(ahead) == 0 && len(behind) == 0 {
			break
		}
		if wait <= 0 { // what waits in the socket was in time: this thread was not
			overdue++
		}
		d, err := x.wire.read(max(min(wait, attendFor), 0))
		if wait <= 0 && err == nil && d.nanos == 0 {
			break
		}
		if err != nil || d.nanos == 0 {
			continue // such as the ICMP message itself
		}
		m, ok := parseSurvey(d.head, x.end.tokens[0])
		if !ok {
			continue
		}
		x.heard.Add(1)
		if n := int(m.round); n > 0 && n <= len(x.sentAt) && (x.trip == 0 || time.Since(x.sentAt[n-1]) < x.trip) {
			x.trip = time.Since(x.sentAt[n-1])
		}
		switch {
		case m.kind == kindNote:
			ahead = x.noted(m, ahead)
			behind = x.cut(x.back, behind)
		case m.kind == kindLong && x.holds(d, m.size):
			x.back.passed(int(m.size))
			behind = without(behind, int(m.size))
		}
	}
	return ahead, behind
}

// noted takes the echo's note.
func (x *survey) noted(m surveyMessage, ahead []int) []int {
	switch mtu := int(min(m.mtu, 1<<20)); {
	case mtu == 0:
		x.farMute = "the other host's system cannot forbid fragments"
	case x.farMute == "":
		x.back.start(mtu)
	}
	if m.size > 0 { // of an earlier round, too
		x.out.passed(int(m.size))
		ahead = without(ahead, int(m.size))
	}
	return ahead
}

// cut leaves out what nobody needs to wait for: sizes that a message has ruled out.
func (x *survey) cut(s *search, sizes []int) []int {
	return slices.DeleteFunc(sizes, func(n int) bool { return n > s.limit })
}

func without(sizes []int, n int) []int {
	if i := slices.Index(sizes, n); i >= 0 {
		return slices.Delete(sizes, i, i+1)
	}
	return sizes
}

// why a direction's path MTU is not known, or is a bound.
func (x *survey) why(s *search, mute string) string {
	switch {
	case mute != "":
		return mute
	case s.low == 0 && x.heard.Load() == 0:
		return fmt.Sprintf("no probe was answered within %v", time.Since(x.begun).Round(10*time.Millisecond))
	case s.low == 0:
		return "no packet of any size came through that may not be fragmented"
	case !s.done():
		return fmt.Sprintf("the search was not over after %v", time.Since(x.begun).Round(10*time.Millisecond))
	}
	return ""
}

// mirror is the echo of a survey.
type mirror struct {
	end      *Sockets
	answered atomic.Uint64
}

func (c *mirror) run(func()) error {
	e := c.end
	s := newSheet(e)
	mtu := func() uint32 { return uint32(s.wire.pathMTU()) }
	if s.wire.unsplit() != nil {
		mtu = func() uint32 { return 0 }
	}
	c.serve(s, e.early[0], mtu)
	for !e.stop.isSet() {
		if d, err := s.wire.read(attendFor); err == nil { // an error is an ICMP message for an answer
			c.serve(s, d, mtu)
		}
	}
	return nil
}

func (c *mirror) serve(s *sheet, d datagram, mtu func() uint32) {
	m, ok := parseSurvey(d.head, c.end.tokens[0])
	switch {
	case !ok:
		c.end.answer(0, s.wire, d.whole())
		return
	case m.kind == kindWhole && s.holds(d, m.size):
		_ = s.send(kindNote, m.round, m.size, mtu(), 0) // a lost answer is a probe without one
	case m.kind == kindFetch:
		if c.answered.Load() >= mostFetches {
			return
		}
		_ = s.send(kindNote, m.round, 0, mtu(), 0)
		if m.size > 0 && mtu() > 0 {
			_ = s.send(kindLong, m.round, m.size, 0, int(m.size))
		}
	default:
		return
	}
	c.answered.Add(1)
}

// mostFetches bounds what an echo sends that is longer than what it was asked with.
const mostFetches = 500

func (c *mirror) count() engine.Snapshot {
	n := c.answered.Load()
	return engine.Snapshot{Packets: n, Bytes: n * surveyBytes, Heard: n}
}

// account says nothing: it serves until it is stopped.
func (c *mirror) account(r *engine.Report, _ engine.Sent) { r.Stopped = false }
