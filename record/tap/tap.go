// Package tap takes down what receivers see while they see it: a meter around
// each flow's own copies every packet into a buffer, and a goroutine makes blocks
// of package record of them and hands these on.
//
// Packets come in on the receivers' threads, blocks go out on one goroutine. A
// receiver's thread never waits: where no buffer is free, its packets are counted
// and left out of the record, never out of the measurement. The package opens no
// file and sends nothing.
package tap

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"pelt/model"
	"pelt/record"
)

// Meter is what counts a flow; see engine.Meter.
type Meter interface {
	Observe(stream int, batch []model.Arrival)
	Received() (packets, bytes uint64)
	Reach() uint64
	Tally() model.Tally
	Missing(stream int, attempted uint64) model.Marks
}

// Sizes of a recorder's memory.
const (
	chunkPackets = 2048 // 48 KiB
	// Chunks are a recorder's buffers if nobody says: 48 MiB, which are two seconds
	// of a million packets a second while a disk stands still.
	Chunks = 1024
	// each stream holds one, and may hand one over meanwhile, whatever others hold
	chunksPerStream = 2
	maxChunks       = 1 << 14
	// A packet waits at most two of these to be handed over.
	lookEvery = 250 * time.Millisecond
)

// Piece is a block that is ready. Its bytes are good until the sink returns.
type Piece struct {
	Trial   uint32
	Flow    uint16
	Packets int            // in the block
	Ends    *record.Stream // what the block says, if it ends a stream; nil of packets
	Block   []byte
}

// Recorder takes down the packets of any number of flows. Its methods may be
// called concurrently.
type Recorder struct {
	sink  func(Piece)
	full  chan *chunk
	free  chan *chunk
	base  int          // chunks, beside those for each stream
	limit atomic.Int64 // of chunks
	made  atomic.Int64
	ask   chan asked
	quit  chan struct{}
	over  sync.WaitGroup

	mu   sync.Mutex
	taps []*Tap
}

type asked struct {
	match func(*Tap) bool
	done  chan struct{}
}

// chunk is a stretch of one stream's packets.
type chunk struct {
	of      *stream
	serial  uint64 // within the stream
	dropped uint64 // right before its first
	n       int
	list    [chunkPackets]record.Packet
}

// New starts a recorder with so many buffers. sink is called by one goroutine and
// may take its time: the buffers are there for that.
func New(chunks int, sink func(Piece)) *Recorder {
	r := &Recorder{
		sink: sink, full: make(chan *chunk, maxChunks), free: make(chan *chunk, maxChunks),
		ask: make(chan asked), quit: make(chan struct{}), base: chunks,
	}
	r.over.Go(r.work)
	return r
}

// Tap is the record of one flow of one trial.
type Tap struct {
	Meter
	recorder *Recorder
	id       model.RecordID
	payload  int
	streams  []*stream
}

type padding [128]byte

// stream is written by its receiver's thread, but for what the goroutine takes.
type stream struct {
	_       padding
	tap     *Tap
	number  uint16
	chunk   atomic.Pointer[chunk] // being filled; nil while its receiver has it in hand
	closed  atomic.Bool
	serial  uint64
	pending uint64 // dropped since the last chunk
	dropped atomic.Uint64
	_       padding

	seen    uint64 // of the goroutine alone: the serial of the chunk it looked at last
	written uint64 // packets handed to the sink
}

// Tap puts the record of a flow around its meter. Packets of another length than
// payloadBytes are in neither.
func (r *Recorder) Tap(id model.RecordID, streams, payloadBytes int, m Meter) *Tap {
	t := &Tap{Meter: m, recorder: r, id: id, payload: payloadBytes}
	for i := range streams {
		t.streams = append(t.streams, &stream{tap: t, number: uint16(i), seen: 1<<64 - 1})
	}
	r.mu.Lock()
	r.taps = append(r.taps, t)
	r.allow()
	r.mu.Unlock()
	return t
}

// allow sets how many chunks there may be; the caller holds the lock.
func (r *Recorder) allow() {
	n := r.base
	for _, t := range r.taps {
		n += chunksPerStream * len(t.streams)
	}
	r.limit.Store(int64(min(n, maxChunks)))
}

