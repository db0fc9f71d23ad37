package udp

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"pelt/engine"
	"pelt/unit"
)

const (
	// A batch is at most maxBatch packets and batchBytes long: more saves
	// nothing, and all packets of a batch carry one send time.
	maxBatch   = 64
	batchBytes = 1 << 20
	allBatches = 8 << 20 // of all streams of an end
	// consentEvery is how often a sending listener looks for repeated consent messages.
	consentEvery = 100_000_000
)

func batchOf(payloadBytes, streams int) int {
	return max(min(maxBatch, min(batchBytes, allBatches/streams)/payloadBytes), 1)
}

// padding keeps what different threads write in different cache lines.
type padding [128]byte

// sender sends the packets of all streams.
type sender struct {
	end     *end
	streams []*sending
	gaps    engine.Histogram
	start   int64 // of the measured part

	mu    sync.Mutex // guards steps
	steps []uint64
}

func newSender(e *end) *sender {
	s := &sender{end: e, gaps: e.engine.config.NewHistogram(len(e.wires))}
	for i := range e.wires {
		s.streams = append(s.streams, &sending{sender: s, stream: i, errors: map[string]uint64{}})
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

	trial    uint16
	sequence uint64 // of the next packet, in each phase from 0
	measured bool
	answerAt int64 // when to look for consent messages next
	refusals refusals

	planned, accepted uint64
	attempted         atomic.Uint64 // published after each call
	errors            map[string]uint64
	burstMax          int
	lastSend          int64 // when the packet before left; 0 for none
	ended             int64
	threadRatio       float64
	warning           string
	gaveUp            bool // every packet was refused

	step   int64
	stepTo int64
	inStep uint64
	_      padding
}

func (s *sender) run() error {
	errs := make([]error, len(s.streams))
	var ready, done sync.WaitGroup
	gate := make(chan int64)
	for i, w := range s.streams {
		ready.Add(1)
		done.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with its timer slack and pinning
			w.prepare(i)
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
	w.out = w.wire.outbox(e.settings.payloadBytes, batchOf(e.settings.payloadBytes, len(e.wires)))
	w.bytes = w.out.packets()
	w.waiter = newWaiter(e.bell, w.clock)
	if err := ownThread(coreOf(e.order.CPU, i)); err != nil {
		w.warning = fmt.Sprintf("the thread of stream %d could not be set up: %v", i, err)
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
	warm, measure := o.Timing.Warmup().Nanoseconds(), o.Timing.Measure().Nanoseconds()
	if warm > 0 {
		w.trial = o.Trial ^ engine.WarmupBit
		if ok, err := w.phase(begin, warm); !ok || err != nil {
			return err
		}
	}
	w.trial, w.sequence, w.measured, w.lastSend = o.Trial, 0, true, 0
	start := begin + warm
	w.stepTo = start + engine.StepNanos
	cpu, known := threadNanos()
	_, err := w.phase(start, measure)
	w.ended = w.clock.now()
	if used, ok := threadNanos(); ok && known && w.ended > start {
		w.threadRatio = float64(used-cpu) / float64(w.ended-start)
	}
	w.flush()
	return err
}

// phase sends from start for the given time; whole is false if the bell ended it.
func (w *sending) phase(start, length int64) (whole bool, err error) {
	f := w.sender.end.order.Flow
	schedule, paced := f.Rate.Schedule(f.PayloadBytes)
	if !paced {
		return w.flood(start, start+length)
	}
	return w.pace(schedule, start, length)
}

func (w *sending) pace(schedule unit.Schedule, start, length int64) (whole bool, err error) {
	f := w.sender.end.order.Flow
	p := newPacer(schedule, w.stream, f.Streams, burstOf(f.Burst, schedule.PPS()/float64(f.Streams)), length)
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
				w.planned = p.own(min(schedule.Count(length), schedule.Count(now-start)))
			}
			return false, nil
		}
		if !ok {
			return true, nil
		}
		n := int(min(p.take(now-start), math.MaxInt32))
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
	for now < end {
		if w.waiter.bell.rang() {
			whole = false
			break
		}
		if now, err = w.emit(len(w.bytes), now, end); err != nil {
			break
		}
		w.attendTo(now)
	}
	if w.measured {
		w.planned = w.attempted.Load()
	}
	return whole && err == nil, err
}

// emit sends up to n packets, all stamped with the time now, and returns the
// time after. Every packet that it counts as attempted was accepted or refused.
// It gives up on what the kernel has no room for when the bell rings or at the end.
func (w *sending) emit(n int, now, end int64) (int64, error) {
	for i := range n {
		engine.PutHeader(w.bytes[i], engine.Header{Trial: w.trial, Sequence: w.sequence + uint64(i), SendNanos: uint64(now)})
	}
	for from := 0; from < n; {
		to := n
		if w.refusals.single > 0 {
			// sendmmsg hides the error of all but its first packet: after a
			// refusal packets go one by one, so that each has its own answer.
			to = from + 1
			w.refusals.single--
		}
		before := now
		sent, err := w.out.send(from, to)
		now = w.clock.now()
		if sent > 0 {
			w.took(sent, before, now)
			from += sent
		}
		switch {
		case err == nil:
			if from < to {
				w.refusals.single = oneByOne
			}
		case temporary(err):
			if now >= end || w.waiter.bell.rang() {
				return now, nil
			}
		default:
			from++
			if err := w.refused(err, now); err != nil {
				return now, err
			}
		}
	}
	return now, nil
}

// took accounts for packets that one call gave to the kernel between two times.
func (w *sending) took(n int, from, to int64) {
	w.sequence += uint64(n)
	w.refusals.row = 0
	if !w.measured {
		return
	}
	w.accepted += uint64(n)
	w.attempted.Store(w.sequence)
	// Packets of one call are taken to leave evenly while it lasts.
	each := (to - from) / int64(n)
	if w.lastSend != 0 {
		w.sender.gaps.Record(w.stream, from-w.lastSend, 1)
	}
	if n > 1 {
		w.sender.gaps.Record(w.stream, each, int64(n-1))
	}
	w.lastSend = from + each*int64(n-1)
	w.count(uint64(n), from)
}

// refused accounts for one packet that the kernel did not take.
func (w *sending) refused(err error, now int64) error {
	w.sequence++
	if w.measured {
		w.attempted.Store(w.sequence)
		w.errors[causeName(err)]++
		w.count(1, now)
	}
	e := w.sender.end
	if w.refusals.hopeless(err, now) {
		w.gaveUp = true
		return fmt.Errorf("send %d B to %v: every packet is refused: %w%s", e.settings.payloadBytes, e.order.Peer, err, remedy(err, w.wire.pathMTU()))
	}
	if w.refusals.row >= hopelessRow {
		w.waiter.nap(refusedNap)
	}
	return nil
}

// count adds packets to the series.
func (w *sending) count(n uint64, at int64) {
	if at >= w.stepTo {
		w.flush()
		w.step = max(at-w.sender.start, 0) / engine.StepNanos
		w.stepTo = w.sender.start + (w.step+1)*engine.StepNanos
	}
	w.inStep += n
}

func (w *sending) flush() {
	s := w.sender
	s.mu.Lock()
	defer s.mu.Unlock()
	for int64(len(s.steps)) <= w.step {
		s.steps = append(s.steps, 0)
	}
	s.steps[w.step] += w.inStep
	w.inStep = 0
}

// attendTo answers consent messages that were repeated because the last answer was lost.
func (w *sending) attendTo(now int64) {
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
	out := &engine.SendReport{Errors: map[string]uint64{}, PerStep: slices.Clone(s.steps)}
	for _, w := range s.streams {
		attempted := w.attempted.Load()
		out.Planned += w.planned
		out.Attempted += attempted
		out.Accepted += w.accepted
		out.Streams = append(out.Streams, attempted)
		out.BurstMax = max(out.BurstMax, w.burstMax)
		out.DurationNanos = max(out.DurationNanos, w.ended-s.start)
		r.CPU.ThreadRatio = max(r.CPU.ThreadRatio, min(w.threadRatio, 1))
		for name, n := range w.errors {
			out.Errors[name] += n
		}
		out.Hopeless = out.Hopeless || w.gaveUp
		if w.warning != "" {
			r.Warnings = append(r.Warnings, w.warning)
		}
	}
	// The series covers the measured part, also seconds in which nothing was due.
	whole := min(out.DurationNanos, s.end.order.Timing.Measure().Nanoseconds())
	for int64(len(out.PerStep))*engine.StepNanos < whole {
		out.PerStep = append(out.PerStep, 0)
	}
	out.Gap, out.GapCounts = s.gaps.Percentiles(), s.gaps.Buckets()
	r.Send = out
}
