package stats

import (
	"errors"
	"fmt"
	"io"

	"pelt/record"
)

// What is read at a time is bounded: a flow takes some 0.5 MB, and each of its streams
// some 0.3 MB.
const (
	maxOpen    = 2048
	maxStreams = 4096
)

// ErrTooMany is of a record that needs more memory than there is for one.
var ErrTooMany = fmt.Errorf("it has more than %d flows or %d streams at a time", maxOpen, maxStreams)

// open is a trial whose part is being read.
type open struct {
	trial   uint32
	at      int // in the document
	streams int // of all flows
	flows   map[uint16]*flow
	dropped map[uint16]uint64 // as streams that have ended told
}

// Read reads a record to its end, or up to where it is cut. progress, which may be
// nil, is told how many bytes are read. The error is what the file said; a record
// that is cut is none.
func Read(r *record.Reader, progress func(bytes int64)) (Document, error) {
	d := Document{Format: Format, Header: r.Header(), Trials: []Trial{}}
	trials, places := map[uint32]*open{}, map[uint32]int{} // that are open; where each is in the document
	flows, streams := 0, 0                                 // of those that are open
	end := func(o *open, c *record.Closed) {
		o.close(&d.Trials[o.at], c)
		delete(trials, o.trial)
		flows, streams = flows-max(len(o.flows), 1), streams-o.streams
	}
	for {
		before := r.Offset()
		b, err := r.Next()
		var cut *record.CutError
		switch {
		case errors.Is(err, io.EOF):
			d.Whole = true
		case errors.As(err, &cut):
			d.Cut = cut.Error()
		case err != nil:
			return d, err
		}
		d.Bytes = r.Offset()
		if err != nil {
			for _, o := range trials {
				end(o, nil)
			}
			return d, nil
		}
		if progress != nil {
			progress(d.Bytes)
		}
		switch b := b.(type) {
		case *record.Trial:
			if trials[b.Trial] != nil {
				break
			}
			flows, streams = flows+max(len(b.Flows), 1), streams+streamsOf(b.Flows)
			if flows > maxOpen || streams > maxStreams {
				return d, ErrTooMany
			}
			o := begin(&d, b)
			trials[b.Trial] = o
			if _, known := places[b.Trial]; !known {
				places[b.Trial] = o.at
			}
		case *record.Packets:
			if o := trials[b.Trial]; o != nil && o.flows[b.Flow] != nil {
				o.flows[b.Flow].add(b, d.Bytes-before)
			}
		case *record.Stream:
			if o := trials[b.Trial]; o != nil && o.flows[b.Flow] != nil {
				o.dropped[b.Flow] += b.Dropped
				o.flows[b.Flow].figures.Bytes += uint64(d.Bytes - before)
			}
		case *record.Closed:
			if o := trials[b.Trial]; o != nil {
				end(o, b)
			}
		case *record.Void:
			if i, known := places[b.Trial]; known {
				d.Trials[i].Void = b.Why
				if o := trials[b.Trial]; o != nil {
					end(o, nil)
				}
			}
		}
	}
}

func streamsOf(flows []record.Flow) (n int) {
	for _, f := range flows {
		n += f.Streams
	}
	return n
}

func begin(d *Document, t *record.Trial) *open {
	o := &open{trial: t.Trial, at: len(d.Trials), streams: streamsOf(t.Flows), flows: map[uint16]*flow{}, dropped: map[uint16]uint64{}}
	for _, f := range t.Flows {
		o.flows[f.Flow] = newFlow(f)
	}
	d.Trials = append(d.Trials, Trial{Trial: *t, Of: []Figures{}})
	return o
}

func (o *open) close(t *Trial, c *record.Closed) {
	own := map[uint16]*record.ClosedFlow{}
	if c != nil {
		t.State, t.Why = c.State, c.Why
		for i := range c.Flows {
			own[c.Flows[i].Flow] = &c.Flows[i]
		}
	}
	for _, f := range t.Flows {
		t.Of = append(t.Of, o.flows[f.Flow].close(own[f.Flow], o.dropped[f.Flow]))
	}
}
