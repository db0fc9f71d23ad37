package counters

import (
	"encoding/binary"
	"iter"
	"strings"
)

// attributes yields the type and value of each netlink attribute of a message's
// payload (struct nlattr), without the flags of the type. It ends at one that is
// cut short.
func attributes(b []byte) iter.Seq2[uint16, []byte] {
	const (
		header   = 4
		typeMask = 0x3fff // NLA_TYPE_MASK: without NLA_F_NESTED and NLA_F_NET_BYTEORDER
	)
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= header {
			length := int(binary.NativeEndian.Uint16(b))
			if length < header || length > len(b) {
				return
			}
			if !yield(binary.NativeEndian.Uint16(b[2:])&typeMask, b[header:length]) {
				return
			}
			b = b[min((length+3)&^3, len(b)):]
		}
	}
}

// text is a string attribute, which may end in a zero byte.
func text(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}

// native32 is a u32 attribute of the host's byte order, 0 if it is cut short.
func native32(b []byte) uint32 {
	if len(b) < 4 {
		return 0
	}
	return binary.NativeEndian.Uint32(b)
}

// big32 and big64 are attributes of netfilter, which has network byte order.
func big32(b []byte) uint32 {
	if len(b) < 4 {
		return 0
	}
	return binary.BigEndian.Uint32(b)
}

func big64(b []byte) uint64 {
	if len(b) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}
