package udp

import (
	"errors"
	"fmt"
	"math"
	"net"
	"sync/atomic"
	"time"

	"pelt/engine"
	"pelt/measure"
	"pelt/model"
	"pelt/unit"
)

// receiver counts the packets of all streams.
type receiver struct {
	end     *Sockets
	meter   engine.Meter
	streams []*receiveStream
	idle    atomic.Int32 // streams that nobody reads yet
	reading func()       // called when idle is 0
}

// receiveStream is one stream's receiver; its fields belong to its thread.
type receiveStream struct {
	_        padding
	receiver *receiver
	stream   int
	in       inbox
	batch    []model.Arrival
	ours     uint64        // datagrams of the trial in this batch, warm-up included
	seen     atomic.Uint64 // ... in all, published after each batch

	unread         uint64
	warmup         uint64
	drops          dropAccount
	cpu            *engine.ThreadUse // since the first measured packet; nil before
	threadRatio    float64
	granted, asked int // bytes of receive buffer
	truesize       int
	warnings       model.Reasons
	done           chan<- error // of a shared thread: told at the end
	_              padding
}

func newReceiver(e *Sockets) *receiver {
	f := e.order.Flow
	r := &receiver{end: e, meter: measure.New(f.Streams, f.PayloadBytes, engine.StepNanos, e.order.OneClock,
		e.order.ListBytes())}
	if e.order.Tap != nil {
		r.meter = e.order.Tap(r.meter)
	}
	r.idle.Store(int32(len(e.living)))
	for _, i := range e.living {
		r.streams = append(r.streams, &receiveStream{receiver: r, stream: i, batch: make([]model.Arrival, 0, 256)})
	}
	return r
}

// lookUp is how long a receiver waits at most before it sees that it was stopped.
const lookUp = 20 * time.Millisecond

func (r *receiver) run(reading func()) error {
	r.reading = reading
	if workers := r.end.engine.config.Workers; workers != nil {
		return workers.receive(r)
	}
	return r.runOnThreads()
}

// runOnThreads reads each stream on a thread of its own.
func (r *receiver) runOnThreads() error {
	return r.end.eachOnThread(func(i int, warnings model.Reasons) error {
		w := r.streams[i]
		w.warnings = warnings
		w.open()
		return w.work()
	})
}

// open makes the socket ready to be read.
func (w *receiveStream) open() {
	e := w.receiver.end
	w.granted, w.asked = e.sockets[w.stream].bufferBytes()
	w.in = e.sockets[w.stream].newInbox()
	m, known := e.sockets[w.stream].memory()
	known = known && !e.settings.flow.Joined // the kernel counts what is joined once
	w.drops.before, w.drops.known, w.drops.cold = m.dropped, known, e.order.Timing.Warmup() == 0
}

// tellReading counts the stream as being read. Its thread calls it before the first read.
func (w *receiveStream) tellReading() {
	if w.receiver.idle.Add(-1) == 0 {
		w.receiver.reading()
	}
}

