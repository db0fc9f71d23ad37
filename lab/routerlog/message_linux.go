package routerlog

import "encoding/binary"

// What the kernel says of packets, include/uapi/linux/netfilter/nfnetlink_log.h.
const (
	messagePacket = 4 << 8 // NFNL_SUBSYS_ULOG, NFULNL_MSG_PACKET
	messageConfig = 4<<8 | 1

	attrHeader  = 1
	attrIn      = 4
	attrOut     = 5
	attrPortIn  = 6 // of a bridge
	attrPortOut = 7
	attrPayload = 9
	attrNumber  = 12

	configCommand = 1
	configMode    = 2
	configBuffer  = 3
	configAtOnce  = 5
	configFlags   = 6

	commandBind    = 1
	modePacket     = 2
	flagNumber     = 1
	copyBytes      = 96 // of a packet: the headers that a line tells of
	netlinkHeader  = 16
	familyHeader   = 4
	attributeBytes = 4
)

// align is to the 4 bytes that netlink puts all on.
func align(n int) int { return (n + 3) &^ 3 }

// eachPacket calls f for each packet that a datagram of the kernel tells of; what is
// told is f's until it returns. What is none, or is cut short, is left out.
func eachPacket(datagram []byte, names map[uint32]string, f func(logged)) {
	for len(datagram) >= netlinkHeader {
		length := int(binary.NativeEndian.Uint32(datagram))
		if length < netlinkHeader || length > len(datagram) {
			return
		}
		if binary.NativeEndian.Uint16(datagram[4:]) == messagePacket && length >= netlinkHeader+familyHeader {
			f(parsePacket(datagram[netlinkHeader+familyHeader:length], names))
		}
		datagram = datagram[min(align(length), len(datagram)):]
	}
}

func parsePacket(b []byte, names map[uint32]string) (p logged) {
	var ports [2]string // of a bridge, which say more than the bridge does
	defer func() {
		if ports != [2]string{} {
			p.in, p.out = ports[0], ports[1]
		}
	}()
	for len(b) >= attributeBytes {
		length := int(binary.NativeEndian.Uint16(b))
		if length < attributeBytes || length > len(b) {
			return p
		}
		value := b[attributeBytes:length]
		word := func() uint32 {
			if len(value) < 4 {
				return 0
			}
			return binary.BigEndian.Uint32(value)
		}
		switch binary.NativeEndian.Uint16(b[2:]) & 0x3fff {
		case attrHeader:
			if len(value) >= 2 {
				p.kind = binary.BigEndian.Uint16(value)
			}
		case attrIn:
			p.in = names[word()]
		case attrOut:
			p.out = names[word()]
		case attrPortIn:
			ports[0] = names[word()]
		case attrPortOut:
			ports[1] = names[word()]
		case attrPayload:
			p.payload = value
		case attrNumber:
			p.number, p.numbered = word(), true
		}
		b = b[min(align(length), len(b)):]
	}
	return p
}
