package iperf3

import (
	"sync/atomic"
	"time"

	"pelt/engine"
	"pelt/model"
)

func (t *test) own() results {
	r := results{HasRetransmits: -1}
	for _, l := range t.legs {
		r.Streams = append(r.Streams, l.own()...)
	}
	r.complete(t.legs[0].order.Timing.MeasureSeconds)
	return r
}

// complete numbers the streams of a test of so many seconds, in which nothing was omitted.
func (r *results) complete(seconds float64) {
	none := count(0)
	for i, id := range streamIDs(len(r.Streams)) {
		s := &r.Streams[i]
		s.ID, s.OmittedErrors, s.OmittedPackets, s.End = id, &none, &none, &seconds
	}
}

// own are this side's results of a flow. Of TCP with many streams this side may know the sum only, which is what iperf3
// prints last.
func (l *leg) own() []streamResult {
	list := make([]streamResult, l.order.Flow.Streams)
	l.test.mu.Lock()
	defer l.test.mu.Unlock()
	for i := range list {
		s := &list[i]
		switch {
		case i < len(l.sent):
			*s = l.sent[i]
		case l.counts != nil:
			l.counts.streams[i].tell(s)
		case l.down():
			s.Bytes = count(l.near.Count().Bytes) / count(len(list))
		}
		s.Retransmits = -1
	}
	return list
}

// theirs are the server's results of the flow.
func (l *leg) theirs() []streamResult {
	all, n := l.test.results.Streams, l.order.Flow.Streams
	switch {
	case len(all) == 0:
		return nil
	case l == l.test.legs[0]:
		return all[:n]
	}
	return all[n:]
}

// counter counts what comes of each stream, for the server, which is told at the end of the test.
type counter struct {
	engine.Meter
	streams []streamCount
}

type streamCount struct{ packets, bytes, highest atomic.Int64 }

func (c *counter) Observe(stream int, batch []model.Arrival) {
	s := &c.streams[stream]
	for _, a := range batch {
		s.bytes.Add(int64(a.Bytes))
		s.highest.Store(max(s.highest.Load(), int64(a.Sequence)+1))
	}
	s.packets.Add(int64(len(batch)))
	c.Meter.Observe(stream, batch)
}

// tell says what came as iperf3 counts it: packets is the highest sequence.
func (s *streamCount) tell(r *streamResult) {
	r.Bytes, r.Packets = count(s.bytes.Load()), count(s.highest.Load())
	r.Errors = max(0, r.Packets-count(s.packets.Load()))
}

// program names the server's versions that report as it does. reply is what it answered to a request; 0: not known.
func (r results) program(reply [4]byte) string {
	switch s := r.Streams[0]; {
	case s.OmittedPackets != nil:
		return "iperf3 3.14 or newer"
	case s.End == nil:
		return "iperf3 3.1 or older"
	case reply == oldReply:
		return "iperf3 3.2 to 3.11"
	case reply != [4]byte{} && r.oldMinus:
		return "iperf3 3.12 or 3.13"
	}
	return "iperf3 3.2 to 3.13"
}

// report is the server's account of a flow over UDP. Of each stream, received is the smaller of two figures: all
// datagrams, which duplicates make too great, and the sequences less the gaps. Up to 3.1 the gaps count what came out
// of order, too.
func report(streams []streamResult, payload int, sent []uint64) (t model.Tally, p model.PeerReport) {
	for i, s := range streams {
		came := uint64(s.Bytes) / uint64(payload)
		distinct := came
		if n := s.Packets - s.Errors; s.End != nil && n >= 0 {
			distinct = min(came, uint64(n))
		}
		t.Received, t.Duplicates = t.Received+distinct, t.Duplicates+came-distinct
		p.Highest, p.Gaps = p.Highest+uint64(s.Packets), p.Gaps+uint64(max(s.Errors, 0))
		if i < len(sent) {
			p.Tail += sent[i] - min(uint64(s.Packets), sent[i])
		}
		t.JitterNanos = max(t.JitterNanos, s.Jitter*1e9)
	}
	t.Bytes = t.Received * uint64(payload)
	return t, p
}

