// Package tcpinfo reads what the kernel tells about one TCP connection: struct tcp_info (include/uapi/linux/tcp.h) and,
// of a connection under BBR, struct tcp_bbr_info (include/uapi/linux/inet_diag.h).
package tcpinfo

import (
	"encoding/binary"
	"math"
	"slices"

	"pelt/model"
)

// Figures of a reading, each a row of the table; those that are told over time stand in this order.
const (
	Window   = iota // of a sender under congestion control; segments, as the three that follow
	Inflight        //
	Lost            // taken for lost and not repaired yet
	Retransmits
	RTT        // smoothed, us
	MinRTT     // us, 0 for none yet
	Delivery   // B/s
	AppLimited // 1 where the program held the delivery rate, not the path
	Pacing     // B/s, 0 unpaced
	Acked      // B
	Busy       // us with data to send, and of that ...
	RwndLimited
	SndbufLimited // ... held by the peer's window or by its own buffer
	BBRBandwidth  // B/s
	BBRPacingGain
	BBRWindowGain
	bbrBandwidthHigh
	MSS         // B
	SegmentsIn  // with data
	SegmentsOut // with data, retransmissions included
	BytesSent   // retransmissions included
	BytesResent
	sacked
	resending
	Figures // how many there are
)

type row struct {
	at, bytes   int
	metric      string  // of the figure over time, "" for none
	times, over float64 // from the kernel's unit to the metric's
}

// table is the layout of the two structs, and the series that are made of them. Fields were only ever added at the end,
// with the release named.
var table = [Figures]row{
	Window:        {80, 4, "tcp_cwnd_segments", 1, 1},
	Inflight:      {24, 4, "tcp_inflight_segments", 1, 1}, // tcpi_unacked until Parse corrects it
	Lost:          {32, 4, "tcp_lost_segments", 1, 1},
	Retransmits:   {100, 4, model.SeriesRetransmits, 1, 1},
	RTT:           {68, 4, model.SeriesRTT, 1e3, 1},
	MinRTT:        {148, 4, "tcp_min_rtt_ns", 1e3, 1},          // Linux 4.6
	Delivery:      {160, 8, "tcp_delivery_bps", 8, 1},          // Linux 4.9
	AppLimited:    {7, 1, "tcp_app_limited_ratio", 1, 1},       // Linux 4.9; bit-fields until Parse picks the first
	Pacing:        {104, 8, "tcp_pacing_bps", 8, 1},            // Linux 3.15
	Acked:         {120, 8, model.SeriesAcked, 1, 1},           // Linux 4.1
	Busy:          {168, 8, model.SeriesBusy, 1, 1e6},          // Linux 4.10
	RwndLimited:   {176, 8, model.SeriesRwndLimited, 1, 1e6},   // Linux 4.10
	SndbufLimited: {184, 8, model.SeriesSndbufLimited, 1, 1e6}, // Linux 4.10
	MSS:           {at: 16, bytes: 4},
	SegmentsIn:    {at: 152, bytes: 4}, // Linux 4.6
	SegmentsOut:   {at: 156, bytes: 4}, // Linux 4.6
	BytesSent:     {at: 200, bytes: 8}, // Linux 4.19
	BytesResent:   {at: 208, bytes: 8}, // Linux 4.19
	sacked:        {at: 28, bytes: 4},
	resending:     {at: 36, bytes: 4},

	BBRBandwidth:     {0, 4, "tcp_bbr_bw_bps", 8, 1}, // the low half until Parse adds the high one
	bbrBandwidthHigh: {at: 4, bytes: 4},
	BBRPacingGain:    {12, 4, "tcp_bbr_pacing_gain", 1, 256},
	BBRWindowGain:    {16, 4, "tcp_bbr_cwnd_gain", 1, 256},
}

const (
	Bytes    = 512 // more than any release has; the kernel says how much it filled
	BBRBytes = 20  // other controls have shorter structs, or none
)

// Info is one reading: each figure, 0 where the kernel did not tell it.
type Info struct {
	Figure [Figures]uint64
	bytes  int // that the kernel filled
}

// Parse reads as much of struct tcp_info as the kernel gave, and struct tcp_bbr_info, nil for none. ok is false if not
// even the first release's fields are there.
func Parse(b, bbr []byte) (i Info, ok bool) {
	if i.bytes = len(b); !i.Knows(Retransmits) {
		return Info{}, false
	}
	if len(bbr) < BBRBytes {
		bbr = nil
	}
	v := &i.Figure
	for f, row := range table {
		from := b
		if f >= BBRBandwidth && f <= bbrBandwidthHigh {
			from = bbr
		}
		if len(from) < row.at+row.bytes {
			continue
		}
		switch at := from[row.at:]; row.bytes {
		case 1:
			v[f] = uint64(at[0])
		case 4:
			v[f] = uint64(binary.NativeEndian.Uint32(at))
		case 8:
			v[f] = binary.NativeEndian.Uint64(at)
		}
	}
	// As tcp_packets_in_flight counts them, include/net/tcp.h.
	v[Inflight] += v[resending]
	v[Inflight] -= min(v[sacked]+v[Lost], v[Inflight])
	v[BBRBandwidth] |= v[bbrBandwidthHigh] << 32
	if v[MinRTT] == math.MaxUint32 {
		v[MinRTT] = 0
	}
	if v[Pacing] == math.MaxUint64 {
		v[Pacing] = 0
	}
	v[AppLimited] = min(v[AppLimited]&firstBit(binary.NativeEndian.Uint16([]byte{0, 1})), v[Delivery], 1)
	return i, true
}

// firstBit is where a byte's first bit-field lies, by how a machine reads 0, 1.
func firstBit(word uint16) uint64 {
	if word == 1 { // big-endian ones begin at the top
		return 0x80
	}
	return 1
}

// Knows reports whether the kernel told a figure of struct tcp_info.
func (i Info) Knows(figure int) bool { return i.bytes >= table[figure].at+table[figure].bytes }

// Sum is what the figures that only grow grew by.
type Sum [Figures]uint64

// Plus adds what passed between two readings. The kernel's counters of segments have 32 bits, which at 1 Mpps wrap in
// 71 minutes: readings must not lie further apart.
func (s Sum) Plus(from, to Info) Sum {
	for f := range s {
		if grown := to.Figure[f] - from.Figure[f]; table[f].bytes == 4 {
			s[f] += uint64(uint32(grown))
		} else {
			s[f] += grown
		}
	}
	return s
}

// Metric is the name of a figure over time, "" for one that is not told so.
func Metric(figure int) string { return table[figure].metric }

// IsMetric reports whether a sender of TCP tells that metric over time.
func IsMetric(name string) bool {
	return name != "" && slices.ContainsFunc(table[:], func(row row) bool { return row.metric == name })
}

// Scaled is a figure's value in the unit of its metric.
func Scaled(figure int, value uint64) float64 {
	return float64(value) * table[figure].times / table[figure].over
}
