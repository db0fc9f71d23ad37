package udp

import (
	"math"
	"sync/atomic"

	"pelt/engine"
	"pelt/model"
)

// sendStream sends one stream's packets. Its fields belong to the thread that sends it: the
// stream's own, or a worker that others share.
type sendStream struct {
	_      padding
	sender *sender
	stream int
	socket socket
	out    outbox
	bytes  [][]byte
	clock  engine.Clock
	times  *threadTimes // of the thread
	done   chan<- error // of a shared thread: told at the end

	phases        [2]engine.Phase
	*engine.Phase       // the present one
	start         int64 // of it
	due           int64 // time of the next turn
	now           int64 // as the last turn left it
	last          bool  // no slot is left in the phase
	waiting       int   // packets that are due and found no room yet
	noRoom        int64 // since when the socket has had no room; 0: it has some

	segments int // packets that go to the kernel as one buffer
	trial    uint16
	sequence uint64 // of the next packet, in each phase from 0
	measured bool
	icmpAt   int64 // when to read the error queue next
	refusals refusals

	planned, accepted uint64
	attempted         atomic.Uint64 // published after each call
	warmupSent        uint64
	late, held        uint64          // slots given up in the measured part
	blocked           int64           // ns that the socket had no room, since the pacer was told
	heldNanos         int64           // ns that it had none in the measured part
	behind            engine.LateTime // of the thread in the measured part
	retried           uint64
	list              model.MarksWriter // refused sequences
	byMark            []uint64          // packets refused, by index of the sender's errnos
	lastErr           error             // that a packet was refused with
	lastMark          uint16            // its index
	burstMax          int
	lastSend          int64 // when the packet before left; 0 for none
	ended             int64
	cpu               *engine.ThreadUse // since the measured part began; nil before
	threadRatio       float64
	warnings          model.Reasons
	granted, asked    int   // bytes of send buffer
	gaveUp            bool  // as hopeless
	hopelessNanos     int64 // for which no packet had been taken then; 0: none ever was
	silent            bool  // the receiver's consent was lost
	steps             []uint64
	_                 padding
}

const (
	// noRoomPause is after how long a stream of a shared thread tries again whose socket had no room, in ns.
	noRoomPause = 100_000
	// refusedPause keeps a flood that is only refused from spinning, in ns. What is paced is offered when it is due.
	refusedPause = 1_000_000
)

// prepare makes all that is needed before the first turn. It may take a while. Batches of a
// shared thread are shorter: others wait meanwhile.
func (w *sendStream) prepare(shared bool) {
	e := w.sender.end
	w.socket, w.clock = e.sockets[w.stream], e.settings.clock
	batch := batchOf(e.settings.flow.PayloadBytes, len(e.sockets), w.segments)
	if shared {
		batch = max(batch/sharedBatch/w.segments, 1) * w.segments
	}
	w.out = w.socket.newOutbox(e.settings.flow.PayloadBytes, batch, w.segments)
	w.bytes = w.out.packets()
	w.granted, w.asked = w.socket.bufferBytes()
	patience := e.order.Timing.Patience()
	w.refusals.passing, w.refusals.patient = patience.Nanoseconds(), patience > 0
	var gap func(int64)
	if asked := w.sender.asked; asked != nil {
		gap = func(nanos int64) { asked.Record(w.stream, nanos, 1) }
	}
	w.phases = e.order.Phases(w.sender.schedules, w.stream, w.segments, gap)
}

// sendAlone takes all turns on the calling thread.
func (w *sendStream) sendAlone(begin int64) (err error) {
	var times threadTimes
	times.begin(begin)
	defer times.end()
	w.times = &times
	w.begin(begin)
	for over, now := false, w.clock.Now(); !over; now = w.now {
		if w.noRoom > 0 {
			w.out.room()
			now = w.clock.Now()
		} else if w.due > now {
			times.onTime(now)
			now = w.clock.Until(w.sender.end.stopped, w.due)
		}
		over, err = w.turn(now)
	}
	w.end()
	return err
}

// begin sets the first phase.
func (w *sendStream) begin(at int64) {
	o := w.sender.end.order
	if o.Timing.Warmup() > 0 {
		w.trial = o.Trial ^ engine.WarmupBit
		w.enter(&w.phases[0], at)
		return
	}
	w.measure(at)
}

// measure begins the measured part.
func (w *sendStream) measure(start int64) {
	w.trial, w.sequence, w.measured, w.lastSend = w.sender.end.order.Trial, 0, true, 0
	w.enter(&w.phases[1], start)
}

func (w *sendStream) enter(p *engine.Phase, start int64) {
	w.Phase, w.start, w.due, w.waiting = p, start, start, 0
	if w.Paced {
		w.setNextTurn()
	}
}

// setNextTurn sets the time of the next turn: when the next packets are due, or the end of the phase after its last
// slot.
func (w *sendStream) setNextTurn() {
	at, ok := w.Pacer.Next()
	if w.last = !ok; w.last {
		at = w.Length
	}
	w.due = w.start + at
}

