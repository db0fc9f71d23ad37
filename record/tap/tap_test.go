package tap

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pelt/model"
	"pelt/record"
)

// counter is a meter that only counts.
type counter struct{ seen atomic.Uint64 }

func (c *counter) Observe(_ int, batch []model.Arrival) { c.seen.Add(uint64(len(batch))) }
func (c *counter) Received() (packets, bytes uint64)    { return c.seen.Load(), 0 }
func (c *counter) Reach() uint64                        { return 0 }
func (c *counter) Tally() model.Tally                   { return model.Tally{} }
func (c *counter) Missing(int, uint64) (m model.Marks)  { return m }

// taken is what a sink was given.
type taken struct {
	t    testing.TB
	mu   sync.Mutex
	list map[uint16][]record.Packet // by stream
	gaps map[uint16]uint64          // what blocks said was dropped before them
	ends map[uint16]record.Stream
}

func newTaken(t testing.TB) *taken {
	return &taken{t: t, list: map[uint16][]record.Packet{}, gaps: map[uint16]uint64{}, ends: map[uint16]record.Stream{}}
}

func (k *taken) take(p Piece) {
	k.mu.Lock()
	defer k.mu.Unlock()
	b, _, _, err := new(record.Decoder).Split(p.Block)
	if err != nil {
		k.t.Errorf("a block: %v", err)
	}
	switch b := b.(type) {
	case *record.Packets:
		k.list[b.Stream] = append(k.list[b.Stream], b.List...)
		k.gaps[b.Stream] += b.Dropped
	case *record.Stream:
		k.ends[b.Stream] = *b
	}
}

func (k *taken) packets(stream uint16) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.list[stream])
}

const payload = 64

func arrivals(from, n int) []model.Arrival {
	batch := make([]model.Arrival, n)
	for i := range batch {
		k := from + i
		batch[i] = model.Arrival{Sequence: uint64(k), SendNanos: uint64(k) * 1000, ReceiveNanos: int64(k)*1000 + 300,
			Bytes: payload}
	}
	return batch
}

func TestAllIsTakenDownInOrder(t *testing.T) {
	k := newTaken(t)
	r := New(64, k.take)
	tap := r.Tap(model.RecordID{Trial: 1}, 3, payload, &counter{})
	var senders sync.WaitGroup
	const packets = 5*chunkPackets + 17
	for s := range 3 {
		senders.Go(func() {
			for at := 0; at < packets; {
				n := min(1+at%97, packets-at)
				batch := arrivals(at, n)
				batch = append(batch, model.Arrival{Bytes: payload + 1}) // of another length
				tap.Observe(s, batch)
				at += n
			}
		})
	}
	senders.Wait()
	r.End(1)
	for s := range uint16(3) {
		if end := k.ends[s]; end.Packets != packets || end.Dropped != 0 {
			t.Errorf("stream %d ends with %+v, want %d packets", s, end, packets)
		}
		for i, p := range k.list[s] {
			if p.Sequence != uint64(i) {
				t.Fatalf("stream %d: packet %d has sequence %d", s, i, p.Sequence)
			}
		}
	}
	r.Close()
}

func TestASlowFlowIsHandedOverSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTaken(t)
		r := New(4, k.take)
		tap := r.Tap(model.RecordID{}, 1, payload, &counter{})
		tap.Observe(0, arrivals(0, 3))
		time.Sleep(2*lookEvery + lookEvery/2)
		if got := k.packets(0); got != 3 {
			t.Errorf("3 packets came, and %d are handed over after %v", got, 5*lookEvery/2)
		}
		tap.Observe(0, arrivals(3, 2))
		r.Close()
		if got := k.packets(0); got != 5 {
			t.Errorf("5 packets came, and %d are handed over at the end", got)
		}
	})
}

func TestWhatFindsNoBufferIsCounted(t *testing.T) {
	k := newTaken(t)
	gate := make(chan struct{})
	r := New(2, func(p Piece) {
		<-gate
		k.take(p)
	})
	m := &counter{}
	tap := r.Tap(model.RecordID{Trial: 7, Flow: 3}, 1, payload, m)
	const packets = 20 * chunkPackets
	for at := 0; at < packets; at += 128 {
		tap.Observe(0, arrivals(at, 128))
	}
	close(gate)
	for len(r.free) == 0 {
		time.Sleep(time.Millisecond)
	}
	for at := packets; at < packets+chunkPackets; at += 128 { // they fill the free buffer
		tap.Observe(0, arrivals(at, 128))
	}
	r.End(7)
	end := k.ends[0]
	if end.Packets+end.Dropped != packets+chunkPackets || end.Dropped == 0 {
		t.Errorf("%d recorded + %d dropped, want %d in all and some dropped", end.Packets, end.Dropped,
			packets+chunkPackets)
	}
	if got := uint64(len(k.list[0])); got != end.Packets {
		t.Errorf("%d packets in blocks, %d said at the end", got, end.Packets)
	}
	if k.gaps[0] != end.Dropped {
		t.Errorf("blocks tell of %d dropped packets, the end of %d", k.gaps[0], end.Dropped)
	}
	if !slices.IsSortedFunc(k.list[0], func(a, b record.Packet) int { return int(a.Sequence) - int(b.Sequence) }) {
		t.Error("packets are out of order")
	}
	if got := m.seen.Load(); got != packets+chunkPackets {
		t.Errorf("the measurement saw %d packets of %d", got, packets+chunkPackets)
	}
	r.Close()
}
