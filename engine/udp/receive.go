package udp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"pelt/engine"
	"pelt/model"
)

// receiver counts the packets of all streams.
type receiver struct {
	end     *end
	made    time.Time
	meter   engine.Meter
	streams []*receiving
	idle    atomic.Int32  // streams that nobody reads yet
	reading chan struct{} // closed when idle is 0
	// Guarded by end.mu:
	cutOff    bool     // the drain was over while packets still came
	attempted []uint64 // by each stream of the sender; nil until it is told
}

// receiving is one stream's receiver; its fields belong to its thread.
type receiving struct {
	_        padding
	receiver *receiver
	stream   int
	in       inbox
	batch    []model.Arrival
	ours     uint64        // datagrams of the trial in this batch, warm-up included
	seen     atomic.Uint64 // ... in all, published after each batch

	foreign, unread uint64
	warmup          uint64
	drops           dropAccount
	begun           bool
	cpuFrom, cpuTo  thread
	granted, asked  int // bytes of receive buffer
	truesize        int
	warning         string
	_               padding
}

// thread is a thread's processor time at some time.
type thread struct{ at, used int64 }

func newReceiver(e *end) *receiver {
	f := e.order.Flow
	r := &receiver{end: e, made: time.Now(), reading: make(chan struct{}), meter: e.engine.config.NewMeter(f.Streams, f.PayloadBytes, engine.StepNanos, e.order.OneClock)}
	if e.order.Tap != nil {
		r.meter = e.order.Tap(r.meter)
	}
	r.idle.Store(int32(len(e.wires)))
	for i := range e.wires {
		r.streams = append(r.streams, &receiving{receiver: r, stream: i, batch: make([]model.Arrival, 0, 256)})
	}
	return r
}

// lookUp is how long a receiver waits at most before it does its housekeeping.
const lookUp = 50 * time.Millisecond

func (r *receiver) run() error {
	if crew := r.end.engine.config.Crew; crew != nil {
		return crew.receive(r)
	}
	return r.alone()
}

// alone gives each stream a thread.
func (r *receiver) alone() error {
	errs := make([]error, len(r.streams))
	var done sync.WaitGroup
	for i, w := range r.streams {
		done.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with its timer slack and pinning
			if err := ownThread(coreOf(r.end.order.CPU, i)); err != nil {
				w.warning = fmt.Sprintf("the thread of stream %d could not be set up: %v", i, err)
			}
			w.open()
			if errs[i] = w.work(); errs[i] != nil {
				r.end.bell.ring()
			}
		})
	}
	done.Wait()
	return errors.Join(errs...)
}

// cpuEvery is how often a receiver reads its own processor time.
const cpuEvery = 50_000_000

// open makes the socket ready to be read.
func (w *receiving) open() {
	e := w.receiver.end
	w.granted, w.asked = e.wires[w.stream].bufferBytes()
	w.in = e.wires[w.stream].inbox(e.bell)
	m, known := w.in.memory()
	known = known && !e.settings.joined // the kernel counts what is joined once
	w.drops.before, w.drops.known, w.drops.cold = m.dropped, known, e.order.Timing.Warmup() == 0
}

// first is called by the thread that reads the stream from now on. It takes what came
// before the end was run.
func (w *receiving) first() {
	if w.receiver.idle.Add(-1) == 0 {
		close(w.receiver.reading)
	}
	if got := w.receiver.end.early[w.stream : w.stream+1]; got[0].nanos != 0 {
		w.step(got)
	}
}

func (w *receiving) work() error {
	w.first()
	for !w.receiver.end.bell.rang() {
		got, err := w.in.receive(lookUp)
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("receive: %w", err)
		}
		// Any other error is an ICMP message for something this end answered.
		if len(got) > 0 {
			w.step(got)
		}
	}
	w.close()
	return nil
}

// step accounts for what was read, which must be something.
func (w *receiving) step(got []datagram) {
	w.sort(got)
	if now := got[len(got)-1].nanos; len(w.batch) > 0 && (!w.begun || now-w.cpuTo.at > cpuEvery) {
		w.readThread(now)
	}
	w.receiver.meter.Observe(w.stream, w.batch)
	w.seen.Add(w.ours)
}

// close ends the stream's account.
func (w *receiving) close() {
	if w.begun {
		w.readThread(w.receiver.end.settings.clock.now())
	}
	if m, ok := w.in.memory(); ok {
		w.drops.after = m.dropped
	}
	w.truesize = w.in.truesize()
	w.sweep()
}

func (w *receiving) readThread(now int64) {
	used, _ := threadNanos()
	w.cpuTo = thread{now, used}
	if !w.begun {
		w.begun, w.cpuFrom = true, w.cpuTo
	}
}

