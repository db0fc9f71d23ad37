package udp

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"pelt/engine"
	"pelt/measure"
	"pelt/model"
	"pelt/pace"
)

const (
	// A batch is at most maxBatch packets and batchBytes long: more saves
	// nothing, and all packets of a batch carry one send time.
	maxBatch   = 64
	batchBytes = 1 << 20
	allBatches = 8 << 20 // of all streams of an end
	// sharedBatch is how much shorter a batch of one of many streams is.
	sharedBatch = 4
	// consentEvery is how often a sending listener looks for repeated consent messages.
	consentEvery = 100_000_000
	// faultsEvery is how often a sender reads its socket's error queue when no
	// error makes it.
	faultsEvery = 10_000_000
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
	streams []*sending
	gaps    *measure.Histogram
	late    *measure.Histogram // of a paced flow; else nil
	asked   *measure.Histogram // of a flow with a profile; else nil
	clocks  [2]pace.Clock      // of a paced flow, by phase: each stream takes one apart
	start   int64              // of the measured part

	faults faultBook

	mu     sync.Mutex // guards what follows
	steps  []uint64
	errnos []string // names of the errors that packets were refused with
}

func newSender(e *Sockets) *sender {
	s := &sender{end: e, gaps: measure.NewHistogram(len(e.wires)), clocks: clocksOf(e.order.Flow, e.order.Timing)}
	if s.clocks[1] != nil {
		s.late = measure.NewHistogram(len(e.wires))
	}
	if e.order.Flow.Profile != nil {
		s.asked = measure.NewHistogram(1)
	}
	for i := range e.wires {
		s.streams = append(s.streams, &sending{sender: s, stream: i, segments: e.settings.segments, list: model.MarksWriter{Limit: allRefused / len(e.wires)}})
	}
	return s
}

// sending is one stream's sender; its fields belong to its thread.
type sending struct {
	_      padding
	sender *sender
	stream int
	wire   wire
	out    outbox
	bytes  [][]byte
	waiter *waiter
	clock  engine.Clock
	shared bool // one of Workers sends: it waits for no single stream

	segments int // packets that go to the kernel as one buffer
	trial    uint16
	sequence uint64 // of the next packet, in each phase from 0
	measured bool
	answerAt int64 // when to look for consent messages next
	faultsAt int64 // when to read the error queue next
	refusals refusals

	phases            [2]phase // the warm-up, and the measured part
	planned, accepted uint64
	attempted         atomic.Uint64 // published after each call
	warmupSent        uint64
	late, held        uint64 // slots given up in the measured part
	blocked           int64  // ns that the socket had no room, since the pacer was told
	heldNanos         int64  // ns that it had none in the measured part
	times             threadTimes
	retried           uint64
	list              model.MarksWriter // refused sequences
	byMark            []uint64          // packets refused, by index of the sender's errnos
	lastErr           error             // that a packet was refused with
	lastMark          uint16            // its index
	burstMax          int
	lastSend          int64 // when the packet before left; 0 for none
	ended             int64
	threadRatio       float64
	warning           string
	granted, asked    int  // bytes of send buffer
	gaveUp            bool // every packet was refused

	step   int64
	stepTo int64
	inStep uint64
	_      padding
}

// phase is one part of a trial as one stream is to send it.
type phase struct {
	pacer  pace.Pacer
	length int64 // ns
	paced  bool
}

func (s *sender) run(func()) error {
	defer s.ask()
	if workers := s.end.engine.config.Workers; workers != nil {
		return workers.send(s)
	}
	return s.alone()
}

// mostAsked bounds the gaps that are computed anew after a trial: their
// distribution is known to a thousandth then.
const mostAsked = 1 << 18

// ask gathers the gaps that a profile asked of what was planned.
func (s *sender) ask() {
	if s.asked == nil {
		return
	}
	for i, w := range s.streams {
		pace.Gaps(pace.Apart(s.clocks[1]), uint64(i), uint64(len(s.streams)), w.planned, mostAsked/uint64(len(s.streams)),
			func(nanos int64) { s.asked.Record(0, nanos, 1) })
	}
}

// take returns how many packets may leave now, and keeps how late they and those
// given up are. times are those of the thread.
func (w *sending) take(p *pace.Pacer, start, now int64, times *threadTimes) int {
	p.Blocked(w.blocked)
	w.blocked = 0
	lateBefore, _ := p.GivenUp()
	n, first := p.Take(now - start)
	if late, _ := p.GivenUp(); late > lateBefore {
		times.fellBehind(now)
	}
	if w.measured {
		for i := range n {
			w.sender.late.Record(w.stream, now-start-p.Due(first+i), 1)
		}
		w.burstMax = max(w.burstMax, int(n))
		w.late, w.held = p.GivenUp()
	}
	return int(n)
}

