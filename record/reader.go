package record

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrNone is what a file is that is no record at all.
var ErrNone = errors.New("this is no record of pelt")

// VersionError is a record that another version of pelt reads.
type VersionError struct{ Format string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("format %.40q: this pelt reads %s", e.Format, Format)
}

// CutError ends a record that is not whole. All blocks before it are.
type CutError struct {
	At  int64 // byte of the file behind the last whole block
	Why string
}

func (e *CutError) Error() string {
	format, values := e.Said()
	return fmt.Sprintf(format, values...)
}

// Said is the error as words.Language.Error says it in other languages.
func (e *CutError) Said() (format string, values []any) {
	return "cut at byte %d: %v", []any{e.At, errors.New(e.Why)}
}

// What is open at a time is bounded: to compute its figures a flow takes some 0.5 MB, and each
// of its streams some 0.3 MB.
const (
	maxOpen    = 2048
	maxStreams = 4096
)

// ErrTooMany is of a record that needs more memory than there is for one.
var ErrTooMany = fmt.Errorf("it has more than %d flows or %d streams at a time", maxOpen, maxStreams)

// Reader reads a record from its begin. It needs no more memory for a long one.
type Reader struct {
	in     *bufio.Reader
	header Header
	at     int64             // behind the last whole block
	trials map[uint32]*Trial // that have begun and not ended
	blocks Decoder
	ended  bool
	err    error
}

// NewReader reads the header. Errors: [ErrNone], *[VersionError], *[CutError], or
// what r said.
func NewReader(r io.Reader) (*Reader, error) {
	p := &Reader{in: bufio.NewReaderSize(r, headBytes+maxBody), trials: map[uint32]*Trial{}}
	open := make([]byte, len(magic))
	n, err := io.ReadFull(p.in, open)
	switch {
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF):
		return nil, err
	case string(open[:n]) != magic[:n] || n == 0:
		return nil, ErrNone
	case err != nil:
		return nil, &CutError{0, "it ends in its first bytes"}
	}
	p.at = int64(n)
	b, err := p.Next()
	if errors.Is(err, io.EOF) {
		err = &CutError{p.at, "it has no header"}
	}
	if err != nil {
		return nil, err
	}
	h, ok := b.(*Header)
	if !ok {
		return nil, &CutError{int64(n), "it has no header"}
	}
	if h.Format != Format {
		if !strings.HasPrefix(h.Format, "pelt/record/") {
			return nil, ErrNone
		}
		return nil, &VersionError{h.Format}
	}
	p.header = *h
	return p, nil
}

// Header is the file's.
func (r *Reader) Header() Header { return r.header }

// Offset is how far the file is read: behind the last whole block.
func (r *Reader) Offset() int64 { return r.at }

// Cut is where and why a record that was read to its end broke off, nil of a whole one.
func (r *Reader) Cut() *CutError {
	var cut *CutError
	errors.As(r.err, &cut)
	return cut
}

// Each calls f for each block, to the end of the record or to where it is cut. Its errors are
// those of f, [ErrTooMany], or what the file said.
func (r *Reader) Each(f func(Block) error) error {
	for {
		b, err := r.Next()
		switch {
		case errors.Is(err, io.EOF) || r.Cut() != nil:
			return nil
		case err != nil:
			return err
		}
		if err := f(b); err != nil {
			return err
		}
	}
}

// Flow is the flow that packets are of, and its trial; nil if the record names none.
func (r *Reader) Flow(p *Packets) (*Trial, *Flow) {
	t := r.trials[p.Trial]
	if t == nil {
		return nil, nil
	}
	for i := range t.Flows {
		if t.Flows[i].Flow == p.Flow {
			return t, &t.Flows[i]
		}
	}
	return nil, nil
}

// follow notes which trials are open.
func (r *Reader) follow(b Block) error {
	switch b := b.(type) {
	case *Closed:
		delete(r.trials, b.Trial)
	case *Void:
		delete(r.trials, b.Trial)
	case *Trial:
		if r.trials[b.Trial] == nil { // else it goes on, with the flows that it began with
			r.trials[b.Trial] = b
		}
		flows, streams := 0, 0
		for _, t := range r.trials {
			flows += max(len(t.Flows), 1)
			for _, f := range t.Flows {
				streams += f.Streams
			}
		}
		if flows > maxOpen || streams > maxStreams {
			return ErrTooMany
		}
	}
	return nil
}

// Next returns the next block; a *Packets and its list are good until the next call.
// At the end of a whole record it returns [io.EOF], and *[CutError] where one
// breaks off or is damaged.
func (r *Reader) Next() (Block, error) {
	for r.err == nil {
		var b Block
		if b, r.err = r.next(); b != nil && r.err == nil {
			return b, nil
		}
	}
	return nil, r.err
}

// next returns nil without an error for a block of an unknown kind.
func (r *Reader) next() (Block, error) {
	head, err := r.in.Peek(headBytes)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case len(head) == 0 && r.ended:
		return nil, io.EOF
	case len(head) == 0:
		return nil, r.cut("its end is missing")
	case err != nil:
		return nil, r.cut(fmt.Sprintf("%d B of a block are there", len(head)))
	case r.ended:
		return nil, r.cut("more follows its end")
	}
	length, ok := blockBytes(head)
	if !ok {
		return nil, r.cut("what follows is no block")
	}
	block, err := r.in.Peek(length)
	switch {
	case errors.Is(err, io.EOF):
		return nil, r.cut(fmt.Sprintf("%d of a block's %d B are there", len(block), length))
	case err != nil:
		return nil, err
	}
	b, err := r.blocks.decode(block)
	if err != nil {
		return nil, r.cut(fmt.Sprintf("the block behind it is damaged: %.200v", err)) // it may quote a body of 1 MiB
	}
	_, err = r.in.Discard(length)
	r.at += int64(length)
	_, r.ended = b.(*End)
	return b, errors.Join(err, r.follow(b))
}

func (r *Reader) cut(why string) error { return &CutError{r.at, why} }

// Split takes the first block off blocks that have no header before them, as they
// come over a connection; a *Packets and its list are good until the next call.
func (k *Decoder) Split(blocks []byte) (b Block, block, rest []byte, err error) {
	length, ok := 0, false
	if len(blocks) >= headBytes {
		length, ok = blockBytes(blocks)
	}
	if !ok || len(blocks) < length {
		return nil, nil, nil, errShort
	}
	b, err = k.decode(blocks[:length])
	return b, blocks[:length], blocks[length:], err
}

// decode reads one whole block; nil for a kind that is not known here.
func (k *Decoder) decode(block []byte) (Block, error) {
	of, body := kind(block[0]), block[headBytes:]
	if checkSum(block, body) != binary.LittleEndian.Uint32(block[5:]) {
		return nil, errors.New("its check sum differs")
	}
	if of != kindPackets {
		return context(of, body)
	}
	p, err := k.packets(body)
	if err != nil {
		return nil, err
	}
	return &p, nil
}