// Observe counts a batch of one stream, and takes it down.
func (t *Tap) Observe(number int, batch []model.Arrival) {
	t.Meter.Observe(number, batch)
	s := t.streams[number]
	if s.closed.Load() {
		return
	}
	c := s.chunk.Swap(nil)
	var dropped uint64
	for i := range batch {
		a := &batch[i]
		if a.Bytes != t.payload {
			continue
		}
		if c == nil && dropped == 0 {
			c = t.recorder.take(s)
		}
		if c == nil {
			dropped++
			continue
		}
		c.list[c.n] = record.Packet{Sequence: a.Sequence, SendNanos: a.SendNanos, ReceiveNanos: a.ReceiveNanos}
		if c.n++; c.n == chunkPackets {
			t.recorder.full <- c // it has room for all there are
			c = nil
		}
	}
	if dropped > 0 {
		s.pending += dropped
		s.dropped.Store(s.dropped.Load() + dropped)
	}
	if c != nil {
		s.chunk.Store(c)
	}
}

// take gets an empty chunk, nil if none is left.
func (r *Recorder) take(s *stream) *chunk {
	var c *chunk
	select {
	case c = <-r.free:
	default:
		if r.made.Add(1) > r.limit.Load() {
			r.made.Add(-1)
			return nil
		}
		c = &chunk{}
	}
	c.of, c.n, c.serial, c.dropped = s, 0, s.serial, s.pending
	s.serial++
	s.pending = 0
	return c
}

func (r *Recorder) work() {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var e record.Encoder
	var block []byte
	write := func(c *chunk) {
		s := c.of
		block = e.Append(block[:0], record.Packets{Trial: s.tap.id.Trial, Flow: s.tap.id.Flow, Stream: s.number, Dropped: c.dropped, List: c.list[:c.n]})
		s.written += uint64(c.n)
		r.sink(Piece{Trial: s.tap.id.Trial, Flow: s.tap.id.Flow, Packets: c.n, Block: block})
		c.of = nil
		r.free <- c // it has room for all there are
	}
	for {
		select {
		case c := <-r.full:
			write(c)
		case <-look.C:
			r.gather(func(s *stream, c *chunk) bool { return c.serial == s.seen }, write)
		case q := <-r.ask:
			r.gather(func(s *stream, _ *chunk) bool { return q.match(s.tap) }, write)
			r.end(q.match)
			close(q.done)
		case <-r.quit:
			return
		}
	}
}

// gather writes what waits, and the chunks being filled that ready says are due, in
// the order of their packets.
func (r *Recorder) gather(ready func(*stream, *chunk) bool, write func(*chunk)) {
	var list []*chunk
	r.mu.Lock()
	for _, t := range r.taps {
		for _, s := range t.streams {
			// What is not due stays where it is: put back, it would be lost if its receiver
			// took another meanwhile. Only this goroutine empties chunks, so this one's
			// serial stays.
			c := s.chunk.Load()
			if c == nil {
				continue
			}
			if !ready(s, c) {
				s.seen = c.serial
				continue
			}
			if s.chunk.CompareAndSwap(c, nil) {
				list = append(list, c)
			}
		}
	}
	r.mu.Unlock()
	for { // what was handed over before those above were taken is older
		select {
		case c := <-r.full:
			list = append(list, c)
			continue
		default:
		}
		break
	}
	slices.SortStableFunc(list, func(a, b *chunk) int { return cmp.Compare(a.serial, b.serial) })
	for _, c := range list {
		write(c)
	}
}

// end closes the streams of taps that are over, and forgets these.
func (r *Recorder) end(match func(*Tap) bool) {
	r.mu.Lock()
	var over []*Tap
	r.taps = slices.DeleteFunc(r.taps, func(t *Tap) bool {
		if match(t) {
			over = append(over, t)
			return true
		}
		return false
	})
	r.allow()
	r.mu.Unlock()
	for _, t := range over {
		for _, s := range t.streams {
			ends := &record.Stream{Trial: t.id.Trial, Flow: t.id.Flow, Stream: s.number, Packets: s.written, Dropped: s.dropped.Load()}
			if b, err := record.Append(nil, ends); err == nil { // numbers always marshal
				r.sink(Piece{Trial: t.id.Trial, Flow: t.id.Flow, Ends: ends, Block: b})
			}
		}
	}
}

// End hands over all that is left of a trial's flows and closes their streams. It
// returns when the sink has it all; receivers must have ended.
func (r *Recorder) End(trial uint32) { r.finish(func(t *Tap) bool { return t.id.Trial == trial }) }

func (r *Recorder) finish(match func(*Tap) bool) {
	r.mu.Lock()
	for _, t := range r.taps {
		if match(t) {
			for _, s := range t.streams {
				s.closed.Store(true)
			}
		}
	}
	r.mu.Unlock()
	q := asked{match, make(chan struct{})}
	select {
	case r.ask <- q:
		<-q.done
	case <-r.quit:
	}
}

// Close ends all flows as End does, and then the recorder. It may be called once.
func (r *Recorder) Close() {
	r.finish(func(*Tap) bool { return true })
	close(r.quit)
	r.over.Wait()
}