// waited accounts for time in which the socket had no room.
func (w *sending) waited(nanos int64) {
	w.blocked += nanos
	if w.measured {
		w.heldNanos += nanos
	}
}

// alone gives each stream a thread.
func (s *sender) alone() error {
	errs := make([]error, len(s.streams))
	var ready, done sync.WaitGroup
	gate := make(chan int64)
	for i, w := range s.streams {
		ready.Add(1)
		done.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with its timer slack and pinning
			w.prepare(i)
			if err := ownThread(coreOf(s.end.order.CPU, i)); err != nil {
				w.warning = fmt.Sprintf("the thread of stream %d could not be set up: %v", i, err)
			}
			ready.Done()
			if errs[i] = w.work(<-gate); errs[i] != nil {
				s.end.stop.set()
			}
		})
	}
	ready.Wait()
	begin := s.end.settings.clock.Now()
	s.start = begin + s.end.order.Timing.Warmup().Nanoseconds()
	for range s.streams {
		gate <- begin
	}
	done.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *sending) prepare(i int) {
	e := w.sender.end
	w.wire, w.clock = e.wires[i], e.settings.clock
	batch := batchOf(e.settings.payloadBytes, len(e.wires), w.segments)
	if w.shared { // others wait meanwhile
		batch = max(batch/sharedBatch/w.segments, 1) * w.segments
	}
	w.out = w.wire.outbox(e.settings.payloadBytes, batch, w.segments)
	w.bytes = w.out.packets()
	w.granted, w.asked = w.wire.bufferBytes()
	w.waiter = newWaiter(e.stop, w.clock)
	patience := e.order.Timing.Patience()
	w.refusals.passing, w.refusals.patient = patience.Nanoseconds(), patience > 0
	for i, warmup := range []bool{true, false} {
		p := &w.phases[i]
		p.pacer, p.length, p.paced = pacing(w.sender.clocks[i], e.order.Flow, e.order.Timing, warmup, w.stream, w.segments)
	}
}

// coreOf returns the core of a stream's thread, -1 for any.
func coreOf(first, stream int) int {
	if first < 0 {
		return -1
	}
	return (first + stream) % runtime.NumCPU()
}

// work sends the warm-up and, seamlessly, the measured part.
func (w *sending) work(begin int64) error {
	o := w.sender.end.order
	warm := o.Timing.Warmup().Nanoseconds()
	if warm > 0 {
		w.trial = o.Trial ^ engine.WarmupBit
		ok, err := w.phase(&w.phases[0], begin)
		if w.warmupSent = w.sequence; !ok || err != nil {
			return err
		}
	}
	w.trial, w.sequence, w.measured, w.lastSend = o.Trial, 0, true, 0
	start := begin + warm
	w.stepTo = start + engine.StepNanos
	cpu, known := threadNanos()
	w.times.begin(start)
	_, err := w.phase(&w.phases[1], start)
	w.ended = w.clock.Now()
	w.readFaults(nil)
	if used, ok := threadNanos(); ok && known && w.ended > start {
		w.threadRatio = float64(used-cpu) / float64(w.ended-start)
	}
	w.times.end()
	w.flush()
	return err
}

// phase sends from start; whole is false if it was stopped.
func (w *sending) phase(p *phase, start int64) (whole bool, err error) {
	if !p.paced {
		return w.flood(start, start+p.length)
	}
	return w.pace(&p.pacer, start, p.length)
}

// share is how many packets of a flow with a number of them are this stream's.
func (w *sending) share() uint64 {
	f := w.sender.end.order.Flow
	if !w.measured || f.Packets == 0 {
		return math.MaxUint64
	}
	n, streams := f.Packets, uint64(f.Streams)
	if rest := n % streams; uint64(w.stream) < rest {
		return n/streams + 1
	}
	return n / streams
}

func (w *sending) pace(p *pace.Pacer, start, length int64) (whole bool, err error) {
	if w.measured {
		w.planned = p.Slots()
	}
	now := w.clock.Now()
	for {
		at, ok := p.Next()
		if !ok {
			at = length // after the last slot its time runs to the end
		}
		if start+at > now {
			w.times.onTime(now)
		}
		now, whole = w.waiter.until(start + at)
		if !whole {
			if w.measured {
				w.planned = p.Planned(now - start)
			}
			return false, nil
		}
		if !ok {
			return true, nil
		}
		for n := w.take(p, start, now, &w.times); n > 0 && err == nil; {
			k, before := min(n, len(w.bytes)), w.sequence
			now, err = w.emit(k, now, start+length)
			sent := int(w.sequence - before)
			if n -= sent; sent < k && err == nil { // told to stop, or out of time, while there was no room
				w.hold(p, n)
				break
			}
		}
		if err != nil {
			return false, err
		}
		w.attendTo(now)
	}
}

