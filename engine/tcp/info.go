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
}

// Offsets in struct tcp_info, include/uapi/linux/tcp.h, with the release that
// brought the field. Fields were only ever added at the end.
const (
	offSndMSS       = 16
	offRTT          = 68
	offTotalRetrans = 100
	offSegmentsIn   = 152 // Linux 4.6
	offSegmentsOut  = 156 // Linux 4.6
	offBytesSent    = 200 // Linux 4.19
	offBytesResent  = 208 // Linux 4.19
	infoBytes       = 512 // more than any release has; the kernel says how much it filled
)

// parseInfo reads as much of struct tcp_info as the kernel gave. ok is false
// if not even the first release's fields are there.
func parseInfo(b []byte) (i info, ok bool) {
	order := binary.NativeEndian
	if len(b) < offTotalRetrans+4 {
		return info{}, false
	}
	i.mss = order.Uint32(b[offSndMSS:])
	i.rttMicros = order.Uint32(b[offRTT:])
	i.retransmits = order.Uint32(b[offTotalRetrans:])
	if i.segmentsKnown = len(b) >= offSegmentsOut+4; i.segmentsKnown {
		i.segmentsIn = order.Uint32(b[offSegmentsIn:])
		i.segmentsOut = order.Uint32(b[offSegmentsOut:])
	}
	if i.bytesKnown = len(b) >= offBytesResent+8; i.bytesKnown {
		i.bytesSent = order.Uint64(b[offBytesSent:])
		i.bytesResent = order.Uint64(b[offBytesResent:])
	}
	return i, true
}

// tally adds up what passed between readings. The kernel's segment counters
// have 32 bits, which at 1 Mpps wrap in 71 minutes: readings must not lie
// further apart.
type tally struct {
	segmentsIn, segmentsOut, retransmits uint64
	bytesLeft                            uint64 // payload sent for the first time
}

func (t tally) plus(from, to info) tally {
	t.segmentsIn += uint64(to.segmentsIn - from.segmentsIn)
	t.segmentsOut += uint64(to.segmentsOut - from.segmentsOut)
	t.retransmits += uint64(to.retransmits - from.retransmits)
	t.bytesLeft += (to.bytesSent - to.bytesResent) - (from.bytesSent - from.bytesResent)
	return t
}
