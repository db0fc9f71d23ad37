package tcp

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"pelt/engine"
	"pelt/model"
	"pelt/unit"
)

func TestParseInfo(t *testing.T) {
	b := make([]byte, 256)
	for at, v := range map[int]uint32{offSndMSS: 1448, offRTT: 250, offTotalRetrans: 3, offSegmentsIn: 5, offSegmentsOut: 7} {
		binary.NativeEndian.PutUint32(b[at:], v)
	}
	binary.NativeEndian.PutUint64(b[offBytesSent:], 1<<40)
	binary.NativeEndian.PutUint64(b[offBytesResent:], 99)
	full := info{mss: 1448, rttMicros: 250, retransmits: 3, segmentsIn: 5, segmentsOut: 7, bytesSent: 1 << 40, bytesResent: 99, segmentsKnown: true, bytesKnown: true}
	old := info{mss: 1448, rttMicros: 250, retransmits: 3}
	middle := info{mss: 1448, rttMicros: 250, retransmits: 3, segmentsIn: 5, segmentsOut: 7, segmentsKnown: true}
	for _, c := range []struct {
		name   string
		length int
		want   info
		ok     bool
	}{
		{"nothing", 0, info{}, false},
		{"cut in the first fields", 103, info{}, false},
		{"Linux 3.10", 104, old, true},
		{"cut before segments out", 156, old, true},
		{"Linux 4.9", 168, middle, true},
		{"Linux 4.19", 216, full, true},
		{"a release to come", 256, full, true},
	} {
		got, ok := parseInfo(b[:c.length])
		if got != c.want || ok != c.ok {
			t.Errorf("%s (%d B): got %+v %v, want %+v %v", c.name, c.length, got, ok, c.want, c.ok)
		}
	}
}

func TestParseInfoOfControl(t *testing.T) {
	b := make([]byte, 256)
	b[offFlags] = 0x81 // the first bit of either byte order
	for at, v := range map[int]uint32{offUnacked: 10, offSacked: 3, offLost: 2, offRetrans: 1, offCwnd: 42, offMinRTT: 40000} {
		binary.NativeEndian.PutUint32(b[at:], v)
	}
	for at, v := range map[int]uint64{offPacing: 1e6, offDelivery: 2e6, offAcked: 1 << 33, offBusy: 5, offRwnd: 6, offSndbuf: 7} {
		binary.NativeEndian.PutUint64(b[at:], v)
	}
	full := info{cwnd: 42, inflight: 6, lost: 2, minRTTMicros: 40000, pacing: 1e6, delivery: 2e6, appLimited: true, acked: 1 << 33,
		busy: 5, rwndLimited: 6, sndbufLimited: 7, segmentsKnown: true, bytesKnown: true}
	if got, _ := parseInfo(b); got != full {
		t.Errorf("got %+v, want %+v", got, full)
	}
	for length := range len(b) { // of whatever release
		if cut, _ := parseInfo(b[:length]); cut.cwnd > full.cwnd || cut.delivery > full.delivery {
			t.Errorf("%d B: %+v", length, cut)
		}
	}
	if i, ok := parseBBR(append(binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(nil, 7), 1), 0, 0, 0, 0, 0, 1, 0, 0, 0x40, 2, 0, 0)); !ok || i.bandwidth != 1<<32+7 || binary.NativeEndian.Uint16([]byte{1, 0}) == 1 && (i.pacingGain != 1 || i.windowGain != 2.25) {
		t.Errorf("BBR: %+v %v", i, ok)
	}
	if _, ok := parseBBR(make([]byte, 16)); ok {
		t.Error("what Vegas tells is taken for BBR's")
	}
}

func TestFirstBit(t *testing.T) {
	if little, big := firstBit(binary.LittleEndian.Uint16([]byte{0, 1})), firstBit(binary.BigEndian.Uint16([]byte{0, 1})); little != 1 || big != 0x80 {
		t.Errorf("%#x and %#x", little, big)
	}
}

func TestTallyOverTheWrap(t *testing.T) {
	from := info{segmentsOut: 1<<32 - 10, segmentsIn: 1<<32 - 1, retransmits: 1<<32 - 1, bytesSent: 100, bytesResent: 10}
	to := info{segmentsOut: 5, segmentsIn: 1, retransmits: 0, bytesSent: 500, bytesResent: 60}
	got := tally{segmentsOut: 100}.plus(from, to)
	want := tally{segmentsOut: 115, segmentsIn: 2, retransmits: 1, bytesLeft: 350}
	if got != want {
		t.Errorf("from %+v to %+v: got %+v, want %+v", from, to, got, want)
	}
}

func TestPlannedSegments(t *testing.T) {
	for _, c := range []struct {
		name                 string
		attempted, due, made uint64
		want                 uint64
	}{
		{"all made", 1000, 1000, 1000, 1000},
		{"a tenth not made", 900, 1000, 900, 1000},
		{"writes joined, all made", 500, 1000, 1000, 500},
		{"writes split, half made", 4500, 200, 100, 9000},
		{"none made", 0, 1000, 0, 1000},
	} {
		if got := plannedSegments(c.attempted, c.due, c.made); got != c.want {
			t.Errorf("%s: planned(%d, %d, %d) = %d, want %d", c.name, c.attempted, c.due, c.made, got, c.want)
		}
	}
}

func TestWritesDue(t *testing.T) {
	f := flow(2, 64, false)
	f.Rate = unit.PacketRate(1000)
	e := &end{order: engine.Order{Flow: f, Timing: timing(time.Second, 10*time.Second, 0)}}
	for _, c := range []struct {
		name string
		span span
		want uint64
	}{
		{"to the end", span{ended: 11 * time.Second, complete: true}, 10_000},
		{"read late", span{ended: 12 * time.Second, complete: true}, 10_000},
		{"stopped", span{ended: 3 * time.Second}, 2000},
		{"stopped in the warm-up", span{}, 0},
	} {
		e.streams = nil
		for i := range 2 {
			e.streams = append(e.streams, &stream{phases: e.order.Phases(e.order.Schedules(), i, 1, nil)})
		}
		e.span = c.span
		for range 2 { // the doubts ask again
			if due := e.due(); due != c.want {
				t.Errorf("%s: %d, want %d", c.name, due, c.want)
			}
		}
	}
}

// A counter of 32 bits goes on in the series.
func TestRetransmitsOverTheWrap(t *testing.T) {
	var row []reading
	for _, n := range []uint32{1 << 30, 2 << 30, 3 << 30, 5} {
		row = append(row, reading{info: info{retransmits: n}})
	}
	r := &readings{e: &end{streams: []*stream{{}}}, rows: [][]reading{row}}
	for _, s := range r.series() {
		if s.Metric == model.SeriesRetransmits && !slices.Equal(s.Values, []float64{1 << 30, 2 << 30, 3 << 30, 1<<32 + 5}) {
			t.Errorf("got %v", s.Values)
		}
	}
}
