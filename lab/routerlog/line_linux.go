package routerlog

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"time"
)

// logged is a packet as the kernel tells of it.
type logged struct {
	in, out  string // interfaces
	kind     uint16 // of Ethernet
	payload  []byte // from the IP header on, its beginning
	number   uint32 // of the group's packets, from 0 on
	numbered bool
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
	b = at.AppendFormat(b, time.Stamp)
	b = append(b, " router kernel: IN="...)
	b = append(b, p.in...)
	b = append(b, " OUT="...)
	b = append(b, p.out...)
	switch h := p.payload; {
	case p.kind == kindIPv4 && len(h) >= 20:
		b = appendAddresses(b, h[12:16], h[16:20])
		b = appendNumber(b, " LEN=", binary.BigEndian.Uint16(h[2:]))
		b = appendNumber(b, " TOS=", uint16(h[1]))
		b = appendNumber(b, " TTL=", uint16(h[8]))
		b = appendNumber(b, " ID=", binary.BigEndian.Uint16(h[4:]))
		if h[6]&0x40 != 0 {
			b = append(b, " DF"...)
		}
		var segment []byte
		if n := int(h[0]&15) * 4; n >= 20 && n <= len(h) && h[6]&0x1f == 0 && h[7] == 0 {
			segment = h[n:]
		}
		b = appendTransport(b, h[9], segment)
	case p.kind == kindIPv6 && len(h) >= 40:
		b = appendAddresses(b, h[8:24], h[24:40])
		b = appendNumber(b, " LEN=", binary.BigEndian.Uint16(h[4:]))
		b = appendNumber(b, " HOPLIMIT=", uint16(h[7]))
		b = appendTransport(b, h[6], h[40:])
	default:
		b = append(b, " MACPROTO="...)
		b = strconv.AppendUint(b, uint64(p.kind), 16)
	}
	return append(b, '\n')
}

func appendAddresses(b, from, to []byte) []byte {
	f, _ := netip.AddrFromSlice(from)
	t, _ := netip.AddrFromSlice(to)
	b = f.AppendTo(append(b, " SRC="...))
	return t.AppendTo(append(b, " DST="...))
}

func appendTransport(b []byte, protocol byte, segment []byte) []byte {
	switch protocol {
	case protocolUDP:
		b = append(b, " PROTO=UDP"...)
	case protocolTCP:
		b = append(b, " PROTO=TCP"...)
	default:
		return appendNumber(b, " PROTO=", uint16(protocol))
	}
	if len(segment) < 4 {
		return b
	}
	b = appendNumber(b, " SPT=", binary.BigEndian.Uint16(segment))
	return appendNumber(b, " DPT=", binary.BigEndian.Uint16(segment[2:]))
}

func appendNumber(b []byte, name string, n uint16) []byte {
	return strconv.AppendUint(append(b, name...), uint64(n), 10)
}
