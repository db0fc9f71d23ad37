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
	full  chan handed // with room for all chunks, and for the ends of as many streams
	free  chan *chunk
	base  int          // chunks, beside those for each stream
	limit atomic.Int64 // of chunks
	made  atomic.Int64
	over  sync.WaitGroup

	mu   sync.Mutex
	taps []*Tap
}

// chunk is a stretch of one stream's packets.
type chunk struct {
	dropped uint64 // right before its first
	n       int
	list    [chunkPackets]record.Packet
}

// handed is a chunk to be written, or the end of its stream.
type handed struct {
	of    *stream
	chunk *chunk
	end   *sync.WaitGroup // of those who wait for the end
}

// New starts a recorder with so many buffers. sink is called by one goroutine and
// may take its time: the buffers are there for that.
func New(chunks int, sink func(Piece)) *Recorder {
	r := &Recorder{sink: sink, full: make(chan handed, 2*maxChunks), free: make(chan *chunk, maxChunks), base: chunks}
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

// stream is its receiver's thread's; the goroutine looks at it now and then, for less than a microsecond.
type stream struct {
	_       padding
	tap     *Tap
	number  uint16
	mu      sync.Mutex
	chunk   *chunk // being filled; nil if none
	old     bool   // the goroutine has seen this chunk before
	closed  bool
	pending uint64 // dropped since the last chunk
	dropped uint64
	_       padding

	written uint64 // packets handed to the sink, by the goroutine
}

// Tap puts the record of a flow around its meter. Packets of another length than
// payloadBytes are in neither.
func (r *Recorder) Tap(id model.RecordID, streams, payloadBytes int, m Meter) *Tap {
	t := &Tap{Meter: m, recorder: r, id: id, payload: payloadBytes}
	for i := range streams {
		t.streams = append(t.streams, &stream{tap: t, number: uint16(i)})
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	none := false
	for i := range batch {
		a := &batch[i]
		if a.Bytes != t.payload {
			continue
		}
		if s.chunk == nil && !none {
			none = !t.recorder.take(s)
		}
		if none {
			s.pending++
			s.dropped++
			continue
		}
		c := s.chunk
		c.list[c.n] = record.Packet{Sequence: a.Sequence, SendNanos: a.SendNanos, ReceiveNanos: a.ReceiveNanos}
		if c.n++; c.n == chunkPackets {
			s.hand()
		}
	}
}

// hand gives the stream's chunk to the goroutine; the caller holds the stream's lock. The
// channel has room for all chunks that there are.
func (s *stream) hand() {
	if s.chunk != nil {
		s.tap.recorder.full <- handed{of: s, chunk: s.chunk}
		s.chunk = nil
	}
}

// take gives the stream an empty chunk, if one is left.
func (r *Recorder) take(s *stream) bool {
	select {
	case s.chunk = <-r.free:
	default:
		if r.made.Add(1) > r.limit.Load() {
			r.made.Add(-1)
			return false
		}
		s.chunk = &chunk{}
	}
	s.chunk.n, s.chunk.dropped, s.pending, s.old = 0, s.pending, 0, false
	return true
}

func (r *Recorder) work() {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var e record.Encoder
	var block []byte
	for {
		select {
		case <-look.C:
			r.look()
		case h, more := <-r.full:
			if !more {
				return
			}
			s, c, id := h.of, h.chunk, h.of.tap.id
			if c == nil {
				ends := &record.Stream{Trial: id.Trial, Flow: id.Flow, Stream: s.number, Packets: s.written,
					Dropped: s.dropped}
				if b, err := record.Append(nil, ends); err == nil { // numbers always marshal
					r.sink(Piece{Trial: id.Trial, Flow: id.Flow, Ends: ends, Block: b})
				}
				h.end.Done()
				continue
			}
			block = e.Append(block[:0], record.Packets{Trial: id.Trial, Flow: id.Flow, Stream: s.number,
				Dropped: c.dropped, List: c.list[:c.n]})
			s.written += uint64(c.n)
			r.sink(Piece{Trial: id.Trial, Flow: id.Flow, Packets: c.n, Block: block})
			r.free <- c // it has room for all there are
		}
	}
}

// look hands over the chunks that were there when it looked before.
func (r *Recorder) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.taps {
		for _, s := range t.streams {
			s.mu.Lock()
			if s.old {
				s.hand()
			}
			s.old = s.chunk != nil
			s.mu.Unlock()
		}
	}
}

// End hands over all that is left of a trial's flows and closes their streams. It
// returns when the sink has it all; receivers must have ended.
func (r *Recorder) End(trial uint32) { r.finish(func(t *Tap) bool { return t.id.Trial == trial }) }

func (r *Recorder) finish(match func(*Tap) bool) {
	var over []*Tap
	r.mu.Lock()
	r.taps = slices.DeleteFunc(r.taps, func(t *Tap) bool {
		if match(t) {
			over = append(over, t)
		}
		return match(t)
	})
	r.allow()
	r.mu.Unlock()
	var ended sync.WaitGroup
	for _, t := range over {
		for _, s := range t.streams {
			s.mu.Lock()
			s.closed = true
			s.hand()
			s.mu.Unlock()
			ended.Add(1)
			r.full <- handed{of: s, end: &ended}
		}
	}
	ended.Wait()
}

// Close ends all flows as End does, and then the recorder. It may be called once.
func (r *Recorder) Close() {
	r.finish(func(*Tap) bool { return true })
	close(r.full)
	r.over.Wait()
}
