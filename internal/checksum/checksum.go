// Package checksum is the sum of the Internet's protocols (RFC 1071).
package checksum

import "encoding/binary"

// Words adds up big-endian words; an odd byte is the upper half of the last. It is right up to 64 KiB.
func Words(b []byte) (sum uint32) {
	for len(b) > 1 {
		sum += uint32(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	return sum
}

// Fold brings a sum back to 16 bits. A checksum is what it lacks.
func Fold(sum uint32) uint16 {
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}
