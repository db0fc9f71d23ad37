package routerlog

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/mdlayher/netlink"
)

// Messages of the kernel about packets, include/uapi/linux/netfilter/nfnetlink_log.h.
const (
	messagePacket = 4 << 8 // NFNL_SUBSYS_ULOG, NFULNL_MSG_PACKET
	headerBytes   = 4      // struct nfgenmsg

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

// parsePacket reads the attributes of a packet; what is cut or odd is left out.
func parsePacket(b []byte, names map[uint32]string) (p logged) {
	d, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return p
	}
	d.ByteOrder = binary.BigEndian
	var portIn, portOut string // of a bridge, which say more than the bridge does
	for d.Next() {
		switch d.Type() {
		case attrHeader:
			if h := d.Bytes(); len(h) >= 2 {
				p.kind = binary.BigEndian.Uint16(h)
			}
		case attrIn:
			p.in = names[d.Uint32()]
		case attrOut:
			p.out = names[d.Uint32()]
		case attrPortIn:
			portIn = names[d.Uint32()]
		case attrPortOut:
			portOut = names[d.Uint32()]
		case attrPayload:
			p.payload = d.Bytes()
		case attrNumber:
			p.number, p.numbered = d.Uint32(), true
		}
	}
	p.in, p.out = cmp.Or(portIn, p.in), cmp.Or(portOut, p.out)
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
func (p logged) appendLine(b []byte, at time.Time) []byte {
	b = fmt.Appendf(at.AppendFormat(b, time.Stamp), " router kernel: IN=%s OUT=%s", p.in, p.out)
	word := binary.BigEndian.Uint16
	switch h := p.payload; {
	case p.kind == kindIPv4 && len(h) >= 20:
		b = fmt.Appendf(b, " SRC=%v DST=%v LEN=%d TOS=%d TTL=%d ID=%d", netip.AddrFrom4([4]byte(h[12:])),
			netip.AddrFrom4([4]byte(h[16:])),
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
		b = fmt.Appendf(b, " SRC=%v DST=%v LEN=%d HOPLIMIT=%d", netip.AddrFrom16([16]byte(h[8:])),
			netip.AddrFrom16([16]byte(h[24:])), word(h[4:]), h[7])
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
