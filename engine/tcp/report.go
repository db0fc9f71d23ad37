package tcp

import (
	"maps"
	"math"
	"strconv"
	"time"

	"pelt/engine"
	"pelt/engine/tcpinfo"
	"pelt/model"
)

// Count returns data segments and payload bytes of the measured part so far, and all bytes
// that a receiver has heard.
func (e *end) Count() engine.Snapshot {
	n := engine.Snapshot{Heard: e.arrived.Load()}
	if e.order.Flow.Connections != "" {
		n.Packets, n.Bytes = e.sampleConnections()
		return n
	}
	for _, s := range e.streams {
		t := s.current()
		if e.order.Role == engine.Receive {
			n.Packets += t[tcpinfo.SegmentsIn]
			n.Bytes += s.bytes.Load()
			continue
		}
		n.Packets += t[tcpinfo.SegmentsOut]
		n.Bytes += s.sentOnce(t)
	}
	return n
}

// sentOnce returns the payload bytes that were sent, without what was sent again; where the kernel does not tell,
// those that it took.
func (s *stream) sentOnce(t tcpinfo.Sum) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known && s.last.Knows(tcpinfo.BytesResent) {
		return t[tcpinfo.BytesSent] - t[tcpinfo.BytesResent]
	}
	if !s.active {
		return s.wrote.bytes
	}
	return s.bytes.Load() - s.base.bytes
}

func (e *end) Account(r *engine.Report, _ engine.Sent) {
	r.PathMTU = pathMTU(e.streams[0].raw)
	e.mu.Lock()
	r.CPU.ThreadRatio = e.busiest
	r.Warnings = append(r.Warnings, e.warnings...)
	e.mu.Unlock()
	switch {
	case e.opener != nil:
		r.Send = e.opener.report(e.span)
	case e.order.Role == engine.Send:
		r.Send = e.sendReport(e.span)
	default:
		r.Receive = e.receiveReport()
	}
	r.Warnings = append(r.Warnings, e.doubts()...)
}

func (e *end) sendReport(span span) *engine.SendReport {
	r := &engine.SendReport{DurationNanos: int64(span.ended - span.begun), TCP: &model.TCPFacts{}}
	var made, rtt uint64
	for _, s := range e.streams {
		r.Streams = append(r.Streams, s.sum[tcpinfo.SegmentsOut])
		r.Attempted += s.sum[tcpinfo.SegmentsOut]
		r.TCP.Writes += s.wrote.writes
		r.TCP.SentBytes += s.sentOnce(s.sum)
		r.TCP.Retransmits += s.sum[tcpinfo.Retransmits]
		r.TCP.SegmentSizeBytes = max(r.TCP.SegmentSizeBytes, int(s.last.Figure[tcpinfo.MSS]))
		rtt += s.last.Figure[tcpinfo.RTT]
		r.TCP.BusyS += tcpinfo.Scaled(tcpinfo.Busy, s.sum[tcpinfo.Busy])
		r.TCP.RwndLimitedS += tcpinfo.Scaled(tcpinfo.RwndLimited, s.sum[tcpinfo.RwndLimited])
		r.TCP.SndbufLimitedS += tcpinfo.Scaled(tcpinfo.SndbufLimited, s.sum[tcpinfo.SndbufLimited])
		made += s.made.Load()
		r.BurstMax = max(r.BurstMax, s.burst)
		if s.ended != nil {
			if r.Errors == nil {
				r.Errors = map[string]uint64{}
			}
			name, _ := streamError(s.ended)
			r.Errors[name]++
		}
	}
	r.TCP.SegmentsOut = r.Attempted
	r.TCP.RTTNanos = float64(rtt) * float64(time.Microsecond) / float64(len(e.streams))
	r.TCP.Control = e.streams[0].control
	r.Planned, r.Accepted = r.Attempted, r.Attempted
	if e.paced() {
		r.TCP.Writes = made
		r.Planned = plannedSegments(r.Attempted, e.due(), made)
	}
	r.PerStep = load(e.stepSegments)
	r.BeginNanos = e.clock.At(time.Duration(e.origin.Load()))
	r.TCP.Completion, r.TCP.PerStream = e.completion(span), e.perStream()
	r.Series = e.watching.series()
	if e.watching != nil {
		r.TCP.SamplesMissed = e.watching.missed
	}
	return r
}

// paced tells a flow with a rate of writes, or of connections.
func (e *end) paced() bool { return !e.order.Flow.Rate.IsMax() }