// hold gives up packets that found no room until the end of the phase.
func (w *sending) hold(p *pace.Pacer, n int) {
	p.Hold(uint64(n))
	if w.measured {
		_, w.held = p.GivenUp()
	}
}

// flood sends as fast as the kernel takes packets.
func (w *sending) flood(now, end int64) (whole bool, err error) {
	if now, whole = w.waiter.until(now); !whole {
		return false, nil
	}
	if w.measured {
		w.burstMax = len(w.bytes)
	}
	for share := w.share(); now < end && w.sequence < share; {
		if w.waiter.stop.isSet() {
			whole = false
			break
		}
		if now, err = w.emit(int(min(uint64(len(w.bytes)), share-w.sequence)), now, end); err != nil {
			break
		}
		w.attendTo(now)
	}
	if w.measured {
		w.planned = w.attempted.Load()
	}
	return whole && err == nil, err
}

// attendTo reads what has come back, and answers consent messages that were
// repeated because the last answer was lost.
func (w *sending) attendTo(now int64) {
	if now >= w.faultsAt {
		w.faultsAt = now + faultsEvery
		w.readFaults(nil)
	}
	e := w.sender.end
	if !e.order.Listen || now < w.answerAt {
		return
	}
	w.answerAt = now + consentEvery
	for range 16 {
		d, err := w.wire.read(0)
		if err != nil || d.nanos == 0 || !e.answer(w.stream, w.wire, d.whole()) {
			return
		}
	}
}

func (s *sender) count() (n engine.Snapshot) {
	for _, w := range s.streams {
		n.Packets += w.attempted.Load()
	}
	n.Bytes = n.Packets * uint64(s.end.settings.payloadBytes)
	return n
}

// lateTime sums up the streams' threads; nil if the system does not tell.
func (s *sender) lateTime() *engine.LateTime {
	var sum engine.LateTime
	for _, w := range s.streams {
		sum.Nanos += w.times.behind.Nanos
		sum.RunNanos += w.times.behind.RunNanos
		sum.WaitNanos += w.times.behind.WaitNanos
	}
	if sum.Nanos == 0 {
		return nil
	}
	return &sum
}

func (s *sender) account(r *engine.Report, _ engine.Sent) {
	out := &engine.SendReport{Errors: map[string]uint64{}, PerStep: slices.Clone(s.steps), Errnos: slices.Clone(s.errnos)}
	for _, w := range s.streams {
		attempted := w.attempted.Load()
		out.Planned += w.planned
		out.Attempted += attempted
		out.Accepted += w.accepted
		out.Streams = append(out.Streams, attempted)
		out.BurstMax = max(out.BurstMax, w.burstMax)
		out.Late += w.late
		out.Held += w.held
		out.HeldNanos = max(out.HeldNanos, w.heldNanos)
		out.DurationNanos = max(out.DurationNanos, w.ended-s.start)
		r.CPU.ThreadRatio = max(r.CPU.ThreadRatio, min(w.threadRatio, 1))
		for mark, n := range w.byMark {
			if n > 0 {
				out.Errors[s.errnos[mark]] += n
			}
		}
		out.Refused = append(out.Refused, w.list.Marks())
		out.Retried += w.retried
		out.WarmupSent += w.warmupSent
		out.Hopeless = out.Hopeless || w.gaveUp
		if w.warning != "" {
			r.Warnings = append(r.Warnings, w.warning)
		}
	}
	if granted, asked := s.streams[0].granted, s.streams[0].asked; granted > 0 && granted < asked && s.end.settings.sendRoom > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the system granted a send buffer of %d of %d B: raise net.core.wmem_max", granted, asked))
	}
	out.BufferBytes = s.streams[0].granted
	// The series covers the measured part, also seconds in which nothing was due.
	whole := min(out.DurationNanos, s.end.order.Timing.Measure().Nanoseconds())
	for int64(len(out.PerStep))*engine.StepNanos < whole {
		out.PerStep = append(out.PerStep, 0)
	}
	if n := s.end.settings.segments; n > 1 {
		out.Segments = n
	}
	faults, warnings := s.faults.account()
	out.ICMP, r.Warnings = faults, append(r.Warnings, warnings...)
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
