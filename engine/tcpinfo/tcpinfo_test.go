package tcpinfo

import (
	"encoding/binary"
	"testing"
)

// filled returns a struct of n bytes with these figures in their places.
func filled(n int, figures map[int]uint64) []byte {
	b := make([]byte, n)
	for f, v := range figures {
		switch at := b[table[f].at:]; table[f].bytes {
		case 1:
			at[0] = byte(v)
		case 4:
			binary.NativeEndian.PutUint32(at, uint32(v))
		case 8:
			binary.NativeEndian.PutUint64(at, v)
		}
	}
	return b
}

// The layout of include/uapi/linux/tcp.h, by the lengths that releases fill.
func TestParseByRelease(t *testing.T) {
	b := filled(256, map[int]uint64{MSS: 1448, RTT: 250, Retransmits: 3, SegmentsIn: 5, SegmentsOut: 7,
		BytesSent: 1 << 40, BytesResent: 99})
	for _, c := range []struct {
		name                string
		length              int
		ok, segments, bytes bool
	}{
		{"nothing", 0, false, false, false},
		{"cut in the first fields", 103, false, false, false},
		{"Linux 3.10", 104, true, false, false},
		{"cut before segments out", 156, true, false, false},
		{"Linux 4.9", 168, true, true, false},
		{"Linux 4.19", 216, true, true, true},
		{"a release to come", 256, true, true, true},
	} {
		i, ok := Parse(b[:c.length], nil)
		v := i.Figure
		if ok != c.ok || ok && (v[MSS] != 1448 || v[RTT] != 250 || v[Retransmits] != 3) {
			t.Errorf("%s (%d B): %v %v", c.name, c.length, v, ok)
		}
		if i.Knows(SegmentsOut) != c.segments || c.segments && (v[SegmentsIn] != 5 || v[SegmentsOut] != 7) {
			t.Errorf("%s: segments %v", c.name, v)
		}
		if i.Knows(BytesResent) != c.bytes || c.bytes && (v[BytesSent] != 1<<40 || v[BytesResent] != 99) {
			t.Errorf("%s: bytes %v", c.name, v)
		}
	}
}

func TestParseCongestionControl(t *testing.T) {
	told := map[int]uint64{AppLimited: 0x81, // the first bit of either byte order
		sacked: 3, Lost: 2, resending: 1, Window: 42, MinRTT: 40000, Pacing: 1e6, Delivery: 2e6, Acked: 1 << 33, Busy: 5, RwndLimited: 6, SndbufLimited: 7}
	told[Inflight] = 10 // tcpi_unacked
	b := filled(256, told)
	bbr := filled(BBRBytes, map[int]uint64{BBRBandwidth: 7, bbrBandwidthHigh: 1, BBRPacingGain: 256,
		BBRWindowGain: 576})
	want := map[string]float64{"tcp_cwnd_segments": 42, "tcp_inflight_segments": 6, "tcp_lost_segments": 2,
		"tcp_retransmits": 0, "tcp_rtt_ns": 0,
		"tcp_min_rtt_ns": 40e6, "tcp_delivery_bps": 16e6, "tcp_app_limited_ratio": 1, "tcp_pacing_bps": 8e6, "tcp_acked_bytes": 1 << 33,
		"tcp_busy_s": 5e-6, "tcp_rwnd_limited_s": 6e-6, "tcp_sndbuf_limited_s": 7e-6,
		"tcp_bbr_bw_bps": (1<<32 + 7) * 8, "tcp_bbr_pacing_gain": 1, "tcp_bbr_cwnd_gain": 2.25}
	i, _ := Parse(b, bbr)
	for f := range Figures {
		metric := Metric(f)
		if wanted, known := want[metric]; known != (metric != "") || Scaled(f, i.Figure[f]) != wanted && known ||
			IsMetric(metric) != known {
			t.Errorf("%q: %v, want %v", metric, Scaled(f, i.Figure[f]), wanted)
		}
		delete(want, metric)
	}
	if len(want) > 0 || IsMetric("receive_pps") {
		t.Errorf("not told: %v", want)
	}
	for length := range len(b) { // of whatever release
		if cut, _ := Parse(b[:length], bbr[:16]); cut.Figure[Window] > 42 || cut.Figure[Delivery] > 2e6 ||
			cut.Figure[BBRBandwidth] != 0 {
			t.Errorf("%d B: %v", length, cut)
		}
	}
	none, _ := Parse(filled(256, map[int]uint64{MinRTT: 1<<32 - 1, Pacing: 1<<64 - 1, AppLimited: 0x81}), nil)
	if v := none.Figure; v[MinRTT] != 0 || v[Pacing] != 0 || v[AppLimited] != 0 {
		t.Errorf("nothing measured yet: %v", v)
	}
}

// The literal offsets, so that a slip in the table shows.
func TestOffsets(t *testing.T) {
	b := make([]byte, 256)
	for at := range 64 {
		binary.NativeEndian.PutUint32(b[4*at:], uint32(4*at))
	}
	i, _ := Parse(b, nil)
	for f, at := range map[int]uint64{MSS: 16, Lost: 32, RTT: 68, Window: 80, Retransmits: 100, MinRTT: 148,
		SegmentsIn: 152, SegmentsOut: 156, Inflight: 24 + 36 - 28 - 32} {
		if i.Figure[f] != at {
			t.Errorf("figure %d is read at %d, want %d", f, i.Figure[f], at)
		}
	}
	for f, at := range map[int]int{Pacing: 104, Acked: 120, Delivery: 160, Busy: 168, RwndLimited: 176,
		SndbufLimited: 184, BytesSent: 200, BytesResent: 208} {
		if i.Figure[f] != binary.NativeEndian.Uint64(b[at:]) {
			t.Errorf("figure %d is not read at %d", f, at)
		}
	}
}

func TestFirstBit(t *testing.T) {
	if little, big := firstBit(binary.LittleEndian.Uint16([]byte{0, 1})), firstBit(binary.BigEndian.Uint16([]byte{0,
		1})); little != 1 || big != 0x80 {
		t.Errorf("%#x and %#x", little, big)
	}
}

func TestSumOverTheWrap(t *testing.T) {
	info := func(out, in, resent, sent, again uint64) (i Info) {
		v := &i.Figure
		v[SegmentsOut], v[SegmentsIn], v[Retransmits], v[BytesSent], v[BytesResent] = out, in, resent, sent, again
		return i
	}
	got := Sum{SegmentsOut: 100}.Plus(info(1<<32-10, 1<<32-1, 1<<32-1, 100, 10), info(5, 1, 0, 500, 60))
	want := Sum{SegmentsOut: 115, SegmentsIn: 2, Retransmits: 1, BytesSent: 400, BytesResent: 50}
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