// due returns how many slots were due before the measured part ended.
func (e *end) due() (n uint64) {
	for _, s := range e.streams {
		p := &s.phases[1]
		at := p.Length
		if !e.span.complete {
			at = min(at, int64(e.span.ended-e.order.Timing.Warmup()))
		}
		n += p.Pacer.Planned(at - 1)
	}
	return n
}

// plannedSegments scales attempted segments by writes due over writes made.
func plannedSegments(attempted, due, made uint64) uint64 {
	if made >= due {
		return attempted
	}
	if made == 0 || attempted == 0 {
		return max(due, attempted)
	}
	return max(attempted, uint64(math.Round(float64(attempted)*float64(due)/float64(made))))
}

func (e *end) receiveReport() *engine.ReceiveReport {
	e.answering.Lock()
	defer e.answering.Unlock()
	r := &engine.ReceiveReport{TCP: &model.TCPFacts{}}
	t := &r.Tally
	for _, s := range e.streams {
		t.Received += s.sum[tcpinfo.SegmentsIn]
		t.Bytes += s.bytes.Load()
	}
	if first := e.firstSeen.Load(); first > 0 {
		t.FirstNanos = e.clock.At(time.Duration(first - 1))
		t.LastNanos = e.clock.At(time.Duration(e.lastSeen.Load()))
	}
	t.PerStep, t.StepBytes = load(e.stepSegments), load(e.stepBytes)
	r.TCP.SegmentsIn, r.TCP.ReceivedBytes = t.Received, t.Bytes
	r.TCP.Completion = e.answered()
	if len(e.streams) > 1 && e.order.Flow.Bulk {
		for _, s := range e.streams {
			r.TCP.PerStream = append(r.TCP.PerStream, model.TCPStream{ReceivedBytes: s.bytes.Load()})
		}
	}
	if e.order.Flow.Connections != "" {
		e.receivedConnections(r)
	}
	return r
}

func load(counts []count) []uint64 {
	values := make([]uint64, len(counts))
	for i := range counts {
		values[i] = counts[i].Load()
	}
	return values
}

// lateReading is usual on a loaded machine.
const lateReading = 5 * time.Millisecond

// doubts lists what weakens the figures.
func (e *end) doubts() (list model.Reasons) {
	add := func(code, number string, n uint64) {
		list = append(list, model.Reason{Code: code, Numbers: map[string]float64{number: float64(n)}})
	}
	e.mu.Lock()
	if e.turnedAway > 0 {
		away := model.NewReason(model.TurnedAway, "text", e.why.Text, "connections", float64(e.turnedAway))
		maps.Copy(away.Numbers, e.why.Numbers)
		list = append(list, away)
	}
	e.mu.Unlock()
	var late, held, made uint64
	for i, s := range e.streams {
		late += s.late.Load()
		held += s.heldBack.Load()
		made += s.made.Load()
		if s.ended != nil {
			_, text := streamError(s.ended)
			list = append(list, model.NewReason(model.EndedEarly, "text", text, "stream", float64(i+1)))
		}
	}
	if s := e.streams[0]; e.order.Flow.Connections == "" && (!s.known || !s.last.Knows(tcpinfo.SegmentsOut)) {
		list = append(list, model.Reason{Code: model.SegmentsUncounted})
	}
	if late := e.span.latest; late > max(lateReading, e.order.Timing.Measure()/100) {
		list = append(list, model.Reason{Code: model.ReadLate, Numbers: map[string]float64{"late_s": late.Seconds()}})
	}
	due := uint64(0)
	if e.paced() && e.order.Role == engine.Send && e.opener == nil {
		due = e.due()
	}
	if held = min(held, due-min(made, due)); held > 0 {
		add(model.WritesHeld, "writes", held)
	}
	if o := e.opener; o != nil {
		if r := o.report(e.span); r.Planned > r.Attempted {
			list = append(list, model.Reason{Code: model.ConnectionsUnmade, Numbers: map[string]float64{
				"connections": float64(r.Planned - r.Attempted), "held": float64(held), "late": float64(late)}})
		}
	} else if late = min(late, due-min(made+held, due)); late > 0 {
		add(model.WritesLate, "writes", late)
	}
	if e.listener != nil {
		if n := e.listener.refused.Load() - e.refusedBefore; n > 0 {
			list = append(list, model.Reason{Code: model.StrangersRefused, Name: strconv.Itoa(int(e.listener.port)),
				Numbers: map[string]float64{"connections": float64(n)}})
		}
		if n := e.listener.starved.Load() - e.starvedBefore; n > 0 {
			add(model.FilesSpent, "times", uint64(n))
		}
	}
	return list
}
