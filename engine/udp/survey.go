package udp

import (
	"time"

	"pelt/engine"
	"pelt/model"
)

// The time of a survey. PROBE_TIMER of RFC 8899 is 15 s; here a round ends once
// its answers are overdue by what the first ones took.
const (
	surveyTime  = time.Second
	roundFirst  = 300 * time.Millisecond // while no answer has shown how long one takes
	roundLeast  = 15 * time.Millisecond  // threads wake late
	roundFactor = 3                      // of the shortest round trip
	surveyOver  = 4                      // round trips that a survey may take beyond its time
	surveyMost  = 5 * time.Second        // ... and no longer
)

// surveyor is the prober of a survey: it searches the path MTU in both directions, in rounds
// over one consented stream.
type surveyor struct {
	end *Sockets
	*mtuSender
	out, back *search
	begun     time.Time
	took      time.Duration
	trip      time.Duration // the shortest round trip; 0 none yet
	sentAt    []time.Time   // of each round
}

func (x *surveyor) run(func()) error {
	x.prepare()
	if x.fragments != nil {
		x.out.unable = model.Doubts{{Code: model.MTUMayFragment, Text: x.fragments.Error()}}
	} else if mtu := x.mtu(); mtu > 0 {
		x.out.routeMTU(mtu)
	} else {
		x.out.unable = model.Doubts{{Code: model.MTURouteUntold}}
	}
	x.search()
	x.took = time.Since(x.begun).Round(10 * time.Millisecond)
	return nil
}

func (x *surveyor) prepare() {
	x.mtuSender = newMTUSender(x.end)
	x.out, x.back, x.begun = newSearch(x.six), newSearch(x.six), time.Now()
}

func (x *surveyor) count() engine.Snapshot {
	n := x.end.pulse.count.Load()
	return engine.Snapshot{Packets: n, Bytes: n * probeBytes, Heard: n}
}

func (x *surveyor) account(r *engine.Report, _ engine.Sent) {
	r.Probe = &engine.ProbeReport{}
	if x.out != nil {
		r.Probe = &engine.ProbeReport{Out: x.result(x.out), Back: x.result(x.back)}
	}
}

// search returns when both directions are known, or when the time is up.
func (x *surveyor) search() {
	for patience := surveyTime; x.end.stopped.Err() == nil && time.Since(x.begun) <= patience; {
		ahead, behind := x.out.next(), x.back.next()
		if len(ahead) == 0 && len(behind) == 0 && !(x.asking() && len(x.sentAt) < maxProbes) {
			return
		}
		x.ask(ahead, behind)
		x.gather()
		x.out.silent()
		x.back.silent()
		patience = max(surveyTime, min(surveyOver*x.trip, surveyMost))
	}
}

// asking reports whether it is not known yet what the far kernel takes for its route to be.
func (x *surveyor) asking() bool { return x.back.top == 0 && x.back.unable == nil }

// ask sends a round's probes. Even without any it asks for a note.
func (x *surveyor) ask(ahead, behind []int) {
	x.sentAt = append(x.sentAt, time.Now())
	round := uint32(len(x.sentAt))
	for _, n := range ahead {
		// beyond the interface's MTU, or the kernel has been told
		if x.send(probe{kind: kindWhole, number: round, size: uint32(n)}, n) != nil {
			x.out.routeMTU(x.socket.pathMTU())
		}
	}
	if len(behind) == 0 && x.back.top == 0 {
		behind = []int{0}
	}
	for _, n := range behind {
		_ = x.send(probe{kind: kindFetch, number: round, size: uint32(n)}, 0) // a lost one is asked again
	}
}

// mostOverdue bounds the messages read after a round's time: more than it can bring.
const mostOverdue = 1000

// gather hears a round's answers.
func (x *surveyor) gather() {
	sent := x.sentAt[len(x.sentAt)-1]
	for overdue := 0; x.end.stopped.Err() == nil && overdue < mostOverdue; {
		if mtu := x.socket.pathMTU(); mtu > 0 {
			x.out.routeMTU(mtu) // also what a packet-too-big message has just said
		}
		if len(x.out.waiting) == 0 && len(x.back.waiting) == 0 && !x.asking() {
			return
		}
		wait := roundFirst
		if x.trip > 0 {
			wait = max(roundLeast, roundFactor*x.trip)
		}
		wait -= time.Since(sent)
		if wait <= 0 { // what waits in the socket was in time: this thread was not
			overdue++
		}
		d, err := x.socket.read(max(min(wait, readWait), 0))
		if wait <= 0 && err == nil && d.nanos == 0 {
			return
		}
		if err != nil || d.nanos == 0 {
			continue // such as the ICMP message itself
		}
		if m, ok := x.end.parseProbe(d.head); ok {
			x.end.pulse.count.Add(1)
			x.hear(m, d)
		}
	}
}

func (x *surveyor) hear(m probe, d datagram) {
	if n := int(m.number); n > 0 && n <= len(x.sentAt) && (x.trip == 0 || time.Since(x.sentAt[n-1]) < x.trip) {
		x.trip = time.Since(x.sentAt[n-1])
	}
	if m.kind == kindLong && x.hasSize(d, m.size) {
		x.back.passed(int(m.size))
	}
	if m.kind != kindNote {
		return
	}
	x.out.passed(int(m.size)) // of an earlier round, too
	if mtu := int(min(m.value, 1<<20)); mtu > 0 {
		x.back.routeMTU(mtu)
	} else {
		x.back.unable = model.Doubts{{Code: model.MTUMayFragment}}
	}
}

// result is what was found of a direction, and why it is not known or is a bound.
func (x *surveyor) result(s *search) *model.PathMTU {
	r := s.result()
	after := map[string]float64{"after_s": x.took.Seconds()}
	switch {
	case s.unable != nil:
		r.Why = s.unable
	case s.low == 0 && x.end.pulse.count.Load() == 0:
		r.Why = model.Doubts{{Code: model.MTUUnanswered, Numbers: after}}
	case s.low == 0:
		r.Why = model.Doubts{{Code: model.MTUNothing}}
	case r.AtLeast:
		r.Why = model.Doubts{{Code: model.MTUUnfinished, Numbers: after}}
	}
	return r
}
