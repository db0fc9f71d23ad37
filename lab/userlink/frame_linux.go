package userlink

import (
	"encoding/binary"

	"pelt/internal/checksum"
)

// A TAP's frame has struct virtio_net_hdr before it (virtio 1.2, section 5.1.6),
// in the host's byte order.
const (
	vnetBytes = 10

	needsChecksum = 1 // VIRTIO_NET_HDR_F_NEEDS_CSUM

	gsoNone = 0 // VIRTIO_NET_HDR_GSO_*
	gsoTCP4 = 1
	gsoTCP6 = 4
	gsoUDP  = 5    // UDP_L4
	gsoECN  = 0x80 // with gsoTCP4 or gsoTCP6
)

const (
	etherBytes    = 14
	etherTypeIP4  = 0x0800
	etherTypeIP6  = 0x86dd
	ip4Bytes      = 20
	ip6Bytes      = 40
	udpBytes      = 8
	tcpLeastBytes = 20
	protocolTCP   = 6
	protocolUDP   = 17
	protocolFrag  = 44 // IPv6 fragment header, RFC 8200 section 4.5
	fragBytes     = 8
)

// packet is a TAP's frame with what is known of its layers.
type packet struct {
	buf      []byte // virtio header and frame
	gsoType  byte   // without gsoECN
	gsoBytes int    // payload of a segment
	checkAt  int    // where the transport header begins, from the frame's first byte, as the virtio header says
	headers  int    // bytes before the payload that segments share; 0 for what is no buffer of segments
}

func (p *packet) frame() []byte { return p.buf[vnetBytes:] }

// parse reads the virtio header. A buffer of segments that is not to be
// understood counts as one frame.
func parse(buf []byte) packet {
	p := packet{buf: buf, checkAt: int(binary.NativeEndian.Uint16(buf[6:]))}
	f := p.frame()
	p.gsoType, p.gsoBytes = buf[1]&^gsoECN, int(binary.NativeEndian.Uint16(buf[4:]))
	if p.gsoType == gsoNone || p.gsoBytes == 0 || buf[0]&needsChecksum == 0 {
		return p
	}
	switch {
	case p.gsoType == gsoUDP && p.checkAt+udpBytes <= len(f):
		p.headers = p.checkAt + udpBytes
	case (p.gsoType == gsoTCP4 || p.gsoType == gsoTCP6) && p.checkAt+tcpLeastBytes <= len(f):
		p.headers = p.checkAt + int(f[p.checkAt+12]>>4)*4
	}
	if p.headers == 0 || p.headers >= len(f) || p.gsoType != gsoUDP && p.headers < p.checkAt+tcpLeastBytes ||
		p.network() == 0 {
		p.headers = 0
	}
	return p
}

// network is where the IP header of a buffer of segments begins, 0 if it has
// none that can be cut.
func (p *packet) network() int {
	f := p.frame()
	for at := 12; at+2 <= p.checkAt; at += 4 {
		switch binary.BigEndian.Uint16(f[at:]) {
		case 0x8100, 0x88a8: // a VLAN tag, IEEE 802.1Q
			continue
		case etherTypeIP4:
			if at+2+ip4Bytes <= p.checkAt && f[at+2]>>4 == 4 {
				return at + 2
			}
		case etherTypeIP6:
			if at+2+ip6Bytes <= p.checkAt && f[at+2]>>4 == 6 {
				return at + 2
			}
		}
		break
	}
	return 0
}

// segments is how many frames leave a real card for this one.
func (p *packet) segments() int {
	if p.headers == 0 {
		return 1
	}
	return (len(p.frame()) - p.headers + p.gsoBytes - 1) / p.gsoBytes
}

// segmentBytes is the length of one of those frames.
func (p *packet) segmentBytes(i int) int {
	if p.headers == 0 {
		return len(p.frame())
	}
	return p.headers + min(p.gsoBytes, len(p.frame())-p.headers-i*p.gsoBytes)
}

// part writes segments from..to-1 to a buffer, which must have room for
// partBytes, as a buffer of segments or a single frame.
func (p *packet) part(out []byte, from, to int) {
	f, ip := p.frame(), p.network()
	begin := p.headers + from*p.gsoBytes
	end := min(p.headers+to*p.gsoBytes, len(f))
	copy(out, p.buf[:vnetBytes+p.headers])
	copy(out[vnetBytes+p.headers:], f[begin:end])
	g := out[vnetBytes:]
	last := end == len(f)
	if to-from == 1 {
		out[1] = gsoNone
		binary.NativeEndian.PutUint16(out[4:], 0)
	}
	payload := end - begin
	transport := p.headers - p.checkAt + payload
	var pseudo uint32
	if g[ip]>>4 == 4 {
		head := g[ip:p.checkAt]
		binary.BigEndian.PutUint16(head[2:], uint16(len(head)+transport))
		binary.BigEndian.PutUint16(head[4:], binary.BigEndian.Uint16(head[4:])+uint16(from))
		binary.BigEndian.PutUint16(head[10:], 0)
		binary.BigEndian.PutUint16(head[10:], ^checksum.Fold(checksum.Words(head)))
		pseudo = checksum.Words(head[12:20])
	} else {
		binary.BigEndian.PutUint16(g[ip+4:], uint16(p.checkAt-ip-ip6Bytes+transport))
		pseudo = checksum.Words(g[ip+8 : ip+40])
	}
	// The transport checksum is the kernel's to complete: what stands there is
	// the sum of the pseudo header.
	if p.gsoType == gsoUDP {
		binary.BigEndian.PutUint16(g[p.checkAt+4:], uint16(transport))
		binary.BigEndian.PutUint16(g[p.checkAt+6:], checksum.Fold(pseudo+protocolUDP+uint32(transport)))
		return
	}
	tcp := g[p.checkAt:]
	binary.BigEndian.PutUint32(tcp[4:], binary.BigEndian.Uint32(tcp[4:])+uint32(from*p.gsoBytes))
	if !last {
		tcp[13] &^= 0x09 // FIN and PSH are the last one's
	}
	if from > 0 {
		tcp[13] &^= 0x80 // CWR is the first one's, RFC 3168 section 6.1.2
	}
	binary.BigEndian.PutUint16(tcp[16:], checksum.Fold(pseudo+protocolTCP+uint32(transport)))
}

// partBytes is the room that part needs.
func (p *packet) partBytes(from, to int) int {
	return vnetBytes + min(p.headers+(to-from)*p.gsoBytes, len(p.frame())-from*p.gsoBytes)
}

// flip turns one bit of a single frame, with its checksum complete first: or
// whoever receives it would make a right one for the wrong content.
func flip(buf []byte, bit int) {
	f := buf[vnetBytes:]
	if buf[0]&needsChecksum != 0 {
		start, offset := int(binary.NativeEndian.Uint16(buf[6:])), int(binary.NativeEndian.Uint16(buf[8:]))
		if start+offset+2 <= len(f) {
			sum := ^checksum.Fold(checksum.Words(f[start:]))
			if sum == 0 && offset == 6 { // of UDP: 0 says that there is none
				sum = 0xffff
			}
			binary.BigEndian.PutUint16(f[start+offset:], sum)
		}
		buf[0] &^= needsChecksum
	}
	buf[1] = gsoNone
	if bit/8 < len(f) {
		f[bit/8] ^= 1 << (bit % 8)
	}
}