// turn sends what is due, a batch at most, and waits for nothing. over is true when there is
// no more to do, because all is sent, it is stopped, or sending is hopeless.
func (w *sendStream) turn(now int64) (over bool, err error) {
	w.now = now
	if w.measured && w.cpu == nil {
		w.cpu, w.behind = engine.NewThreadUse(w.start), w.times.behind
	}
	switch {
	case w.sender.end.silent[w.stream].Load():
		w.stopped()
		over, w.silent = true, true
	case w.sender.end.stopped.Err() != nil:
		w.stopped()
		over = true
	case w.Paced:
		over, err = w.pace(now)
	default:
		over, err = w.flood(now)
	}
	switch {
	case !w.measured:
	case !w.Paced:
		w.planned = w.attempted.Load()
	case over || err != nil: // what was due and waits for its turn only was not planned any more
		w.planned = w.Pacer.Planned(max(now-w.start, 0)) - uint64(w.waiting)
	}
	if !w.measured {
		w.warmupSent = w.sequence
		if over && err == nil && !w.silent && w.sender.end.stopped.Err() == nil {
			w.measure(w.start + w.Length)
			return false, nil
		}
	}
	return over || err != nil, err
}

// stopped is called when the sender is stopped. It gives up the packets that wait for room.
func (w *sendStream) stopped() {
	if w.noRoom > 0 {
		w.giveUpWaiting()
	}
}

// giveUpWaiting counts the packets that wait for room as held: they are not sent any more.
func (w *sendStream) giveUpWaiting() {
	if w.waiting == 0 {
		return
	}
	w.Pacer.Hold(uint64(w.waiting))
	w.waiting = 0
	if w.measured {
		_, w.held = w.Pacer.GivenUp()
	}
}

func (w *sendStream) pace(now int64) (over bool, err error) {
	if w.waiting == 0 {
		if w.last {
			return now >= w.due, nil
		}
		w.waiting = w.takeDue(now)
	}
	if w.waiting > 0 {
		before := w.sequence
		now, err = w.emitSome(w.waiting, now)
		if w.waiting -= int(w.sequence - before); now >= w.start+w.Length {
			w.giveUpWaiting() // out of time while there was no room
		}
	}
	if w.waiting == 0 {
		w.setNextTurn()
	}
	return false, err
}

// takeDue returns how many packets may leave now. It records how late they are, and counts slots that were given up.
func (w *sendStream) takeDue(now int64) int {
	p := &w.Pacer
	p.Blocked(w.blocked)
	w.blocked = 0
	lateBefore, _ := p.GivenUp()
	n, first := p.Take(now - w.start)
	if late, _ := p.GivenUp(); late > lateBefore {
		w.times.fellBehind(now)
	}
	if w.measured {
		for i := range n {
			w.sender.late.Record(w.stream, now-w.start-p.Due(first+i), 1)
		}
		w.burstMax = max(w.burstMax, int(n))
		w.late, w.held = p.GivenUp()
	}
	return int(n)
}

// flood sends as fast as the kernel takes packets.
func (w *sendStream) flood(now int64) (over bool, err error) {
	share := w.ownPackets()
	if now >= w.start+w.Length || w.sequence >= share {
		return true, nil
	}
	if w.measured {
		w.burstMax = len(w.bytes)
	}
	_, err = w.emitSome(int(min(share-w.sequence, math.MaxInt32)), now)
	return w.sequence >= share, err
}

// ownPackets returns how many of the flow's packets this stream sends; no limit if the flow has no number of packets.
func (w *sendStream) ownPackets() uint64 {
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

// emitSome sends a batch at most, and sets the time of the turn after it.
func (w *sendStream) emitSome(n int, now int64) (after int64, err error) {
	if w.noRoom > 0 {
		w.waited(now - w.noRoom)
		w.noRoom = 0
	}
	after, room, err := w.emit(min(n, len(w.bytes)), now)
	w.now, w.due = after, after
	switch {
	case err != nil:
		return after, err
	case !room:
		w.noRoom, w.due = after, after+noRoomPause
	case w.refusals.row >= hopelessRow && !w.Paced:
		w.due = after + refusedPause
	}
	if after >= w.icmpAt {
		w.icmpAt = after + icmpEvery
		w.readICMP(nil)
	}
	return after, nil
}

// end closes the stream's account, once no turn is left.
func (w *sendStream) end() {
	w.refusals.end(w.now)
	w.readICMP(nil)
	if !w.measured {
		return
	}
	w.ended = w.clock.Now()
	w.threadRatio = w.cpu.Share(w.ended)
	w.behind = w.times.behind.Minus(w.behind)
}

// waited accounts for time in which the socket had no room.
func (w *sendStream) waited(nanos int64) {
	w.blocked += nanos
	if w.measured {
		w.heldNanos += nanos
	}
}
