package record

import (
	"encoding/binary"
	"errors"
	"fmt"
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
	off             residuals
	steps           []int64
	numbers         numbers
	body, high, low []byte
}

const mask48 = 1<<48 - 1

// Sequences are written as runs of successors, or each by its step where that
// would be longer.
const (
	sequenceRuns = iota
	sequenceSteps
	sequenceWays
)

// Append appends one block to dst.
func (e *Encoder) Append(dst []byte, p Packets) []byte {
	list := p.List
	b := e.body[:0]
	for _, n := range []uint64{uint64(p.Trial), uint64(p.Flow), uint64(p.Stream), p.Dropped, uint64(len(list)), list[0].Sequence & mask48, list[0].SendNanos & mask48} {
		b = binary.AppendUvarint(b, n)
	}
	b = binary.AppendVarint(b, delay0(list))
	jumps := 0
	for i := 1; i < len(list); i++ {
		if elapsed48(list[i-1].Sequence, list[i].Sequence) != 1 {
			jumps++
		}
	}
	way := byte(sequenceRuns)
	if jumps > len(list)/8 {
		way = sequenceSteps
	}
	m := slopesOf(list)
	e.off.find(list, m)
	send, receive := cheapest(e.off.send[:]), cheapest(e.off.receive[:])
	if send == sendStep {
		m.line = m.step
	}
	b = append(b, way|byte(send)<<2|byte(receive)<<4)
	b = binary.AppendVarint(b, m.line)
	if way == sequenceRuns {
		b = appendRuns(b, list, jumps)
	}
	high, low := rangeWriter{out: e.high[:0], span: 1<<32 - 1}, bitWriter{out: e.low[:0]}
	if way == sequenceSteps {
		e.steps = e.steps[:0]
		for i := 1; i < len(list); i++ {
			e.steps = append(e.steps, elapsed48(list[i-1].Sequence, list[i].Sequence)-1)
		}
		e.column(&high, &low, e.steps)
	}
	e.column(&high, &low, e.off.send[send])
	e.column(&high, &low, e.off.receive[receive])
	e.high, e.low = high.close(), low.close()
	b = binary.AppendUvarint(b, uint64(len(e.high)))
	b = append(append(b, e.high...), e.low...)
	e.body = b
	return appendBlock(dst, kindPackets, b)
}

func (e *Encoder) column(high *rangeWriter, low *bitWriter, list []int64) {
	e.numbers.lengths.reset()
	for _, v := range list {
		e.numbers.put(high, low, v)
	}
}

// appendRuns writes how many jumps there are, and for each how many packets before
// it followed on each other, and by how much it is off.
func appendRuns(b []byte, list []Packet, jumps int) []byte {
	b = binary.AppendUvarint(b, uint64(jumps))
	run := uint64(0)
	for i := 1; i < len(list); i++ {
		step := elapsed48(list[i-1].Sequence, list[i].Sequence)
		if step == 1 {
			run++
			continue
		}
		b = binary.AppendUvarint(b, run)
		b = binary.AppendVarint(b, step-1)
		run = 0
	}
	return b
}

var errShort = errors.New("it is shorter than what it says to hold")

// decoder takes a body apart.
type decoder struct {
	in  []byte
	err error
}

