package record

import (
	"encoding/binary"
	"hash/crc32"
)

// A block is its kind, the length of its body (u32, little endian), the CRC-32C of
// kind, length and body, and the body.
const (
	headBytes = 1 + 4 + 4
	// maxBody holds MaxPackets of the worst noise, and any trial's context.
	maxBody = 1 << 20
)

type kind byte

// The kinds of blocks. A reader passes over those that it does not know.
const (
	kindHeader  kind = 'H'
	kindTrial   kind = 'T'
	kindPackets kind = 'P'
	kindStream  kind = 'S'
	kindClosed  kind = 'C'
	kindVoid    kind = 'V'
	kindEnd     kind = 'E'
)

// magic opens every file: a byte that is no text, so that no tool takes it for
// some, the name, and what a transfer as text would break (as in PNG).
const magic = "\x89pelt-rec\r\n\x1a\n"

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func checkSum(head []byte, body []byte) uint32 {
	t := castagnoli()
	return crc32.Update(crc32.Checksum(head[:5], t), t, body)
}

// blockBytes is the length of a block, its head included, as the head says it; ok is false of
// none that a block can have. It is compared as it stands, for an int may have 32 bits.
func blockBytes(head []byte) (n int, ok bool) {
	length := binary.LittleEndian.Uint32(head[1:])
	if length > maxBody {
		return 0, false
	}
	return headBytes + int(length), true
}

func appendBlock(dst []byte, k kind, body []byte) []byte {
	at := len(dst)
	dst = append(dst, byte(k), 0, 0, 0, 0, 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(dst[at+1:], uint32(len(body)))
	binary.LittleEndian.PutUint32(dst[at+5:], checkSum(dst[at:], body))
	return append(dst, body...)
}
