package engine

import "encoding/binary"

// HeaderBytes is the length of the test header that opens every UDP payload:
// magic u16 | trial u16 | sequence u48 | send time u48, big endian.
const HeaderBytes = 16

// Magic opens every test datagram.
const Magic = 0x9E17

// WarmupBit marks the trial number of packets that are sent but not counted.
const WarmupBit = 0x8000

// NumberAfter returns the n-th number after one that packets carry: the flows of a trial have numbers of their own.
func NumberAfter(number uint16, n int) uint16 { return uint16((int(number)-1+n)%(WarmupBit-1)) + 1 }

const mask48 = 1<<48 - 1

// Header is the test header.
type Header struct {
	Trial     uint16
	Sequence  uint64 // u48
	SendNanos uint64 // u48: ns of the sender's monotonic clock, wraps at 78 h
}

// PutHeader writes h to the first HeaderBytes of b.
func PutHeader(b []byte, h Header) {
	_ = b[HeaderBytes-1]
	binary.BigEndian.PutUint64(b, Magic<<48|uint64(h.Trial)<<32|h.Sequence&mask48>>16)
	binary.BigEndian.PutUint64(b[8:], h.Sequence<<48|h.SendNanos&mask48)
}

// ParseHeader reads a test header; ok is false if b does not open with one.
func ParseHeader(b []byte) (h Header, ok bool) {
	if len(b) < HeaderBytes {
		return Header{}, false
	}
	hi, lo := binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	if hi>>48 != Magic {
		return Header{}, false
	}
	return Header{Trial: uint16(hi >> 32), Sequence: hi<<16&mask48 | lo>>48, SendNanos: lo & mask48}, true
}

// Fill writes what stands in a payload beyond the header: bytes that do not compress.
func Fill(b []byte) {
	x := uint64(0x9e3779b97f4a7c15) // xorshift64, Marsaglia 2003
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
}