func (d *decoder) uvarint(name string, most uint64) uint64 {
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

func (d *decoder) varint() int64 {
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

func (d *decoder) byte() byte {
	if d.err == nil && len(d.in) == 0 {
		d.err = errShort
	}
	if d.err != nil {
		return 0
	}
	v := d.in[0]
	d.in = d.in[1:]
	return v
}

// decodePackets takes a block's body apart; its list lies in space if there is room.
func decodePackets(body []byte, space []Packet) (Packets, error) {
	d := decoder{in: body}
	p := Packets{
		Trial: uint32(d.uvarint("trial", 1<<32-1)), Flow: uint16(d.uvarint("flow", 1<<16-1)), Stream: uint16(d.uvarint("stream", 1<<16-1)),
		Dropped: d.uvarint("dropped", 1<<63),
	}
	n := int(d.uvarint("packets", MaxPackets))
	first := Packet{Sequence: d.uvarint("sequence", mask48), SendNanos: d.uvarint("send time", mask48)}
	first.ReceiveNanos = int64(first.SendNanos) + d.varint()
	ways, m := d.byte(), d.varint()
	if d.err != nil {
		return p, d.err
	}
	send, receive, way := int(ways>>2&3), int(ways>>4), ways&3
	if n == 0 || send >= sendWays || receive >= receiveWays || way >= sequenceWays {
		return p, errors.New("it is of no known kind")
	}
	if cap(space) < n {
		space = make([]Packet, n)
	}
	p.List = space[:n]
	p.List[0] = first
	if way == sequenceRuns {
		d.runs(p.List)
	}
	split := int(d.uvarint("bytes", uint64(len(d.in))))
	if d.err == nil && split > len(d.in) {
		d.err = errShort
	}
	if d.err != nil {
		return p, d.err
	}
	c := columns{high: newRangeReader(d.in[:split]), low: bitReader{in: d.in[split:]}}
	if way == sequenceSteps {
		c.begin()
		for i := 1; i < n; i++ {
			p.List[i].Sequence = (p.List[i-1].Sequence + 1 + uint64(c.next())) & mask48
		}
	}
	if err := c.sends(p.List, send, m); err != nil {
		return p, err
	}
	c.receives(p.List, receive)
	switch {
	case c.low.short || c.high.over > 0:
		return p, errShort
	case len(c.low.in) > 0 || c.low.n >= 8 || c.low.acc != 0 || len(c.high.in) > 1:
		return p, errors.New("it is longer than what it says to hold")
	}
	return p, nil
}

func (d *decoder) runs(list []Packet) {
	jumps := d.uvarint("jumps", MaxPackets)
	i := 1
	next := func(off int64) {
		list[i].Sequence = (list[i-1].Sequence + 1 + uint64(off)) & mask48
		i++
	}
	for range jumps {
		run := d.uvarint("run", MaxPackets)
		off := d.varint()
		if d.err != nil {
			return
		}
		if i+int(run) >= len(list) {
			d.err = errors.New("its sequences go beyond its packets")
			return
		}
		for range run {
			next(0)
		}
		next(off)
	}
	for i < len(list) {
		next(0)
	}
}

// columns reads one column after the other.
type columns struct {
	high    rangeReader
	low     bitReader
	numbers numbers
}

func (c *columns) begin()      { c.numbers.lengths.reset() }
func (c *columns) next() int64 { return c.numbers.get(&c.high, &c.low) }

func (c *columns) sends(list []Packet, way int, slope int64) error {
	c.begin()
	if way == sendGroups {
		return c.groups(list)
	}
	var line drift
	seq, off, first := int64(0), int64(0), int64(list[0].SendNanos)
	for i := 1; i < len(list); i++ {
		seq += elapsed48(list[i-1].Sequence, list[i].Sequence)
		v := c.next()
		if way == sendLine {
			off = line.back(v)
		} else {
			off += v
		}
		list[i].SendNanos = uint64(first+seq*slope>>16+off) & mask48
	}
	return nil
}

func (c *columns) groups(list []Packet) error {
	var gap drift
	var size int64
	for i := 0; i < len(list); {
		if i > 0 {
			list[i].SendNanos = (list[i-1].SendNanos + uint64(gap.back(c.next()))) & mask48
		}
		size += c.next()
		if size < 1 || size > int64(len(list)-i) {
			return errors.New("its packets that were sent together are more than it holds")
		}
		for k := 1; k < int(size); k++ {
			list[i+k].SendNanos = list[i].SendNanos
		}
		i += int(size)
	}
	return nil
}

func (c *columns) receives(list []Packet, way int) {
	c.begin()
	var mean, gap drift
	base := delay0(list)
	sent, delay := int64(list[0].SendNanos), base
	for i := 1; i < len(list); i++ {
		sent += elapsed48(list[i-1].SendNanos, list[i].SendNanos)
		v := c.next()
		switch way {
		case receiveMean:
			list[i].ReceiveNanos = sent + base + mean.back(v)
		case receiveStep:
			delay += v
			list[i].ReceiveNanos = sent + delay
		default:
			list[i].ReceiveNanos = list[i-1].ReceiveNanos + gap.back(v)
		}
	}
}
