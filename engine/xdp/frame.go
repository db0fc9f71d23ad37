package xdp

import (
	"encoding/binary"
	"net/netip"

	"pelt/engine"
	"pelt/internal/checksum"
	"pelt/measure"
)

// Lengths of headers in bytes, without the frame check sequence.
const (
	ethernetBytes = 14
	ip4Bytes      = 20
	ip6Bytes      = 40
	udpBytes      = 8
	leastFrame    = 60 // what Ethernet pads to
)

const (
	hopLimit    = 64
	protocolUDP = 17
)

// shape is what all frames of a stream have in common.
type shape struct {
	source, target [6]byte // Ethernet addresses
	from, to       netip.AddrPort
	dscp           int
	dontFragment   bool
	payloadBytes   int
}

func (s shape) six() bool { return s.from.Addr().Is6() }

func (s shape) headerBytes() int {
	if s.six() {
		return ethernetBytes + ip6Bytes + udpBytes
	}
	return ethernetBytes + ip4Bytes + udpBytes
}

// fragile says that IPv4 packets may be fragmented on the way, so that each needs
// an identification (RFC 6864 section 4.1). What fits the least MTU of IPv6 is not.
func (s shape) fragile() bool {
	return !s.six() && !s.dontFragment && s.headerBytes()-ethernetBytes+s.payloadBytes > 1280
}

// layOut makes the frame that the sending program completes: test header and UDP
// checksum are 0.
func (s shape) layOut() []byte {
	b := make([]byte, max(s.headerBytes()+s.payloadBytes, leastFrame))
	copy(b, s.target[:])
	copy(b[6:], s.source[:])
	ip := b[ethernetBytes:]
	length := udpBytes + s.payloadBytes
	if s.six() {
		binary.BigEndian.PutUint16(b[12:], 0x86dd)
		binary.BigEndian.PutUint32(ip, 6<<28|uint32(s.dscp)<<22)
		binary.BigEndian.PutUint16(ip[4:], uint16(length))
		ip[6], ip[7] = protocolUDP, hopLimit
		copy(ip[8:], s.from.Addr().AsSlice())
		copy(ip[24:], s.to.Addr().AsSlice())
	} else {
		binary.BigEndian.PutUint16(b[12:], 0x0800)
		ip[0], ip[1] = 0x45, byte(s.dscp<<2)
		binary.BigEndian.PutUint16(ip[2:], uint16(ip4Bytes+length))
		if s.dontFragment {
			ip[6] = 0x40
		}
		ip[8], ip[9] = hopLimit, protocolUDP
		copy(ip[12:], s.from.Addr().AsSlice())
		copy(ip[16:], s.to.Addr().AsSlice())
		binary.BigEndian.PutUint16(ip[10:], ^uint16(s.ipSum(b)))
	}
	udp := b[s.headerBytes()-udpBytes:]
	binary.BigEndian.PutUint16(udp, s.from.Port())
	binary.BigEndian.PutUint16(udp[2:], s.to.Port())
	binary.BigEndian.PutUint16(udp[4:], uint16(length))
	engine.Fill(udp[udpBytes+engine.HeaderBytes : length])
	return b
}

// ipSum is the sum over the IPv4 header's words but for its checksum, while the
// identification is 0; 0 for IPv6, whose header has no checksum.
func (s shape) ipSum(frame []byte) uint32 {
	if s.six() {
		return 0
	}
	ip := frame[ethernetBytes : ethernetBytes+ip4Bytes]
	return uint32(checksum.Fold(checksum.Words(ip[:10]) + checksum.Words(ip[12:]))) // without the checksum
}

// udpSum is the sum over a stream's datagram and pseudo header (RFC 768, RFC
// 8200 section 8.1) but for what the program adds: trial, sequence and time.
func (s shape) udpSum(frame []byte) uint32 {
	udp := frame[s.headerBytes()-udpBytes:][:udpBytes+s.payloadBytes]
	sum := checksum.Words(s.from.Addr().AsSlice()) + checksum.Words(s.to.Addr().AsSlice()) + protocolUDP +
		uint32(len(udp))
	return uint32(checksum.Fold(sum + checksum.Words(udp) + engine.Magic))
}

// ownWords returns the words of a frame's headers that differ between streams: addresses, ports and what lies
// between, up to the UDP checksum, in the byte order of memory.
func (s shape) ownWords(frame []byte) (words [6]uint64) {
	at, n := 24, 2
	if s.six() {
		at, n = 16, len(words)
	}
	for i := range n {
		words[i] = binary.NativeEndian.Uint64(frame[at+8*i:])
	}
	return words
}

// bins are those of the programs' histograms: BIN_BITS of shared.h.
const bins measure.Bins = 6

// durations is one histogram as a program kept it: most is one above the largest, 0 if there is none.
type durations struct {
	out, least, most uint64
	bin              []uint64
}

// record passes all durations to tell, each with how often it came. The smallest and the largest keep their exact
// value; those out of range are -1.
func (d durations) record(tell func(nanos, n int64)) {
	tell(-1, int64(d.out))
	if d.most == 0 {
		return
	}
	least, most := d.least, d.most-1
	first, last := bins.Of(least), bins.Of(most)
	for i, n := range d.bin {
		if n > 0 && i == first {
			tell(int64(least), 1)
			n--
		}
		if n > 0 && i == last {
			tell(int64(most), 1)
			n--
		}
		if n > 0 {
			from, size := bins.Span(i)
			tell(min(max(from+size/2, int64(least)), int64(most)), int64(n))
		}
	}
}
