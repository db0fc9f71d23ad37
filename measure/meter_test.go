package measure

import (
	"math"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"pelt/model"
)

const second = 1_000_000_000

// naive is the same account kept the slow way, in maps.
type naive struct {
	payload                    int
	span, from                 int64
	seen                       map[int64]bool
	ahead                      []seen
	highest                    int64
	received, dup, reord, late uint64
	wrong                      uint64
	steps                      map[int64]uint64
	first                      int64
	transit                    int64
	jitter                     float64
	delays, outOfRange         uint64
}

// seen is a packet as naive knows it.
type seen struct {
	at, send, receive int64
	bytes             int
}

func (n *naive) observe(p seen) {
	switch {
	case p.bytes != n.payload:
		n.wrong++
		return
	case p.at-n.highest > MostStep:
		n.ahead = append(n.ahead, p)
		if len(n.ahead) == Agreeing {
			n.highest = n.lowest() - 1
			n.again()
		}
		return
	case p.at < n.from || n.highest>>chunkBits-p.at>>chunkBits >= n.span>>chunkBits:
		n.late++
		return
	case n.seen[p.at]:
		n.dup++
		return
	}
	n.seen[p.at] = true
	forward := p.at > n.highest
	if !forward {
		n.reord++
	}
	n.highest = max(n.highest, p.at)
	if n.received == 0 {
		n.first = p.receive
	}
	n.steps[max(p.receive-n.first, 0)/second]++
	transit := p.receive - p.send
	if n.received > 0 {
		n.jitter += (math.Abs(float64(transit-n.transit)) - n.jitter) / 16
	}
	n.transit = transit
	n.received++
	if transit < -stampErrorNanos || transit > histogramMax {
		n.outOfRange++
	} else {
		n.delays++
	}
	if forward && n.lowest()-n.highest <= MostStep {
		n.again()
	}
}

// settle takes up what came too far ahead, as the sender did send so many.
func (n *naive) settle(attempted int64) {
	for len(n.ahead) > 0 && n.lowest()-n.from < attempted {
		n.highest = max(n.highest, n.lowest()-1)
		n.again()
	}
}

func (n *naive) lowest() int64 {
	low := int64(math.MaxInt64)
	for _, p := range n.ahead {
		low = min(low, p.at)
	}
	return low
}

func (n *naive) again() {
	ahead := n.ahead
	n.ahead = nil
	for _, p := range ahead {
		n.observe(p)
	}
}

func TestMeterAgainstMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const payload = 64
		from := rapid.SampledFrom([]int64{0, 1, 1<<48 - 50, 1<<48 - 70000, 5<<48 - 3}).Draw(t, "from")
		meter := newAt(from, 1, payload, second, true, model.MaxMarksBytes)
		want := naive{payload: payload, span: allWindows, from: from, seen: map[int64]bool{},
			steps: map[int64]uint64{}, highest: from - 1}
		at, recv := from, int64(5*second)
		n := rapid.IntRange(1, 400).Draw(t, "n")
		var batch []model.Arrival
		for range n {
			step := rapid.SampledFrom([]int64{1, 1, 1, 1, 2, 5, 0, -1, -3, MostStep - 1, MostStep, -MostStep, 65536, -65536,
				1 << 20, -1 << 20, 1 << 24, -1 << 24, 1 << 25}).Draw(t, "step")
			at = max(at+step, from-2)
			recv += rapid.Int64Range(-200, 1_500_000).Draw(t,
				"gap") * rapid.SampledFrom([]int64{1, 1, 1, 1000}).Draw(t, "times")
			send := recv - rapid.SampledFrom([]int64{-2000, -5, 0, 700, 12_000, 3_000_000, 61 * second}).Draw(t,
				"delay")
			bytes := rapid.SampledFrom([]int{payload, payload, payload, payload, 63}).Draw(t, "bytes")
			batch = append(batch, model.Arrival{Sequence: uint64(at) & (1<<48 - 1),
				SendNanos: uint64(send) & (1<<48 - 1), ReceiveNanos: recv, Bytes: bytes})
			want.observe(seen{at, send, recv, bytes})
			if rapid.Bool().Draw(t, "flush") {
				meter.Observe(0, batch)
				batch = batch[:0]
			}
		}
		meter.Observe(0, batch)
		if p, b := meter.Received(); p != want.received || b != p*payload {
			t.Fatalf("Received() = %d, %d; want %d", p, b, want.received)
		}
		attempted := rapid.SampledFrom([]int64{0, max(at+1-from, 0), max(at-from, 0), 1 << 26}).Draw(t, "attempted")
		want.settle(attempted)
		missing := attempted
		for s := range want.seen {
			if s-from < attempted {
				missing--
			}
		}
		if m := meter.Missing(0, uint64(attempted)); m.Packets+m.Unlisted != uint64(missing) {
			t.Fatalf("of %d attempted %d + %d are missing, want %d", attempted, m.Packets, m.Unlisted, missing)
		}
		got := meter.Tally()
		if got.Received != want.received || got.Duplicates != want.dup || got.Reordered != want.reord ||
			got.Late != want.late || got.WrongLength != want.wrong ||
			got.Strangers != uint64(len(want.ahead)) {
			t.Fatalf("tally %+v\nwant %+v", got, want)
		}
		for i, n := range got.PerStep {
			if n != want.steps[int64(i)] {
				t.Fatalf("step %d: %d, want %d", i, n, want.steps[int64(i)])
			}
		}
		if sum := total(got.PerStep); sum != want.received {
			t.Fatalf("steps sum to %d of %d", sum, want.received)
		}
		if math.Abs(got.JitterNanos-want.jitter) > 1e-6*want.jitter {
			t.Fatalf("jitter %v, want %v", got.JitterNanos, want.jitter)
		}
		if d := got.Delay; want.received > 0 && (d == nil || d.Count != want.delays || d.Out != want.outOfRange) {
			t.Fatalf("delay %+v, want %d and %d out of range", d, want.delays, want.outOfRange)
		}
	})
}

