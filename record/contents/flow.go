package contents

import (
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
	context   record.Flow
	listBytes int // for its losses, at most
	figures   Figures
	meter     *measure.Meter // made with the first packets, as it takes memory
	next      []int64        // of each stream: one above the highest sequence
	batch     []model.Arrival
}

func newFlow(c record.Flow, listBytes int) *flow {
	return &flow{context: c, listBytes: listBytes, next: make([]int64, c.Streams),
		figures: Figures{Flow: c.Flow, Name: c.Name, Losses: []model.Span{}}}
}

func (f *flow) add(p *record.Packets, bytes int64) {
	f.figures.Packets += uint64(len(p.List))
	f.figures.Dropped += p.Dropped
	f.figures.Bytes += uint64(bytes)
	if int(p.Stream) >= len(f.next) {
		return // of no stream that the trial has; its packets are counted, and in no figure
	}
	if f.meter == nil {
		f.meter = measure.New(f.context.Streams, f.context.PayloadBytes, oneStep, f.context.OneClock, f.listBytes)
	}
	next := &f.next[p.Stream]
	f.batch = f.batch[:0]
	for i := range p.List {
		x := &p.List[i]
		*next = max(*next, *next+int64((x.Sequence-uint64(*next))<<16)>>16+1)
		f.batch = append(f.batch, model.Arrival{Sequence: x.Sequence, SendNanos: x.SendNanos,
			ReceiveNanos: x.ReceiveNanos, Bytes: f.context.PayloadBytes})
	}
	f.meter.Observe(int(p.Stream), f.batch)
}

// close makes the figures. attempted has what each stream sent; it is nil of a part that was cut.
func (f *flow) close(attempted []uint64, dropped uint64) Figures {
	g := &f.figures
	g.Dropped = max(g.Dropped, dropped)
	g.AttemptedKnown = attempted != nil && len(attempted) == len(f.next)
	for i, next := range f.next {
		n := uint64(max(next, 0))
		if g.AttemptedKnown {
			n = attempted[i]
		}
		g.Attempted += n
		if f.meter == nil { // nothing came
			g.lost(i, 0, n)
			continue
		}
		missing := f.meter.Missing(i, n)
		g.Unlisted += missing.Unlisted
		for s, err := range missing.Stretches() {
			if err != nil {
				break // it was made right here
			}
			g.lost(i, s.From, s.Count)
		}
	}
	if f.meter != nil {
		t := f.meter.Tally()
		g.Received, g.Duplicates, g.Late = t.Received, t.Duplicates, t.Late
		g.DurationS = float64(t.LastNanos-t.FirstNanos) / 1e9
	}
	g.Lost = g.Attempted - min(g.Received, g.Attempted)
	return *g
}

func (g *Figures) lost(stream int, from, count uint64) {
	if count == 0 {
		return
	}
	if g.LossRuns++; len(g.Losses) < mostRuns {
		g.Losses = append(g.Losses, model.Span{Stream: stream, From: from, Count: count})
	}
}