func (w *receiveStream) work() error {
	w.tellReading()
	for w.receiver.end.stopped.Err() == nil {
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
func (w *receiveStream) step(got []datagram) {
	w.sort(got)
	if len(w.batch) > 0 && w.cpu == nil {
		w.cpu = engine.NewThreadUse(got[len(got)-1].nanos)
	}
	w.drops.note(got[len(got)-1].dropped)
	w.receiver.meter.Observe(w.stream, w.batch)
	w.seen.Add(w.ours)
}

// close ends the stream's account.
func (w *receiveStream) close() {
	w.threadRatio = w.cpu.Share(w.receiver.end.settings.clock.Now())
	if m, ok := w.receiver.end.sockets[w.stream].memory(); ok {
		w.drops.after = m.dropped
	}
	w.truesize = w.in.truesize()
	w.countUnread()
}

// sort puts measured packets into the batch, counts packets of the warm-up, and answers checks of the sender.
func (w *receiveStream) sort(got []datagram) {
	e := w.receiver.end
	w.batch, w.ours = w.batch[:0], 0
	for i := range got {
		d := &got[i]
		h, ok := e.parse(d.head)
		switch {
		case ok && h.Trial == e.order.Trial:
			if !w.drops.begun {
				w.drops.begin(d.dropped, h.Sequence)
			}
			w.ours++
			w.batch = append(w.batch, model.Arrival{Sequence: h.Sequence, SendNanos: h.SendNanos,
				ReceiveNanos: d.nanos, Bytes: d.bytes})
		case ok && h.Trial == e.order.Trial^engine.WarmupBit:
			w.ours++
			w.warmup++
			w.drops.warm(d.dropped)
		case !ok:
			e.answerCheck(w.stream, *d)
		}
	}
}

// mostLeft is far beyond what a socket's usual buffer holds: what is read after that came
// meanwhile, and may never end.
const mostLeft = 1 << 20

// countUnread counts packets that were still in the socket when the receiver stopped. It waits for none.
func (w *receiveStream) countUnread() {
	for n := 0; n < mostLeft; {
		got, err := w.in.receive(0)
		if len(got) == 0 || err != nil {
			return
		}
		n += len(got)
		w.sort(got)
		w.unread += uint64(len(w.batch))
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
	sofar         uint64 // before, and what is known to have been dropped since
}

// note keeps the count on its way from wrap to wrap.
func (a *dropAccount) note(dropped uint32) {
	if wide, ok := unit.Widen(a.sofar, dropped); ok && a.begun && dropped != 0 {
		a.sofar = wide
	}
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
	if dropped != 0 && !a.cold { // of none in the socket's life before is 0, too
		between := dropped - a.before
		a.before = dropped - uint32(min(uint64(between), sequence))
	}
	a.sofar = uint64(a.before)
}

// measured is how many measured packets were dropped, of those that were sent. If none came, the drops since the last
// packet of the warm-up may be of either.
func (a *dropAccount) measured(sent uint64) uint64 {
	if !a.known {
		return 0
	}
	sofar := a.sofar
	if !a.begun {
		sofar = uint64(a.before)
	}
	if wide, ok := unit.Widen(sofar, a.after); ok {
		sofar = wide
	}
	dropped := sofar - uint64(a.before)
	if !a.begun {
		return min(dropped, sent)
	}
	return dropped
}

func (r *receiver) count() (n engine.Snapshot) {
	n.Packets, n.Bytes = r.meter.Received()
	n.Reach = r.meter.Reach()
	for _, w := range r.streams {
		n.Heard += w.seen.Load()
	}
	return n
}

func (r *receiver) account(out *engine.Report, sent engine.Sent) {
	rec := &engine.ReceiveReport{SocketKnown: true}
	if rec.MissingKnown = len(sent.Streams) == r.end.order.Flow.Streams; rec.MissingKnown {
		for i, n := range sent.Streams {
			rec.Missing = append(rec.Missing, r.meter.Missing(i, n))
		}
	}
	rec.Tally = r.meter.Tally()
	for i, w := range r.streams {
		sentHere := uint64(math.MaxUint64)
		if rec.MissingKnown {
			sentHere = sent.Streams[w.stream]
		}
		rec.SocketDrops += w.drops.measured(sentHere)
		rec.SocketKnown = rec.SocketKnown && w.drops.known
		rec.Unread += w.unread
		rec.WarmupReceived += w.warmup
		rec.TruesizeBytes = max(rec.TruesizeBytes, w.truesize)
		if i == 0 {
			rec.BufferBytes = w.granted
		}
		out.CPU.ThreadRatio = max(out.CPU.ThreadRatio, w.threadRatio)
		out.Warnings = append(out.Warnings, w.warnings...)
	}
	if asked := r.streams[0].asked; rec.BufferBytes > 0 && rec.BufferBytes < asked {
		out.Warnings = append(out.Warnings, bufferCut(model.ReceiveBufferCut, rec.BufferBytes, asked))
	}
	rec.Moved, rec.Unmoved = r.end.Moves()
	out.Receive = rec
}

// bufferCut warns that the system granted a smaller buffer than was asked for.
func bufferCut(code string, granted, asked int) model.Reason {
	return model.NewReason(code, "granted_bytes", float64(granted), "asked_bytes", float64(asked))
}