// receivedReport is a peer's account of a flow that it received. sent is what each stream sent, over UDP.
func receivedReport(f model.Flow, streams []streamResult, peer model.PeerReport, sent []uint64) *engine.ReceiveReport {
	r := &engine.ReceiveReport{Peer: &peer}
	if f.Protocol == model.UDP {
		tally, told := report(streams, f.PayloadBytes, sent)
		told.Program, told.CPURatio = peer.Program, peer.CPURatio
		r.Tally, r.Peer = tally, &told
		return r
	}
	r.TCP = &model.TCPFacts{}
	for _, s := range streams {
		r.Tally.Bytes += uint64(s.Bytes)
		r.TCP.PerStream = append(r.TCP.PerStream, model.TCPStream{ReceivedBytes: uint64(s.Bytes)})
	}
	r.TCP.ReceivedBytes = r.Tally.Bytes
	return r
}

// sentReport is the server's account of a flow that it sent, in such a time.
func (l *leg) sentReport(took time.Duration) *engine.SendReport {
	r, f := &engine.SendReport{DurationNanos: took.Nanoseconds()}, l.order.Flow
	if f.Protocol == model.TCP {
		r.TCP = &model.TCPFacts{Control: model.Clip(l.test.results.Congestion)}
		for _, s := range l.theirs() {
			r.TCP.SentBytes += uint64(s.Bytes)
			r.TCP.Retransmits += uint64(max(s.Retransmits, 0))
			r.Streams = append(r.Streams, 0) // it does not tell its segments
		}
		return r
	}
	for _, s := range l.theirs() {
		r.Streams = append(r.Streams, uint64(s.Packets))
		r.Attempted += uint64(s.Packets)
	}
	r.Planned, r.Accepted = r.Attempted, r.Attempted
	if schedule, paced := f.Rate.Schedule(f.PayloadBytes); paced {
		r.Planned = max(r.Planned, schedule.Count(min(took, l.order.Timing.Measure()).Nanoseconds()))
		r.Late = r.Planned - r.Attempted
	}
	return r
}

// mostStall is how long a client that gets many packets may be busy with others.
const mostStall = 500 * time.Millisecond

// leaveOut takes out of this host's report what it sent last and the client did not count, because the client may have
// ended its test before it read that. It is what left within late, at the mean rate; of a stream that reached the
// client.
func leaveOut(r *engine.SendReport, theirs []streamResult, late time.Duration) {
	var all uint64
	for i, s := range theirs {
		if n := r.Refused[i]; s.Packets == 0 || n.Packets+n.Unlisted > 0 {
			continue // what the kernel refused is in the account by its sequence
		}
		sent := r.Streams[i]
		most := uint64(float64(sent)*float64(late)/float64(max(r.DurationNanos, 1))) + 1
		n := min(sent-min(uint64(s.Packets), sent), most)
		r.Streams[i], all = sent-n, all+n
	}
	r.Planned, r.Attempted, r.Accepted = r.Planned-all, r.Attempted-all, r.Accepted-all
	for i := len(r.PerStep) - 1; i >= 0; i-- {
		n := min(r.PerStep[i], all)
		r.PerStep[i], all = r.PerStep[i]-n, all-n
	}
}

// sentResult is what this side says of a stream that it sent. Of TCP that is not in bulk it knows the sum only, which
// is what iperf3 prints last.
func sentResult(r *engine.SendReport, stream, payload int) (s streamResult) {
	packets := count(r.Streams[stream])
	s = streamResult{Packets: packets, Bytes: packets * count(payload), Retransmits: -1}
	if facts := r.TCP; facts != nil {
		share := func(all uint64) count {
			n, rest := all/uint64(len(r.Streams)), all%uint64(len(r.Streams))
			if uint64(stream) < rest {
				n++
			}
			return count(n)
		}
		s = streamResult{Bytes: share(facts.SentBytes), Retransmits: share(facts.Retransmits)}
		if len(facts.PerStream) == len(r.Streams) {
			one := facts.PerStream[stream]
			s.Bytes, s.Retransmits = count(one.SentBytes), count(one.Retransmits)
		}
	}
	return s
}
