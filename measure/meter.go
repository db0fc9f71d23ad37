package measure

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"pelt/model"
)

// Whoever knows a flow's addresses can forge a packet of it, with any sequence. So one
// packet moves an account by less than MostStep; to move it further takes Agreeing packets
// that lie beyond, and moves it to the lowest of them (after RFC 3550 section A.1, which
// wants two). Fewer than Agreeing steps stay within half of the smallest window.
const (
	MostStep = 1 << 11
	Agreeing = 32
)

// Sizes of a meter's memory.
const (
	// All windows of a meter together span this many sequences (2 MiB), but
	// each at least minWindow: reordering and duplicates are told apart over
	// seconds at any rate a socket can take.
	allWindows = 1 << 24
	minWindow  = 1 << 20
	// maxSteps bounds the series: a week of seconds and the longest drain.
	// What comes later is counted in the last step.
	maxSteps = 7*24*3600 + 60
	// stampErrorNanos is how far a kernel time stamp may be off after its
	// conversion from one clock to another; see Meter.
	stampErrorNanos = 1000
)

// Meter counts what a receiver sees of one flow. Observe may be called
// concurrently for different streams, never for the same one.
//
// A one-way delay below zero by no more than a microsecond is the error of the
// time stamps and counts as 0; one further below is counted as out of range.
type Meter struct {
	streams      []*stream
	payloadBytes int
	stepNanos    int64

	first atomic.Int64 // receive time of the flow's first packet; unset until then
	mu    sync.Mutex   // guards steps
	steps []uint64
}

const unset = math.MinInt64

// stream is what one stream's thread writes.
type stream struct {
	_ padding

	window window
	next   int64           // next expected position: one above the highest counted
	ahead  []model.Arrival // fewer than Agreeing, not counted yet: too far beyond next
	near   int64           // next at which the lowest of them is no longer too far

	received                          uint64
	duplicates, reordered, late, size uint64
	firstNanos, lastNanos             int64

	jitter  float64 // RFC 3550 section 6.4.1
	transit uint64  // of the packet before, modulo 2^48
	delay   *durations

	step             int64 // being counted
	stepFrom, stepTo int64 // receive times it spans
	inStep           uint64

	published atomic.Uint64 // received, as of the last Observe
	reached   atomic.Uint64 // next, likewise
	_         padding
}

// New makes the meter of one flow: number of streams, payload length that its
// packets must have, step of the series in nanoseconds, whether send and
// receive times are of one clock, without which no delay is kept, and the most
// bytes that the lists of missing sequences of all streams take. Sequences
// beyond are only counted.
func New(streams, payloadBytes int, stepNanos int64, oneClock bool, listBytes int) *Meter {
	return newAt(0, streams, payloadBytes, stepNanos, oneClock, listBytes)
}

// newAt makes a meter whose streams begin at the given position.
func newAt(first int64, streams, payloadBytes int, stepNanos int64, oneClock bool, listBytes int) *Meter {
	m := &Meter{streams: make([]*stream, streams), payloadBytes: payloadBytes, stepNanos: max(stepNanos, 1)}
	m.first.Store(unset)
	span := allWindows
	for span > minWindow && span*streams > allWindows {
		span /= 2
	}
	for i := range m.streams {
		s := &stream{window: newWindow(span>>chunkBits, first, max(listBytes/streams, 1)), next: first,
			near:       math.MaxInt64,
			firstNanos: math.MaxInt64, lastNanos: math.MinInt64}
		if oneClock {
			s.delay = newDurations()
		}
		m.streams[i] = s
	}
	return m
}

// Observe counts a batch of arrivals of one stream, in the order they came.
func (m *Meter) Observe(stream int, batch []model.Arrival) {
	s := m.streams[stream]
	for i := range batch {
		a := &batch[i]
		if a.Bytes != m.payloadBytes {
			s.size++
			continue
		}
		// The wire has 48 bits; the position nearest to the next expected is meant.
		step := int64((a.Sequence-uint64(s.next))<<16) >> 16
		if step >= MostStep {
			m.holdBack(stream, a, s.next+step)
			continue
		}
		at := s.next + step
		switch s.window.see(at) {
		case again:
			s.duplicates++
			continue
		case behind:
			s.late++
			continue
		}
		if step < 0 {
			s.reordered++
		}
		s.received++
		m.accountTime(s, a)
		if step >= 0 {
			if s.next = at + 1; s.next >= s.near {
				m.countNear(stream)
			}
		}
	}
	s.reached.Store(uint64(max(s.next, 0)))
	s.published.Store(s.received)
}

// holdBack keeps a packet whose sequence is too far ahead to be believed, until the flow comes near it or enough such
// packets agree.
func (m *Meter) holdBack(stream int, a *model.Arrival, at int64) {
	s := m.streams[stream]
	s.ahead = append(s.ahead, *a)
	s.near = min(s.near, at-MostStep+1)
	if len(s.ahead) == Agreeing {
		s.next = s.near + MostStep - 1
		m.countNear(stream)
	}
}

