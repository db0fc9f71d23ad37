package model

// Ethernet and IP sizes in bytes.
const (
	FCSBytes      = 4
	ethernetBytes = 14 + FCSBytes // header and FCS
	minFrame      = 64            // RFC 2544 section 9.1, FCS included
	ipv4Bytes     = 20
	ipv6Bytes     = 40
	udpBytes      = 8
	tcpBytes      = 20 + 12 // header with the time stamp option, as Linux sends by default
)

// FrameBytes returns the length of the Ethernet frame, FCS included, that carries one UDP payload, or one TCP write
// if it fits a segment. It is the frame before any fragmentation; family 0 counts as IPv4.
func FrameBytes(p Protocol, family, payload int) int {
	n := payload + ethernetBytes + udpBytes + ipv4Bytes
	if p == TCP {
		n += tcpBytes - udpBytes
	}
	if family == 6 {
		n += ipv6Bytes - ipv4Bytes
	}
	return max(n, minFrame)
}

// PayloadOf is the UDP payload that makes an Ethernet frame of the given
// length, FCS included: the reverse of FrameBytes.
func PayloadOf(family, frame int) int {
	n := frame - ethernetBytes - udpBytes - ipv4Bytes
	if family == 6 {
		n -= ipv6Bytes - ipv4Bytes
	}
	return n
}

// Fragments returns how many IP packets carry one UDP payload over a path with
// the given MTU in bytes (RFC 791 section 3.2: fragment data is a multiple of 8 B).
func Fragments(family, payload, mtu int) int {
	header := ipv4Bytes
	if family == 6 {
		header = ipv6Bytes
	}
	n := payload + udpBytes
	if n+header <= mtu || mtu <= 0 {
		return 1
	}
	if family == 6 {
		header += 8 // fragment extension header, RFC 8200 section 4.5
	}
	room := (mtu - header) / 8 * 8
	if room <= 0 {
		return 1
	}
	return (n + room - 1) / room
}
