package udp

import (
	"slices"
	"sync"

	"pelt/engine"
	"pelt/measure"
	"pelt/model"
)

const (
	// A batch is at most maxBatch packets and batchBytes long: more saves
	// nothing, and all packets of a batch carry one send time.
	maxBatch   = 64
	batchBytes = 1 << 20
	allBatches = 8 << 20 // of all streams of an end
	// sharedBatch is how much shorter a batch of one of many streams is.
	sharedBatch = 4
	// icmpEvery is how often a sender reads its socket's error queue when no
	// error makes it.
	icmpEvery = 10_000_000
)

// batchOf is a multiple of segments.
func batchOf(payloadBytes, streams, segments int) int {
	return max(min(maxBatch, min(batchBytes, allBatches/streams)/payloadBytes)/segments, 1) * segments
}

// padding keeps what different threads write in different cache lines.
type padding [128]byte

// sender sends the packets of all streams.
type sender struct {
	end     *Sockets
	streams []*sendStream
	gaps    *measure.Histogram
	late    *measure.Histogram // of a paced flow; else nil
	asked   *measure.Histogram // of a flow with a profile; else nil
	start   int64              // of the measured part

	schedules engine.Schedules

	icmpErrors icmpCounts
	refusals   allRefusals

	mu     sync.Mutex // guards what follows
	errnos []string   // names of the errors that packets were refused with
}

func newSender(e *Sockets) *sender {
	s := &sender{end: e, gaps: measure.NewHistogram(e.order.Flow.Streams), schedules: e.order.Schedules()}
	if s.schedules[1].Due != nil {
		s.late = measure.NewHistogram(e.order.Flow.Streams)
	}
	if e.order.Flow.Profile != nil {
		s.asked = measure.NewHistogram(e.order.Flow.Streams)
	}
	s.refusals.streams = int32(len(e.living))
	for _, i := range e.living {
		s.streams = append(s.streams, &sendStream{
			sender: s, stream: i, segments: e.settings.flow.Segments, refusals: refusals{all: &s.refusals},
			list: model.MarksWriter{Limit: e.order.ListBytes() / e.order.Flow.Streams},
		})
	}
	return s
}

func (s *sender) run(func()) error {
	if workers := s.end.engine.config.Workers; workers != nil {
		return workers.send(s)
	}
	return s.runOnThreads()
}

// runOnThreads sends each stream on a thread of its own. All threads begin at the same moment.
func (s *sender) runOnThreads() error {
	var ready sync.WaitGroup
	var begin int64
	var set sync.Once
	ready.Add(len(s.streams))
	return s.end.eachOnThread(func(i int, warnings model.Reasons) error {
		w := s.streams[i]
		w.warnings = warnings
		w.prepare(false)
		ready.Done()
		ready.Wait()
		set.Do(func() { // by a thread that can begin at once
			begin = w.clock.Now()
			s.start = begin + s.end.order.Timing.Warmup().Nanoseconds()
		})
		return w.sendAlone(begin)
	})
}

func (s *sender) count() (n engine.Snapshot) {
	for _, w := range s.streams {
		n.Packets += w.attempted.Load()
	}
	n.Bytes = n.Packets * uint64(s.end.settings.flow.PayloadBytes)
	for i := range s.end.silent {
		if s.end.silent[i].Load() {
			n.Silent++
		}
	}
	return n
}

// lateTime adds up what the streams' threads did while they were late; nil if the system does not tell.
func (s *sender) lateTime() *engine.LateTime {
	var sum engine.LateTime
	for _, w := range s.streams {
		if w.late > 0 { // else another stream of the thread was
			sum = sum.Plus(w.behind)
		}
	}
	if sum.Nanos == 0 {
		return nil
	}
	return &sum
}

func (s *sender) account(r *engine.Report, _ engine.Sent) {
	all := s.end.order.Flow.Streams
	out := &engine.SendReport{Errors: map[string]uint64{}, Errnos: slices.Clone(s.errnos), Streams: make([]uint64, all),
		Refused: make([]model.Marks, all)}
	for _, w := range s.streams {
		attempted := w.attempted.Load()
		out.Planned += w.planned
		out.Attempted += attempted
		out.Accepted += w.accepted
		out.Streams[w.stream] = attempted
		out.BurstMax = max(out.BurstMax, w.burstMax)
		out.Late += w.late
		out.Held += w.held
		out.HeldNanos = max(out.HeldNanos, w.heldNanos)
		out.DurationNanos = max(out.DurationNanos, w.ended-s.start)
		r.CPU.ThreadRatio = max(r.CPU.ThreadRatio, w.threadRatio)
		for mark, n := range w.byMark {
			if n > 0 {
				out.Errors[s.errnos[mark]] += n
			}
		}
		out.Refused[w.stream] = w.list.Marks()
		out.Retried += w.retried
		for step, n := range w.steps {
			for len(out.PerStep) <= step {
				out.PerStep = append(out.PerStep, 0)
			}
			out.PerStep[step] += n
		}
		out.WarmupSent += w.warmupSent
		out.Hopeless = out.Hopeless || w.gaveUp
		out.HopelessNanos = max(out.HopelessNanos, w.hopelessNanos)
		r.Warnings = append(r.Warnings, w.warnings...)
	}
	if granted, asked := s.streams[0].granted, s.streams[0].asked; granted > 0 && granted < asked &&
		s.end.settings.flow.SendBuffer > 0 {
		r.Warnings = append(r.Warnings, bufferCut(model.SendBufferCut, granted, asked))
	}
	out.Moved, _ = s.end.Moves()
	for i := range out.Moved {
		out.Moved[i].Nanos -= s.start
	}
	for _, w := range s.streams {
		if !w.silent {
			continue
		}
		out.Silent++
		if p := &w.phases[1]; p.Paced { // what it had left while others went on
			left := p.Pacer.Planned(out.DurationNanos) - w.planned
			out.Planned, out.SlotsSilent = out.Planned+left, out.SlotsSilent+left
		}
	}
	out.BufferBytes = s.streams[0].granted
	// The series covers the measured part, also seconds in which nothing was due.
	whole := min(out.DurationNanos, s.end.order.Timing.Measure().Nanoseconds())
	for int64(len(out.PerStep))*engine.StepNanos < whole {
		out.PerStep = append(out.PerStep, 0)
	}
	r.Warnings = append(r.Warnings, s.icmpErrors.warnings()...)
	out.ICMP = s.icmpErrors.list()
	out.Gap, out.GapCounts = s.gaps.Percentiles(), s.gaps.Buckets()
	if s.late != nil {
		out.Lateness = s.late.Percentiles()
	}
	if out.Late > 0 {
		out.LateTime = s.lateTime()
	}
	if s.asked != nil {
		out.Asked = &engine.AskedSends{Gap: s.asked.Percentiles(), GapCounts: s.asked.Buckets()}
	}
	r.Send = out
}
