package tcp

import "encoding/binary"

// info is what the kernel tells about one connection.
type info struct {
	mss           uint32 // B, tcpi_snd_mss
	rttMicros     uint32 // smoothed, tcpi_rtt
	retransmits   uint32 // segments, tcpi_total_retrans; wraps
	segmentsIn    uint32 // with data, tcpi_data_segs_in; wraps
	segmentsOut   uint32 // with data, retransmissions included, tcpi_data_segs_out; wraps
	bytesSent     uint64 // retransmissions included, tcpi_bytes_sent
	bytesResent   uint64 // tcpi_bytes_retrans
	segmentsKnown bool
	bytesKnown    bool
	// Of a sender under congestion control; segments if nothing else is said.
	cwnd, inflight, lost uint32
	minRTTMicros         uint32
	pacing, delivery     uint64 // B/s; pacing is the greatest number where nothing paces
	appLimited           bool   // delivery was held by the program, not by the path
	acked                uint64 // B
	// Microseconds since the connection began: with data to send, and of that held by
	// the peer's window or by its own buffer.
	busy, rwndLimited, sndbufLimited uint64
}

// Offsets in struct tcp_info, include/uapi/linux/tcp.h, with the release that
// brought the field. Fields were only ever added at the end.
const (
	offFlags        = 7 // its first bit-field: delivery rate is app-limited, Linux 4.9
	offSndMSS       = 16
	offUnacked      = 24
	offSacked       = 28
	offLost         = 32
	offRetrans      = 36
	offRTT          = 68
	offCwnd         = 80
	offTotalRetrans = 100
	offPacing       = 104 // Linux 3.15
	offAcked        = 120 // Linux 4.1
	offMinRTT       = 148 // Linux 4.6
	offSegmentsIn   = 152 // Linux 4.6
	offSegmentsOut  = 156 // Linux 4.6
	offDelivery     = 160 // Linux 4.9
	offBusy         = 168 // Linux 4.10, and the two after it
	offRwnd         = 176
	offSndbuf       = 184
	offBytesSent    = 200 // Linux 4.19
	offBytesResent  = 208 // Linux 4.19
	infoBytes       = 512 // more than any release has; the kernel says how much it filled
)

// parseInfo reads as much of struct tcp_info as the kernel gave; what an old one does not tell
// stays 0. ok is false if not even the first release's fields are there.
func parseInfo(b []byte) (i info, ok bool) {
	order := binary.NativeEndian
	word := func(at int) uint32 {
		if len(b) < at+4 {
			return 0
		}
		return order.Uint32(b[at:])
	}
	long := func(at int) uint64 {
		if len(b) < at+8 {
			return 0
		}
		return order.Uint64(b[at:])
	}
	if len(b) < offTotalRetrans+4 {
		return info{}, false
	}
	i.mss, i.rttMicros, i.retransmits = word(offSndMSS), word(offRTT), word(offTotalRetrans)
	if i.segmentsKnown = len(b) >= offSegmentsOut+4; i.segmentsKnown {
		i.segmentsIn, i.segmentsOut = word(offSegmentsIn), word(offSegmentsOut)
	}
	if i.bytesKnown = len(b) >= offBytesResent+8; i.bytesKnown {
		i.bytesSent, i.bytesResent = long(offBytesSent), long(offBytesResent)
	}
	i.cwnd, i.lost, i.minRTTMicros = word(offCwnd), word(offLost), word(offMinRTT)
	// As tcp_packets_in_flight counts them, include/net/tcp.h.
	i.inflight = word(offUnacked) + word(offRetrans) - min(word(offSacked)+word(offLost), word(offUnacked)+word(offRetrans))
	i.pacing, i.acked, i.delivery = long(offPacing), long(offAcked), long(offDelivery)
	i.appLimited = i.delivery > 0 && b[offFlags]&firstBit(order.Uint16([]byte{0, 1})) != 0
	i.busy, i.rwndLimited, i.sndbufLimited = long(offBusy), long(offRwnd), long(offSndbuf)
	return i, true
}

// firstBit is where a byte's first bit-field lies, by how a machine reads 0, 1.
func firstBit(word uint16) byte {
	if word == 1 { // big-endian ones begin at the top
		return 0x80
	}
	return 1
}

// bbrInfo is what BBR tells of itself, struct tcp_bbr_info of include/uapi/linux/inet_diag.h.
type bbrInfo struct {
	bandwidth              uint64 // B/s
	pacingGain, windowGain float64
}

// bbrInfoBytes is that struct's length; other controls have shorter ones, or none.
const bbrInfoBytes = 20

func parseBBR(b []byte) (i bbrInfo, ok bool) {
	if len(b) < bbrInfoBytes {
		return bbrInfo{}, false
	}
	order := binary.NativeEndian
	i.bandwidth = uint64(order.Uint32(b[4:]))<<32 | uint64(order.Uint32(b))
	i.pacingGain, i.windowGain = float64(order.Uint32(b[12:]))/256, float64(order.Uint32(b[16:]))/256
	return i, true
}

// tally adds up what passed between readings. The kernel's segment counters
// have 32 bits, which at 1 Mpps wrap in 71 minutes: readings must not lie
// further apart.
type tally struct {
	segmentsIn, segmentsOut, retransmits uint64
	bytesLeft                            uint64 // payload sent for the first time
	busy, rwndLimited, sndbufLimited     uint64 // us
}

func (t tally) plus(from, to info) tally {
	t.segmentsIn += uint64(to.segmentsIn - from.segmentsIn)
	t.segmentsOut += uint64(to.segmentsOut - from.segmentsOut)
	t.retransmits += uint64(to.retransmits - from.retransmits)
	t.busy += to.busy - from.busy
	t.rwndLimited += to.rwndLimited - from.rwndLimited
	t.sndbufLimited += to.sndbufLimited - from.sndbufLimited
	t.bytesLeft += (to.bytesSent - to.bytesResent) - (from.bytesSent - from.bytesResent)
	return t
}
