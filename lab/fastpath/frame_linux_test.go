//go:build amd64 || arm64

package fastpath

import (
	"encoding/binary"
	"net/netip"

	"pelt/internal/checksum"
)

// packet is a frame of a flow, laid out without any of what the program does.
type packet struct {
	target, source [6]byte
	from, to       netip.AddrPort
	tcp            bool
	flags          byte // of TCP; 0: ACK
	hops           byte // 0: 64
	payload        []byte
	unsummed       bool // UDP over IPv4 without a checksum
}

const (
	protocolTCP = 6
	protocolUDP = 17
)

func (p packet) protocol() byte {
	if p.tcp {
		return protocolTCP
	}
	return protocolUDP
}

func (p packet) frame() []byte {
	var segment []byte
	be := binary.BigEndian
	segment = be.AppendUint16(be.AppendUint16(segment, p.from.Port()), p.to.Port())
	check := 6
	if p.tcp {
		flags := p.flags
		if flags == 0 {
			flags = 0x10
		}
		segment = append(segment, 1, 2, 3, 4, 5, 6, 7, 8, 5<<4, flags, 9, 9, 0, 0, 0, 0)
		check = 16
	} else {
		segment = append(be.AppendUint16(segment, uint16(8+len(p.payload))), 0, 0)
	}
	segment = append(segment, p.payload...)
	addresses := append(p.from.Addr().AsSlice(), p.to.Addr().AsSlice()...)
	pseudo := append(addresses, 0, p.protocol(), byte(len(segment)>>8), byte(len(segment)))
	if !p.unsummed {
		sum := ^checksum.Fold(checksum.Words(append(pseudo, segment...)))
		if sum == 0 && !p.tcp {
			sum = 0xffff
		}
		be.PutUint16(segment[check:], sum)
	}
	hops := p.hops
	if hops == 0 {
		hops = 64
	}
	frame := append(p.target[:len(p.target):len(p.target)], p.source[:]...)
	if p.from.Addr().Is6() {
		frame = append(frame, 0x86, 0xdd, 0x60, 0, 0, 0, byte(len(segment)>>8), byte(len(segment)), p.protocol(), hops)
		return append(append(frame, addresses...), segment...)
	}
	header := append([]byte{0x45, 0, byte((20 + len(segment)) >> 8), byte(20 + len(segment)), 0x12, 0x34, 0x40, 0,
		hops, p.protocol(), 0, 0}, addresses...)
	be.PutUint16(header[10:], ^checksum.Fold(checksum.Words(header)))
	return append(append(append(frame, 0x08, 0x00), header...), segment...)
}
