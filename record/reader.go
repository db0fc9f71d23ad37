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

// VersionError is a record that only a newer pelt reads.
type VersionError struct{ Format string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("format %.40q: this pelt reads %s", e.Format, Format)
}

// CutError ends a record that is not whole. All blocks before it are.
type CutError struct {
	At  int64 // byte of the file behind the last whole block
	Why string
}

func (e *CutError) Error() string { return fmt.Sprintf("cut at byte %d: %s", e.At, e.Why) }

// Reader reads a record from its begin. It needs no more memory for a long one.
type Reader struct {
	in     *bufio.Reader
	header Header
	at     int64 // behind the last whole block
	body   []byte
	list   []Packet
	ended  bool
	err    error
}

// NewReader reads the header. Errors: [ErrNone], *[VersionError], *[CutError], or
// what r said.
func NewReader(r io.Reader) (*Reader, error) {
	p := &Reader{in: bufio.NewReaderSize(r, 256<<10)}
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

// Next returns the next block; a *Packets and its list are good until the next call.
// At the end of a whole record it returns [io.EOF], and *[CutError] where one
// breaks off or is damaged.
func (r *Reader) Next() (Block, error) {
	for r.err == nil {
		var b Block
		if b, r.err = r.next(); b != nil {
			return b, nil
		}
	}
	return nil, r.err
}

// next returns nil without an error for a block of an unknown kind.
func (r *Reader) next() (Block, error) {
	var head [headBytes]byte
	n, err := io.ReadFull(r.in, head[:])
	switch {
	case errors.Is(err, io.EOF) && r.ended:
		return nil, io.EOF
	case errors.Is(err, io.EOF):
		return nil, r.cut("its end is missing")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, r.cut(fmt.Sprintf("%d B of a block are there", n))
	case err != nil:
		return nil, err
	case r.ended:
		return nil, r.cut("more follows its end")
	}
	length, ok := bodyBytes(head[:])
	if !ok {
		return nil, r.cut("what follows is no block")
	}
	if cap(r.body) < length {
		r.body = make([]byte, length)
	}
	body := r.body[:length]
	n, err = io.ReadFull(r.in, body)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) && length > 0:
		return nil, r.cut(fmt.Sprintf("%d of a block's %d B are there", n+headBytes, length+headBytes))
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case checkSum(head[:], body) != binary.LittleEndian.Uint32(head[5:]):
		return nil, r.cut("the block behind it is damaged")
	}
	b, err := r.open(kind(head[0]), body)
	if err != nil {
		return nil, r.cut(fmt.Sprintf("the block behind it is damaged: %.200v", err)) // it may quote a body of 1 MiB
	}
	r.at += int64(headBytes + length)
	_, r.ended = b.(*End)
	return b, nil
}

func (r *Reader) open(k kind, body []byte) (Block, error) {
	if k != kindPackets {
		return context(k, body)
	}
	p, err := decodePackets(body, r.list)
	if err != nil {
		return nil, err
	}
	r.list = p.List[:0]
	return &p, nil
}

func (r *Reader) cut(why string) error { return &CutError{r.at, why} }

// Split takes the first block off blocks that have no header before them, as they
// come over a connection; its list is good until the space is used again.
func Split(blocks []byte, space []Packet) (b Block, block, rest []byte, err error) {
	if len(blocks) < headBytes {
		return nil, nil, nil, errShort
	}
	length, ok := bodyBytes(blocks)
	if !ok || len(blocks) < headBytes+length {
		return nil, nil, nil, errShort
	}
	block, rest = blocks[:headBytes+length], blocks[headBytes+length:]
	if checkSum(block, block[headBytes:]) != binary.LittleEndian.Uint32(block[5:]) {
		return nil, nil, nil, errors.New("a block is damaged")
	}
	k := kind(block[0])
	if k != kindPackets {
		b, err = context(k, block[headBytes:])
		return b, block, rest, err
	}
	p, err := decodePackets(block[headBytes:], space)
	return &p, block, rest, err
}
