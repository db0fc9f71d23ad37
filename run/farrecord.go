package run

import (
	"context"
	"sync"

	"pelt/engine"
	"pelt/record/tap"
)

// Sizes of a record that another host orders of this one.
const (
	farChunks  = 256      // 12 MiB
	farWaiting = 16 << 20 // bytes of blocks that are not fetched yet
	farWorth   = 64 << 10 // an answer is not worth sending before
)

func (nearRecording) Blocks(context.Context, uint64, int) ([]byte, bool) { return nil, true }

// farRecording keeps the blocks of one session until its controller has fetched them. If
// there are too many, the receivers' buffers fill, and further packets are only counted.
type farRecording struct {
	taps   *tap.Recorder
	finish func()
	room   int // bytes

	mu     sync.Mutex
	news   *sync.Cond
	blocks [][]byte // not fetched yet
	bytes  int      // in them
	from   uint64   // where they begin
	over   bool     // no more will come
	closed bool
}

func newFarRecording() engine.Recording { return farRecordingOf(farChunks, farWaiting) }

func farRecordingOf(chunks, waiting int) *farRecording {
	r := &farRecording{room: waiting}
	r.news = sync.NewCond(&r.mu)
	r.taps = tap.New(chunks, r.keep)
	r.finish = sync.OnceFunc(func() {
		go func() {
			r.taps.Close()
			r.mu.Lock()
			defer r.mu.Unlock()
			r.over = true
			r.news.Broadcast()
		}()
	})
	return r
}

func (r *farRecording) Tap(o engine.Order, m engine.Meter) engine.Meter {
	return r.taps.Tap(*o.Record, o.Flow.Streams, o.Flow.PayloadBytes, m)
}

// keep waits for room. Nobody fetches the blocks of one that is closed.
func (r *farRecording) keep(p tap.Piece) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.bytes > r.room && !r.closed {
		r.news.Wait()
	}
	if r.closed {
		return
	}
	r.blocks = append(r.blocks, append([]byte(nil), p.Block...))
	r.bytes += len(p.Block)
	r.news.Broadcast()
}

func (r *farRecording) Finish() { r.finish() }

func (r *farRecording) Blocks(ctx context.Context, from uint64, most int) (data []byte, done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.news.Broadcast()
	})()
	for len(r.blocks) > 0 && r.from+uint64(len(r.blocks[0])) <= from {
		n := len(r.blocks[0])
		r.blocks[0] = nil // or the list would keep it until it grows
		r.from, r.bytes, r.blocks = r.from+uint64(n), r.bytes-n, r.blocks[1:]
	}
	r.news.Broadcast()
	for r.bytes < farWorth && !r.over && !r.closed && ctx.Err() == nil {
		r.news.Wait()
	}
	for _, b := range r.blocks {
		if len(data)+len(b) > most {
			return data, false
		}
		data = append(data, b...)
	}
	return data, r.over || r.closed
}

func (r *farRecording) Close() {
	r.mu.Lock()
	r.closed, r.blocks, r.bytes = true, nil, 0
	r.news.Broadcast()
	r.mu.Unlock()
	r.Finish()
}
