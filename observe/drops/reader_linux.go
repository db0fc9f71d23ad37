//go:build amd64 || arm64

package drops

import (
	"sync/atomic"
	"time"

	"pelt/internal/kernelclock"
)

// readEvery is how often the reader looks whether verdicts have come; at the
// least window of a stream, 1024 sequences, some get lost beyond 20 kpps.
const readEvery = 50 * time.Millisecond

// startReading starts the reader, which takes verdicts out of the kernel's
// array while tracks want them.
func (m *Machine) startReading() {
	if m.stop != nil {
		return
	}
	stop := make(chan struct{})
	m.stop = stop
	m.reading.Go(func() {
		tick := time.NewTicker(readEvery)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			m.mu.Lock()
			if m.stop == stop {
				m.drain()
			}
			m.mu.Unlock()
		}
	})
}

func (m *Machine) stopReading() {
	if m.stop != nil {
		close(m.stop)
		m.stop = nil
	}
}

// drain moves all verdicts from the array to their streams' stores.
func (m *Machine) drain() {
	before := m.visited
	m.visited = kernelclock.Now()
	for number := range m.dirty {
		if atomic.LoadUint64(&m.dirty[number]) == 0 || atomic.SwapUint64(&m.dirty[number], 0) == 0 {
			continue
		}
		if number >= len(m.pages.owner) { // the mapping is whole pages long
			return
		}
		s := m.pages.owner[number]
		if s == nil {
			continue // of a track that is closed
		}
		if at := atomic.LoadUint64(&m.newest[2*s.slot]); at != s.newest { // since the visit before
			s.newest = at
			atomic.StoreUint64(&m.newest[2*s.slot+1], before)
		}
		first := number * pageCells
		for i := first; i < first+pageCells; i++ {
			if atomic.LoadUint32(&m.cells[i]) == 0 {
				continue
			}
			verdict := atomic.SwapUint32(&m.cells[i], 0)
			sequence, ok := s.sequence(uint32(i), verdict, atomic.LoadUint64(&m.newest[2*s.slot]))
			if !ok {
				s.store.refused++
				continue
			}
			s.store.put(sequence, uint16(verdict), m.later)
		}
	}
}

// later says whether a verdict takes an earlier one's place, as the program decides while the earlier one is unread.
func (m *Machine) later(_, now uint16) bool {
	place, known := m.names.places[uint32(now)]
	if !known {
		_ = m.names.refresh(m.objects.Sites) // without it the later one counts
		place = m.names.places[uint32(now)]
	}
	return place.key.Flags&uint32(bpfSiteFlagsSITE_PIECE) == 0
}
