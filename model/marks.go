package model

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Stretch is a run of consecutive sequences of one stream that share a mark.
type Stretch struct {
	From, Count uint64
	Mark        uint16 // its meaning is its list's
}

// Marks lists sequences of one stream, each with a mark, in ascending order, as
// it travels between hosts and is kept. The zero value is an empty list.
type Marks struct {
	Data     []byte `json:"data,omitempty"`     // uvarints: gap, count-1, mark; then DEFLATE
	Packets  uint64 `json:"packets,omitempty"`  // sequences in the list
	Unlisted uint64 `json:"unlisted,omitempty"` // further ones, for which the list had no room
}

// Bounds of a list of marks.
const (
	// MaxMarksBytes is the length before compression: some 4 million stretches.
	MaxMarksBytes = 12 << 20
	maxSequence   = 1<<48 - 1
)

// MarksWriter builds a list of marks. The zero value is ready for use.
type MarksWriter struct {
	// Limit bounds the list in bytes before compression, some 3 B a stretch; 0 leaves it the most there can be.
	Limit   int
	raw     []byte
	pending Stretch
	next    uint64 // first sequence after what raw holds
	sum     Marks
}

// Add appends count sequences from the given one; they lie above all before. A
// list that is full counts them as unlisted.
func (w *MarksWriter) Add(from, count uint64, mark uint16) {
	if count == 0 {
		return
	}
	if p := &w.pending; p.Count > 0 && p.Mark == mark && p.From+p.Count == from {
		p.Count += count
		return
	}
	w.flush()
	w.pending = Stretch{from, count, mark}
}

func (w *MarksWriter) flush() {
	p := w.pending
	w.pending = Stretch{}
	if p.Count == 0 {
		return
	}
	limit := MaxMarksBytes
	if w.Limit > 0 {
		limit = min(limit, w.Limit)
	}
	if len(w.raw)+3*binary.MaxVarintLen64 > limit || p.From < w.next {
		w.sum.Unlisted += p.Count
		return
	}
	w.raw = binary.AppendUvarint(w.raw, p.From-w.next)
	w.raw = binary.AppendUvarint(w.raw, p.Count-1)
	w.raw = binary.AppendUvarint(w.raw, uint64(p.Mark))
	w.next = p.From + p.Count
	w.sum.Packets += p.Count
}

func (w *MarksWriter) Marks() Marks {
	w.flush()
	if len(w.raw) > 0 {
		var b bytes.Buffer
		z, _ := flate.NewWriter(&b, flate.BestSpeed) // the level is valid
		_, _ = z.Write(w.raw)                        // to memory
		_ = z.Close()
		w.sum.Data = b.Bytes()
	}
	return w.sum
}

// Stretches yields the list in ascending order. A list that is broken, or that
// says more than it holds, ends with an error.
func (m Marks) Stretches() iter.Seq2[Stretch, error] {
	return func(yield func(Stretch, error) bool) {
		raw, err := m.inflate()
		if err != nil {
			yield(Stretch{}, err)
			return
		}
		next, packets := uint64(0), uint64(0)
		for len(raw) > 0 {
			var v [3]uint64
			for i := range v {
				n, used := binary.Uvarint(raw)
				if used <= 0 {
					yield(Stretch{}, errors.New("marks: cut short"))
					return
				}
				v[i], raw = n, raw[used:]
			}
			if v[0] > maxSequence || v[1] > maxSequence || next+v[0]+v[1] > maxSequence || v[2] > 0xffff {
				yield(Stretch{}, fmt.Errorf("marks: %d, %d, %d after sequence %d", v[0], v[1], v[2], next))
				return
			}
			s := Stretch{next + v[0], v[1] + 1, uint16(v[2])}
			next = s.From + s.Count
			if packets += s.Count; packets > m.Packets {
				break
			}
			if !yield(s, nil) {
				return
			}
		}
		if packets != m.Packets {
			yield(Stretch{}, fmt.Errorf("marks: %d sequences listed, %d said", packets, m.Packets))
		}
	}
}

func (m Marks) inflate() ([]byte, error) {
	if len(m.Data) == 0 {
		return nil, nil
	}
	z := flate.NewReader(bytes.NewReader(m.Data))
	raw, err := io.ReadAll(io.LimitReader(z, MaxMarksBytes+1))
	if err != nil {
		return nil, fmt.Errorf("marks: %w", err)
	}
	if len(raw) > MaxMarksBytes {
		return nil, fmt.Errorf("marks: longer than %d B", MaxMarksBytes)
	}
	return raw, nil
}
