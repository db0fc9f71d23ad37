package live

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// keptEvents is how many events a stream keeps for readers that come later or again; a few minutes of samples.
const keptEvents = 20_000

// mostBehind is how many events a reader may be behind before it is let go.
const mostBehind = 1024

// Stream numbers the events of a run and hands them to any number of readers. It never waits for one.
// Its methods may be called concurrently. The zero Stream is ready.
type Stream struct {
	mu      sync.Mutex
	last    uint64
	kept    []Event
	readers map[*Reader]bool
	over    bool

	// kept for ever, as without them a late reader cannot tell how the run stands
	started, next, findings *Event
}

// Reader gets the events of a stream.
type Reader struct {
	C      <-chan Event // closed after the last event, or when the reader was let go
	events chan Event
	stream *Stream
	slow   bool
}

// Publish adds an event, of which ID and Time are set here.
func (s *Stream) Publish(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	e.ID, e.Time = s.last+1, time.Now()
	s.add(e)
}

// Append adds an event of another process's stream as it is. One that is not newer than the last is left out.
func (s *Stream) Append(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over && e.ID > s.last {
		s.add(e)
	}
}

// add keeps an event and hands it to the readers. s.mu is held.
func (s *Stream) add(e Event) {
	s.last = e.ID
	switch {
	case e.Started != nil:
		s.started = &e
	case e.Next != nil:
		s.next = &e
	case e.Trial != nil:
		s.next = nil
	case e.Findings != nil:
		s.findings = &e
	}
	if len(s.kept) == 2*keptEvents {
		s.kept = append(s.kept[:0], s.kept[keptEvents:]...)
	}
	s.kept = append(s.kept, e)
	for r := range s.readers {
		select {
		case r.events <- e:
		default:
			r.slow = true
			s.forget(r)
		}
	}
	if e.Done != nil {
		s.over = true
		for r := range s.readers {
			s.forget(r)
		}
	}
}

// forget ends a reader. s.mu is held.
func (s *Stream) forget(r *Reader) {
	if s.readers[r] {
		delete(s.readers, r)
		close(r.events)
	}
}

// Read returns what has happened, and a reader of what comes. Old events are left out, but for the first, the trial
// that runs and the newest findings. The reader must be closed.
func (s *Stream) Read() (past []Event, r *Reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r = &Reader{events: make(chan Event, mostBehind), stream: s}
	r.C = r.events
	kept := s.kept[max(0, len(s.kept)-keptEvents):]
	for _, e := range []*Event{s.started, s.next, s.findings} {
		if e != nil && e.ID < kept[0].ID {
			past = append(past, *e)
		}
	}
	slices.SortFunc(past, func(a, b Event) int { return cmp.Compare(a.ID, b.ID) })
	past = append(past, kept...)
	if s.over {
		close(r.events)
		return past, r
	}
	if s.readers == nil {
		s.readers = map[*Reader]bool{}
	}
	s.readers[r] = true
	return past, r
}

// Close ends reading; any time, any number of times.
func (r *Reader) Close() {
	r.stream.mu.Lock()
	defer r.stream.mu.Unlock()
	r.stream.forget(r)
}

// Slow reports whether the reader was let go because it fell behind.
func (r *Reader) Slow() bool {
	r.stream.mu.Lock()
	defer r.stream.mu.Unlock()
	return r.slow
}
