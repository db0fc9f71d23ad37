package udp

import (
	"fmt"
	"slices"
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
	out, back       *search
	unable          string // why nothing can be searched in a direction, "" if it can
	farUnable       string
	begun           time.Time
	trip            time.Duration // the shortest round trip; 0 none yet
	sentAt          []time.Time   // of each round
	outMTU, backMTU *model.PathMTU
}

func (x *surveyor) run(func()) error {
	x.prepare()
	if x.fragments != nil {
		x.unable = x.fragments.Error()
	} else if mtu := x.mtu(); mtu > 0 {
		x.out.start(mtu)
	} else {
		x.unable = "this system does not tell its route's MTU"
	}
	late := x.search(x.end.stop)
	x.outMTU, x.backMTU = x.out.result(late), x.back.result(late)
	x.outMTU.Why, x.backMTU.Why = x.why(x.out, x.unable), x.why(x.back, x.farUnable)
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
	r.Probe = &engine.ProbeReport{Out: x.outMTU, Back: x.backMTU}
}

// search returns when both directions are known, or late when the time is up.
func (x *surveyor) search(b *stopSignal) (late bool) {
	for !b.isSet() {
		ahead, behind := x.out.next(), x.back.next()
		if x.unable != "" {
			ahead = nil
		}
		// what the far kernel takes is not known yet
		asking := x.back.top == 0 && x.farUnable == "" && len(x.sentAt) < maxProbes
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
func (x *surveyor) patience() time.Duration {
	return max(surveyTime, min(surveyOver*x.trip, surveyMost))
}

// ask sends a round's probes. Even without any it asks for a note.
func (x *surveyor) ask(ahead, behind []int) {
	x.sentAt = append(x.sentAt, time.Now())
	round := uint32(len(x.sentAt))
	for _, n := range ahead {
		x.out.sent++
		// beyond the interface's MTU, or the kernel has been told
		if x.send(probe{kind: kindWhole, number: round, size: uint32(n)}, n) != nil {
			x.out.start(x.socket.pathMTU())
		}
	}
	for _, n := range behind {
		x.back.sent++
		_ = x.send(probe{kind: kindFetch, number: round, size: uint32(n)}, 0) // a lost one is asked again
	}
	if len(behind) == 0 && x.back.top == 0 {
		_ = x.send(probe{kind: kindFetch, number: round}, 0) // likewise
	}
}

// mostOverdue bounds the messages read after a round's time: more than it can bring.
const mostOverdue = 1000

// gather hears a round's answers and returns what was not answered.
func (x *surveyor) gather(b *stopSignal, ahead, behind []int) (silentOut, silentBack []int) {
	sent := x.sentAt[len(x.sentAt)-1]
	for overdue := 0; !b.isSet() && overdue < mostOverdue; {
		if mtu := x.socket.pathMTU(); mtu > 0 && x.unable == "" {
			x.out.start(mtu) // also what a packet-too-big message has just said
			ahead = x.cut(x.out, ahead)
		}
		wait := roundFirst
		if x.trip > 0 {
			wait = max(roundLeast, roundFactor*x.trip)
		}
		wait -= time.Since(sent)
		known := x.back.top > 0 || x.farUnable != ""
		if known && len(ahead) == 0 && len(behind) == 0 {
			break
		}
		if wait <= 0 { // what waits in the socket was in time: this thread was not
			overdue++
		}
		d, err := x.socket.read(max(min(wait, readWait), 0))
		if wait <= 0 && err == nil && d.nanos == 0 {
			break
		}
		if err != nil || d.nanos == 0 {
			continue // such as the ICMP message itself
		}
		m, ok := x.end.parseProbe(d.head)
		if !ok {
			continue
		}
		x.end.pulse.count.Add(1)
		if n := int(m.number); n > 0 && n <= len(x.sentAt) && (x.trip == 0 || time.Since(x.sentAt[n-1]) < x.trip) {
			x.trip = time.Since(x.sentAt[n-1])
		}
		switch {
		case m.kind == kindNote:
			ahead = x.noted(m, ahead)
			behind = x.cut(x.back, behind)
		case m.kind == kindLong && x.hasSize(d, m.size):
			x.back.passed(int(m.size))
			behind = without(behind, int(m.size))
		}
	}
	return ahead, behind
}

// noted takes the echo's note.
func (x *surveyor) noted(m probe, ahead []int) []int {
	switch mtu := int(min(m.value, 1<<20)); {
	case mtu == 0:
		x.farUnable = "the other host's system cannot forbid fragments"
	case x.farUnable == "":
		x.back.start(mtu)
	}
	if m.size > 0 { // of an earlier round, too
		x.out.passed(int(m.size))
		ahead = without(ahead, int(m.size))
	}
	return ahead
}

// cut leaves out sizes that a message has ruled out: no answer to those is awaited.
func (x *surveyor) cut(s *search, sizes []int) []int {
	return slices.DeleteFunc(sizes, func(n int) bool { return n > s.limit })
}

func without(sizes []int, n int) []int {
	if i := slices.Index(sizes, n); i >= 0 {
		return slices.Delete(sizes, i, i+1)
	}
	return sizes
}

// why a direction's path MTU is not known, or is a bound.
func (x *surveyor) why(s *search, unable string) string {
	switch {
	case unable != "":
		return unable
	case s.low == 0 && x.end.pulse.count.Load() == 0:
		return fmt.Sprintf("no probe was answered within %v", time.Since(x.begun).Round(10*time.Millisecond))
	case s.low == 0:
		return "no packet of any size came through that may not be fragmented"
	case !s.done():
		return fmt.Sprintf("the search was not over after %v", time.Since(x.begun).Round(10*time.Millisecond))
	}
	return ""
}