// sort puts the measured packets into the batch and deals with the others.
func (w *receiving) sort(got []datagram) {
	e := w.receiver.end
	w.batch, w.ours = w.batch[:0], 0
	for i := range got {
		d := &got[i]
		h, ok := engine.ParseHeader(d.head)
		switch {
		case ok && h.Trial == e.order.Trial:
			if !w.drops.begun {
				w.drops.begin(d.dropped, h.Sequence)
			}
			w.ours++
			w.batch = append(w.batch, model.Arrival{Sequence: h.Sequence, SendNanos: h.SendNanos, ReceiveNanos: d.nanos, Bytes: d.bytes})
		case ok && h.Trial == e.order.Trial^engine.WarmupBit:
			w.ours++
			w.warmup++
			w.drops.warm(d.dropped)
		case e.order.Listen && e.answer(w.stream, e.wires[w.stream], d.whole()):
		default:
			if m, isConsent := parseConsent(d.head); !isConsent || m.trial != e.order.Trial {
				w.foreign++
			}
		}
	}
}

// sweep counts what the end came too early for.
func (w *receiving) sweep() {
	empty(w.in, func(got []datagram) {
		w.sort(got)
		w.unread += uint64(len(w.batch))
	})
}

// mostLeft is far beyond what a socket's usual buffer holds: what is read after that came
// meanwhile, and may never end.
const mostLeft = 1 << 20

// empty reads what a socket holds.
func empty(in inbox, take func([]datagram)) {
	for n := 0; n < mostLeft; {
		got, err := in.receive(0)
		if len(got) == 0 || err != nil {
			return
		}
		n += len(got)
		take(got)
	}
}

// dropAccount tells a socket's drops during the measured part from those before.
// The kernel counts drops for the socket's whole life, and notes with each
// packet how many there were before it (SO_RXQ_OVFL), so that it does not
// matter how long the packet then waited to be read.
type dropAccount struct {
	known         bool
	cold          bool // there is no warm-up: all drops are measured ones
	begun         bool
	before, after uint32 // drops before the measured part, and at the end
}

// warm notes the drops before a warm-up packet.
func (a *dropAccount) warm(dropped uint32) {
	if dropped != 0 && !a.begun {
		a.before = dropped
	}
}

// begin notes the first measured packet. Of the drops since the warm-up
// packet before it, as many were measured ones as sequences are missing.
func (a *dropAccount) begin(dropped uint32, sequence uint64) {
	a.begun = true
	if dropped == 0 || a.cold {
		return // of none in the socket's life before is 0, too
	}
	between := dropped - a.before
	a.before = dropped - uint32(min(uint64(between), sequence))
}

func (a *dropAccount) measured() uint64 {
	if !a.known {
		return 0
	}
	return uint64(a.after - a.before) // modulo 2^32, as the kernel counts
}

// drain waits for packets still on their way; see engine.End.Finish.
func (r *receiver) drain(ctx context.Context, attempted []uint64, unsent uint64) {
	r.end.mu.Lock()
	r.attempted = slices.Clone(attempted)
	r.end.mu.Unlock()
	cut := engine.Drain{
		Time: r.end.order.Timing.Drain(), Quiet: r.end.order.Timing.Quiet(), Want: engine.Left(attempted, unsent), Age: time.Since(r.made), Heard: r.heard, Quit: r.end.bell.rung,
		Received: func() uint64 { n, _ := r.meter.Received(); return n },
	}.Wait(ctx)
	r.end.mu.Lock()
	r.cutOff = cut
	r.end.mu.Unlock()
}

func (r *receiver) heard() (n uint64) {
	for _, w := range r.streams {
		n += w.seen.Load()
	}
	return n
}

func (r *receiver) sample() (packets, bytes uint64) { return r.meter.Received() }

// fulfilled is false: only Finish ends a receiver in order, and it rings the bell itself.
func (r *receiver) fulfilled() bool { return false }

func (r *receiver) report(out *engine.Report) {
	rec := &engine.ReceiveReport{Tally: r.meter.Tally(), SocketKnown: true}
	for i, w := range r.streams {
		rec.SocketDrops += w.drops.measured()
		rec.SocketKnown = rec.SocketKnown && w.drops.known
		rec.Foreign += w.foreign
		rec.Unread += w.unread
		rec.WarmupReceived += w.warmup
		rec.TruesizeBytes = max(rec.TruesizeBytes, w.truesize)
		if i == 0 {
			rec.BufferBytes = w.granted
		}
		if span := w.cpuTo.at - w.cpuFrom.at; span > 0 {
			out.CPU.ThreadRatio = max(out.CPU.ThreadRatio, min(float64(w.cpuTo.used-w.cpuFrom.used)/float64(span), 1))
		}
		if w.warning != "" {
			out.Warnings = append(out.Warnings, w.warning)
		}
	}
	r.end.mu.Lock()
	if rec.MissingKnown = len(r.attempted) == len(r.streams); rec.MissingKnown {
		for i, n := range r.attempted {
			rec.Missing = append(rec.Missing, r.meter.Missing(i, n))
		}
	}
	if r.cutOff {
		out.Warnings = append(out.Warnings, engine.CutOff(r.end.order.Timing.Drain()))
	}
	r.end.mu.Unlock()
	if asked := r.streams[0].asked; rec.BufferBytes > 0 && rec.BufferBytes < asked {
		out.Warnings = append(out.Warnings, fmt.Sprintf("the system granted a receive buffer of %d of %d B: raise net.core.rmem_max", rec.BufferBytes, asked))
	}
	out.Receive = rec
}