func total(of []uint64) (sum uint64) {
	for _, n := range of {
		sum += n
	}
	return sum
}

func arrivals(sequences ...uint64) []model.Arrival {
	out := make([]model.Arrival, len(sequences))
	for i, s := range sequences {
		out[i] = model.Arrival{Sequence: s, SendNanos: uint64(1000 * i), ReceiveNanos: int64(1000*i + 500), Bytes: 16}
	}
	return out
}

// leap are as many packets from a sequence on as a leap takes.
func leap(to uint64) (all []uint64) {
	for i := range uint64(Agreeing) {
		all = append(all, to+i)
	}
	return all
}

// TestTallyOfStreams: a flow's tally adds up all that its streams counted.
func TestTallyOfStreams(t *testing.T) {
	m := New(2, 16, second, false, model.MaxMarksBytes)
	for stream := range 2 {
		m.Observe(stream, arrivals(leap(allWindows*2)...))
		m.Observe(stream, arrivals(allWindows*2-1, allWindows*2, 5))
		m.Observe(stream, []model.Arrival{{Bytes: 17}})
	}
	got := m.Tally()
	const received = 2 * (Agreeing + 1)
	if got.Received != received || got.Reordered != 2 || got.Duplicates != 2 || got.Late != 2 ||
		got.WrongLength != 2 || got.Bytes != 16*received || got.Delay != nil {
		t.Errorf("two streams with one packet of each kind: %+v", got)
	}
}

func TestMeanJitter(t *testing.T) {
	if got, none := MeanJitter([]float64{10, 30}), MeanJitter(nil); got != 20 || none != 0 {
		t.Errorf("two streams have %v, none have %v; want 20 and 0", got, none)
	}
}

func TestJitterOfEvenFlowIsZero(t *testing.T) {
	m := New(1, 16, second, true, model.MaxMarksBytes)
	m.Observe(0, arrivals(0, 1, 2, 3))
	got := m.Tally()
	if got.JitterNanos != 0 || got.Delay == nil || got.Delay.Min != 500 || got.Delay.Max != 500 ||
		got.Delay.P50 != 500 {
		t.Errorf("got jitter %v, delay %+v; want 0 and 500 ns", got.JitterNanos, got.Delay)
	}
}

func TestStreamsBesideEachOther(t *testing.T) {
	const streams, each = 8, 20_000
	m := New(streams, 16, 1000, true, model.MaxMarksBytes)
	var wg sync.WaitGroup
	for s := range streams {
		wg.Go(func() {
			batch := make([]model.Arrival, 10)
			for n := 0; n < each; n += len(batch) {
				for i := range batch {
					batch[i] = model.Arrival{Sequence: uint64(n + i), ReceiveNanos: int64(n + i), Bytes: 16}
				}
				m.Observe(s, batch)
				m.Received()
			}
		})
	}
	wg.Wait()
	got := m.Tally()
	if got.Received != streams*each || total(got.PerStep) != streams*each || len(got.PerStep) != each/1000 {
		t.Errorf("received %d in %d steps, want %d in %d", got.Received, len(got.PerStep), streams*each, each/1000)
	}
}

func TestSeriesIsBounded(t *testing.T) {
	m := New(1, 16, 1, false, model.MaxMarksBytes)
	m.Observe(0, []model.Arrival{{Sequence: 0, Bytes: 16}, {Sequence: 1, Bytes: 16, ReceiveNanos: math.MaxInt64},
		{Sequence: 2, Bytes: 16, ReceiveNanos: 3}})
	got := m.Tally()
	if len(got.PerStep) != maxSteps || total(got.PerStep) != 3 || got.PerStep[maxSteps-1] != 1 {
		t.Errorf("%d steps holding %d, want %d holding 3", len(got.PerStep), total(got.PerStep), maxSteps)
	}
}

func TestObserveDoesNotAllocate(t *testing.T) {
	m := New(allWindows/minWindow, 16, second, true, model.MaxMarksBytes) // the least window of a stream
	batch := make([]model.Arrival, 64)
	var seq uint64
	observe := func() {
		for i := range batch {
			batch[i] = model.Arrival{Sequence: seq, ReceiveNanos: int64(seq), Bytes: 16}
			seq++
		}
		m.Observe(0, batch)
	}
	for range minWindow / len(batch) * 2 {
		observe() // every chunk of the window is made
	}
	if n := testing.AllocsPerRun(20000, observe); n != 0 {
		t.Errorf("%v allocations a batch", n)
	}
}

// What came tells how much was sent: what is missing below it is lost, what is on its
// way is not.
func TestReach(t *testing.T) {
	m := New(2, 100, 1e9, true, model.MaxMarksBytes)
	if got := m.Reach(); got != 0 {
		t.Errorf("nothing came, yet %d were sent", got)
	}
	m.Observe(0, []model.Arrival{{Sequence: 0, Bytes: 100}, {Sequence: 4, Bytes: 100}, {Sequence: 2, Bytes: 100}})
	m.Observe(1, []model.Arrival{{Sequence: 9, Bytes: 100}, {Sequence: 9, Bytes: 100}})
	if n, _ := m.Received(); m.Reach() != 5+10 || n != 4 {
		t.Errorf("reach %d, received %d; want 15 and 4", m.Reach(), n)
	}
}
