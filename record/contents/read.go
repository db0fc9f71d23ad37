package contents

import (
	"pelt/model"
	"pelt/record"
)

// allLists is the most bytes that the lists of losses of all open trials take. A trial takes half of what is left.
const allLists = 256 << 20

// open is a trial whose part is being read.
type open struct {
	at      int // in the document
	flows   map[uint16]*flow
	dropped map[uint16]uint64 // as streams that have ended told
	lists   int               // bytes for its lists of losses
}

// Read reads a record to its end, or up to where it is cut: that is no error.
func Read(r *record.Reader) (Document, error) {
	d := Document{Format: Format, Header: r.Header(), Trials: []Trial{}}
	trials, places := map[uint32]*open{}, map[uint32]int{} // that are open; where each is in the document
	room := allLists
	end := func(trial uint32, c *record.Closed) {
		if o := trials[trial]; o != nil {
			o.close(&d.Trials[o.at], c)
			room += o.lists
			delete(trials, trial)
		}
	}
	at := func(trial uint32, number uint16) (*open, *flow) {
		if o := trials[trial]; o != nil && o.flows[number] != nil {
			return o, o.flows[number]
		}
		return nil, nil
	}
	before := r.Offset()
	err := r.Each(func(b record.Block) error {
		bytes := r.Offset() - before
		before = r.Offset()
		switch b := b.(type) {
		case *record.Trial:
			if trials[b.Trial] == nil {
				trials[b.Trial] = begin(&d, b, room)
				room -= trials[b.Trial].lists
				if _, known := places[b.Trial]; !known {
					places[b.Trial] = trials[b.Trial].at
				}
			}
		case *record.Packets:
			if _, f := at(b.Trial, b.Flow); f != nil {
				f.add(b, bytes)
			}
		case *record.Stream:
			if o, f := at(b.Trial, b.Flow); f != nil {
				o.dropped[b.Flow] += b.Dropped
				f.figures.Bytes += uint64(bytes)
			}
		case *record.Closed:
			end(b.Trial, b)
		case *record.Void:
			if i, known := places[b.Trial]; known {
				d.Trials[i].NotKept = true
				end(b.Trial, nil)
			}
		}
		return nil
	})
	for trial := range trials {
		end(trial, nil)
	}
	d.Bytes, d.Whole = r.Offset(), r.Cut() == nil
	if !d.Whole {
		d.Fault = r.Cut()
		d.Cut = d.Fault.Error()
	}
	return d, err
}

func begin(d *Document, t *record.Trial, room int) *open {
	o := &open{at: len(d.Trials), flows: map[uint16]*flow{}, dropped: map[uint16]uint64{},
		lists: min(len(t.Flows)*model.MaxMarksBytes, room/2)}
	for _, f := range t.Flows {
		o.flows[f.Flow] = newFlow(f, o.lists/len(t.Flows))
	}
	d.Trials = append(d.Trials, Trial{Trial: *t, Of: []Figures{}})
	return o
}

func (o *open) close(t *Trial, c *record.Closed) {
	attempted := map[uint16][]uint64{}
	if c != nil {
		t.State, t.Why = c.State, c.Why
		for _, f := range c.Flows {
			attempted[f.Flow] = f.Attempted
		}
	}
	for _, f := range t.Flows {
		t.Of = append(t.Of, o.flows[f.Flow].close(attempted[f.Flow], o.dropped[f.Flow]))
	}
}
