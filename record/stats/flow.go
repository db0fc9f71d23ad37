package stats

import (
	"maps"
	"math"
	"math/bits"
	"slices"

	"pelt/measure"
	"pelt/model"
	"pelt/record"
)

// mostRuns bounds the runs of losses that are listed.
const mostRuns = 32

// oneStep is longer than any trial, in nanoseconds: no figure here is by the second.
const oneStep = 1 << 62

// flow is one flow while its part of the record is read.
type flow struct {
	context             record.Flow
	listBytes           int // for its losses, at most
	figures             Figures
	meter               *measure.Meter
	sendGap, receiveGap *measure.Histogram
	streams             []stream
	batch               []model.Arrival
}

type stream struct {
	next   int64 // one above the highest sequence
	before record.Packet
	any    bool
}

func newFlow(c record.Flow, listBytes int) *flow {
	return &flow{context: c, listBytes: listBytes, streams: make([]stream, c.Streams),
		figures: Figures{Flow: c.Flow, Name: c.Name, Losses: []Run{}, Runs: []Length{}}}
}

// start makes what takes memory, once there is something to count.
func (f *flow) start() {
	if f.meter == nil {
		f.meter = measure.New(f.context.Streams, f.context.PayloadBytes, oneStep, f.context.OneClock, f.listBytes)
		f.sendGap, f.receiveGap = measure.NewHistogram(1), measure.NewHistogram(1)
	}
}

func (f *flow) add(p *record.Packets, bytes int64) {
	f.start()
	f.figures.Packets += uint64(len(p.List))
	f.figures.Dropped += p.Dropped
	f.figures.Bytes += uint64(bytes)
	if int(p.Stream) >= len(f.streams) {
		return // of no stream that the trial has; its packets are counted, and in no figure
	}
	s := &f.streams[p.Stream]
	f.batch = f.batch[:0]
	for i := range p.List {
		x := &p.List[i]
		if s.any {
			if i > 0 || p.Dropped == 0 { // else what was left out came in between
				f.receiveGap.Record(0, x.ReceiveNanos-s.before.ReceiveNanos, 1)
			}
			if x.Sequence == (s.before.Sequence+1)&(1<<48-1) {
				f.sendGap.Record(0, int64((x.SendNanos-s.before.SendNanos)<<16)>>16, 1)
			}
		}
		s.any, s.before = true, *x
		s.next = max(s.next, s.next+int64((x.Sequence-uint64(s.next))<<16)>>16+1)
		f.batch = append(f.batch, model.Arrival{Sequence: x.Sequence, SendNanos: x.SendNanos,
			ReceiveNanos: x.ReceiveNanos, Bytes: f.context.PayloadBytes})
	}
	f.meter.Observe(int(p.Stream), f.batch)
}

// close makes the figures. own is nil of a part that was cut.
func (f *flow) close(own *record.ClosedFlow, dropped uint64) Figures {
	g := &f.figures
	g.Dropped = max(g.Dropped, dropped)
	attempted := make([]uint64, len(f.streams))
	for i, s := range f.streams {
		attempted[i] = uint64(max(s.next, 0))
	}
	if own != nil && len(own.Attempted) == len(f.streams) {
		g.AttemptedKnown = true
		copy(attempted, own.Attempted)
	}
	counts := map[int]uint64{}
	lost := func(stream int, from, count uint64) {
		g.LossRuns++
		counts[bits.Len64(count-1)]++
		if len(g.Losses) < mostRuns {
			g.Losses = append(g.Losses, Run{uint16(stream), from, count})
		}
	}
	var t model.Tally
	for i, n := range attempted {
		g.Attempted += n
		if f.meter == nil { // nothing came
			if n > 0 {
				lost(i, 0, n)
			}
			continue
		}
		missing := f.meter.Missing(i, n)
		g.Unlisted += missing.Unlisted
		for s, err := range missing.Stretches() {
			if err != nil {
				break // it was made right here
			}
			lost(i, s.From, s.Count)
		}
	}
	if f.meter != nil {
		t = f.meter.Tally()
	}
	g.Received, g.Duplicates, g.Reordered, g.Late = t.Received, t.Duplicates, t.Reordered, t.Late
	g.Delay, g.JitterNS = t.Delay, t.JitterNanos
	if g.Delay != nil && g.Delay.Count == 0 {
		g.Delay = nil
	}
	g.Lost = g.Attempted - min(g.Received, g.Attempted)
	if g.Attempted > 0 {
		g.LossRatio = float64(g.Lost) / float64(g.Attempted)
	}
	if g.Received > 0 {
		g.ReorderedRatio = float64(g.Reordered) / float64(g.Received)
	}
	if g.DurationS = float64(t.LastNanos-t.FirstNanos) / 1e9; g.Received > 1 && g.DurationS > 0 {
		g.ReceivePPS = float64(g.Received-1) / g.DurationS
	}
	if f.sendGap != nil {
		g.SendGap, g.SendGapCounts = f.sendGap.Percentiles(), f.sendGap.Buckets()
		g.ReceiveGap, g.ReceiveGapCounts = f.receiveGap.Percentiles(), f.receiveGap.Buckets()
	}
	for _, b := range slices.Sorted(maps.Keys(counts)) {
		g.Runs = append(g.Runs, Length{1 << b, counts[b]})
	}
	if own != nil {
		g.Own = own
		g.Differs = differs(*g, *own)
	}
	return *g
}

// differs names the figures that the record does not bear out.
func differs(g Figures, own record.ClosedFlow) (list []string) {
	for _, f := range []struct {
		name      string
		got, want uint64
	}{
		{"recorded", g.Packets, own.Recorded}, {"dropped", g.Dropped, own.Dropped}, {"received", g.Received, own.Received},
		{"duplicates", g.Duplicates, own.Duplicates}, {"reordered", g.Reordered, own.Reordered}, {"late", g.Late, own.Late},
	} {
		if f.got != f.want {
			list = append(list, f.name)
		}
	}
	if math.Abs(g.JitterNS-own.JitterNS) > 1e-9*math.Abs(own.JitterNS) {
		list = append(list, "jitter")
	}
	if own.Delay != nil && own.Delay.Count > 0 && (g.Delay == nil || *g.Delay != *own.Delay) {
		list = append(list, "delay")
	}
	return list
}
