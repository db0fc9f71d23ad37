package record

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Packet is one that was received.
type Packet struct {
	Sequence     uint64 // u48, as in the test header
	SendNanos    uint64 // u48, of the sender's monotonic clock
	ReceiveNanos int64  // of the receiver's monotonic clock
}

// MaxPackets is the most that one block holds.
const MaxPackets = 1 << 14

// Packets are some of one stream in the order they came.
type Packets struct {
	Trial  uint32 // number within the file, as in [Trial]
	Flow   uint16 // number within the trial
	Stream uint16
	// Dropped counts packets that came right before these and had no room in the record.
	Dropped uint64
	List    []Packet // 1 to MaxPackets
}

// Encoder writes blocks of packets. It keeps memory between calls and must not be
// used by two goroutines at once.
type Encoder struct {
	zstd          *zstd.Encoder // nil before the first block
	columns, body []byte
}

const mask48 = 1<<48 - 1

// elapsed48 is b after a, for readings that wrap at 2^48.
func elapsed48(a, b uint64) int64 { return int64((b-a)<<16) >> 16 }

// delay is a packet's, in which the difference of the two clocks is.
func (p Packet) delay() int64 { return p.ReceiveNanos - int64(p.SendNanos) }

// Append appends one block to dst.
func (e *Encoder) Append(dst []byte, p Packets) []byte {
	if e.zstd == nil {
		var err error
		e.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(maxColumns),
			zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
		if err != nil {
			panic(err) // the options are constants
		}
	}
	first := p.List[0]
	b := e.body[:0]
	for _, n := range []uint64{
		uint64(p.Trial), uint64(p.Flow), uint64(p.Stream), p.Dropped, uint64(len(p.List)),
		first.Sequence & mask48, first.SendNanos & mask48,
	} {
		b = binary.AppendUvarint(b, n)
	}
	b = binary.AppendVarint(b, first.delay())
	e.columns = appendColumns(e.columns[:0], p.List)
	e.body = e.zstd.EncodeAll(e.columns, b)
	return appendBlock(dst, kindPackets, e.body)
}

// maxColumns is a power of two that no block's columns exceed.
const maxColumns = 1 << 19

// appendColumns appends what changes from each packet to the next, one column after the other:
// the step of the sequence less 1, the change of the send gap, and the change of the delay.
func appendColumns(b []byte, list []Packet) []byte {
	for i := 1; i < len(list); i++ {
		b = binary.AppendVarint(b, elapsed48(list[i-1].Sequence, list[i].Sequence)-1)
	}
	before := int64(0)
	for i := 1; i < len(list); i++ {
		gap := elapsed48(list[i-1].SendNanos, list[i].SendNanos)
		b = binary.AppendVarint(b, gap-before)
		before = gap
	}
	for i := 1; i < len(list); i++ {
		sent := elapsed48(list[i-1].SendNanos, list[i].SendNanos)
		b = binary.AppendVarint(b, list[i].ReceiveNanos-list[i-1].ReceiveNanos-sent)
	}
	return b
}

var (
	errShort = errors.New("it is shorter than what it says to hold")
	errLong  = errors.New("it is longer than what it says to hold")
)

// numbers are read off a body, and then off its columns.
type numbers struct {
	in  []byte
	err error
}

func (d *numbers) uvarint(name string, most uint64) uint64 {
	v, n := binary.Uvarint(d.in)
	switch {
	case d.err != nil:
		return 0
	case n <= 0:
		d.err = errShort
		return 0
	case v > most:
		d.err = fmt.Errorf("%s %d: want at most %d", name, v, most)
		return 0
	}
	d.in = d.in[n:]
	return v
}

func (d *numbers) varint() int64 {
	v, n := binary.Varint(d.in)
	if d.err == nil && n <= 0 {
		d.err = errShort
	}
	if d.err != nil {
		return 0
	}
	d.in = d.in[n:]
	return v
}

// Decoder reads blocks. It keeps memory between calls and must not be used by two goroutines at once.
type Decoder struct {
	zstd    *zstd.Decoder // nil before the first block
	columns []byte
	list    []Packet
}

// packets takes a block's body apart. Its list is valid until the next call.
func (k *Decoder) packets(body []byte) (Packets, error) {
	d := numbers{in: body}
	p := Packets{
		Trial: uint32(d.uvarint("trial", 1<<32-1)), Flow: uint16(d.uvarint("flow",
			1<<16-1)), Stream: uint16(d.uvarint("stream", 1<<16-1)),
		Dropped: d.uvarint("dropped", 1<<63),
	}
	n := int(d.uvarint("packets", MaxPackets))
	first := Packet{Sequence: d.uvarint("sequence", mask48), SendNanos: d.uvarint("send time", mask48)}
	first.ReceiveNanos = int64(first.SendNanos) + d.varint()
	if d.err == nil && n == 0 {
		d.err = errors.New("it holds no packet")
	}
	if d.err != nil {
		return p, d.err
	}
	if k.zstd == nil {
		var err error
		k.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxColumns),
			zstd.WithDecoderLowmem(true))
		if err != nil {
			panic(err) // the options are constants
		}
	}
	var err error
	if k.columns, err = k.zstd.DecodeAll(d.in, k.columns[:0]); err != nil {
		return p, fmt.Errorf("its columns: %w", err)
	}
	if cap(k.list) < n {
		k.list = make([]Packet, MaxPackets)
	}
	p.List = k.list[:n]
	p.List[0] = first
	return p, fill(p.List, k.columns)
}

// fill reads the columns of all packets but the first, which is there.
func fill(list []Packet, columns []byte) error {
	d := numbers{in: columns}
	for i := 1; i < len(list); i++ {
		list[i].Sequence = (list[i-1].Sequence + 1 + uint64(d.varint())) & mask48
	}
	gap := int64(0)
	for i := 1; i < len(list); i++ {
		gap += d.varint()
		list[i].SendNanos = (list[i-1].SendNanos + uint64(gap)) & mask48
	}
	for i := 1; i < len(list); i++ {
		sent := elapsed48(list[i-1].SendNanos, list[i].SendNanos)
		list[i].ReceiveNanos = list[i-1].ReceiveNanos + sent + d.varint()
	}
	if d.err == nil && len(d.in) > 0 {
		d.err = errLong
	}
	return d.err
}
