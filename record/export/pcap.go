package export

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"io"

	"pelt/internal/checksum"
	"pelt/record"
)

// Header writes a test header to b: of a trial on the wire, a sequence and a send time.
type Header func(b []byte, trial uint16, sequence, sendNanos uint64)

const (
	// pcap with nanoseconds, in the byte order of its writer
	// (draft-ietf-opsawg-pcap section 4)
	pcapMagic    = 0xa1b23c4d
	pcapEthernet = 1

	etherBytes = 14
	udpBytes   = 8
	testBytes  = 16
	// The ports of the first stream.
	fromPort, toPort = 40000, 7359
	// netFlows is how many flows one network has addresses for.
	netFlows = 127
)

// exampleNets have room for 381 flows of a trial; those beyond, of a star both ways, have the
// addresses of others.
var exampleNets = [...][3]byte{{192, 0, 2}, {198, 51, 100}, {203, 0, 113}}

// Pcap writes a capture with a packet for each record of one: Ethernet, IP and UDP
// headers that are made up, the test header as it was, and cut there. A packet's time
// is when it came: the first of each trial at the time its trial was prepared, the
// others as long after it as they were by the receiver's clock. The streams of a flow
// are told by their ports, flows by their addresses: in 192.0.2.0/24, 198.51.100.0/24
// and 203.0.113.0/24 or in 2001:db8::/32, which are kept for examples (RFC 5737, RFC 3849).
func Pcap(w io.Writer, r *record.Reader, header Header) error {
	out := bufio.NewWriterSize(w, 256<<10)
	var head [24]byte
	binary.LittleEndian.PutUint32(head[0:], pcapMagic)
	binary.LittleEndian.PutUint16(head[4:], 2)
	binary.LittleEndian.PutUint16(head[6:], 4)
	binary.LittleEndian.PutUint32(head[16:], 1<<16) // the longest that can stand here
	binary.LittleEndian.PutUint32(head[20:], pcapEthernet)
	if _, err := out.Write(head[:]); err != nil {
		return err
	}
	begins := map[begin]int64{} // receive times
	var packet [16 + etherBytes + 40 + udpBytes + testBytes]byte
	err := each(r, func(t *record.Trial, f *record.Flow, p *record.Packets) error {
		b := begin{p.Trial, f.To}
		if _, known := begins[b]; !known {
			begins[b] = p.List[0].ReceiveNanos
		}
		for i := range p.List {
			x := &p.List[i]
			n := frame(packet[16:], f, p)
			header(packet[16+n-testBytes:], cmp.Or(f.Wire, t.Wire), x.Sequence, x.SendNanos)
			at := t.Started.UnixNano() + x.ReceiveNanos - begins[b]
			binary.LittleEndian.PutUint32(packet[0:], uint32(at/1e9))
			binary.LittleEndian.PutUint32(packet[4:], uint32(at%1e9))
			binary.LittleEndian.PutUint32(packet[8:], uint32(n))
			binary.LittleEndian.PutUint32(packet[12:], uint32(n-testBytes+max(f.PayloadBytes, testBytes)))
			if _, err := out.Write(packet[:16+n]); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, out.Flush())
}

// begin is a receiver in a trial, whose clock is its own.
type begin struct {
	trial uint32
	to    string
}

// frame writes the headers of a packet of a stream and returns the length up to the
// end of the test header.
func frame(b []byte, f *record.Flow, p *record.Packets) int {
	length := max(f.PayloadBytes, testBytes) + udpBytes
	copy(b, []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}) // administered locally
	ip := b[etherBytes:]
	var udp []byte
	if f.Family == 6 {
		binary.BigEndian.PutUint16(b[12:], 0x86dd)
		binary.BigEndian.PutUint32(ip, 6<<28)
		binary.BigEndian.PutUint16(ip[4:], uint16(length))
		ip[6], ip[7] = 17, 64
		for i, end := range []byte{1, 2} {
			a := ip[8+16*i : 24+16*i]
			clear(a)
			copy(a, []byte{0x20, 1, 0xd, 0xb8})
			binary.BigEndian.PutUint16(a[12:], p.Flow)
			a[15] = end
		}
		udp = ip[40:]
	} else {
		binary.BigEndian.PutUint16(b[12:], 0x0800)
		ip[0], ip[1] = 0x45, 0
		binary.BigEndian.PutUint16(ip[2:], uint16(length+20))
		clear(ip[4:12])
		ip[8], ip[9] = 64, 17
		net, host := exampleNets[p.Flow/netFlows%uint16(len(exampleNets))], byte(p.Flow%netFlows)
		for i, end := range []byte{1, 2} {
			copy(ip[12+4*i:], net[:])
			ip[15+4*i] = 2*host + end
		}
		binary.BigEndian.PutUint16(ip[10:], ^checksum.Fold(checksum.Words(ip[:20])))
		udp = ip[20:]
	}
	binary.BigEndian.PutUint16(udp, fromPort+p.Stream)
	binary.BigEndian.PutUint16(udp[2:], toPort)
	binary.BigEndian.PutUint16(udp[4:], uint16(length))
	clear(udp[6:8]) // no sum: the payload is not there (RFC 768)
	if f.Family == 6 {
		udp[6], udp[7] = 0xff, 0xff // there must be one (RFC 8200 section 8.1), and nobody can check it
	}
	return len(b) - len(udp) + udpBytes + testBytes
}
