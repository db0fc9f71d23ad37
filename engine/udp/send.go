package udp

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"pelt/engine"
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
	end     *end
	streams []*sending
	gaps    engine.Histogram
	late    engine.Histogram // of a flow with a profile, as asked is; else nil
	asked   engine.Histogram
	clocks  [2]pace.Clock // of a flow with a profile, by phase: each stream takes one apart
	start   int64         // of the measured part

	faults faultBook

	mu     sync.Mutex // guards what follows
	steps  []uint64
	errnos []string // names of the errors that packets were refused with
}

func newSender(e *end) *sender {
	s := &sender{end: e, gaps: e.engine.config.NewHistogram(len(e.wires)), clocks: clocksOf(e.order.Flow, e.order.Timing)}
	if e.order.Flow.Profile != nil {
		s.late, s.asked = e.engine.config.NewHistogram(len(e.wires)), e.engine.config.NewHistogram(1)
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
	clock  clock
	shared bool // a crew's thread sends: it waits for no single stream

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
	pacer  pacer
	length int64 // ns
	paced  bool
}

func (s *sender) run() error {
	defer s.ask()
	if crew := s.end.engine.config.Crew; crew != nil {
		return crew.send(s)
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

// tookLate accounts for packets whose first was due at a time.
func (w *sending) tookLate(n int, due, now int64) {
	if w.measured && w.sender.late != nil {
		w.sender.late.Record(w.stream, now-due, int64(n))
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
				s.end.bell.ring()
			}
		})
	}
	ready.Wait()
	begin := s.end.settings.clock.now()
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
	w.out = w.wire.outbox(e.settings.payloadBytes, batch, w.segments, !w.shared)
	w.bytes = w.out.packets()
	w.granted, w.asked = w.wire.bufferBytes()
	w.waiter = newWaiter(e.bell, w.clock)
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
	_, err := w.phase(&w.phases[1], start)
	w.ended = w.clock.now()
	w.readFaults(nil)
	if used, ok := threadNanos(); ok && known && w.ended > start {
		w.threadRatio = float64(used-cpu) / float64(w.ended-start)
	}
	w.flush()
	return err
}

// phase sends from start; whole is false if the bell ended it.
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

func (w *sending) pace(p *pacer, start, length int64) (whole bool, err error) {
	if w.measured {
		w.planned = p.slots
	}
	for {
		at, ok := p.deadline()
		if !ok {
			at = length // after the last slot its time runs to the end
		}
		now, silent := w.waiter.until(start + at)
		if !silent {
			if w.measured {
				w.planned = p.count(now - start)
			}
			return false, nil
		}
		if !ok {
			return true, nil
		}
		n := int(min(p.take(now-start), math.MaxInt32))
		w.tookLate(n, start+at, now)
		if w.measured {
			w.burstMax = max(w.burstMax, n)
		}
		for n > 0 && err == nil {
			k, before := min(n, len(w.bytes)), w.sequence
			now, err = w.emit(k, now, start+length)
			if w.sequence-before < uint64(k) {
				break // told to stop, or out of time, while there was no room
			}
			n -= k
		}
		if err != nil {
			return false, err
		}
		w.attendTo(now)
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
		if w.waiter.bell.rang() {
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

func (s *sender) sample() (packets, bytes uint64) {
	for _, w := range s.streams {
		packets += w.attempted.Load()
	}
	return packets, packets * uint64(s.end.settings.payloadBytes)
}

func (s *sender) heard() uint64 { return 0 }

// fulfilled is never true before a sender's run has ended by itself, after
// which a stop is not told apart from the clean-up.
func (s *sender) fulfilled() bool {
	select {
	case <-s.end.ran:
		return true
	default:
		return false
	}
}

func (s *sender) report(r *engine.Report) {
	out := &engine.SendReport{Errors: map[string]uint64{}, PerStep: slices.Clone(s.steps), Errnos: slices.Clone(s.errnos)}
	for _, w := range s.streams {
		attempted := w.attempted.Load()
		out.Planned += w.planned
		out.Attempted += attempted
		out.Accepted += w.accepted
		out.Streams = append(out.Streams, attempted)
		out.BurstMax = max(out.BurstMax, w.burstMax)
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
	if s.asked != nil {
		out.Asked = &engine.AskedSends{Gap: s.asked.Percentiles(), GapCounts: s.asked.Buckets(), Late: s.late.Percentiles()}
	}
	r.Send = out
}