// countNear counts held-back packets that are now within reach; at least the lowest one.
func (m *Meter) countNear(stream int) {
	s := m.streams[stream]
	ahead := slices.Clone(s.ahead)
	s.ahead, s.near = s.ahead[:0], math.MaxInt64
	m.Observe(stream, ahead)
}

// settle counts held-back packets whose sequences the sender did send, by its own account.
func (m *Meter) settle(stream int, attempted uint64) {
	s := m.streams[stream]
	for len(s.ahead) > 0 {
		lowest := s.near + MostStep - 1
		if uint64(lowest-s.window.from) >= attempted {
			return
		}
		s.next = max(s.next, lowest)
		m.countNear(stream)
	}
}

// accountTime adds the arrival time of a new packet to the series, the jitter and the delays.
func (m *Meter) accountTime(s *stream, a *model.Arrival) {
	if a.ReceiveNanos >= s.stepTo || a.ReceiveNanos < s.stepFrom {
		m.beginStep(s, a.ReceiveNanos)
	}
	s.inStep++
	transit := uint64(a.ReceiveNanos) - a.SendNanos
	if s.received > 1 {
		d := math.Abs(float64(int64((transit-s.transit)<<16) >> 16))
		s.jitter += (d - s.jitter) / 16
	}
	s.transit = transit
	s.firstNanos, s.lastNanos = min(s.firstNanos, a.ReceiveNanos), max(s.lastNanos, a.ReceiveNanos)
	if s.delay != nil {
		delay := int64(transit<<16) >> 16
		if delay < 0 && delay >= -stampErrorNanos {
			delay = 0
		}
		s.delay.record(delay, 1)
	}
}

// beginStep ends the step of the series that is being counted, and begins the one of the given time.
func (m *Meter) beginStep(s *stream, nanos int64) {
	m.flush(s)
	m.first.CompareAndSwap(unset, nanos)
	first := m.first.Load()
	s.step = min(max(nanos-first, 0)/m.stepNanos, maxSteps-1)
	s.stepFrom, s.stepTo = first+s.step*m.stepNanos, first+(s.step+1)*m.stepNanos
	if s.step == 0 {
		s.stepFrom = math.MinInt64 // another stream's packet was counted first, but came later
	}
	if s.step == maxSteps-1 {
		s.stepTo = math.MaxInt64
	}
}

func (m *Meter) flush(s *stream) {
	if s.inStep == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for int64(len(m.steps)) <= s.step {
		m.steps = append(m.steps, 0)
	}
	m.steps[s.step] += s.inStep
	s.inStep = 0
}

// Received returns the distinct packets and their payload bytes counted so
// far. It may be called at any time from any goroutine.
func (m *Meter) Received() (packets, bytes uint64) {
	for _, s := range m.streams {
		packets += s.published.Load()
	}
	return packets, packets * uint64(m.payloadBytes)
}

// Reach is how many packets are known to have been sent by what came so far. It may be
// called at any time from any goroutine.
func (m *Meter) Reach() (packets uint64) {
	for _, s := range m.streams {
		packets += s.reached.Load()
	}
	return packets
}

// Missing lists the sequences of one stream below attempted that have not come,
// nor will count if they still come: what is older than the window is settled.
// It must not run beside Observe, and it comes before Tally.
func (m *Meter) Missing(stream int, attempted uint64) model.Marks {
	m.settle(stream, attempted)
	return m.streams[stream].window.missing(attempted)
}

// Tally closes the account. It must not run beside Observe.
func (m *Meter) Tally() model.Tally {
	t := model.Tally{FirstNanos: math.MaxInt64, LastNanos: math.MinInt64}
	var delay *durations
	var jitters []float64
	for _, s := range m.streams {
		m.flush(s)
		t.Received += s.received
		t.Duplicates += s.duplicates
		t.Reordered += s.reordered
		t.Late += s.late
		t.WrongLength += s.size
		t.Strangers += uint64(len(s.ahead))
		t.FirstNanos, t.LastNanos = min(t.FirstNanos, s.firstNanos), max(t.LastNanos, s.lastNanos)
		if s.received > 1 {
			jitters = append(jitters, s.jitter)
		}
		if s.delay != nil {
			if delay == nil {
				delay = newDurations()
			}
			delay.add(s.delay)
		}
	}
	if t.Received == 0 {
		t.FirstNanos, t.LastNanos = 0, 0
	}
	t.JitterNanos = MeanJitter(jitters)
	if delay != nil {
		t.Delay = delay.percentiles()
	}
	t.Bytes = t.Received * uint64(m.payloadBytes)
	t.PerStep = append([]uint64{}, m.steps...)
	t.StepBytes = make([]uint64, len(t.PerStep))
	for i, n := range t.PerStep {
		t.StepBytes[i] = n * uint64(m.payloadBytes)
	}
	return t
}

// MeanJitter is the jitter of a flow whose streams have these; 0 if none has any.
func MeanJitter(streams []float64) (nanos float64) {
	for _, jitter := range streams {
		nanos += jitter / float64(len(streams))
	}
	return nanos
}
