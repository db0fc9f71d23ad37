package routerlog

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"
)

// Messages of the kernel about packets, include/uapi/linux/netfilter/nfnetlink_log.h.
const (
	messagePacket = 4 << 8 // NFNL_SUBSYS_ULOG, NFULNL_MSG_PACKET
	headerBytes   = 20     // struct nlmsghdr and struct nfgenmsg

	attrHeader  = 1
	attrIn      = 4
	attrOut     = 5
	attrPortIn  = 6 // of a bridge
	attrPortOut = 7
	attrPayload = 9
	attrNumber  = 12
)

// logged is a packet as the kernel tells of it.
type logged struct {
	in, out  string // interfaces
	kind     uint16 // of Ethernet
	payload  []byte // from the IP header on, its beginning
	number   uint32 // of the group's packets, from 0 on
	numbered bool
}

// pieces calls f for the pieces of a netlink buffer, which begin with their lengths, and
// lie at multiples of 4 bytes. It stops at one that is cut short.
func pieces(b []byte, length func([]byte) int, least int, f func([]byte)) {
	for len(b) >= least {
		n := length(b)
		if n < least || n > len(b) {
			return
		}
		f(b[:n])
		b = b[min((n+3)&^3, len(b)):]
	}
}

// eachPacket calls f for each packet that a datagram of the kernel tells of. The packet is
// valid until f returns.
func eachPacket(datagram []byte, names map[uint32]string, f func(logged)) {
	length := func(b []byte) int { return int(binary.NativeEndian.Uint32(b)) }
	pieces(datagram, length, headerBytes, func(message []byte) {
		if binary.NativeEndian.Uint16(message[4:]) == messagePacket {
			f(parsePacket(message[headerBytes:], names))
		}
	})
}

func parsePacket(b []byte, names map[uint32]string) (p logged) {
	var ports [2]string // of a bridge, which say more than the bridge does
	length := func(b []byte) int { return int(binary.NativeEndian.Uint16(b)) }
	pieces(b, length, 4, func(attribute []byte) {
		value, word := attribute[4:], uint32(0)
		if len(value) >= 4 {
			word = binary.BigEndian.Uint32(value)
		}
		switch binary.NativeEndian.Uint16(attribute[2:]) & 0x3fff { // without NLA_F_NESTED and NLA_F_NET_BYTEORDER
		case attrHeader:
			p.kind = uint16(word >> 16)
		case attrIn:
			p.in = names[word]
		case attrOut:
			p.out = names[word]
		case attrPortIn:
			ports[0] = names[word]
		case attrPortOut:
			ports[1] = names[word]
		case attrPayload:
			p.payload = value
		case attrNumber:
			p.number, p.numbered = word, true
		}
	})
	if ports != [2]string{} {
		p.in, p.out = ports[0], ports[1]
	}
	return p
}

const (
	kindIPv4 = 0x0800
	kindIPv6 = 0x86dd

	protocolTCP = 6
	protocolUDP = 17
)

// appendLine adds the line of a packet, in the words of the kernel's own log
// (net/netfilter/nf_log_syslog.c), ended by a newline. A packet that is cut
// short has what is there.
func appendLine(b []byte, at time.Time, p logged) []byte {
	b = fmt.Appendf(at.AppendFormat(b, time.Stamp), " router kernel: IN=%s OUT=%s", p.in, p.out)
	word := binary.BigEndian.Uint16
	switch h := p.payload; {
	case p.kind == kindIPv4 && len(h) >= 20:
		b = fmt.Appendf(b, " SRC=%v DST=%v LEN=%d TOS=%d TTL=%d ID=%d", netip.AddrFrom4([4]byte(h[12:])), netip.AddrFrom4([4]byte(h[16:])),
			word(h[2:]), h[1], h[8], word(h[4:]))
		if h[6]&0x40 != 0 {
			b = append(b, " DF"...)
		}
		var segment []byte // of the first fragment
		if n := int(h[0]&15) * 4; n >= 20 && n <= len(h) && word(h[6:])&0x1fff == 0 {
			segment = h[n:]
		}
		b = appendTransport(b, h[9], segment)
	case p.kind == kindIPv6 && len(h) >= 40:
		b = fmt.Appendf(b, " SRC=%v DST=%v LEN=%d HOPLIMIT=%d", netip.AddrFrom16([16]byte(h[8:])), netip.AddrFrom16([16]byte(h[24:])), word(h[4:]), h[7])
		b = appendTransport(b, h[6], h[40:])
	default:
		b = fmt.Appendf(b, " MACPROTO=%x", p.kind)
	}
	return append(b, '\n')
}

func appendTransport(b []byte, protocol byte, segment []byte) []byte {
	switch protocol {
	case protocolUDP:
		b = append(b, " PROTO=UDP"...)
	case protocolTCP:
		b = append(b, " PROTO=TCP"...)
	default:
		return fmt.Appendf(b, " PROTO=%d", protocol)
	}
	if len(segment) >= 4 {
		b = fmt.Appendf(b, " SPT=%d DPT=%d", binary.BigEndian.Uint16(segment), binary.BigEndian.Uint16(segment[2:]))
	}
	return b
}
